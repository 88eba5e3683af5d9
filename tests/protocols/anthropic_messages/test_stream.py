"""Streams as they come: overlapping, eager, torn, broken off."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.anthropic_messages.endpoints import SONNET, endpoint_of
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC

P = "anthropic-messages"
START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 4,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def ended(reason: str, **usage) -> dict:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


def opened(index: int, **block) -> dict:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **rest) -> dict:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **rest}}


def text_delta(index: int, text: str) -> dict:
    return delta(index, "text_delta", text=text)


def closed(index: int) -> dict:
    return {"type": "content_block_stop", "index": index}


def decoded(*frames, endpoint=SONNET, tool_names=None) -> tuple[list[str], AssistantMessage]:
    decoder = CODEC.stream_decoder(endpoint, tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    assert decoder.feed(START) == [], "nothing comes after the end"
    return [event.type for event in events], decoder.message


def finished(*frames, reason="end_turn", **rest) -> tuple[list[str], AssistantMessage]:
    return decoded(START, *frames, ended(reason, output_tokens=5), STOP, **rest)


CALL = {"type": "tool_use", "id": "t1", "name": "f"}
CONTENT = {
    "input that comes whole in its start": (
        [opened(0, **CALL, input={"a": 1}), closed(0)],
        (ToolCall(id="t1", name="f", arguments={"a": 1}),),
    ),
    "input that comes whole, and an empty delta": (
        [opened(0, **CALL, input={"a": 1}), delta(0, "input_json_delta", partial_json=""), closed(0)],
        (ToolCall(id="t1", name="f", arguments={"a": 1}),),
    ),
    "no input at all": ([opened(0, **CALL), closed(0)], (ToolCall(id="t1", name="f"),)),
    "input that is a text": (
        [opened(0, **CALL, input='{"a":1}'), closed(0)],
        (ToolCall(id="t1", name="f", arguments={"a": 1}),),
    ),
    "input in pieces, with white space in it": (
        [
            opened(0, **CALL, input={}),
            delta(0, "input_json_delta", partial_json='{ "a" '),
            delta(0, "input_json_delta", partial_json=": 1 }"),
            closed(0),
        ],
        (ToolCall(id="t1", name="f", arguments={"a": 1}),),
    ),
    "blocks that overlap and stop at the end": (
        [
            opened(0, type="text", text=""),
            text_delta(0, "one "),
            opened(1, **CALL),
            delta(1, "input_json_delta", partial_json='{"a":'),
            text_delta(0, "two"),
            delta(1, "input_json_delta", partial_json="1}"),
            closed(0),
            closed(1),
        ],
        (TextContent(text="one two"), ToolCall(id="t1", name="f", arguments={"a": 1})),
    ),
    "blocks that never stop": (
        [
            opened(0, type="text", text=""),
            text_delta(0, "one"),
            opened(1, **CALL),
            delta(1, "input_json_delta", partial_json='{ "a":1}'),
        ],
        (TextContent(text="one"), ToolCall(id="t1", name="f", arguments={"a": 1})),
    ),
    "an index that is used again": (
        [opened(0, type="text", text="one"), opened(0, type="text", text="two"), closed(0)],
        (TextContent(text="one"), TextContent(text="two")),
    ),
    "a delta without a start": ([text_delta(0, "hi"), closed(0)], (TextContent(text="hi"),)),
    "a signature in pieces, and before the text": (
        [
            opened(0, type="thinking", thinking="", signature=""),
            delta(0, "signature_delta", signature="c2"),
            delta(0, "thinking_delta", thinking="hm"),
            delta(0, "signature_delta", signature="ln"),
            closed(0),
        ],
        (ThinkingContent(thinking="hm", thinking_signature="c2ln"),),
    ),
    "a signature and no text": (
        [
            opened(0, type="thinking", thinking="", signature=""),
            delta(0, "signature_delta", signature="c2ln"),
            closed(0),
        ],
        (ThinkingContent(thinking="", thinking_signature="c2ln"),),
    ),
    "thinking without a signature": (
        [opened(0, type="thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"), closed(0)],
        (ThinkingContent(thinking="hm"),),
    ),
    "half a character in each of two deltas": (
        [opened(0, type="text", text=""), text_delta(0, "\ud83d"), text_delta(0, "\ude00"), closed(0)],
        (TextContent(text="😀"),),
    ),
    "an unknown block that grows in unknown ways": (
        [
            opened(0, type="hologram", a="x", b=1),
            delta(0, "hologram_delta", a="y", b=2, c=None),
            closed(0),
        ],
        (NativeContent(protocol=P, block={"type": "hologram", "a": "xy", "b": 2, "c": None}),),
    ),
    "a summary that comes whole in its delta": (
        [
            opened(0, type="compaction", content=None, encrypted_content="a"),
            delta(0, "compaction_delta", content="They spoke.", encrypted_content="ab", signature=None),
            closed(0),
        ],
        (
            NativeContent(
                protocol=P,
                block={"type": "compaction", "content": "They spoke.", "encrypted_content": "ab"},
                fallback=(TextContent(text="They spoke."),),
            ),
        ),
    ),
    "a summary whose delta takes a value back": (
        [
            opened(0, type="compaction", content="They spoke.", encrypted_content="a"),
            delta(0, "compaction_delta", encrypted_content=None),
            closed(0),
        ],
        (
            NativeContent(
                protocol=P,
                block={"type": "compaction", "content": "They spoke.", "encrypted_content": None},
                fallback=(TextContent(text="They spoke."),),
            ),
        ),
    ),
    "unknown events and deltas": (
        [
            {"type": "ping"},
            {"type": "weather_report", "x": 1},
            {},
            opened(0, type="text", text=""),
            delta(0, "sparkle_delta", glitter=1),
            delta(7, "sparkle_delta", glitter=1),
            delta(0, "text_delta"),
            closed(9),
            text_delta(0, "hi"),
            closed(0),
        ],
        (TextContent(text="hi"),),
    ),
}


@pytest.mark.parametrize(("frames", "content"), CONTENT.values(), ids=CONTENT.keys())
def test_blocks_are_put_together(frames, content):
    events, message = finished(*frames)
    assert message.content == content
    assert events[0] == "start"
    assert events[-1] == "done"
    assert message.diagnostics == ()


@pytest.mark.parametrize(("frames", "content"), CONTENT.values(), ids=CONTENT.keys())
def test_frames_may_come_as_bytes(frames, content):
    assert finished(*(json.dumps(frame).encode() for frame in frames))[1].content == content


ODD = [
    {**text_delta(0, "a"), "delta": None},
    {**text_delta(0, "a"), "index": 0.0},
    {**text_delta(0, "a"), "type": "content_block_news"},
    delta(0, "text_delta", text=1),
    delta(0, "text_delta", text="a", thinking="b", partial_json="c", new=[]),
    delta(0, "text_delta", text="\ud83d"),
    delta(0, "thinking_delta", thinking="b", signature="s"),
    delta(0, "input_json_delta", partial_json=""),
    closed(0),
]
GROWTHS = {
    "text": (opened(0, type="text", text=""), text_delta(0, "a")),
    "thinking": (opened(0, type="thinking", thinking=""), delta(0, "thinking_delta", thinking="a")),
    "arguments": (
        opened(0, type="tool_use", id="t", name="f", input={}),
        delta(0, "input_json_delta", partial_json="a"),
    ),
}


def observed(*frames):
    decoder = CODEC.stream_decoder(SONNET, {})
    return [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()


@pytest.mark.parametrize("frames", GROWTHS.values(), ids=GROWTHS.keys())
@pytest.mark.parametrize("odd", ODD)
def test_bytes_give_the_same_events_as_parsed_frames(frames, odd):
    given = [START, *frames, odd, frames[1]]
    assert observed(*(json.dumps(frame).encode() for frame in given)) == observed(*given)


@given(st.lists(st.sampled_from([*ODD, *(frame for frames, _ in CONTENT.values() for frame in frames)]), max_size=12))
def test_bytes_give_the_same_events_as_parsed_frames_in_any_order(frames):
    assert observed(*(json.dumps(frame).encode() for frame in frames)) == observed(*frames)


@pytest.mark.parametrize("frames", GROWTHS.values(), ids=GROWTHS.keys())
def test_a_delta_that_only_lengthens_a_block_takes_the_fast_path(frames, monkeypatch):
    decoder: Any = CODEC.stream_decoder(SONNET, {})
    first, second = (json.dumps(frame).encode() for frame in frames)
    decoder.feed(first)
    monkeypatch.setattr(decoder._reader, "read", None)
    assert [event.delta for event in decoder.feed(second)] == ["a"]


MALFORMED = {
    "redacted thinking without data": [opened(0, type="redacted_thinking"), closed(0)],
    "a delta of a type that is a list": [{**delta(0, "x"), "delta": {"type": []}}],
    "an index that is a list": [{**opened(0, type="text", text="hi"), "index": []}, {**closed(0), "index": {}}],
    "thinking with a signature that is a number": [opened(0, type="thinking", thinking="hm", signature=5), closed(0)],
    "a call without an id": [opened(0, type="tool_use", input={}), closed(0)],
}


@pytest.mark.parametrize("frames", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("is_torn", [False, True], ids=["whole", "torn"])
def test_a_malformed_stream_ends_and_its_message_can_be_written(frames, is_torn):
    events, message = decoded(START, *frames) if is_torn else finished(*frames)
    assert events[-1] == ("error" if is_torn else "done")
    assert CODEC.encode_response(message, SONNET)["id"] == "msg_1"


def test_every_part_has_its_events_in_order():
    events, _ = finished(
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        closed(0),
        opened(1, type="text", text=""),
        text_delta(1, "hi"),
        closed(1),
        opened(2, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        delta(2, "input_json_delta", partial_json='{"query":"q"}'),
        closed(2),
        opened(3, **CALL, input={}),
        delta(3, "input_json_delta", partial_json="{}"),
        closed(3),
        reason="tool_use",
    )
    assert events == [
        "start",
        *("thinking_start", "thinking_delta", "thinking_end"),
        *("text_start", "text_delta", "text_end"),
        "native",
        *("toolcall_start", "toolcall_delta", "toolcall_end"),
        "usage",
        "done",
    ]


def test_counts_that_come_late_replace_the_early_ones_and_the_others_stay():
    late = ended("end_turn", output_tokens=50, input_tokens=20, cache_creation_input_tokens=None)
    usage = decoded(START, late, STOP)[1].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read, usage.total_tokens) == (20, 50, 4, 74)


def test_a_count_without_a_value_replaces_none():
    usage = decoded(START, ended("end_turn", input_tokens=None, output_tokens=5), STOP)[1].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.cache_read) == (10, 5, 4)


def test_the_names_of_tools_are_mapped_back():
    _, message = finished(opened(0, **CALL, input={}), closed(0), reason="tool_use", tool_names={"f": "my.f"})
    assert message.content == (ToolCall(id="t1", name="my.f"),)


TORN = {
    "nothing at all": [],
    "no message_stop": [START, opened(0, type="text", text=""), text_delta(0, "hi"), closed(0), ended("end_turn")],
    "no reason": [START, opened(0, type="text", text=""), text_delta(0, "hi"), closed(0), STOP],
    "no reason, and a call that was cut off": [
        START,
        text_delta(0, "hi"),
        opened(1, type="tool_use", id="t1", name="f"),
        delta(1, "input_json_delta", partial_json='{"a": "b'),
        STOP,
    ],
    "no end of any kind": [START, opened(0, type="text", text=""), text_delta(0, "hi")],
    "a frame that is no JSON": [START, opened(0, type="text", text=""), text_delta(0, "hi"), b'{"type": "content_bl'],
    "an error in mid-stream": [
        START,
        opened(0, type="text", text=""),
        text_delta(0, "hi"),
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ],
    "an error in OpenAI's form": [
        START,
        text_delta(0, "hi"),
        {"error": {"code": 500, "message": "boom", "type": "server_error"}},
    ],
    "an error at once": [{"type": "error", "error": {"type": "api_error", "message": "boom"}}],
}


@pytest.mark.parametrize("frames", TORN.values(), ids=TORN.keys())
def test_a_reply_that_breaks_off_is_an_error_that_keeps_what_arrived(frames):
    events, message = decoded(*frames)
    assert events[0] == "start"
    assert events.count("error") == 1
    assert events[-1] == "error"
    assert "done" not in events
    assert message.stop_reason == StopReason.ERROR
    assert message.error_message
    assert message.text() == ("hi" if len(frames) > 1 else "")


REDACTED = {"with data": {"data": "opaque"}, "without data": {}, "with data that is no text": {"data": 1}}


@pytest.mark.parametrize("fields", REDACTED.values(), ids=REDACTED.keys())
def test_streamed_redacted_thinking_is_that_of_the_whole_reply(fields):
    block = {"type": "redacted_thinking", **fields}
    _, message = decoded(START, opened(0, **block), closed(0), STOP)
    assert message == CODEC.decode_response({**START["message"], "content": [block]}, SONNET, {})


def test_a_stream_without_a_reason_is_the_whole_reply_without_one():
    _, message = decoded(START, opened(0, type="text", text="hi"), closed(0), STOP)
    whole = {**START["message"], "content": [{"type": "text", "text": "hi"}]}
    assert message == CODEC.decode_response(whole, SONNET, {})
    assert message.error_message == "the reply ended without a stop reason"


def test_an_error_has_the_text_of_the_provider():
    _, message = decoded(*TORN["an error in mid-stream"])
    assert message.error_message == "overloaded_error: Overloaded"
    error = {"type": "overloaded_error", "message": "Overloaded"}
    body: Any = CODEC.encode_response(message, SONNET)
    assert body["error"] == error
    assert message.response_id == "msg_1"


def test_a_call_that_was_cut_off_keeps_what_arrived():
    _, message = decoded(START, opened(0, **CALL, input={}), delta(0, "input_json_delta", partial_json='{"a": "b'))
    (call,) = message.tool_calls()
    assert (call.arguments, call.arguments_text) == ({"a": "b"}, '{"a": "b')
    assert [diagnostic.details for diagnostic in message.diagnostics] == [{"mode": "partial"}]


def test_a_message_can_be_looked_at_while_it_arrives():
    decoder = CODEC.stream_decoder(SONNET, {})
    for frame in (START, opened(0, type="text", text=""), text_delta(0, "hi")):
        decoder.feed(frame)
    assert decoder.message.text() == "hi"
    assert decoder.message.response_id == "msg_1"


def test_an_empty_signature_is_none_where_the_provider_writes_a_missing_one_so():
    thinking = [opened(0, type="thinking", thinking="hm", signature=""), closed(0)]
    _, message = finished(*thinking)
    assert message.content == (ThinkingContent(thinking="hm", thinking_signature=""),)
    fireworks = endpoint_of("accounts/fireworks/models/glm-5p1", "fireworks")
    assert finished(*thinking, endpoint=fireworks)[1].content == (ThinkingContent(thinking="hm"),)


def test_arguments_of_any_length_cost_their_length():
    def seconds(count: int) -> float:
        piece = delta(0, "input_json_delta", partial_json="x" * 12)
        decoder = CODEC.stream_decoder(SONNET, {})
        began = time.process_time()
        decoder.feed(START)
        decoder.feed(opened(0, **CALL, input={}))
        decoder.feed(delta(0, "input_json_delta", partial_json='{"a":"'))
        for _ in range(count):
            decoder.feed(piece)
        decoder.feed(delta(0, "input_json_delta", partial_json='"}'))
        decoder.feed(closed(0))
        return (time.process_time() - began) / count

    small = min(seconds(1_000) for _ in range(5))
    large = min(seconds(17_000) for _ in range(3))
    assert large < 6 * small, "an event of a long argument costs what one of a short argument does"


def test_blocks_that_come_with_the_start_are_kept():
    result = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {"stdout": "x"}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
    message = {**START["message"], "content": [{"type": "text", "text": "so"}, result, call], "stop_reason": "tool_use"}
    begun = {"type": "message_start", "message": message}
    kinds, read = decoded(begun, begun, STOP)
    assert read.content == CODEC.decode_response(message, SONNET, {}).content
    assert [piece.kind for piece in read.content] == ["text", "native", "toolCall"]
    assert read.stop_reason == StopReason.TOOL_USE
    assert kinds == [
        "start",
        "text_start",
        "text_delta",
        "text_end",
        "native",
        "toolcall_start",
        "toolcall_end",
        "done",
    ]


def test_blocks_behind_those_of_the_start_begin_anew():
    begun = {"type": "message_start", "message": {**START["message"], "content": [{"type": "text", "text": "a"}]}}
    frames = [begun, opened(0, type="text", text=""), text_delta(0, "b"), closed(0), ended("end_turn"), STOP]
    assert [piece.text for piece in decoded(*frames)[1].content if piece.kind == "text"] == ["a", "b"]


# -- another model writes the rest -------------------------------------------------------------------------------------

HANDOVER = {
    "type": "fallback",
    "from": {"model": "claude-opus-5"},
    "to": {"model": "claude-sonnet-5-20260101"},
    "trigger": {"type": "refusal"},
}


def test_a_fallback_block_names_the_writer_of_the_rest():
    blocks: list[dict[str, Any]] = [{"type": "text", "text": "I "}, HANDOVER, {"type": "text", "text": "can."}]
    frames = [frame for index, block in enumerate(blocks) for frame in (opened(index, **block), closed(index))]
    _, streamed = finished(*frames)
    body = CODEC.encode_response(streamed, SONNET)
    whole = CODEC.decode_response(body, SONNET, {})
    prompt = CODEC.decode_request({"messages": [{"role": "assistant", "content": blocks}]}, SONNET)
    for message in (streamed, whole, prompt.context.messages[0]):
        assert message.role == "assistant"
        assert message.response_model == "claude-sonnet-5-20260101"
        assert message.model == SONNET.model.id
    assert body["content"] == blocks
    _, broken = decoded(START, *frames)
    assert broken.response_model == "claude-sonnet-5-20260101"


def test_an_event_without_an_index_belongs_to_the_block_that_was_opened_last():
    def bare(frame: dict) -> dict:
        return {key: value for key, value in frame.items() if key != "index"}

    frames = [opened(0, type="text", text=""), bare(text_delta(0, "a")), bare(text_delta(0, "b")), bare(closed(0))]
    assert finished(*frames)[1].content == (TextContent(text="ab"),)
    assert finished(*map(bare, frames))[1].content == (TextContent(text="ab"),)
