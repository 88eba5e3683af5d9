"""Replies and errors: what is read, what it cost, how it ended, and how it is written again."""

from __future__ import annotations

import pytest

from protocols.mistral_chat.endpoints import LARGE, endpoint_of
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Price
from segue.protocols.mistral_chat.protocol import PROTOCOL as CODEC


def reply(message=None, reason="stop", **more) -> dict:
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "hi"}, "finish_reason": reason}
    return {"id": "1", "object": "chat.completion", "model": "m-2604", "created": 1, "choices": [choice], **more}


def call(call_id="abcdef123", **function) -> dict:
    return {"id": call_id, "function": {"name": "f", "arguments": "{}", **function}}


USAGE = {
    "no cached tokens": ({}, (10, 0)),
    "the old key": ({"num_cached_tokens": 4}, (6, 4)),
    "the new key": ({"prompt_tokens_details": {"cached_tokens": 4}}, (6, 4)),
    "a third key": ({"prompt_token_details": {"cached_tokens": 4}}, (6, 4)),
    "nothing cached": ({"num_cached_tokens": 0, "prompt_tokens_details": None}, (10, 0)),
    "more cached than the prompt has": ({"num_cached_tokens": 40}, (0, 10)),
}


@pytest.mark.parametrize(("more", "counts"), USAGE.values(), ids=USAGE.keys())
def test_cached_tokens_are_not_counted_as_input(more, counts):
    body = reply(usage={"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, **more})
    message = CODEC.decode_response(body, LARGE, {})
    assert message.usage == Usage(input=counts[0], output=2, cache_read=counts[1], total_tokens=12)
    assert CODEC.encode_response(message, LARGE) == body


def test_a_price_makes_a_cost():
    endpoint = endpoint_of(cost=Price(input=2.0, output=6.0, cache_read=0.5))
    body = reply(usage={"prompt_tokens": 1_000_000, "completion_tokens": 500_000, "num_cached_tokens": 500_000})
    usage = CODEC.decode_response(body, endpoint, {}).usage
    assert usage is not None
    assert usage.cost is not None
    assert usage.cost.total == pytest.approx(1.0 + 3.0 + 0.25)


REASONS = {
    "stop": ({"content": "x"}, StopReason.STOP),
    "length": ({"content": "x"}, StopReason.LENGTH),
    "model_length": ({"content": "x"}, StopReason.LENGTH),
    "tool_calls": ({"content": "", "tool_calls": [call()]}, StopReason.TOOL_USE),
    "error": ({"content": "x"}, StopReason.ERROR),
    "unheard_of": ({"content": "x"}, StopReason.STOP),
    "unheard_of_and_empty": ({"content": ""}, StopReason.ERROR),
}


@pytest.mark.parametrize(("message", "stop"), REASONS.values(), ids=REASONS.keys())
def test_why_a_reply_ended(request, message, stop):
    reason = request.node.callspec.id
    read = CODEC.decode_response(reply({"role": "assistant", **message}, reason), LARGE, {})
    assert (read.stop_reason, read.raw_stop_reason) == (stop, reason)
    assert (read.error_message is not None) == (stop == StopReason.ERROR)


def test_a_reply_that_stopped_with_calls_waits_for_their_results():
    read = CODEC.decode_response(reply({"role": "assistant", "tool_calls": [call()]}, "stop"), LARGE, {})
    assert read.stop_reason == StopReason.TOOL_USE


def test_names_are_mapped_back_and_forth():
    body = reply({"role": "assistant", "content": "", "tool_calls": [call()]}, "tool_calls")
    message = CODEC.decode_response(body, LARGE, {"f": "mcp.f"})
    assert message.content == (ToolCall(id="abcdef123", name="mcp.f"),)
    assert CODEC.encode_response(message, LARGE) == body


@pytest.mark.parametrize(
    "missing", [{}, {"id": None}, {"id": "null"}, {"id": ""}], ids=["absent", "null", "text", "empty"]
)
def test_calls_without_an_id_get_one_of_nine_characters(missing):
    given = {**{key: value for key, value in call().items() if key != "id"}, **missing}
    body = reply({"role": "assistant", "content": "", "tool_calls": [given, given]}, "tool_calls")
    message = CODEC.decode_response(body, LARGE, {})
    assert [piece.id for piece in message.tool_calls()] == ["call00000", "call00001"]
    assert CODEC.encode_response(message, LARGE) == body


BODIES = {
    "several choices": {**reply(), "choices": [*reply()["choices"], {"index": 1, "message": {}, "finish_reason": "x"}]},
    "log probabilities": reply(logprobs=None, service_tier="default"),
    "no usage, no id": {key: value for key, value in reply().items() if key != "id"},
    "no message": {"choices": [{"finish_reason": "stop"}]},
    "no reason": {"choices": [{"index": 0, "message": {"content": "x", "role": "assistant"}}]},
    "no choices": {"id": "1", "choices": []},
    "arguments that are cut": reply({"role": "assistant", "content": "x", "tool_calls": [call(arguments='{"a')]}),
    "an object's arguments": reply({"role": "assistant", "content": None, "tool_calls": [call(arguments={"a": 1})]}),
    "thinking, closed": reply(
        {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"text": "a"}], "closed": True}]}
    ),
    "an error in the place of a reply": {"object": "error", "message": "No.", "type": "x", "param": None, "code": "1"},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_any_reply_comes_out_as_it_was(body):
    assert CODEC.encode_response(CODEC.decode_response(body, LARGE, {}), LARGE) == body


def test_a_message_of_another_protocol_is_written_as_a_reply():
    message = AssistantMessage(
        content=(TextContent(text="hi"),), model="m", usage=Usage(input=1, output=2, cache_read=3)
    )
    assert CODEC.encode_response(message, LARGE) == {
        "id": "",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi", "tool_calls": None},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 4,
            "completion_tokens": 2,
            "total_tokens": 6,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    }


def test_what_is_no_reply_is_refused():
    with pytest.raises(DecodeError):
        CODEC.decode_response({"hello": 1}, LARGE, {})


ERRORS = {
    "an error": (
        {"object": "error", "message": "Unexpected role", "type": "invalid_request_message_order", "code": "3230"},
        ("Unexpected role", "invalid_request_message_order", "3230"),
    ),
    "what the schema refused": (
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs are not permitted"}]},
        ("body.x: Extra inputs are not permitted", None, None),
    ),
    "the same inside a message": (
        {"object": "error", "message": {"detail": [{"loc": ["body"], "msg": "no"}]}, "type": "t", "code": None},
        ("body: no", "t", None),
    ),
    "the gate": ({"message": "Unauthorized", "request_id": "r"}, ("Unauthorized", None, None)),
    "a detail": ({"detail": "Not Found"}, ("Not Found", None, None)),
    "an inner error": ({"error": {"message": "m", "type": "t", "code": 7}}, ("m", "t", "7")),
    "a text in its place": ({"error": "m"}, ("m", None, None)),
    "bytes": (b'{"message":"m"}', ("m", None, None)),
    "a page": ("<html>", ("<html>", None, None)),
    "something else": ({"what": 1}, ('{"what": 1}', None, None)),
    "nothing": (None, ("", None, None)),
}


@pytest.mark.parametrize(("body", "message_given"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_is_read_in_any_format(body, message_given):
    error = CODEC.decode_error(body, 400)
    assert (error.message, error.type, error.code) == message_given
    assert error.status == 400
