"""Streams of an Ollama server, line by line, also incomplete ones."""

from __future__ import annotations

import pytest

from protocols.ollama_chat.endpoints import QWEN
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC

DONE = {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 2}


def line(done: bool = False, **message: object) -> dict[str, object]:
    given = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": "t", "message": given, **(DONE if done else {"done": False})}


def call(name: str = "f", **beside: object) -> dict[str, object]:
    return {**beside, "function": {"name": name, "arguments": {"a": 1}}}


def fold(*frames: object, tool_names: dict[str, str] | None = None) -> tuple[list[str], AssistantMessage]:
    decoder = CODEC.stream_decoder(QWEN, tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]  # pyright: ignore[reportArgumentType]
    return [event.type for event in events + decoder.finish()], decoder.message


STREAMS = {
    "text": (
        [line(content="a"), line(content="b"), line(done=True)],
        ["start", "text_start", "text_delta", "text_delta", "text_end", "done"],
        ["text"],
    ),
    "text on the last line": (
        [line(done=True, content="a")],
        ["start", "text_start", "text_delta", "text_end", "done"],
        ["text"],
    ),
    "thinking, then text, then a call": (
        [line(thinking="a"), line(content="b"), line(tool_calls=[call()]), line(done=True)],
        [
            *("start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end"),
            *("toolcall_start", "toolcall_end", "done"),
        ],
        ["thinking", "text", "toolCall"],
    ),
    "thinking and text on one line": (
        [line(thinking="a", content="b"), line(done=True)],
        ["start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end", "done"],
        ["thinking", "text"],
    ),
    "thinking and text on a line without a role": (
        [{"message": {"thinking": "a", "content": "b"}, "done": False}, line(done=True)],
        ["start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end", "done"],
        ["thinking", "text"],
    ),
    "thinking that continues after text": (
        [line(thinking="a"), line(content="b"), line(thinking="c"), line(done=True)],
        [
            *("start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end"),
            *("thinking_start", "thinking_delta", "thinking_end", "done"),
        ],
        ["thinking", "text", "thinking"],
    ),
    "nothing but the end": ([line(done=True)], ["start", "done"], []),
    "empty lines": ([line(), {"status": "loading"}, line(done=True)], ["start", "done"], []),
}


@pytest.mark.parametrize(("frames", "events", "kinds"), STREAMS.values(), ids=STREAMS.keys())
def test_a_stream_gives_its_parts_in_order(frames, events, kinds):
    result, message = fold(*frames)
    assert result == events
    assert [piece.kind for piece in message.content] == kinds
    assert message.usage is not None
    assert (message.usage.input, message.usage.output) == (3, 2)


def test_calls_of_the_same_index_are_calls_of_their_own():
    """Ollama numbers every call 0 (maka #1976, vercel/ai #14277)."""
    calls = [{"id": name, "function": {"index": 0, "name": name, "arguments": {"path": name}}} for name in "ab"]
    _, message = fold(line(tool_calls=calls[:1]), line(tool_calls=calls[1:]), line(done=True))
    assert [(found.id, found.arguments) for found in message.tool_calls()] == [
        ("a", {"path": "a"}),
        ("b", {"path": "b"}),
    ]
    assert message.stop_reason == StopReason.TOOL_USE


def test_equal_calls_without_ids_differ_by_their_position():
    _, message = fold(line(tool_calls=[call()]), line(tool_calls=[call()]), line(done=True))
    first, second = message.tool_calls()
    assert first.id != second.id


def test_names_of_tools_are_mapped_back_once():
    _, message = fold(line(tool_calls=[call("f")]), line(done=True), tool_names={"f": "g", "g": "h"})
    assert message.tool_calls()[0].name == "g"


BROKEN = {
    "a stream that just stops": ([line(content="a")], "the stream ended before the reply did"),
    "an error line": ([line(content="a"), {"error": "out of memory"}], "out of memory"),
    "an empty error line": ([line(content="a"), {"error": ""}], "the server reported an error"),
    "a line that is no JSON": ([line(content="a"), b"{"], "a frame of the stream cannot be read"),
    "content that is a list": ([line(content="a"), line(content=[1])], "a frame of the stream cannot be read"),
    "calls that are a string": ([line(content="a"), line(tool_calls="f")], "a frame of the stream cannot be read"),
}


@pytest.mark.parametrize(("frames", "error"), BROKEN.values(), ids=BROKEN.keys())
def test_an_incomplete_stream_keeps_what_arrived(frames, error):
    result, message = fold(*frames, line(content="too late"))
    if error.startswith("the stream ended"):
        result, message = fold(*frames)
    assert result[-1] == "error"
    assert result.count("error") == 1
    assert message.stop_reason == StopReason.ERROR
    assert error in (message.error_message or "")
    assert message.text() == "a"


def test_nothing_at_all_is_an_error():
    result, message = fold()
    assert result == ["start", "error"]
    assert message.content == ()


def test_an_interrupted_stream_can_be_stored():
    decoder = CODEC.stream_decoder(QWEN, {})
    decoder.feed(line(content="a"))
    [*_, last] = decoder.abort()
    assert (last.type, decoder.message.stop_reason) == ("error", StopReason.ABORTED)
    assert decoder.message.text() == "a"
