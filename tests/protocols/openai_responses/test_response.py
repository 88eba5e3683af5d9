"""Whole replies: stop reason, usage, and that they are written unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.openai_responses.bodies import call, endpoint, reasoning, reply, text_item
from segue.conversation.content import TextContent
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, Usage
from segue.errors import DecodeError
from segue.models.model import Model, Price
from segue.protocols.openai_responses.protocol import PROTOCOL as CODEC

STOPS = {
    "completed": (reply(text_item()), "stop", "completed", None),
    "completed with a call": (reply(call()), "toolUse", "completed", None),
    "no more tokens": (
        reply(text_item(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "length",
        "max_output_tokens",
        None,
    ),
    "no more messages": (
        reply(text_item(), status="incomplete", incomplete_details={"reason": "max_messages"}),
        "length",
        "max_messages",
        None,
    ),
    "filtered": (
        reply(text_item(), status="incomplete", incomplete_details={"reason": "content_filter"}),
        "error",
        "content_filter",
        "the reply ended with content_filter",
    ),
    "steered": (
        reply(text_item(), status="incomplete", incomplete_details={"reason": "steered"}),
        "stop",
        "steered",
        None,
    ),
    "incomplete for an unknown reason": (
        reply(text_item(), status="incomplete", incomplete_details={"reason": "mood"}),
        "error",
        "mood",
        "the reply ended with mood",
    ),
    "failed": (
        reply(status="failed", error={"code": "server_error", "message": "Sorry."}),
        "error",
        "failed",
        "Sorry.",
    ),
    "cancelled": (reply(text_item(), status="cancelled"), "aborted", "cancelled", "the reply ended with cancelled"),
    "still running": (reply(status="in_progress"), "error", "in_progress", "the reply ended with in_progress"),
    "a vendor's name for completed": (reply(text_item(), status="complete"), "stop", "complete", None),
    "no status": ({"id": "resp_1", "output": [text_item()]}, "stop", None, None),
    "nothing but an error": ({"error": {"message": "No."}}, "error", None, "No."),
    "an error that is a text": ({"error": "No."}, "error", None, "No."),
    "an error event": ({"type": "error", "code": "c", "message": "No.", "param": None}, "error", None, "No."),
    "an error of another protocol": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "error",
        None,
        "Overloaded",
    ),
    "an error without a message": ({"error": {}}, "error", None, "the provider reported an error"),
    "never begun": ({"id": "r", "status": "queued"}, "error", "queued", "the reply ended with queued"),
}


@pytest.mark.parametrize(("body", "reason", "raw", "error"), STOPS.values(), ids=STOPS.keys())
def test_a_reply_has_its_stop_reason_and_is_written_unchanged(body, reason, raw, error):
    message = CODEC.decode_response(body, endpoint(), {})
    assert (message.stop_reason, message.raw_stop_reason, message.error_message) == (reason, raw, error)
    assert CODEC.encode_response(message, endpoint()) == body


def usage(details, **fields):
    return {
        "input_tokens": 100,
        "input_tokens_details": details,
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
        **fields,
    }


USAGES = {
    "cached": (usage({"cached_tokens": 60}), Usage(input=40, output=20, cache_read=60, reasoning=5, total_tokens=120)),
    "written to the cache": (
        usage({"cached_tokens": 60, "cache_write_tokens": 30}),
        Usage(input=10, output=20, cache_read=60, cache_write=30, reasoning=5, total_tokens=120),
    ),
    "a vendor's own counts": (
        usage({"cached_tokens": 0}, num_sources_used=3),
        Usage(input=100, output=20, reasoning=5, total_tokens=120),
    ),
    "details of null": (
        {"input_tokens": 3, "input_tokens_details": None, "output_tokens": 2, "total_tokens": 5},
        Usage(input=3, output=2, total_tokens=5),
    ),
    "none": (None, None),
}


@pytest.mark.parametrize(("wire", "counted"), USAGES.values(), ids=USAGES.keys())
def test_tokens_are_counted_without_the_cached_ones(wire, counted):
    body = reply(text_item(), usage=wire)
    message = CODEC.decode_response(body, endpoint(), {})
    found = message.usage
    if found is not None and counted is not None:
        found = Usage(
            **{name: getattr(found, name) for name in found.__struct_fields__ if name not in ("extra", "cost")}
        )
    assert found == counted
    assert CODEC.encode_response(message, endpoint()) == body


def test_a_reply_has_a_price_where_one_is_known():
    model = Model("m", "openai", "openai-responses", cost=Price(input=1.0, output=2.0, cache_read=0.5))
    found = CODEC.decode_response(reply(text_item()), endpoint(model), {}).usage
    assert found is not None
    assert found.cost is not None
    assert found.cost.total == pytest.approx((40 * 1.0 + 20 * 2.0 + 60 * 0.5) / 1e6)


def test_a_reply_has_the_requested_and_the_answering_model():
    message = CODEC.decode_response(reply(text_item()), endpoint(), {})
    assert (message.protocol, message.provider, message.model) == ("openai-responses", "openai", "gpt-5.4")
    assert (message.response_model, message.response_id) == ("gpt-5.4-2026-03-05", "resp_1")


def test_tool_names_are_mapped_back():
    message = CODEC.decode_response(reply(call()), endpoint(), {"read": "files/read"})
    assert message.tool_calls()[0].name == "files/read"


def test_arguments_that_had_to_be_repaired_are_noted():
    message = CODEC.decode_response(reply(call(arguments='{"path": "a')), endpoint(), {})
    assert message.tool_calls()[0].arguments == {"path": "a"}
    assert message.diagnostics
    assert CODEC.encode_response(message, endpoint())["output"] == [call(arguments='{"path": "a')]


NO_REPLIES = {
    "nothing": {},
    "a reply of another protocol": {"choices": []},
    "a reply without output": {"id": "resp_1", "status": "completed"},
}


@pytest.mark.parametrize("body", NO_REPLIES.values(), ids=NO_REPLIES.keys())
def test_a_body_that_is_no_reply_is_refused(body):
    with pytest.raises(DecodeError) as caught:
        CODEC.decode_response(body, endpoint(), {})
    assert caught.value.path == ("output",)


def test_another_models_turn_can_be_written_as_a_reply():
    message = AssistantMessage(content=(TextContent(text="Hi"),), model="claude", response_id="msg_9")
    body = CODEC.encode_response(message, endpoint())
    assert body["status"] == "completed"
    assert CODEC.decode_response(body, endpoint(), {}).text() == "Hi"


def test_all_that_a_reply_repeats_is_kept():
    body = reply(reasoning(), text_item(), tools=[{"type": "web_search"}], instructions="x", truncation="disabled")
    assert CODEC.encode_response(CODEC.decode_response(body, endpoint(), {}), endpoint()) == body


ERRORS = {
    "the common body": ({"error": {"message": "No.", "type": "t", "code": "c", "param": None}}, ("c", "t", "No.")),
    "an error event": ({"type": "error", "code": "c", "message": "No.", "param": None}, ("c", None, "No.")),
    "a nested error event": ({"type": "error", "error": {"type": "t", "message": "No."}}, (None, "t", "No.")),
    "a failed reply": (
        {"type": "response.failed", "response": {"error": {"code": "c", "message": "No."}}},
        ("c", None, "No."),
    ),
    "a text": ("No.", (None, None, "No.")),
    "a text in an object": ({"error": "No."}, (None, None, "No.")),
    "a detail": ({"detail": "No."}, (None, None, "No.")),
    "a number for a code": ({"error": {"code": 404, "message": "No."}}, ("404", None, "No.")),
    "nothing": (None, (None, None, "")),
}


@pytest.mark.parametrize(("body", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_are_read(body, expected):
    error = CODEC.decode_error(body, 400)
    assert (error.code, error.type, error.message) == expected
    assert error.status == 400


def test_keys_of_a_reply_are_kept_apart_and_not_sent_back():
    body = reply(text_item(), instructions="Be brief.", tools=[], temperature=1.0)
    message: Any = CODEC.decode_response(body, endpoint(), {})
    assert message.extra.keys() == {"reply"}
    assert message.extra["reply"]["openai-responses"]["add"]["instructions"] == "Be brief."
    request = CODEC.encode_request(Prompt(context=Context(messages=(message,))), endpoint())
    assert request["input"] == [text_item()]
    assert CODEC.encode_response(message, endpoint()) == body
