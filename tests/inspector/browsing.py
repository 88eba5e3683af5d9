"""The inspector in a real browser, for the tests of its page: fixtures, and what the example is opened with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from cli.running import SESSION
from inspector.serving import inspector

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="in a browser (no chromium)")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120_000
"""Milliseconds until something that does not come is a failure; a busy machine is none."""
SUGGESTED = ("deepseek/deepseek-v4-pro", "anthropic/claude-sonnet-4-5", "google/gemini-3.5-flash")
"""The last writer of the example, and the two before it."""


@pytest.fixture(scope="module")
def browser():
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address():
    with inspector(SESSION) as found:
        yield found


@pytest.fixture(scope="module")
def bare_address():
    with inspector() as found:
        yield found


@pytest.fixture
def new_page(browser):
    contexts: list[Any] = []
    troubles: list[str] = []

    def open_page(address: str, width: int = 1440, height: int = 900, scheme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text) if is_trouble(message) else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(address)
        page.wait_for_selector("#models option", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def is_trouble(message) -> bool:
    # A question that was answered with what is wrong with it is one the page expects.
    return message.type in ("error", "warning") and "status of 4" not in message.text


@pytest.fixture
def page(new_page, address):
    """The example, opened by the command line, with all targets inspected."""
    page = new_page(address)
    page.wait_for_selector("#result[data-inspected]")
    return page


@pytest.fixture
def bare(new_page, bare_address):
    return new_page(bare_address)


def stored(*messages: Mapping[str, object]) -> str:
    return json.dumps({"format": "segue/1", "messages": messages})
