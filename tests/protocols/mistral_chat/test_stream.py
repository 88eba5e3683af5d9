"""Streams with something unusual: cut, wrong, in several choices, with calls in pieces."""

from __future__ import annotations

import pytest

from protocols.mistral_chat.endpoints import LARGE
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC


def chunk(delta=None, reason=None, index=0, **more) -> dict:
    return {
        "id": "c",
        "model": "m",
        "choices": [{"index": index, "delta": delta or {}, "finish_reason": reason}],
        **more,
    }


def decoded(*frames, tool_names=None) -> tuple[list, AssistantMessage]:
    decoder = CODEC.stream_decoder(LARGE, tool_names or {})
    events = [event for frame in frames for event in decoder.feed(frame)]
    return events + decoder.finish(), decoder.message


def call(call_id, name="f", arguments: object = "{}", **more) -> dict:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, **more}


STOP = chunk({"content": ""}, "stop")
CALLS = {
    "calls with one index are separated by their ids": (
        [chunk({"tool_calls": [call("a", index=0), call("b", index=0)]}, "tool_calls")],
        [("a", {}), ("b", {})],
    ),
    "pieces go to the call of their index": (
        [
            chunk({"tool_calls": [call("a", arguments='{"x":', index=0), call("b", arguments='{"y":', index=1)]}),
            chunk({"tool_calls": [call("null", "", "2}", index=1), call("", "", "1}", index=0)]}, "tool_calls"),
        ],
        [("a", {"x": 1}), ("b", {"y": 2})],
    ),
    "pieces with neither id nor index go on with the last call": (
        [
            chunk({"tool_calls": [call("a", arguments='{"x":')]}),
            chunk({"tool_calls": [{"function": {"arguments": "1}"}}]}, "tool_calls"),
        ],
        [("a", {"x": 1})],
    ),
    "arguments may be an object": (
        [chunk({"tool_calls": [call("a", arguments={"x": 1})]}, "tool_calls")],
        [("a", {"x": 1})],
    ),
    "calls without ids get some": (
        [chunk({"tool_calls": [call(None, index=0), call("null", index=1)]}, "tool_calls")],
        [("call00000", {}), ("call00001", {})],
    ),
}


@pytest.mark.parametrize(("frames", "calls"), CALLS.values(), ids=CALLS.keys())
def test_calls_are_put_together(frames, calls):
    events, message = decoded(*frames)
    assert [(piece.id, piece.arguments) for piece in message.tool_calls()] == calls
    assert message.stop_reason == StopReason.TOOL_USE
    kinds = [event.type for event in events]
    assert kinds.count("toolcall_start") == kinds.count("toolcall_end") == len(calls)


def test_thinking_and_text_take_turns():
    think = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    events, message = decoded(chunk({"content": [think]}), chunk({"content": "a"}), chunk({"content": [think]}), STOP)
    assert message.content == (
        ThinkingContent(thinking="hm"),
        TextContent(text="a"),
        ThinkingContent(thinking="hm"),
    )
    kinds = [event.type for event in events]
    assert kinds == [
        *("start", "thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end"),
        *("thinking_start", "thinking_delta", "thinking_end", "done"),
    ]


def test_thinking_as_a_string_is_thinking():
    _, message = decoded(chunk({"content": [{"type": "thinking", "thinking": "hm"}]}), STOP)
    assert message.content == (ThinkingContent(thinking="hm"),)


def test_names_are_mapped_back():
    _, message = decoded(chunk({"tool_calls": [call("a")]}, "tool_calls"), tool_names={"f": "mcp.f"})
    assert message.content == (ToolCall(id="a", name="mcp.f"),)


def test_a_stream_that_just_stops_keeps_what_arrived():
    events, message = decoded(chunk({"content": "Hel"}), chunk({"tool_calls": [call("a", arguments='{"x": "y')]}))
    assert events[-1].type == "error"
    assert message.stop_reason == StopReason.ERROR
    assert message.text() == "Hel"
    assert message.tool_calls()[0].arguments_text == '{"x": "y'


@pytest.mark.parametrize(
    "frame",
    [{"error": {"message": "Overloaded", "type": "t", "code": "1"}}, {"object": "error", "message": "Overloaded"}],
    ids=["inside", "itself"],
)
def test_an_error_in_the_stream_ends_it(frame):
    events, message = decoded(chunk({"content": "Hel"}), frame, STOP)
    assert [event.type for event in events][-1] == "error"
    assert (message.error_message, message.text()) == ("Overloaded", "Hel")


def test_several_choices_are_kept():
    frames = [
        chunk({"content": "a"}),
        chunk({"content": "b"}, index=1),
        chunk({}, "stop"),
        chunk({}, "length", index=1),
    ]
    _, message = decoded(*frames)
    assert message.text() == "a"
    choices = CODEC.encode_response(message, LARGE)["choices"]
    assert isinstance(choices, list)
    assert [(choice["message"]["content"], choice["finish_reason"]) for choice in choices] == [
        ("a", "stop"),
        ("b", "length"),
    ]


def test_an_unknown_chunk_is_kept():
    odd = {"type": "odd", "text": "x"}
    _, message = decoded(chunk({"content": [odd]}), STOP)
    assert message.content == (NativeContent(protocol="mistral-chat", block=odd, fallback=(TextContent(text="x"),)),)


def test_log_probabilities_add_up():
    def result(token, reason=None):
        choice = {"index": 0, "delta": {"content": token}, "finish_reason": reason}
        return {"id": "c", "choices": [{**choice, "logprobs": {"content": [{"token": token}]}}]}

    _, message = decoded(result("a"), result("b", "stop"))
    choices = CODEC.encode_response(message, LARGE)["choices"]
    assert isinstance(choices, list)
    assert choices[0]["logprobs"] == {"content": [{"token": "a"}, {"token": "b"}]}


@pytest.mark.parametrize(
    "frame", [{}, {"choices": None}, {"choices": [1, {"delta": 3}]}, {"choices": [{"delta": {"content": [1]}}]}]
)
def test_odd_frames_do_no_harm(frame):
    events, message = decoded(chunk({"content": "a"}), frame, STOP)
    assert events[-1].type == "done"
    assert message.text() == "a"


@pytest.mark.parametrize("delta", [{"content": 0}, {"content": [0]}, {"tool_calls": 0}, {"tool_calls": ["x"]}], ids=str)
def test_a_tool_message_of_any_form_is_kept(delta):
    events, message = decoded(chunk({"role": "tool", **delta}, "stop"))
    assert events[-1].type == "done"
    assert message.content == (NativeContent(protocol="mistral-chat", block={"role": "tool", **delta}),)


def test_a_stream_of_one_tool_message_keeps_its_calls():
    """Calls inside the message of a tool that the provider ran are no calls of the reply."""
    events, message = decoded(chunk({"role": "tool", "content": "hi", "tool_calls": [call("a")]}, "stop"))
    assert events[-1].type == "done"
    (native,) = message.content
    assert isinstance(native, NativeContent)
    assert native.block["tool_calls"] == [call("a")]
    assert message.tool_calls() == ()
