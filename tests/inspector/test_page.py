"""The inspector in a real browser: the first screen, paste, choose targets, see the changes, copy the JSON."""

from __future__ import annotations

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from cli.running import SESSION
from inspector.browsing import (
    SUGGESTED,
    address,
    bare,
    bare_address,
    browser,
    needs_browser,
    new_page,
    page,
    stored,
    sync_api,
    window,
)
from segue import prepare, read_session

__all__ = ["address", "bare", "bare_address", "browser", "new_page", "page", "window"]

pytestmark = needs_browser
SMALL = "openrouter/openai/gpt-4"
"""A model with a window of 8,191 tokens."""
PICTURES = Path(os.environ["SEGUE_PICTURES"]) if "SEGUE_PICTURES" in os.environ else None
"""Where to put pictures for the documentation; `make pictures` sets it."""
SIZES = {"a screen": (1440, 900, "light"), "a dark screen": (1440, 900, "dark"), "a phone": (390, 844, "dark")}
NAMES = {"a screen": "inspector.png", "a dark screen": "inspector-dark.png", "a phone": "inspector-phone.png"}


@pytest.mark.parametrize("width", [390, 1400])
def test_what_a_switch_costs_and_loses_is_shown_before_it(new_page, address, width):
    page = new_page(address, width)
    page.wait_for_selector("#result[data-inspected]")
    page.keyboard.press("p")
    rows = page.locator("#plan tbody tr")
    sync_api.expect(rows).to_have_count(len(SUGGESTED))
    texts = [text.replace("\n", " ") for text in rows.all_inner_texts()]
    assert [text.split()[0] for text in texts] == list(SUGGESTED)
    assert "answers now" in texts[0]
    for text in texts:
        assert re.search(r"≈ \$[\d.]+", text)
    assert "reasoning of" in texts[1]  # what is lost
    assert "return" in texts[1]
    assert page.locator("#plan").inner_text().startswith("Estimated")
    add(page, SMALL)
    sync_api.expect(rows).to_have_count(len(SUGGESTED) + 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def inspect(page, text: str, *names: str) -> None:
    if not page.is_visible("#text"):
        page.click("#other")
    page.fill("#text", text)
    page.click("#inspect")
    page.wait_for_selector("#result[data-inspected]")
    for name in names:
        add(page, name)


def add(page, name: str) -> None:
    page.fill("#target", name)
    page.press("#target", "Enter")
    sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {name}")
    page.wait_for_selector("#rows[data-done]")


def is_on_screen(page, selector: str) -> bool:
    box = page.locator(selector).first.bounding_box()
    size = page.viewport_size
    return box["y"] >= 0 and box["y"] + min(box["height"], 40) <= size["height"] and 0 <= box["x"] < size["width"]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_the_first_screen_answers(new_page, address, size):
    page = new_page(address, *size)
    page.wait_for_selector("#result[data-inspected]")
    sync_api.expect(page.locator("#targets .name")).to_have_text(list(SUGGESTED))
    assert page.locator("#targets [aria-pressed=true] .name").inner_text() == SUGGESTED[0]
    assert not page.is_visible("#open")
    assert "27 messages" in page.locator("#opened").inner_text()
    for selector in (
        "#targets .chip.content",
        "#targets .length",
        '.row[data-at="1"] .stored',
        '.row[data-at="1"] .sent',
    ):
        assert is_on_screen(page, selector), selector
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    sync_api.expect(page.locator("#facts-line")).to_contain_text("bytes")
    if PICTURES:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / NAMES[next(name for name, other in SIZES.items() if other == size)])


def test_every_change_is_shown_beside_its_message(page):
    report = prepare(read_session(SESSION), SUGGESTED[0]).report
    page.click("#only")
    page.wait_for_selector("#rows[data-done]")
    shown = "[...document.querySelectorAll('#rows .changes li')].reduce((sum, each) => sum + +each.dataset.count, 0)"
    assert page.evaluate(shown) == len(report.changes)  # those of one kind are one item, with their number
    assert page.locator("#rows li.row:not(.changed)").count() == 0
    first = page.locator('li.row[data-at="2"]')
    assert "thinking_unsigned at messages[1].content[0]" in first.inner_text()
    assert "without signature" in first.locator(".sent").inner_text()


def test_the_table_compares_all_targets(page):
    page.click("#compare summary")
    assert page.locator("#matrix tbody th").all_inner_texts() == list(SUGGESTED)


