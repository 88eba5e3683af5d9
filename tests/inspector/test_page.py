"""The inspector in a real browser: load, paste, choose targets, see the changes, copy the JSON."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli.running import SESSION
from inspector.serving import inspector
from segue import prepare, read_session

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="in a browser (no chromium)")
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
TARGETS = ("openai/gpt-5.4", "anthropic/claude-sonnet-4-5", "deepseek/deepseek-v4-pro")
PICTURES = Path(os.environ["SEGUE_PICTURES"]) if "SEGUE_PICTURES" in os.environ else None
"""Where to put pictures for the documentation; `make pictures` sets it."""


@pytest.fixture(scope="module")
def browser():
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address():
    with inspector() as found:
        yield found


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1200, "height": 1500})
    context.set_default_timeout(PATIENCE)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text) if is_trouble(message) else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#models option", state="attached")
    yield page
    context.close()
    assert troubles == []


def is_trouble(message) -> bool:
    # A question that was answered with what is wrong with it is one the page expects.
    return message.type == "error" and "status of 422" not in message.text


def choose(page, *names: str) -> None:
    for name in names:
        page.fill("#target", name)
        page.press("#target", "Enter")


def inspect(page, text: str, *names: str) -> None:
    page.fill("#text", text)
    choose(page, *names)
    page.click("#inspect")
    page.wait_for_selector("#rows[data-done]")


def test_every_change_is_shown_beside_its_message(page):
    inspect(page, SESSION.read_text("utf-8"), *TARGETS)
    report = prepare(read_session(SESSION), TARGETS[0]).report
    assert page.locator("#matrix tbody tr").count() == len(TARGETS)
    assert page.locator("#rows .changes li").count() == len(report.changes)
    first = page.locator("#rows > li", has_text="1 assistant").first
    assert "thinking_as_text at messages[1].content[0]" in first.inner_text()
    assert "signature dropped" in first.inner_text()
    assert "about" in page.locator("#facts").inner_text()
    if PICTURES:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / "inspector.png")


def test_the_exact_wire_json_can_be_copied(page):
    inspect(page, SESSION.read_text("utf-8"), TARGETS[0])
    page.click("#wire")
    page.click("#copy")
    sync_api.expect(page.locator("#copied")).to_contain_text("copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied) == json.loads(prepare(read_session(SESSION), TARGETS[0]).content)


def test_a_copy_made_before_the_json_is_shown_is_confirmed(page):
    """Both ask for the JSON; the copy gets it first, and what comes to be shown later leaves the confirmation."""
    inspect(page, SESSION.read_text("utf-8"), TARGETS[0])
    waiting: list[Any] = []
    page.route("**/api/wire", lambda route: waiting.append(route))  # noqa: PLW0108 - playwright takes no builtin
    page.click("#wire")
    page.click("#copy")
    while len(waiting) < 2:
        page.wait_for_timeout(10)
    shown, copied = waiting
    copied.continue_()
    sync_api.expect(page.locator("#copied")).to_contain_text("copied")
    shown.continue_()
    sync_api.expect(page.locator("#wire-json")).to_contain_text("{")
    sync_api.expect(page.locator("#copied")).to_contain_text("copied")


def test_everything_can_be_done_by_keyboard(page):
    page.focus("#text")
    page.keyboard.insert_text(SESSION.read_text("utf-8"))
    page.focus("#target")
    for name in TARGETS:
        page.keyboard.insert_text(name)
        page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#rows[data-done]")
    page.focus("#matrix tbody tr[aria-selected=true]")
    page.keyboard.press("ArrowDown")
    assert page.locator("#detail-title").inner_text() == TARGETS[1]
    page.keyboard.press("j")
    assert page.locator("#rows li.here").count() == 1
    page.keyboard.press("w")
    sync_api.expect(page.locator("#wire-json")).to_contain_text('"messages"')


def test_a_file_can_be_opened(page, tmp_path):
    page.set_input_files("#file", SESSION)
    sync_api.expect(page.locator("#text")).to_have_value(SESSION.read_text("utf-8"))


def test_an_error_replaces_the_previous_result(page):
    inspect(page, SESSION.read_text("utf-8"), TARGETS[0])
    page.fill("#text", "hello")
    page.click("#inspect")
    sync_api.expect(page.locator("#problem")).to_contain_text("not valid JSON")
    assert not page.is_visible("#overview")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_the_width_of_a_phone_in_light_and_dark(page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    inspect(page, SESSION.read_text("utf-8"), *TARGETS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if PICTURES and (scheme, width) == ("dark", 360):
        page.screenshot(path=PICTURES / "inspector-phone.png")


def test_every_control_has_an_accessible_name(page):
    inspect(page, SESSION.read_text("utf-8"), TARGETS[0])
    tree = page.locator("body").aria_snapshot()
    for given in (
        'textbox "Conversation"',
        'combobox "Format"',
        'combobox "Target models"',
        'button "Inspect Ctrl Enter"',
        'grid "Changes for each target"',
        'list "Stored and sent messages, side by side"',
        'button "Remove openai/gpt-5.4"',
    ):
        assert given in tree, tree[:3000]
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button')]"
        ".filter(node => !node.labels?.length && !node.textContent.trim() && !node.getAttribute('aria-label')).length"
    )
    assert nameless == 0


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.proof)])
def test_thousands_of_messages_do_not_freeze_the_page(page, count):
    messages = [
        {"role": role, "content": [{"type": "text", "text": f"{role} says something, number {number}. " * 20}]}
        for number in range(count // 2)
        for role in ("user", "assistant")
    ]
    page.fill("#text", json.dumps({"format": "segue/1", "messages": messages}))
    choose(page, "openai/gpt-5.4")
    page.evaluate(
        "() => { window.longest = 0; let last = performance.now(); window.beats = 0;"
        " const beat = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last);"
        " last = now; window.beats++; requestAnimationFrame(beat); }; requestAnimationFrame(beat); }"
    )
    page.click("#inspect")
    page.wait_for_selector("#rows[data-done]")
    assert page.locator("#rows > li").count() >= count
    # Drawn in batches of 150 rows, one in an animation frame: the page answers in between, however slow the machine is.
    assert page.evaluate("window.beats") > count // 250
