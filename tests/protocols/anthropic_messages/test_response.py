"""Whole replies: stop reasons, usage and cost, and all other keys."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from protocols.anthropic_messages.endpoints import SONNET, endpoint_of
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.protocols.anthropic_messages.protocol import PROTOCOL as CODEC

CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
TEXT = {"type": "text", "text": "hi"}


def reply(*content, **rest):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 5},
        **rest,
    }


def read(body, endpoint=SONNET) -> AssistantMessage:
    return CODEC.decode_response(body, endpoint, {})


STOPS = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "pause_turn": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "refusal": StopReason.ERROR,
    "sensitive": StopReason.ERROR,
    "something new": StopReason.STOP,
    None: StopReason.ERROR,
}


@pytest.mark.parametrize(("raw", "stop"), STOPS.items(), ids=map(str, STOPS))
def test_the_reason_is_read_by_a_table_and_kept(raw, stop):
    message = read(reply(TEXT, stop_reason=raw))
    assert (message.stop_reason, message.raw_stop_reason) == (stop, raw)
    assert (message.error_message is not None) == (stop == StopReason.ERROR)


def test_a_reply_that_stopped_with_calls_waits_for_their_results():
    assert read(reply(TEXT, CALL)).stop_reason == StopReason.TOOL_USE
    assert read(reply(CALL, stop_reason="max_tokens")).stop_reason == StopReason.LENGTH
    assert read(reply(TEXT, CALL, stop_reason=None)).stop_reason == StopReason.TOOL_USE


def test_a_reply_without_a_reason_was_not_finished():
    message = read(reply(TEXT, stop_reason=None))
    assert (message.stop_reason, message.error_message) == ("error", "the reply ended without a stop reason")


def test_a_refusal_has_its_explanation():
    details = {"type": "refusal", "explanation": "No."}
    assert read(reply(stop_reason="refusal", stop_details=details)).error_message == "No."
    assert read(reply(stop_reason="refusal")).error_message == "the reply ended with refusal"


USAGES = {
    "the least": ({"input_tokens": 3, "output_tokens": 5}, Usage(input=3, output=5, total_tokens=8)),
    "cached": (
        {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 11},
        Usage(input=3, output=5, cache_read=7, cache_write=11, total_tokens=26),
    ),
    "thought": (
        {"input_tokens": 3, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}},
        Usage(input=3, output=5, reasoning=4, total_tokens=8),
    ),
    "nulls": (
        {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": None},
        Usage(input=3, output=5, total_tokens=8),
    ),
    "nothing": ({}, Usage()),
}


@pytest.mark.parametrize(("wire", "usage"), USAGES.values(), ids=USAGES.keys())
def test_tokens_are_counted_by_category(wire, usage):
    found = read(reply(TEXT, usage=wire), endpoint_of("m", "somebody")).usage
    assert found is not None
    fields = ("input", "output", "cache_read", "cache_write", "reasoning", "total_tokens", "cost")
    assert [getattr(found, field) for field in fields] == [getattr(usage, field) for field in fields]


def test_a_cache_write_for_an_hour_costs_its_own_price():
    wire = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 1_000_000}
    creation = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1_000_000}
    short, long = read(reply(usage=wire)).usage, read(reply(usage={**wire, "cache_creation": creation})).usage
    assert short is not None
    assert long is not None
    assert short.cost is not None
    assert long.cost is not None
    assert short.cost.cache_write == pytest.approx(3.75)
    assert long.cost.cache_write == pytest.approx(6.0)


def test_no_usage_is_no_usage():
    assert read({key: value for key, value in reply(TEXT).items() if key != "usage"}).usage is None


def test_a_reply_has_its_origin():
    message = read(reply(TEXT))
    assert (message.protocol, message.provider, message.model) == (
        "anthropic-messages",
        "anthropic",
        "claude-sonnet-4-5",
    )
    assert (message.response_model, message.response_id) == ("claude-sonnet-4-5-20250929", "msg_1")


BODIES = {
    "a plain one": reply(TEXT),
    "no content": reply(),
    "content as a string": {**reply(), "content": "hi"},
    "content that is null": {**reply(), "content": None},
    "without an id, a model or usage": {
        "type": "message",
        "role": "assistant",
        "content": [TEXT],
        "stop_reason": "end_turn",
    },
    "an unknown reason": reply(TEXT, stop_reason="something new", stop_sequence="x"),
    "no reason": reply(TEXT, stop_reason=None),
    "a stop sequence": reply(TEXT, stop_reason="stop_sequence", stop_sequence="END"),
    "thinking without a signature": reply({"type": "thinking", "thinking": "hm"}, TEXT),
    "keys that are null, a call by the model itself, and one with input as text": reply(
        {**TEXT, "citations": None},
        {**CALL, "caller": {"type": "direct"}},
        {**CALL, "input": '{"a": 1}', "cache_control": {"type": "ephemeral"}},
    ),
    "another type": reply(TEXT, type="completion", role="model"),
    "more about everything": reply(
        TEXT,
        container={"id": "c", "expires_at": "x"},
        stop_details=None,
        diagnostics={"cache_miss_reason": None},
        context_management={"applied_edits": []},
        usage={
            "input_tokens": 3,
            "output_tokens": 5,
            "cache_creation": None,
            "cache_read_input_tokens": 2,
            "server_tool_use": {"web_search_requests": 1},
            "output_tokens_details": {"thinking_tokens": 0},
            "service_tier": "standard",
            "iterations": [],
        },
    ),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_reply_comes_out_as_it_was(body):
    assert CODEC.encode_response(read(body), SONNET) == body


def test_content_of_a_reply_keeps_data_and_no_format():
    citation = {"type": "char_location", "cited_text": "x"}
    message = read(reply({**TEXT, "citations": [citation], "x": None}, {**CALL, "caller": {"type": "direct"}}))
    text, call = message.content
    assert text.extra == {"anthropic-messages": {"citations": [citation]}}
    assert call.extra is None
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), SONNET)
    assert body["messages"] == [{"role": "assistant", "content": [{**TEXT, "citations": [citation]}, CALL]}]


def test_a_changed_reply_is_written_in_the_default_format():
    message = read({**reply(), "content": "hi", "stop_reason": "something new"})
    changed = replace(message, content=(TextContent(text="a"), TextContent(text="b")), stop_reason=StopReason.LENGTH)
    body = CODEC.encode_response(changed, SONNET)
    assert body["content"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert body["stop_reason"] == "max_tokens"


def test_what_older_versions_kept_of_a_reply_is_ignored():
    old = {"reply": {"anthropic-messages": {"container": {"id": "c"}, "shape": {"absent": ["stop_sequence"]}}}}
    assert CODEC.encode_response(replace(read(reply(TEXT)), extra=old), SONNET)["stop_sequence"] is None


def test_a_reply_of_another_protocol_is_written_in_the_default_format():
    message = AssistantMessage(
        content=(TextContent(text="hi"), ToolCall(id="t", name="f", arguments={"a": 1})),
        protocol="openai-chat",
        model="gpt-x",
        stop_reason=StopReason.TOOL_USE,
        raw_stop_reason="tool_calls",
        usage=Usage(input=1, output=2, reasoning=1),
        response_id="chatcmpl-1",
    )
    assert CODEC.encode_response(message, SONNET) == {
        "id": "chatcmpl-1",
        "type": "message",
        "role": "assistant",
        "model": "gpt-x",
        "content": [TEXT, {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 1,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 2,
            "output_tokens_details": {"thinking_tokens": 1},
        },
    }


def test_keys_of_a_reply_as_a_whole_are_not_sent_back():
    message = read(reply(TEXT, container={"id": "c"}))
    body = CODEC.encode_request(Prompt(context=Context(messages=(message,))), SONNET)
    assert body["messages"] == [{"role": "assistant", "content": [TEXT]}]


FAILED = {
    "Anthropic's error": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"},
        "overloaded_error: Overloaded",
    ),
    "an error of a gateway": ({"error": {"message": "No."}}, "No."),
    "an error that is a text": ({"error": "No."}, "No."),
    "an error without details": ({"type": "error"}, "the provider reported an error"),
}


@pytest.mark.parametrize(("body", "text"), FAILED.values(), ids=FAILED.keys())
def test_an_error_is_a_reply_that_failed(body, text):
    message = read(body)
    assert (message.content, message.stop_reason, message.error_message) == ((), "error", text)
    assert CODEC.encode_response(message, SONNET) == body


NO_REPLIES = {
    "nothing": {},
    "another wire's reply": {"choices": []},
    "a reply without content": {"type": "message", "role": "assistant", "stop_reason": "end_turn"},
    "content that is a number": {"content": 3},
    "a block that is a text": {"content": ["hi"]},
}


@pytest.mark.parametrize("body", NO_REPLIES.values(), ids=NO_REPLIES.keys())
def test_what_is_no_reply_is_refused_with_its_place(body):
    with pytest.raises(DecodeError) as caught:
        read(body)
    assert caught.value.path[0] == "content"


ERRORS = {
    "Anthropic's own": (
        {
            "type": "error",
            "error": {"type": "not_found_error", "message": "no", "details": {"error_code": "thread_not_found"}},
        },
        (404, "thread_not_found", "not_found_error", "no"),
    ),
    "without details": (
        {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}, "request_id": "req_1"},
        (404, None, "invalid_request_error", "bad"),
    ),
    "OpenAI's form, as llama.cpp answers": (
        {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_ctx": 8}},
        (404, "400", "exceed_context_size_error", "too long"),
    ),
    "an error that is a text": ({"error": "nope"}, (404, None, None, "nope")),
    "a message alone": ({"message": "nope"}, (404, None, None, "nope")),
    "a detail alone": ({"detail": "nope"}, (404, None, None, "nope")),
    "bytes": (b'{"error":{"type":"a","message":"b"}}', (404, None, "a", "b")),
    "a page": ("<html>502</html>", (404, None, None, "<html>502</html>")),
    "nothing": (None, (404, None, None, "")),
    "a list": ([1], (404, None, None, "")),
}


@pytest.mark.parametrize(("body", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_body_is_read(body, expected):
    error = CODEC.decode_error(body, 404)
    assert (error.status, error.code, error.type, error.message) == expected


@pytest.mark.parametrize("content", ["Hi.", [{"type": "text", "text": "Hi."}]], ids=["a string", "blocks"])
def test_keys_of_a_reply_are_kept_apart_and_no_request_repeats_them(content):
    body = {**reply(), "content": content, "container": {"id": "c1"}, "context_management": None}
    message: Any = CODEC.decode_response(body, SONNET, {})
    assert message.extra.keys() == {"reply"}
    assert message.extra["reply"].keys() == {"anthropic-messages"}
    request = CODEC.encode_request(Prompt(context=Context(messages=(message,))), SONNET)
    assert request["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "Hi."}]}]
    assert CODEC.encode_response(message, SONNET) == body
