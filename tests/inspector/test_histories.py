"""Two histories side by side in the inspector, and what a link and the keys keep of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

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
from inspector.serving import inspector
from segue import AssistantMessage, Context, TextContent, ToolCall, UserMessage, append_message
from segue.inspector.side_by_side import compare_histories

__all__ = ["address", "bare", "bare_address", "browser", "new_page", "page", "window"]


def history(*texts: str, system: str | None = None) -> Context:
    """Questions and answers, in turns."""
    answer = [AssistantMessage(content=(TextContent(text=text),)) for text in texts]
    question = [UserMessage.of(text) for text in texts]
    messages = (answer[at] if at % 2 else question[at] for at in range(len(texts)))
    return Context(system_prompt=system, messages=tuple(messages))


def pairs(left: Context, right: Context) -> list[tuple[int | None, int | None, bool]]:
    return [(pair.stored, pair.sent, pair.same) for pair in compare_histories(left, right).pairs]


CASES = {
    "the same": (("a", "b"), ("a", "b"), [(0, 0, True), (1, 1, True)]),
    "a changed answer": (("a", "b", "c"), ("a", "x", "c"), [(0, 0, True), (1, 1, False), (2, 2, True)]),
    "new turns": (("a", "b"), ("a", "b", "c", "d"), [(0, 0, True), (1, 1, True), (None, 2, False), (None, 3, False)]),
    "lost turns": (("a", "b", "c", "d"), ("a", "b"), [(0, 0, True), (1, 1, True), (2, None, False), (3, None, False)]),
    "repeated texts, two more at the start": (
        ("ok", "ok", "ok", "ok"),
        ("x", "y", "ok", "ok", "ok", "ok"),
        [(None, 0, False), (None, 1, False), (0, 2, True), (1, 3, True), (2, 4, True), (3, 5, True)],
    ),
}


@pytest.mark.parametrize(("left", "right", "rows"), CASES.values(), ids=CASES.keys())
def test_messages_of_two_histories_are_paired(left, right, rows):
    assert pairs(history(*left), history(*right))[1:] == rows


def test_instructions_and_calls_are_compared_as_they_are_shown():
    called = Context(messages=(AssistantMessage(content=(ToolCall(id="c1", name="run", arguments={"n": 1}),)),))
    other = Context(messages=(AssistantMessage(content=(ToolCall(id="c1", name="run", arguments={"n": 2}),)),))
    assert pairs(called, called) == [(None, None, True), (0, 0, True)]
    assert pairs(called, other)[1] == (0, 0, False)
    assert pairs(history("a", system="x"), history("a", system="y"))[0] == (None, None, False)
    assert compare_histories(history("a", "b"), history("a", "c")).summary()["changed"] == [2]


def test_the_work_does_not_grow_with_the_square_of_repeated_messages():
    text = TextContent(text="ok")
    many = Context(messages=(UserMessage(content=(text,)),) * 4000)
    assert all(pair.same for pair in compare_histories(many, many).pairs)


LEFT = stored({"role": "user", "content": "Fix the parser"}, {"role": "user", "content": "Now the lexer"})
RIGHT = stored({"role": "user", "content": "Fix the parser"}, {"role": "user", "content": "Now the whole lexer"})


def open_beside(page, text: str) -> None:
    page.click("#other")
    page.fill("#text", text)
    page.check("#open-beside")
    page.click("#inspect")


@needs_browser
def test_a_pasted_history_stands_beside_the_open_one_and_a_link_holds_both(bare, new_page):
    assert not bare.is_visible("#open-beside")  # nothing is open yet
    bare.fill("#text", RIGHT)
    bare.click("#inspect")
    bare.wait_for_selector("#result[data-inspected]")
    open_beside(bare, LEFT)
    row = 'li.row[data-at="2"]'
    sync_api.expect(bare.locator("#sent-to")).to_have_text("History: Pasted text")
    sync_api.expect(bare.locator(f"{row} ins")).to_have_text("whole ")
    sync_api.expect(bare.locator('li.row[data-at="1"] .side.sent')).to_have_text("the same")
    bare.locator("h1").click()
    bare.keyboard.press("j")
    sync_api.expect(bare.locator("li.here")).to_have_attribute("data-at", "2")
    bare.click("#link")
    other = new_page(bare.evaluate("navigator.clipboard.readText()"))
    sync_api.expect(other.locator(f"{row} ins")).to_have_text("whole ")
    sync_api.expect(other.locator("li.here")).to_have_attribute("data-at", "2")
    other.keyboard.press("1")  # a target: what it gets
    sync_api.expect(other.locator("#sent-to")).to_have_text(re.compile("^Sent to "))
    sync_api.expect(other.locator("#beside")).to_have_value("")


@needs_browser
def test_a_history_that_cannot_be_read_leaves_the_open_one(bare):
    bare.fill("#text", RIGHT)
    bare.click("#inspect")
    bare.wait_for_selector("#result[data-inspected]")
    open_beside(bare, "nothing that is known")
    sync_api.expect(bare.locator("#problem")).not_to_be_empty()
    assert bare.is_visible("#rows")


@needs_browser
def test_two_files_of_the_command_line_stand_side_by_side(new_page, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(LEFT, "utf-8")
    with inspector(SESSION, other) as found:
        page = new_page(found)
        sync_api.expect(page.locator("#sent-to")).to_have_text(f"History: {SESSION.name}")
        sync_api.expect(page.locator("#beside option:checked")).to_have_text("History: other.json")
        page.locator("#beside").focus()
        page.keyboard.press("Home")  # the first choice: the stored conversation
        sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[0]}")


@needs_browser
def test_a_link_holds_two_targets(page, new_page):
    page.select_option("#beside", SUGGESTED[1])
    sync_api.expect(page.locator("ul.changes")).to_have_count(0)
    other = new_page(page.url)
    sync_api.expect(other.locator("#beside")).to_have_value(SUGGESTED[1])
    sync_api.expect(other.locator("ul.changes")).to_have_count(0)


def hold(page, pattern: str, text: str = "") -> Callable[[], None]:
    """Keep the requests with a text back; gives the function that releases them, and those after them."""
    held: list[Any] = []
    released: list[bool] = []

    def answer(route) -> None:
        if released or text not in (route.request.post_data or ""):
            route.continue_()
        else:
            held.append(route)

    def release() -> None:
        released.append(True)
        for route in held:
            route.continue_()

    page.route(pattern, answer)
    return release


@needs_browser
def test_keys_pressed_while_rows_load_keep_their_mark(page):
    release = hold(page, "**/api/rows")
    page.keyboard.press("2")
    sync_api.expect(page.locator("#sent-to")).to_have_text(f"Sent to {SUGGESTED[1]}")
    page.keyboard.press("j")
    page.keyboard.press("j")
    release()
    sync_api.expect(page.locator("#place")).to_contain_text("2 of")
    sync_api.expect(page.locator("li.here")).to_have_count(1)
    sync_api.expect(page.locator("li.here")).to_be_focused()


@needs_browser
def test_a_target_chosen_before_it_is_inspected_is_shown_when_it_is(new_page, address):
    page = new_page(address + "#thinking=drop")  # so that every target is asked for
    page.wait_for_selector("#result[data-inspected]")
    release = hold(page, "**/api/inspect", SUGGESTED[1])
    page.select_option("#reasoning", "text")
    sync_api.expect(page.locator(".card .chips")).not_to_have_count(0)
    page.locator("#targets .choose", has_text=SUGGESTED[1]).click()
    sync_api.expect(page.locator("#nothing")).to_be_visible()
    release()
    sync_api.expect(page.locator("li.row").first).to_be_visible()


@needs_browser
def test_the_page_follows_a_file_that_grows(new_page, tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_bytes(SESSION.read_bytes())
    with inspector(path) as address:
        page = new_page(address)
        page.wait_for_selector("#result[data-inspected]")
        chosen = page.locator("#targets .choose[aria-pressed=true]").inner_text().split("\n")[0]
        count = int(re.search(r"(\d+) messages", page.locator("#about").inner_text())[1])  # pyright: ignore[reportOptionalSubscript]
        page.check("#follow")
        append_message(path, UserMessage.of("A word that is easy to find: cormorant."))
        sync_api.expect(page.locator("#about")).to_contain_text(f"{count + 1} messages", timeout=30_000)
        page.fill("#find", "cormorant")
        page.keyboard.press("Enter")
        sync_api.expect(page.locator("#found")).to_have_text("1 of 1")
        assert page.locator("#targets .choose[aria-pressed=true]").inner_text().split("\n")[0] == chosen
