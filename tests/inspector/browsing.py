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


@pytest.fixture(scope="module")
def window(browser):
    """A page for all tests of a file, one after the other: opening one takes as long as showing the example in it."""
    return new_window(browser)


def new_window(browser: Any) -> Any:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    return context.new_page()


@pytest.fixture
def new_page(browser, window):
    """Open the inspector in the window of the file, and each further time in one of its own."""
    pages: list[Any] = []
    troubles: list[str] = []

    def hear(message: Any) -> None:
        if is_trouble(message):
            troubles.append(message.text)

    def fail(error: Any) -> None:
        troubles.append(str(error))

    def open_page(address: str, width: int = 1440, height: int = 900, scheme: str = "light"):
        page = new_window(browser) if pages else window
        pages.append(page)
        page.goto(f"{address.partition('#')[0]}inspector.css")  # the page of the test before ends, unheard
        page.evaluate("localStorage.clear(), sessionStorage.clear()")
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.on("console", hear)
        page.on("pageerror", fail)
        page.goto(address)
        page.wait_for_selector("#models option", state="attached")
        return page

    yield open_page
    for page in pages[1:]:
        page.context.close()
    if pages:
        window.remove_listener("console", hear)
        window.remove_listener("pageerror", fail)
        window.unroute_all(behavior="ignoreErrors")
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
