"""Replies, streams and errors: what is read, what it cost, how it ended, and how it is written again."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.cohere_chat.endpoints import PLAIN, endpoint_of
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Price
from segue.protocols.cohere_chat.protocol import PROTOCOL as CODEC

CALL = {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TEXT = [{"type": "text", "text": "hi"}]


def reply(reason="COMPLETE", usage=None, **message) -> dict:
    body = {"id": "1", "message": {"role": "assistant", **message}, "finish_reason": reason}
    return body if usage is None else {**body, "usage": usage}


USAGE = {
    "both counts": (
        {
            "billed_units": {"input_tokens": 3.0, "output_tokens": 2.0},
            "tokens": {"input_tokens": 70.0, "output_tokens": 5},
        },
        Usage(input=70, output=5, total_tokens=75),
    ),
    "some of it cached": (
        {"tokens": {"input_tokens": 70, "output_tokens": 5}, "cached_tokens": 64},
        Usage(input=6, output=5, cache_read=64, total_tokens=75),
    ),
    "only what is billed": (
        {"billed_units": {"input_tokens": 3, "output_tokens": 2}},
        Usage(input=3, output=2, total_tokens=5),
    ),
    "nothing": ({}, Usage()),
}


@pytest.mark.parametrize(("wire", "usage"), USAGE.values(), ids=USAGE.keys())
def test_cached_tokens_are_not_counted_as_input(wire, usage):
    body = reply(usage=wire, content=TEXT)
    message = CODEC.decode_response(body, PLAIN, {})
    assert message.usage == usage
    assert CODEC.encode_response(message, PLAIN) == body


def test_what_is_billed_is_what_it_costs():
    endpoint = endpoint_of(cost=Price(input=2.0, output=10.0))
    usage = {"billed_units": {"input_tokens": 1e6, "output_tokens": 1e5}, "tokens": {"input_tokens": 9e6}}
    read = CODEC.decode_response(reply(usage=usage, content=TEXT), endpoint, {}).usage
    assert read is not None
    assert read.cost is not None
    assert read.cost.total == pytest.approx(3.0)


REASONS = {
    "COMPLETE": ({"content": TEXT}, StopReason.STOP),
    "STOP_SEQUENCE": ({"content": TEXT}, StopReason.STOP),
    "MAX_TOKENS": ({"content": TEXT}, StopReason.LENGTH),
    "TOOL_CALL": ({"tool_calls": [CALL]}, StopReason.TOOL_USE),
    "ERROR": ({"content": TEXT}, StopReason.ERROR),
    "TIMEOUT": ({"content": TEXT}, StopReason.ERROR),
    "USER_CANCEL": ({"content": TEXT}, StopReason.ABORTED),
    "UNHEARD_OF": ({"content": TEXT}, StopReason.STOP),
    "UNHEARD_OF_AND_EMPTY": ({"content": []}, StopReason.ERROR),
}


@pytest.mark.parametrize(("message", "stop"), REASONS.values(), ids=REASONS.keys())
def test_why_a_reply_ended(request, message, stop):
    reason = request.node.callspec.id
    read = CODEC.decode_response(reply(reason, **message), PLAIN, {})
    assert (read.stop_reason, read.raw_stop_reason) == (stop, reason)
    assert (read.error_message is not None) == (stop in (StopReason.ERROR, StopReason.ABORTED))


def test_a_reply_that_completed_with_calls_waits_for_their_results():
    assert CODEC.decode_response(reply(tool_calls=[CALL]), PLAIN, {}).stop_reason == StopReason.TOOL_USE


def test_names_are_mapped_back_and_forth():
    body = reply("TOOL_CALL", tool_plan="So.", tool_calls=[CALL])
    message = CODEC.decode_response(body, PLAIN, {"f": "mcp.f"})
    assert message.content == (TextContent(text="So."), ToolCall(id="f_1", name="mcp.f"))
    assert CODEC.encode_response(message, PLAIN) == body


BODIES = {
    "text beside a plan and calls": reply("TOOL_CALL", content=TEXT, tool_plan="b", tool_calls=[CALL]),
    "a plan without calls": reply(tool_plan="b", content=[]),
    "empty fields": reply(content=TEXT, tool_plan="", tool_calls=[], citations=[]),
    "null fields": reply(content=TEXT, tool_plan=None, tool_calls=None, citations=None),
    "content that is a string": reply(content="hi"),
    "no id, no reason": {"message": {"role": "assistant", "content": TEXT}},
    "an unknown block": reply(content=[{"type": "odd"}]),
    "arguments that are cut": reply("TOOL_CALL", tool_calls=[{**CALL, "function": {"name": "f", "arguments": '{"a'}}]),
    "an error in the place of a reply": {"id": "1", "message": "invalid request"},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_any_reply_comes_out_as_it_was(body):
    assert CODEC.encode_response(CODEC.decode_response(body, PLAIN, {}), PLAIN) == body


def test_a_message_of_another_protocol_is_written_as_a_reply():
    usage = Usage(input=1, output=2, cache_read=3)
    message = AssistantMessage(content=(ThinkingContent(thinking="hm"), TextContent(text="hi")), model="m", usage=usage)
    counts = {"input_tokens": 4, "output_tokens": 2}
    assert CODEC.encode_response(message, PLAIN) == {
        "id": "",
        "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, *TEXT]},
        "finish_reason": "COMPLETE",
        "usage": {"billed_units": counts, "tokens": counts, "cached_tokens": 3},
    }


def test_what_is_no_reply_is_refused():
    with pytest.raises(DecodeError):
        CODEC.decode_response({"hello": 1}, PLAIN, {})


ERRORS = {
    "an error": ({"id": "1", "message": "invalid request"}, "invalid request"),
    "an inner error": ({"error": {"message": "m"}}, "m"),
    "a text in its place": ({"error": "m"}, "m"),
    "a detail": ({"detail": "m"}, "m"),
    "bytes": (b'{"message":"m"}', "m"),
    "a page": ("<html>", "<html>"),
    "something else": ({"what": 1}, '{"what": 1}'),
    "nothing": (None, ""),
}


@pytest.mark.parametrize(("body", "given"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read_in_any_format(body, given):
    error = CODEC.decode_error(body, 400)
    assert (error.message, error.status) == (given, 400)


# -- streams with something unusual ------------------------------------------------------------------------------------


def event(kind, index=None, **message) -> dict:
    given = {"type": kind, "delta": {"message": message}} if message else {"type": kind}
    return given if index is None else {**given, "index": index}


def decoded(*frames, tool_names=None) -> tuple[list, AssistantMessage]:
    decoder = CODEC.stream_decoder(PLAIN, tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


END = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
STARTED = [
    event("content-start", 0, content={"type": "text", "text": "H"}),
    event("content-delta", 0, content={"text": "i"}),
]


def test_a_stream_that_just_stops_keeps_what_arrived():
    call = {"id": "a", "function": {"name": "f", "arguments": '{"x": "y'}}
    events, message = decoded(*STARTED, event("tool-call-start", 0, tool_calls=call))
    assert events[-1].type == "error"
    assert (message.stop_reason, message.text()) == (StopReason.ERROR, "Hi")
    assert message.tool_calls()[0].arguments_text == '{"x": "y'


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "Overloaded"}},
        {"error": {"message": "Overloaded"}},
        {"message": "Overloaded"},
    ],
    ids=["at the end", "inside", "itself"],
)
def test_an_error_in_the_stream_ends_it(frame):
    events, message = decoded(*STARTED, frame, END)
    assert [event.type for event in events].count("error") == 1
    assert events[-1].type == "error"
    assert (message.error_message, message.text()) == ("Overloaded", "Hi")


def test_deltas_whose_start_was_lost_open_their_block():
    _, message = decoded(
        event("content-delta", 0, content={"thinking": "hm"}), event("content-delta", 1, content={"text": "a"}), END
    )
    assert message.content == (ThinkingContent(thinking="hm"), TextContent(text="a"))


def test_calls_are_found_by_their_index():
    def piece(kind, index, **call):
        return event(kind, index, tool_calls=call)

    _, message = decoded(
        piece("tool-call-start", 0, id="a", function={"name": "f", "arguments": '{"x":'}),
        piece("tool-call-start", 1, id="b", function={"name": "f", "arguments": ""}),
        piece("tool-call-delta", 0, function={"arguments": "1}"}),
        piece("tool-call-delta", 1, function={"arguments": '{"y":2}'}),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
        tool_names={"f": "mcp.f"},
    )
    assert message.content == (
        ToolCall(id="a", name="mcp.f", arguments={"x": 1}),
        ToolCall(id="b", name="mcp.f", arguments={"y": 2}),
    )


def test_a_plan_that_goes_on_behind_a_call_is_kept():
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    events, message = decoded(
        event("tool-plan-delta", tool_plan="First f."),
        event("tool-call-start", 0, tool_calls=call),
        event("tool-call-end", 0),
        event("tool-plan-delta", tool_plan="Then I see."),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    )
    assert [piece.kind for piece in message.content] == ["text", "toolCall", "text"]
    assert message.text() == "First f.Then I see."
    assert [result.type for result in events].count("text_end") == 2
    written: Any = CODEC.encode_response(message, PLAIN)
    assert written["message"]["tool_plan"] == "First f.\nThen I see."


def test_an_unknown_block_is_kept():
    _, message = decoded(event("content-start", 0, content={"type": "odd"}), event("content-end", 0), END)
    assert message.content == (NativeContent(protocol="cohere-chat", block={"type": "odd"}),)


@pytest.mark.parametrize("frame", [{}, {"type": "debug", "prompt": "x"}, {"type": "new"}, {"type": "content-delta"}])
def test_odd_frames_do_no_harm(frame):
    events, message = decoded(*STARTED, frame, event("content-end", 0), END)
    assert events[-1].type == "done"
    assert message.text() == "Hi"


def test_a_v1_reply_is_refused_by_its_name():
    with pytest.raises(DecodeError, match="v1/chat"):
        CODEC.decode_response({"response_id": "r", "generation_id": "g", "text": "hi"}, PLAIN, {})


def test_a_v1_stream_is_refused_by_its_name():
    decoder = CODEC.stream_decoder(PLAIN, {})
    events = decoder.feed({"is_finished": False, "event_type": "stream-start", "generation_id": "g"})
    assert [event.type for event in events] == ["start", "error"]
    assert "v1/chat" in (decoder.message.error_message or "")
