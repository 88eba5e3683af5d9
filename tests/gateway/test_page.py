"""The page of the gateway in a real browser: a conversation is switched to another model, with a key and without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.running import running

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="in a browser (no chromium)")
PATIENCE = 120_000
"""Milliseconds until something that does not come is a failure; a busy machine is none."""
KEY = "sgw-a-long-key-of-a-client"
ASK = {"model": "m-anthropic", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("has_key", [False, True])
def test_a_conversation_is_switched_on_the_page(browser: Any, has_key: bool, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    more = f'[listen]\nkeys = ["file:{file}"]\n' if has_key else ""
    headers = {"x-session-id": "page", **({"x-api-key": KEY} if has_key else {})}
    with running(store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        first = httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers=headers)
        assert first.headers["x-segue-model"] == "anthropic/claude-opus-4-8"
        context = browser.new_context()
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        troubles: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(f"{gateway.url}/segue")
        if has_key:
            page.get_by_label("Key of this gateway").fill(KEY)
            page.get_by_role("button", name="Show").click()
        page.get_by_text("anthropic/claude-opus-4-8").wait_for()
        field = page.get_by_label("Model for the conversation of")
        for name, told in {"no/such": "no/such", "openai/gpt-5.4": "goes to openai/gpt-5.4"}.items():
            field.fill(name)
            field.press("Enter")
            page.get_by_role("status").filter(has_text=told).wait_for()
        second = httpx2.post(f"{gateway.url}/v1/messages", json=ASK, headers=headers)
        assert second.headers["x-segue-model"] == "openai/gpt-5.4"
        page.reload()
        if has_key:
            page.get_by_label("Key of this gateway").fill(KEY)
            page.get_by_role("button", name="Show").click()
        sync_api.expect(page.get_by_label("Model for the conversation of")).to_have_value("openai/gpt-5.4")
        context.close()
        assert not troubles
