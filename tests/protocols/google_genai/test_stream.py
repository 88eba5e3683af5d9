"""Streamed replies, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.google_genai.endpoints import NEWER, VERTEX
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import StopReason
from segue.conversation.stored import dump_message
from segue.protocols.google_genai.protocol import PROTOCOL as CODEC


def without_id(call_id):
    return {"google-genai": {"verbatim": {"functionCall": {"in": {"id": {"from": call_id}}}}}}


def chunk(*parts, reason=None, **beside):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "responseId": "r", **beside}


def decoded(*frames, tool_names=None, endpoint=VERTEX):
    decoder = CODEC.stream_decoder(endpoint, tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)] + decoder.finish()
    assert [event.type in ("done", "error") for event in events].count(True) == 1
    return [event.type for event in events], decoder.message


def call(**fields):
    return {"functionCall": fields}


def partial(path, **value):
    return {"jsonPath": path, **value}


STREAMS = {
    "text that comes with the reason": (
        [chunk({"text": "Hel"}), chunk({"text": "lo"}, reason="STOP")],
        (TextContent(text="Hello"),),
    ),
    "a reason as a number": ([chunk({"text": "Hello"}, reason=1)], (TextContent(text="Hello"),)),
    "an empty text with the reason": (
        [chunk({"text": "Hello"}), chunk({"text": ""}, reason="STOP")],
        (TextContent(text="Hello"),),
    ),
    "nothing at all": ([chunk({"text": ""}, reason="STOP")], ()),
    "thoughts before text": (
        [chunk({"text": "h", "thought": True}), chunk({"text": "m", "thought": True}, {"text": "So."}, reason="STOP")],
        (ThinkingContent(thinking="hm"), TextContent(text="So.")),
    ),
    "a signature on the last text stays on it": (
        [chunk({"text": "So"}), chunk({"text": " be it.", "thoughtSignature": "c2VhbA=="}, reason="STOP")],
        (TextContent(text="So"), TextContent(text=" be it.", text_signature="c2VhbA==")),
    ),
    "text behind a signature is a text of its own": (
        [
            chunk({"text": "a", "thoughtSignature": "c2VhbA=="}),
            chunk({"text": "b"}),
            chunk({"text": "c"}, reason="STOP"),
        ],
        (TextContent(text="a", text_signature="c2VhbA=="), TextContent(text="bc")),
    ),
    "calls side by side": (
        [chunk(call(name="f", args={"a": 1}), call(name="f", args={"a": 2})), chunk(reason="STOP")],
        (
            ToolCall(id="call_r_0", name="f", arguments={"a": 1}, extra=without_id("call_r_0")),
            ToolCall(id="call_r_1", name="f", arguments={"a": 2}, extra=without_id("call_r_1")),
        ),
    ),
    "text, a program, text": (
        [chunk({"text": "a"}, {"executableCode": {"code": "1"}}), chunk({"text": "b"}, reason="STOP")],
        (
            TextContent(text="a"),
            NativeContent(protocol="google-genai", block={"executableCode": {"code": "1"}}),
            TextContent(text="b"),
        ),
    ),
    "arguments in pieces": (
        [
            chunk({**call(name="book", id="c", willContinue=True), "thoughtSignature": "c2VhbA=="}),
            chunk(call(partialArgs=[partial("$.to", stringValue="Os", willContinue=True)], willContinue=True)),
            chunk(call(partialArgs=[partial("$.to", stringValue="lo")], willContinue=True)),
            chunk(
                call(
                    partialArgs=[
                        partial("$.seats[1].row", numberValue=7),
                        partial("$.seats[0].row", nullValue="NULL_VALUE"),
                        partial("$['a b']", boolValue=True),
                    ],
                    willContinue=True,
                )
            ),
            chunk(call(), reason="STOP"),
        ],
        (
            ToolCall(
                id="c",
                name="book",
                arguments={"to": "Oslo", "seats": [{"row": None}, {"row": 7}], "a b": True},
                thought_signature="c2VhbA==",
            ),
        ),
    ),
    "two calls in pieces": (
        [
            chunk(call(name="f", willContinue=True)),
            chunk(call(partialArgs=[partial("$.a", stringValue="x")])),
            chunk(call(name="g", partialArgs=[partial("$.b", numberValue=1)], willContinue=True)),
            chunk(call(name="h", args={"c": 1})),
            chunk(reason="STOP"),
        ],
        (
            ToolCall(id="call_r_0", name="f", arguments={"a": "x"}, extra=without_id("call_r_0")),
            ToolCall(id="call_r_1", name="g", arguments={"b": 1}, extra=without_id("call_r_1")),
            ToolCall(id="call_r_2", name="h", arguments={"c": 1}, extra=without_id("call_r_2")),
        ),
    ),
    "chunks in snake_case": (
        [
            {
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [{"function_call": {"id": "c", "name": "f", "args": {}}}],
                        },
                        "finish_reason": "STOP",
                    }
                ],
                "response_id": "r",
            }
        ],
        (ToolCall(id="c", name="f"),),
    ),
}


@pytest.mark.parametrize(("frames", "content"), STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_folds_to_its_content(frames, content):
    events, message = decoded(*frames)
    assert message.content == content
    assert events[0] == "start"
    assert events[-1] == "done"
    has_calls = any(piece.kind == "toolCall" for piece in content)
    assert message.stop_reason == (StopReason.TOOL_USE if has_calls else StopReason.STOP)


def test_every_part_opens_grows_and_closes():
    events, _ = decoded(chunk({"text": "a", "thought": True}, {"text": "b"}), chunk(call(name="f"), reason="STOP"))
    assert events == [
        "start",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "text_start",
        "text_delta",
        "text_end",
        "toolcall_start",
        "toolcall_end",
        "done",
    ]


ENDS = {
    "a stream that just stops": ([chunk({"text": "Hel"})], "the stream ended before the reply was complete"),
    "no stream at all": ([], "the stream ended before the reply was complete"),
    "an error in between": (
        [chunk({"text": "Hel"}), {"error": {"code": 503, "message": "Busy.", "status": "UNAVAILABLE"}}],
        "UNAVAILABLE: Busy.",
    ),
    "a reason that is an error": ([chunk({"text": "x"}, reason="RECITATION")], "the reply ended with RECITATION"),
    "a blocked prompt": ([{"promptFeedback": {"blockReason": "SAFETY"}}], "the prompt was blocked: SAFETY"),
    "a frame that is not JSON": ([chunk({"text": "x"}), b"{"], None),
}


@pytest.mark.parametrize(("frames", "error"), ENDS.values(), ids=ENDS.keys())
def test_a_stream_that_fails_keeps_what_was_received(frames, error):
    events, message = decoded(*frames)
    assert events[-1] == "error"
    assert message.stop_reason == StopReason.ERROR
    assert message.error_message is not None
    assert error is None or message.error_message == error


def test_a_call_that_broke_off_is_kept_and_marked():
    _, message = decoded(
        chunk(call(name="f", willContinue=True)),
        chunk(call(partialArgs=[partial("$.a", stringValue="hal", willContinue=True)], willContinue=True)),
    )
    assert [piece.arguments for piece in message.tool_calls()] == [{"a": "hal"}]
    assert [note.type for note in message.diagnostics] == ["tool_arguments_recovered"]
    assert message.stop_reason == StopReason.ERROR


def test_the_last_counts_win_and_names_are_mapped_back():
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 9, "totalTokenCount": 14}
    _, message = decoded(
        chunk(call(name="f"), usageMetadata={"promptTokenCount": 5, "totalTokenCount": 5}),
        chunk(reason="STOP", usageMetadata=usage, modelVersion="gemini-x"),
        tool_names={"f": "mcp/f"},
    )
    assert message.usage is not None
    assert (message.usage.input, message.usage.output) == (5, 9)
    assert message.response_model == "gemini-x"
    assert [piece.name for piece in message.tool_calls()] == ["mcp/f"]


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        (b'{"promptTokenCount": 7}', 7),
        (b"{}", 5),
        (b"null", 5),
        (b'{"promptTokenCount": 7, "x": 1e999}', 7),
        (b'{"promptTokenCount": 7, "x": "\xff"}', 7),
        (b'{"promptTokenCount": 7, "x": ' + b"[" * 300 + b"]" * 300 + b"}", 7),
    ],
)
def test_counts_of_a_frame_that_extends_a_text_are_read_at_the_end(counts, found):
    first = chunk({"text": "a"}, usageMetadata={"promptTokenCount": 5})
    more = b'{"candidates": [{"content": {"parts": [{"text": "b"}]}, "index": 0}], "responseId": "r", "usageMetadata": '
    _, message = decoded(first, more + counts + b"}")
    assert message.text() == "ab"
    assert message.usage is not None
    assert message.usage.input == found
    dump_message(message)


def test_what_came_before_an_abort_is_kept():
    decoder = CODEC.stream_decoder(NEWER, {})
    decoder.feed(chunk({"text": "Hel"}, usageMetadata={"promptTokenCount": 5, "totalTokenCount": 5}))
    decoder.abort()
    message = decoder.message
    assert (message.stop_reason, message.text(), message.response_id) == (StopReason.ABORTED, "Hel", "r")
    assert message.usage is not None
    assert message.usage.input == 5


def test_an_end_mark_ends_it():
    decoder = CODEC.stream_decoder(NEWER, {})
    events = [*decoder.feed(chunk({"text": "x"}, reason="STOP")), *decoder.feed("[DONE]"), *decoder.finish()]
    assert [event.type for event in events][-1] == "done"


def test_another_candidate_is_kept_with_the_parts_of_all_chunks():
    def other(text, **beside):
        return {"content": {"role": "model", "parts": [{"text": text}]}, "index": 1, **beside}

    first, last = chunk({"text": "a"}), chunk({"text": "b"}, reason="STOP")
    first["candidates"].append(other("x"))
    last["candidates"].append(other("z", finishReason="MAX_TOKENS"))
    _, message = decoded(first, {"candidates": [other("y")]}, {"candidates": [{"index": 1, "avgLogprobs": -1}]}, last)
    assert message.text() == "ab"
    parts = [{"text": "x"}, {"text": "y"}, {"text": "z"}]
    written: Any = CODEC.encode_response(message, VERTEX)
    assert written["candidates"][1] == {
        "content": {"role": "model", "parts": parts},
        "index": 1,
        "avgLogprobs": -1,
        "finishReason": "MAX_TOKENS",
    }