def test_what_does_not_fit_is_red_and_says_what_is_cut(bare):
    turns = [{"role": role, "content": "many words " * 200} for _ in range(20) for role in ("user", "assistant")]
    inspect(bare, stored(*turns, {"role": "user", "content": "And now?"}), SMALL)
    card = bare.locator("#targets li.card", has=bare.locator("[aria-pressed=true]"))
    assert "does not fit: " in card.inner_text()
    assert "cut to" in card.inner_text()
    assert "messages before" in card.inner_text()
    others = bare.locator("#targets li.card", has=bare.locator("[aria-pressed=false]"))
    assert all("does not fit" not in text for text in others.all_inner_texts())
    assert "messages before" in bare.locator("#facts").text_content()
    if PICTURES:
        bare.screenshot(path=PICTURES / "inspector-too-long.png")
    for name, (width, height, scheme) in SIZES.items():
        bare.set_viewport_size({"width": width, "height": height})
        bare.emulate_media(color_scheme=scheme)
        colour = card.locator("b.over").evaluate("(node) => getComputedStyle(node).color")
        red, green, blue = (int(value) for value in colour[4:-1].split(","))
        assert red > 1.3 * max(green, blue), name
        assert bare.evaluate("document.documentElement.scrollWidth") <= width, name


def test_changed_words_are_highlighted_inside_a_line(bare):
    turn = {"role": "assistant", "content": [{"type": "toolCall", "id": "toolu_1|x", "name": "run", "arguments": {}}]}
    result = {
        "role": "toolResult",
        "toolCallId": "toolu_1|x",
        "toolName": "run",
        "content": "half \ud83d of a character",
    }
    inspect(bare, stored({"role": "user", "content": "Hello"}, turn, result), "mistral-chat")
    row = bare.locator('li.row[data-at="3"]')
    assert row.locator(".sent .words ins").all_inner_texts() == ["\ufffd"]
    assert row.locator(".stored .words").inner_text().endswith(" of a character")
    assert "toolu_1|x" in row.locator(".stored .who del").all_inner_texts()


def test_an_image_is_shown_as_a_picture(page):
    picture = page.locator('li.row[data-at="1"] .stored img')
    picture.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('li.row[data-at=\"1\"] .stored img').naturalWidth === 24")
    assert picture.get_attribute("alt") == "image, image/png, 90 bytes"


def test_a_long_text_can_be_expanded_and_shortened_with_the_keyboard(bare):
    text = "many words " * 400
    inspect(bare, stored({"role": "user", "content": text}))
    piece = bare.locator('li.row[data-at="1"] .piece')
    assert len(piece.locator(".words").inner_text()) == 1200
    bare.focus(".expand")
    bare.keyboard.press("Enter")
    sync_api.expect(piece.locator(".words")).to_have_text(text)
    sync_api.expect(piece.locator(".expand")).to_be_focused()
    bare.keyboard.press("Enter")
    sync_api.expect(piece.locator(".expand")).to_contain_text("more characters")


def test_what_is_in_a_conversation_is_never_html(bare):
    inspect(bare, stored({"role": "user", "content": "<img src=x onerror=alert(1)><script>alert(2)</script>"}))
    assert bare.locator('li.row[data-at="1"] .words').inner_text().startswith("<img src=x")
    assert bare.locator("#rows script, #rows img").count() == 0


def test_the_exact_wire_json_can_be_copied(page):
    page.click("#wire")
    page.click("#copy")
    sync_api.expect(page.locator("#copied")).to_contain_text("copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert json.loads(copied) == json.loads(prepare(read_session(SESSION), SUGGESTED[0]).content)


def test_results_are_announced(page):
    status = page.locator("#status")
    assert status.get_attribute("role") == "status"
    sync_api.expect(status).to_contain_text("3 targets inspected")
    page.keyboard.press("3")
    sync_api.expect(status).to_contain_text(f"{SUGGESTED[2]}: content dropped: 2 messages")
    assert page.locator("#problem").get_attribute("role") == "alert"


def test_the_place_in_the_conversation_stays_when_another_target_is_chosen(page):
    page.set_viewport_size({"width": 1000, "height": 700})
    page.evaluate("document.querySelector('li.row[data-at=\"16\"]').scrollIntoView({block: 'start'})")
    page.keyboard.press("2")
    sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[1]}")
    page.wait_for_selector("#rows[data-done]")
    page.wait_for_function(
        "() => Math.abs(document.querySelector('li.row[data-at=\"16\"]').getBoundingClientRect().top"
        " - (document.querySelector('#tools').getBoundingClientRect().bottom)) < 120"
    )


