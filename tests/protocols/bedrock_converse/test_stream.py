"""Streams: what comes when, what is missing, what breaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.bedrock_converse.endpoints import KIMI, OSS, SONNET
from protocols.exchanges import BEDROCK
from segue.calls.replies import stream_encoder
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.events import NativeEvent, ToolCallDelta, ToolCallStart
from segue.conversation.messages import StopReason, Usage
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC


def delta(index, **given):
    return {"contentBlockDelta": {"delta": given, "contentBlockIndex": index}}


def start(index, **given):
    return {"contentBlockStart": {"start": given, "contentBlockIndex": index}}


def stop(index):
    return {"contentBlockStop": {"contentBlockIndex": index}}


BEGIN = {"messageStart": {"role": "assistant"}}
END = {"messageStop": {"stopReason": "end_turn"}}
COUNTS = {"metadata": {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}, "metrics": {"latencyMs": 1}}}
CALL = {"toolUseId": "t", "name": "f"}


def run(*frames, endpoint=SONNET, names=None) -> tuple[list[Any], Any]:
    decoder = CODEC.stream_decoder(endpoint, names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


def kinds(events):
    return [event.type for event in events]


def test_the_events_of_a_reply_in_their_order():
    events, message = run(*BEDROCK.part("reasoning-then-calls", "stream"))
    assert kinds(events) == [
        "start",
        "thinking_start",
        "thinking_delta",
        "thinking_delta",
        "thinking_end",
        "text_start",
        "text_delta",
        "text_delta",
        "text_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_delta",
        "toolcall_end",
        "toolcall_start",
        "toolcall_end",
        "done",
    ]
    assert events[-1].reason == message.stop_reason == StopReason.TOOL_USE


def test_a_reply_is_done_with_its_counts_and_nothing_comes_after():
    decoder = CODEC.stream_decoder(SONNET, {})
    frames = [BEGIN, delta(0, text="hi"), stop(0), END, COUNTS]
    events = [kinds(decoder.feed(frame)) for frame in frames]
    assert events == [["start"], ["text_start", "text_delta"], ["text_end"], [], ["done"]]
    assert decoder.feed(delta(0, text="more")) == []
    assert decoder.finish() == []


def test_counts_that_come_first_wait_for_the_reason():
    events, message = run(BEGIN, delta(0, text="hi"), COUNTS, END)
    assert kinds(events)[-1] == "done"
    assert message.usage is not None
    assert message.usage.total_tokens == 3


def test_a_reply_without_counts_is_done_when_the_stream_is():
    events, message = run(BEGIN, delta(0, text="hi"), stop(0), END)
    assert kinds(events)[-1] == "done"
    assert message.usage is None


def test_a_stream_that_just_stops_keeps_what_arrived():
    cut = [BEGIN, delta(0, text="hi"), stop(0), start(1, toolUse=CALL), delta(1, toolUse={"input": '{"a": "x'})]
    events, message = run(*cut)
    assert kinds(events)[-1] == "error"
    assert message.stop_reason == StopReason.ERROR
    assert message.content[0] == TextContent(text="hi")
    assert message.content[1].arguments_text == '{"a": "x'


EXCEPTIONS = {
    "throttlingException": "Too many requests",
    "internalServerException": "Something broke",
    "modelStreamErrorException": "The model failed",
    "validationException": "Input is too long for requested model.",
    "serviceUnavailableException": "Try again",
    "somethingNewException": "New",
}


@pytest.mark.parametrize(("name", "text"), EXCEPTIONS.items(), ids=EXCEPTIONS.keys())
def test_an_exception_ends_the_reply_and_keeps_what_arrived(name, text):
    events, message = run(BEGIN, delta(0, text="hal"), {name: {"message": text}}, delta(0, text="never"))
    assert kinds(events) == ["start", "text_start", "text_delta", "text_end", "error"]
    assert message.content == (TextContent(text="hal"),)
    assert message.error_message == f"{name}: {text}"
    assert message.stop_reason == StopReason.ERROR


def test_an_error_of_the_framing_ends_the_reply():
    events, message = run(BEGIN, {"error": {"code": "InternalError", "message": "gone"}})
    assert kinds(events) == ["start", "error"]
    assert message.error_message == "InternalError: gone"


def test_an_exception_may_come_first():
    events, message = run({"validationException": {"message": "no"}})
    assert kinds(events) == ["start", "error"]
    assert message.content == ()


def test_unsigned_reasoning():
    frames = (BEGIN, delta(0, reasoningContent={"text": "hm"}), stop(0), END, COUNTS)
    assert run(*frames, endpoint=KIMI)[1].content == (ThinkingContent(thinking="hm"),)


def test_a_signature_in_pieces_is_one():
    frames = (
        delta(0, reasoningContent={"signature": "ab"}),
        delta(0, reasoningContent={"signature": "cd"}),
        END,
        COUNTS,
    )
    assert run(*frames)[1].content == (ThinkingContent(thinking="", thinking_signature="abcd"),)


def test_a_signature_comes_before_the_text():
    frames = (delta(0, reasoningContent={"signature": "s"}), delta(0, reasoningContent={"text": "hm"}), END, COUNTS)
    assert run(*frames)[1].content == (ThinkingContent(thinking="hm", thinking_signature="s"),)


def test_a_block_of_another_kind_at_the_same_place_is_another_block():
    frames = (delta(0, reasoningContent={"text": "hm"}), delta(0, text="hi"), stop(0), END, COUNTS)
    assert run(*frames, endpoint=OSS)[1].content == (ThinkingContent(thinking="hm"), TextContent(text="hi"))


def test_blocks_may_come_side_by_side():
    frames = (
        start(0, toolUse={"toolUseId": "a", "name": "f"}),
        start(1, toolUse={"toolUseId": "b", "name": "f"}),
        delta(0, toolUse={"input": '{"n":'}),
        delta(1, toolUse={"input": '{"n":'}),
        delta(0, toolUse={"input": "1}"}),
        delta(1, toolUse={"input": "2}"}),
        stop(1),
        stop(0),
        END,
        COUNTS,
    )
    message = run(*frames)[1]
    assert message.content == (
        ToolCall(id="a", name="f", arguments={"n": 1}),
        ToolCall(id="b", name="f", arguments={"n": 2}),
    )
    assert message.stop_reason == StopReason.TOOL_USE


def test_a_block_may_lack_its_end():
    frames = (delta(0, text="a"), start(1, toolUse=CALL), delta(1, toolUse={"input": "{}"}), END, COUNTS)
    assert run(*frames)[1].content == (TextContent(text="a"), ToolCall(id="t", name="f"))


def test_a_call_may_lack_its_beginning():
    message = run(delta(0, toolUse={"input": '{"a":1}'}), END, COUNTS)[1]
    assert message.content == (ToolCall(id="", name="", arguments={"a": 1}),)


def test_names_of_tools_are_mapped_back():
    events, message = run(start(0, toolUse=CALL), stop(0), END, COUNTS, names={"f": "mcp.server/f"})
    assert [event.name for event in events if event.type == "toolcall_start"] == ["mcp.server/f"]
    assert message.tool_calls()[0].name == "mcp.server/f"


def test_a_character_that_was_cut_in_half_is_whole():
    assert run(delta(0, text="\ud83d"), delta(0, text="\ude00"), END, COUNTS)[1].text() == "😀"


def test_unknown_events_are_skipped():
    events, message = run(BEGIN, {"heartbeat": {}}, delta(0, text="hi"), delta(7, hologram={}), END, COUNTS)
    assert kinds(events)[-1] == "done"
    assert message.content == (TextContent(text="hi"),)


def test_bytes_of_boto3_are_read_as_well():
    frames = (delta(0, reasoningContent={"redactedContent": b"EmwKAhgBEgy3"}), stop(0), END, COUNTS)
    redacted = ThinkingContent(thinking="", thinking_signature="EmwKAhgBEgy3", redacted=True)
    assert run(*frames)[1].content == (redacted,)


def test_the_message_can_be_looked_at_on_the_way():
    decoder = CODEC.stream_decoder(SONNET, {})
    decoder.feed(BEGIN)
    decoder.feed(delta(0, text="hal"))
    assert decoder.message.text() == "hal"
    decoder.feed(COUNTS)
    usage = decoder.message.usage
    assert usage is not None
    assert (usage.input, usage.output) == (Usage(input=1, output=2).input, 2)


def named(frame):
    """Give a frame as the framing does: its kind, and the JSON that goes with it."""
    ((kind, payload),) = frame.items()
    return kind, json.dumps(payload).encode()


def padded(frame, **more):
    ((kind, payload),) = frame.items()
    return {kind: {**payload, "p": "abcdef", **more}}


def thought(index, **fields):
    return delta(index, reasoningContent=fields)


SEQUENCES = {
    "text": [delta(0, text="a"), delta(0, text="b"), delta(0, text=""), stop(0)],
    "thoughts": [thought(0, text="a"), thought(0, text="b"), thought(0, signature="s"), stop(0)],
    "arguments": [start(0, toolUse=CALL), delta(0, toolUse={"input": '{"a":'}), delta(0, toolUse={"input": "1}"})],
    "padding, and an unknown key": [padded(delta(0, text="a")), padded(delta(0, text="b"), new={}), stop(0)],
    "a block after its end": [delta(0, text="a"), stop(0), delta(0, text="b"), delta(0, text="c")],
    "another kind at the same place": [
        thought(0, text="a"),
        thought(0, text="b"),
        delta(0, text="c"),
        thought(0, text="d"),
    ],
    "calls side by side": [
        start(0, toolUse=CALL),
        start(1, toolUse=CALL),
        delta(1, toolUse={"input": '{"a":'}),
        delta(0, toolUse={"input": '{"b":'}),
        delta(1, toolUse={"input": "1}"}),
        delta(0, toolUse={"input": "2}"}),
        stop(1),
    ],
    "a signature beside text": [thought(0, text="a"), thought(0, text="b", signature="s"), thought(0, text="c")],
    "bytes beside text": [thought(0, text="a"), thought(0, text="b", redactedContent="c2Vj")],
    "two kinds in one delta": [
        thought(0, text="a"),
        delta(0, text="b", reasoningContent={"text": "c"}),
        delta(0, toolUse={"input": "{}"}, reasoningContent={"text": "d"}),
    ],
    "a citation beside text": [delta(0, text="a"), delta(0, citation={"title": "t"}), delta(0, text="b")],
    "a place that is no number": [delta("0", text="a"), delta("0", text="b"), delta(None, text="c")],
    "a server's call": [
        start(0, toolUse={**CALL, "type": "server_tool_use"}),
        delta(0, toolUse={"input": '{"a":'}),
        delta(0, toolUse={"input": "1}"}),
    ],
    "half a character": [delta(0, text="\ud83d"), delta(0, text="\ude00"), delta(0, text="a")],
    "what is no delta": [delta(0, text="a"), {"contentBlockDelta": [1]}, delta(0, text=1), {"contentBlockDelta": {}}],
    "a result": [
        start(0, toolResult={"toolUseId": "t"}),
        delta(0, toolResult=[{"text": "a"}]),
        delta(0, toolResult=[{"text": "b"}]),
        thought(0, text="c"),
    ],
}


@pytest.mark.parametrize("frames", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_named_frames_give_the_same_events_as_parsed_frames(frames):
    whole = [BEGIN, *frames, END, COUNTS]
    assert run(*map(named, whole)) == run(*whole)


@given(st.lists(st.sampled_from([frame for frames in SEQUENCES.values() for frame in frames]), max_size=12))
def test_frames_in_any_order_give_the_same_events_named_or_parsed(frames):
    whole = [BEGIN, *frames, END, COUNTS]
    assert run(*map(named, whole)) == run(*whole)


@pytest.mark.parametrize("case", ["text", "thoughts", "arguments", "padding, and an unknown key"])
def test_a_delta_that_only_extends_a_block_takes_the_fast_path(case, monkeypatch):
    decoder: Any = CODEC.stream_decoder(SONNET, {})
    first, second, *_ = SEQUENCES[case]
    decoder.feed(named(first))
    monkeypatch.setattr(decoder._reader, "read", None)
    (event,) = decoder.feed(named(second))
    assert event.delta in ("b", '{"a":')


def test_a_broken_frame_ends_the_reply():
    for broken in (b"{not json", ("contentBlockDelta", b"{not json"), ("messageStop", b"")):
        events, message = run(BEGIN, broken)
        assert kinds(events) == ["start", "error"]
        assert message.stop_reason == StopReason.ERROR


WRITTEN = {
    "a result": (
        {"toolResult": {"toolUseId": "t", "content": [{"text": "a"}]}},
        [start(0, toolResult={"toolUseId": "t"}), delta(0, toolResult=[{"text": "a"}]), stop(0)],
    ),
    "an image": (
        {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        [start(0, image={"format": "png"}), delta(0, image={"source": {"bytes": "AAAA"}}), stop(0)],
    ),
    "an image without its source": ({"image": {"format": "png"}}, [start(0, image={"format": "png"}), stop(0)]),
    "a server's call": (
        {"toolUse": {**CALL, "type": "server_tool_use", "input": {"a": 1}}},
        [start(0, toolUse={**CALL, "type": "server_tool_use"}), delta(0, toolUse={"input": '{"a":1}'}), stop(0)],
    ),
}


@pytest.mark.parametrize(("block", "frames"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_block_of_this_protocol_alone_is_written_with_what_it_holds(block, frames):
    encoder = stream_encoder(protocol=CODEC.name, model=CODEC.example)
    content = NativeContent(protocol=CODEC.name, block=block)
    assert encoder.feed(NativeEvent(index=0, content=content)) == [BEGIN, *frames]


def test_every_piece_of_arguments_is_written():
    encoder = stream_encoder(protocol=CODEC.name, model=CODEC.example)
    encoder.feed(ToolCallStart(index=0, id="t", name="f"))
    frames = [encoder.feed(ToolCallDelta(index=0, delta=piece)) for piece in ('{"a":', "1", "}")]
    assert frames == [[delta(0, toolUse={"input": piece})] for piece in ('{"a":', "1", "}")]
