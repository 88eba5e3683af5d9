"""Ids of items: a request to the Responses API holds each of them once, and the report names those that it lost."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import segue
from segue.projection.report import ChangeCode
from segue.protocols.kit.reply_form import Search
from segue.protocols.openai_responses.protocol import PROTOCOL

MODEL = "openai/gpt-5.4"


def text(item_id: str, content: str = "yes") -> dict[str, Any]:
    part = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
    return {"id": item_id, "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def thought(item_id: str) -> dict[str, Any]:
    return {"id": item_id, "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}


def called(item_id: str, call_id: str) -> list[dict[str, Any]]:
    call = {"id": item_id, "type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}
    return [call, {"type": "function_call_output", "call_id": call_id, "output": "x"}]


SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
GO = {"role": "user", "content": "go on"}


def ids(items: list[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in items if "id" in item]


def sent(*items: dict[str, Any]) -> tuple[list[dict[str, Any]], segue.Report]:
    body = {"model": "gpt-5.4", "input": [{"role": "user", "content": "hi"}, *items, GO]}
    converted = segue.convert(body, source="openai-responses", target=MODEL)
    assert segue.check(converted.body, protocol="openai-responses", model=MODEL) == []
    return converted.body["input"], converted.report


REPEATED = {
    "messages of two replies": ([text("msg_0"), GO, text("msg_0", "no")], ["msg_0"]),
    "messages of one reply": ([text("msg_0"), text("msg_0", "no")], []),
    "a turn that was sent twice": (
        [thought("rs_1"), text("msg_1"), GO, thought("rs_1"), text("msg_1")],
        ["rs_1", "msg_1"],
    ),
    "reasoning loses its id with the message behind it": (
        [thought("rs_1"), text("msg_1"), GO, thought("rs_2"), text("msg_1")],
        ["rs_1", "msg_1"],
    ),
    "calls": ([*called("fc_1", "a"), GO, *called("fc_1", "b")], ["fc_1"]),
    "a search": ([SEARCH, text("msg_1"), GO, SEARCH, text("msg_2")], ["ws_1", "msg_1", "msg_2"]),
    "messages of the user": ([{**GO, "id": "msg_1"}, text("msg_2"), {**GO, "id": "msg_1"}], ["msg_1", "msg_2"]),
}


@pytest.mark.parametrize(("items", "kept"), REPEATED.values(), ids=REPEATED.keys())
def test_an_id_is_sent_once_and_what_was_removed_is_reported(items, kept):
    got, report = sent(*items)
    assert ids(got) == kept
    assert report.changes
    # The official types have a message with both, or with neither.
    assert all(("id" in item) == ("status" in item) for item in got if item.get("role") == "assistant")


def test_encrypted_reasoning_stays_without_its_id():
    got, report = sent(thought("rs_1"), text("msg_1"), GO, thought("rs_1"), text("msg_1"))
    assert [item.get("encrypted_content") for item in got if item.get("type") == "reasoning"] == ["gAAA", "gAAA"]
    assert [change.code for change in report.changes] == [ChangeCode.ID_CHANGED] * 2


def test_ids_that_differ_stay_and_nothing_is_reported():
    items = [thought("rs_1"), text("msg_1"), GO, *called("fc_1", "a"), SEARCH, text("msg_2")]
    got, report = sent(*items)
    assert ids(got) == ids(items)
    assert not report.changes


@pytest.mark.parametrize("sample", PROTOCOL.samples(), ids=lambda sample: sample.name)
def test_no_sample_sent_twice_repeats_an_id(sample):
    items = (sample.request or {}).get("input")
    if not isinstance(items, list):
        pytest.skip("no list of items")
    body = {**sample.request, "input": [*items, GO, *items]}
    converted = segue.convert(body, source="openai-responses", target=MODEL)
    found = segue.check(converted.body, protocol="openai-responses", model=MODEL)
    assert [one for one in found if one.code == "value_duplicate"] == []


def test_what_was_sent_is_sent_again():
    """An id that a later message repeats stays where it stood first, so that the request continues the one before."""
    before, _ = sent(text("msg_0"))
    after, _ = sent(text("msg_0"), GO, text("msg_0", "no"))
    assert after[: len(before)] == before


def test_items_of_two_replies_without_an_id_have_different_ids():
    """The time at which a reply came stands for its id."""
    message = segue.AssistantMessage(
        content=(segue.TextContent(text="yes"),), protocol="ollama-chat", provider="ollama", model="llama3.2"
    )
    replies = [
        segue.encode_response(replace(message, timestamp=time), protocol="openai-responses") for time in (1_000, 2_000)
    ]
    one, other = (ids(reply["output"]) for reply in replies)
    assert one != other


def test_two_searches_for_the_same_have_different_ids():
    write = PROTOCOL.reply_form.write_search
    assert write is not None
    search = Search("weather")
    assert write(search, {"id": "srvtoolu_1"})["id"] != write(search, {"id": "srvtoolu_2"})["id"]
    assert write(search, {"id": "srvtoolu_1"}) == write(search, {"id": "srvtoolu_1"})


@pytest.mark.parametrize("prompt", ["Be brief.", None])
def test_the_backend_of_codex_gets_instructions(prompt):
    """It refuses a request without them: "Instructions are required"."""
    context = segue.Context(system_prompt=prompt, messages=(segue.UserMessage.of("hi"),))
    body = segue.prepare(context, "openai-codex/gpt-5.6-sol").body
    assert body["instructions"] == (prompt or "")
    assert all(item.get("role") == "user" for item in body["input"])
    del body["instructions"]
    found = segue.check(body, protocol="openai-responses", model="openai-codex/gpt-5.6-sol")
    assert [one.code for one in found] == ["option_needs_other"]
