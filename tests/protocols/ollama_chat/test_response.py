"""Replies of an Ollama server: what is read, and that it is written back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from protocols.ollama_chat.endpoints import QWEN
from segue.conversation.content import NativeContent, TextContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, StopReason, Usage, UsageCost
from segue.errors import DecodeError
from segue.models.model import Price
from segue.protocols.api import encode_response
from segue.protocols.detection import detect_reply
from segue.protocols.kit.codec import Endpoint, WireError
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC


def reply(message: object = None, **top: object) -> dict[str, object]:
    given = {"role": "assistant", "content": "hi"} if message is None else message
    return {"model": "qwen3:8b", "created_at": "2026-11-15T08:00:00Z", "message": given, "done": True, **top}


def call(**function: object) -> dict[str, object]:
    return {"function": {"name": "f", "arguments": {}, **function}}


def read(body: dict[str, object], tool_names: dict[str, str] | None = None) -> AssistantMessage:
    return CODEC.decode_response(body, QWEN, tool_names or {})


CALLS = {"role": "assistant", "content": "", "tool_calls": [call()]}
REASONS = {
    "stop": (reply(done_reason="stop"), StopReason.STOP),
    "length": (reply(done_reason="length"), StopReason.LENGTH),
    "length in the middle of calls": (reply(CALLS, done_reason="length"), StopReason.LENGTH),
    "calls, which have no reason of their own": (reply(CALLS, done_reason="stop"), StopReason.TOOL_USE),
    "loaded": (reply({"role": "assistant", "content": ""}, done_reason="load"), StopReason.STOP),
    "unloaded": (reply({"role": "assistant", "content": ""}, done_reason="unload"), StopReason.STOP),
    "no reason, as from old servers": (reply(), StopReason.STOP),
    "an empty reason": (reply(done_reason=""), StopReason.STOP),
    "an unknown reason": (reply(done_reason="tired"), StopReason.STOP),
    "not done": (reply(done=False), StopReason.ERROR),
    "no message, as from old servers": ({"model": "m", "done": True}, StopReason.STOP),
    "an error": ({"error": "model 'x' not found"}, StopReason.ERROR),
}


@pytest.mark.parametrize(("body", "stop"), REASONS.values(), ids=REASONS.keys())
def test_the_stop_reason_is_read_and_written_back(body, stop):
    message = read(body)
    assert message.stop_reason == stop
    assert message.raw_stop_reason == body.get("done_reason")
    assert (message.error_message is not None) == (stop == StopReason.ERROR)
    assert CODEC.encode_response(message, QWEN) == body


BODIES = {
    "calls with ids and an index": reply({**CALLS, "tool_calls": [{"id": "c", **call(index=0)}]}),
    "a call of another kind between": reply({**CALLS, "tool_calls": [call(), {"x": 1}, call()]}),
    "null and missing": reply({"role": "assistant", "content": None, "thinking": None, "tool_calls": []}),
    "no role": reply({"content": "x"}),
    "another role": reply({"role": "model", "content": "x"}),
    "a message that is null": reply() | {"message": None},
    "unknown keys": reply({"role": "assistant", "content": "x", "mood": 1}, remote_model="r", remote_host="h"),
    "counters of zero and nothing": reply(prompt_eval_count=0, eval_count=None),
    "counters that are strings": reply(prompt_eval_count="9", eval_count=1.5),
    "a model that is a number": reply(model=3),
    "arguments as a string": reply({"role": "assistant", "content": "", "tool_calls": [call(arguments='{"a": [1}')]}),
    "images": reply({"role": "assistant", "content": "", "images": ["AAAA"]}),
    "an error beside a message": reply(error="late"),
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_reply_in_any_format_is_written_as_received(body):
    assert CODEC.encode_response(read(body), QWEN) == body


def test_a_reply_without_anything_in_it_is_no_reply():
    with pytest.raises(DecodeError) as caught:
        read({"model": "m"})
    assert caught.value.path == ("message",)


def test_counters_are_usage_and_cost_what_the_model_costs():
    body = reply(prompt_eval_count=30, eval_count=12)
    assert read(body).usage == Usage(input=30, output=12, total_tokens=42)
    priced = Endpoint(replace(QWEN.model, cost=Price(input=1.0, output=2.0)), QWEN.rules, QWEN.dialect)
    usage = CODEC.decode_response(body, priced, {}).usage
    assert usage is not None
    assert usage.cost == UsageCost(input=30e-6, output=24e-6, total=54e-6)


def test_names_of_tools_are_mapped_back():
    assert read(reply(CALLS), {"f": "mcp.f"}).tool_calls()[0].name == "mcp.f"


def test_arguments_that_are_no_json_are_kept_and_noted():
    message = read(BODIES["arguments as a string"])
    assert message.tool_calls()[0].arguments_text == '{"a": [1}'
    assert [note.type for note in message.diagnostics] == ["tool_arguments_recovered"]


def test_a_stored_reply_has_the_default_format_in_a_request():
    """Fields of the reply alone (an index, no id, timings) are not sent back."""
    message = read(reply({"role": "assistant", "content": "", "tool_calls": [call(index=3)], "mood": 1}, eval_count=3))
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), QWEN)
    calls = [{"id": message.tool_calls()[0].id, "function": {"name": "f", "arguments": {}}}]
    assert body["messages"] == [{"role": "assistant", "content": "", "tool_calls": calls}]


def test_a_message_of_another_wire_is_written_as_a_reply():
    message = AssistantMessage(
        content=(TextContent(text="hi"), ToolCall(id="c", name="f", arguments={"a": 1})),
        protocol="x",
        provider="x",
        model="gpt",
        usage=Usage(input=1, cache_read=2, output=3, total_tokens=6),
        stop_reason=StopReason.TOOL_USE,
        raw_stop_reason="tool_calls",
    )
    assert encode_response(message, protocol="ollama-chat") == {
        "model": "gpt",
        "message": {
            "role": "assistant",
            "content": "hi",
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 3,
        "eval_count": 3,
    }


def test_an_image_that_a_model_made_is_the_fallback_for_other_wires():
    [piece] = read(BODIES["images"]).content
    assert isinstance(piece, NativeContent)
    assert [spare.kind for spare in piece.fallback] == ["image"]


def test_a_reply_is_recognised():
    assert detect_reply(reply(done_reason="stop")) == "ollama-chat"
    assert detect_reply({"model": "m", "message": {"role": "assistant", "content": "x"}, "done": True}) == "ollama-chat"


ERRORS = {
    "a string": ({"error": "model 'x' not found"}, WireError(status=404, message="model 'x' not found")),
    "bytes": (b'{"error": "no"}', WireError(status=404, message="no")),
    "a page": ("<html>", WireError(status=404, message="<html>")),
    "an object, by a gateway": (
        {"error": {"message": "no", "code": 7, "type": "t"}},
        WireError(status=404, code="7", type="t", message="no"),
    ),
    "nothing": (None, WireError(status=404)),
}


@pytest.mark.parametrize(("body", "error"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read(body, error):
    assert CODEC.decode_error(body, 404) == error
