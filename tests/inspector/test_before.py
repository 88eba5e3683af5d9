"""The inspector compares a request with the one before it: first difference, lost reasoning, tokens and price."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inspector.browsing import bare, bare_address, browser, needs_browser, new_page, sync_api, window
from segue import (
    Context,
    Policy,
    Prompt,
    SegueError,
    UserMessage,
    compare_requests,
    dump,
    get_model,
    prepare,
)
from segue.histories.opening import OpenedDocument
from segue.inspector.inspection import Inspection, open_conversation

__all__ = ["bare", "bare_address", "browser", "new_page", "window"]

MODEL = "anthropic/claude-opus-5-5"
OTHER = "openai/gpt-5.4"


def body(system: str, *, turns: int = 2) -> dict[str, Any]:
    """A request with signed thinking in each answer."""
    messages: list[dict[str, object]] = []
    for number in range(turns + 1):
        thinking = {"type": "thinking", "thinking": "", "signature": f"c2lnbmF0dXJl{number:04}"}
        messages += [
            {"role": "user", "content": [{"type": "text", "text": f"Question {number} " * 30}]},
            {"role": "assistant", "content": [thinking, {"type": "text", "text": "An answer."}]},
        ]
    messages.pop()
    return {"model": "claude-opus-5-5", "max_tokens": 1000, "system": system, "messages": messages}


def document(given: dict[str, Any]) -> OpenedDocument:
    return open_conversation(json.dumps(given).encode(), "", None).document


def compare(later: OpenedDocument, before: OpenedDocument, target: str = MODEL) -> Any:
    return Inspection(later, get_model(target), Policy()).compare_with(before)


def test_a_request_that_continues_has_no_difference():
    assert "where" not in compare(document(body("Be short.", turns=3)), document(body("Be short.")))


def test_the_difference_is_that_of_the_library():
    later, before = body("Be kind.", turns=3), body("Be short.")
    answer = compare(document(later), document(before))
    change: Any = compare_requests(later, before, protocol="anthropic-messages", model=MODEL)
    assert (answer["where"], answer["message"]) == ("system", change.message)
    assert (answer["invalid"], answer["tokens"], answer["cost"]) == (3, change.tokens, change.cost)
    assert answer["reasoning"][0] == "messages[1].content[0]"


def test_another_target_loses_the_cache_and_no_reasoning():
    answer = compare(document(body("Be kind.")), document(body("Be short.")), OTHER)
    assert (answer["where"], answer["invalid"]) == ("input[0].content", 0)
    assert answer["tokens"] > 0


def test_reasoning_that_segue_leaves_out_is_counted_too():
    context = Context(system_prompt="Monday", messages=(UserMessage.of("What is 17 * 23?"),))
    request = prepare(context, MODEL)
    reply = request.decode(
        {
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "c2ln"},
                {"type": "text", "text": "391."},
            ],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 20, "output_tokens": 40},
        }
    )
    stored = [
        OpenedDocument(
            Prompt(context=Context(system_prompt=day, messages=(*context.messages, reply, UserMessage.of("So?"))))
        )
        for day in ("Monday", "Tuesday")
    ]
    assert [compare(stored[0], one)["withheld"] for one in stored] == [0, 0]
    answer = compare(stored[1], stored[0])
    assert (answer["where"], answer["invalid"], answer["withheld"]) == ("system", 0, 1)
    assert answer["leftOut"] == ["messages[1].content[0]: the system prompt has changed since"]


def test_what_cannot_be_sent_is_not_compared():
    empty = OpenedDocument(Prompt(context=Context()))
    with pytest.raises(SegueError):
        compare(empty, document(body("Be short.")))
    with pytest.raises(SegueError):
        compare(document(body("Be short.")), empty)


@needs_browser
def test_the_page_compares_by_keyboard_and_again_for_each_target(bare, tmp_path):
    bare.fill("#text", json.dumps(body("Be kind.", turns=3)))
    bare.click("#inspect")
    bare.wait_for_selector("#result[data-inspected]")
    for name in (OTHER, MODEL):
        bare.fill("#target", name)
        bare.press("#target", "Enter")
        sync_api.expect(bare.locator("#sent-to")).to_have_text(f"Sent to {name}")
        bare.wait_for_selector("#rows[data-done]")
    bare.evaluate("document.activeElement.blur()")

    bare.keyboard.press("b")
    sync_api.expect(bare.locator("#before-text")).to_be_focused()
    bare.keyboard.press("Control+Enter")
    answer, facts = bare.locator("#before-answer"), bare.locator("#before-facts")
    assert answer.get_attribute("role") == "status"
    sync_api.expect(answer).to_contain_text("There is no text")
    bare.keyboard.insert_text(json.dumps(body("Be short.")))
    bare.keyboard.press("Control+Enter")
    sync_api.expect(answer).to_contain_text("the instructions changed, first at system")
    sync_api.expect(facts).to_contain_text("3 blocks: messages[1].content[0]")
    sync_api.expect(facts).to_contain_text("more than from the cache")

    bare.locator("#targets .choose", has_text=OTHER).click()
    sync_api.expect(answer).to_contain_text("first at input[0].content")
    sync_api.expect(facts).not_to_contain_text("3 blocks")

    path = tmp_path / "before.json"
    path.write_text(json.dumps(body("Be kind.")), "utf-8")
    bare.set_input_files("#before-file", path)
    sync_api.expect(answer).to_contain_text("This request continues the one before")
    bare.set_input_files("#before-file", {"name": "x.json", "mimeType": "application/json", "buffer": b"nothing"})
    sync_api.expect(answer).to_contain_text("x.json: ")
    sync_api.expect(facts).to_be_empty()


@needs_browser
def test_the_form_for_the_request_before_has_accessible_names_and_fits_a_phone(new_page, bare_address):
    page = new_page(bare_address, 390, 844)
    page.fill("#text", dump(Context(messages=(UserMessage.of("Hello"),))).decode())
    page.click("#inspect")
    page.wait_for_selector("#result[data-inspected]")
    page.click("#before-box summary")
    tree = page.locator("#before-box").aria_snapshot()
    for given in ('textbox "Request before this one in the same conversation"', 'button "Compare Ctrl Enter"'):
        assert given in tree, tree
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