def test_a_file_can_be_opened(page, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(stored({"role": "user", "content": "From a file"}), "utf-8")
    page.set_input_files("#file", path)
    sync_api.expect(page.locator("#name")).to_have_text("other.json")
    sync_api.expect(page.locator('li.row[data-at="1"] .words')).to_have_text("From a file")


def test_an_error_replaces_the_previous_result(page, tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    page.set_input_files("#file", path)
    sync_api.expect(page.locator("#problem")).to_contain_text("picture.png: this is a binary file")
    assert not page.is_visible("#result")
    assert not page.is_visible("#opened")
    sync_api.expect(page.locator("#text")).to_be_focused()
    page.keyboard.press("Escape")
    sync_api.expect(page.locator("#result")).to_be_visible()
    sync_api.expect(page.locator("#problem")).to_have_text("")
    sync_api.expect(page.locator("#opened")).to_contain_text("27 messages")


def test_an_unknown_target_is_not_added(page):
    page.fill("#target", "gtp-5.4")
    page.press("#target", "Enter")
    sync_api.expect(page.locator("#problem")).to_contain_text("gpt-5.4")
    assert page.locator(".card").count() == 3


def test_without_a_target_there_is_a_sentence(page):
    for _ in SUGGESTED:
        page.locator(".remove").first.click()
    sync_api.expect(page.locator("#nothing")).to_contain_text("No target is chosen")
    assert page.locator("#rows li").count() == 0
    add(page, "plain-text")
    assert not page.is_visible("#nothing")


def test_what_does_not_fit_is_red(bare):
    inspect(bare, stored({"role": "user", "content": "word " * 60_000}), "openai/gpt-4")
    card = bare.locator(".card", has_text="openai/gpt-4")
    over = card.locator(".over, .chip.content").first
    sync_api.expect(over).to_be_visible()


CUT = [
    {"role": role, "content": f"message {number} {'word ' * 200}{'needle' if number == 40 else ''}"}
    for number, role in enumerate(["user", "assistant"] * 60)
]


def test_a_run_that_is_not_sent_is_one_row_and_a_search_finds_what_is_in_it(bare):
    inspect(bare, stored(*CUT, {"role": "user", "content": "And now?"}), "openai/gpt-4")
    chip = bare.locator(".card", has_text="openai/gpt-4").locator(".chip.content")
    sync_api.expect(chip).to_contain_text(re.compile(r"content dropped: \d+ messages, [\d,]+ tokens"))
    fold = bare.locator("li.fold")
    sync_api.expect(fold).to_contain_text(re.compile(r"\d+ messages, from messages\[\d+\]"))
    assert bare.locator("#rows li").count() < 60
    bare.locator("h1").click()  # keys are those of the page while no field has the focus
    bare.keyboard.press("/")
    bare.keyboard.insert_text("needle")
    bare.keyboard.press("Enter")
    sync_api.expect(bare.locator("#found")).to_contain_text("1 of")
    sync_api.expect(bare.locator("li.here")).to_contain_text("message 40")
    assert bare.locator("li.fold").count() == 0
    bare.fill("#find", "nowhere in it")
    bare.press("#find", "Enter")
    sync_api.expect(bare.locator("#found")).to_have_text("not found")


def test_two_targets_stand_side_by_side(page):
    page.select_option("#beside", SUGGESTED[1])
    row = page.locator('li.row[data-at="2"]')  # an answer of Claude, signed
    sync_api.expect(row.locator(".side.stored")).to_contain_text("signature")
    sync_api.expect(row.locator(".side.sent")).to_contain_text("without signature")
    sync_api.expect(page.locator("ul.changes")).to_have_count(0)
    page.select_option("#beside", "")
    sync_api.expect(page.locator("ul.changes").first).to_be_visible()


def test_a_link_holds_the_view(page, new_page):
    page.keyboard.press("2")
    sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[1]}")
    page.wait_for_selector("#rows[data-done]")
    page.keyboard.press("o")
    sync_api.expect(page.locator("#only")).to_have_attribute("aria-pressed", "true")
    page.wait_for_selector("#rows[data-done]")
    page.keyboard.press("j")
    sync_api.expect(page.locator("#place")).to_contain_text("1 of")
    sync_api.expect(page.locator("li.here")).to_have_count(1)
    page.click("#link")
    other = new_page(page.evaluate("navigator.clipboard.readText()"))
    sync_api.expect(other.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[1]}")
    sync_api.expect(other.locator("#only")).to_have_attribute("aria-pressed", "true")
    here = page.locator("li.here").get_attribute("data-at")
    sync_api.expect(other.locator("li.here")).to_have_attribute("data-at", here)


def test_the_empty_page_opens_the_example_and_a_question_mark_lists_the_keys(bare):
    bare.click("#example")
    sync_api.expect(bare.locator("#name")).to_have_text("example.jsonl")
    bare.wait_for_selector("#result[data-inspected]")
    bare.keyboard.press("?")
    sync_api.expect(bare.locator("#keys-box")).to_contain_text("next and previous change")
    bare.keyboard.press("Escape")
    sync_api.expect(bare.locator("#keys-box")).not_to_be_visible()


def test_an_error_is_where_the_user_looks(page):
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.fill("#target", "no/such-model")
    page.press("#target", "Enter")
    sync_api.expect(page.locator("#problem")).to_contain_text("no model")
    box = page.locator("#problem").bounding_box()
    assert 0 <= box["y"] < 200


def test_the_page_has_five_sizes_of_text(page):
    page.click("#other")
    sizes = page.evaluate(
        "[...new Set([...document.querySelectorAll('body *')].map((node) => getComputedStyle(node).fontSize))]"
    )
    assert {"12px", "13px", "14px", "16px"} >= set(sizes) - {"22px"}


MONEY = {0.4: "$0.40", 3.3456: "$3.35", 0.0072: "$0.0072", 0: "$0"}


def test_prices_have_cents(page):
    for dollars, shown in MONEY.items():
        found = page.evaluate(f"import('./targets.js').then(({{ money }}) => money({dollars}))")
        assert found == shown


def test_every_control_has_an_accessible_name(page):
    page.click("#other")
    tree = page.locator("body").aria_snapshot()
    for given in (
        'textbox "Conversation"',
        'combobox "Format"',
        'combobox "Add a target"',
        'combobox "Thinking of other models"',
        'button "Inspect Ctrl Enter"',
        'list "Stored and sent messages, side by side: 1 to 24 of 28"',
        f'button "Remove {SUGGESTED[0]}"',
    ):
        assert given in tree, tree[:3000]
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, textarea, button')]"
        ".filter(node => !node.labels?.length && !node.textContent.trim() && !node.getAttribute('aria-label')).length"
    )
    assert nameless == 0


MOST_NODES = 6000
"""More than any screen needs, and fewer than a conversation of a thousand messages would have."""


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.proof)])
def test_the_page_holds_only_what_is_near_the_screen(bare, count):
    messages = [{"role": role, "content": f"number {at}"} for at in range(count // 2) for role in ("user", "assistant")]
    inspect(bare, stored(*messages))
    last = bare.locator(f'li.row[data-at="{count}"]')
    for target in (0, 1):
        bare.keyboard.press(str(target + 1))
        bare.wait_for_selector("#rows[data-done]")
        for where in ("scrollHeight", "scrollHeight / 2", "scrollTop = 0"):
            bare.evaluate(f"scrollTo(0, document.documentElement.{where})")
            if where == "scrollHeight":
                sync_api.expect(last).to_be_visible()
            assert bare.evaluate("document.querySelectorAll('*:not(option)').length") < MOST_NODES


def find_axe() -> str | None:
    """The accessibility checker, if a package with it is installed; it is not part of the tests' own set-up."""
    for name in ("axe_playwright_python", "axe_core_python"):
        found = find_spec(name)
        if found is not None and found.origin is not None:
            return next(map(str, Path(found.origin).parent.glob("axe*.js")), None)
    return None


@pytest.mark.proof
@pytest.mark.skipif(find_axe() is None, reason="of accessibility rules (no axe-core-python)")
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_axe_finds_nothing_in_any_state(new_page, address, browser, size):
    page = new_page(address, *size)
    page.wait_for_selector("#result[data-inspected]")
    script = Path(find_axe() or "").read_text("utf-8")
    page.evaluate(script)
    states = {
        "first": lambda: None,
        "a change": lambda: page.keyboard.press("j"),
        "only changed": lambda: page.click("#only"),
        "details": lambda: (page.click("#compare summary"), page.click("#facts-box summary")),
        "the request before": lambda: (
            page.keyboard.press("b"),
            page.fill("#before-text", stored({"role": "user", "content": "Another"})),
            page.keyboard.press("Control+Enter"),
            page.wait_for_selector("#before-facts dd"),
            page.focus("#only"),
        ),
        "two histories": lambda: (
            page.click("#other"),
            page.fill("#text", stored({"role": "user", "content": "Another"})),
            page.check("#open-beside"),
            page.click("#inspect"),
            page.wait_for_selector("#result[data-beside=histories]"),
            page.wait_for_selector("#rows[data-done]"),
            page.focus("#only"),
        ),
        "request": lambda: page.keyboard.press("w"),
        "form": lambda: (page.keyboard.press("Escape"), page.click("#other")),
        "error": lambda: (
            page.fill("#text", "hello"),
            page.click("#inspect"),
            page.wait_for_selector("#problem:not(:empty)"),
        ),
    }
    for name, act in states.items():
        act()
        page.wait_for_timeout(50)
        found = page.evaluate("axe.run().then(({ violations }) => violations.map((it) => [it.id, it.nodes[0].html]))")
        assert found == [], name
