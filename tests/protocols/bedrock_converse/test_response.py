"""Whole replies: why they ended, what they cost, what only a reply contains, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from protocols.bedrock_converse.endpoints import ANYONE, NOVA, SONNET
from protocols.exchanges import BEDROCK
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.protocols.api import decode_error, decode_response
from segue.protocols.bedrock_converse.protocol import PROTOCOL as CODEC
from segue.protocols.kit.codec import WireError

P = "bedrock-converse"


def reply(*blocks, **more):
    message = {"role": "assistant", "content": list(blocks)}
    return {"output": {"message": message}, "stopReason": "end_turn", **more}


CALL = {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
ENDINGS = {
    "the end of the turn": ("end_turn", {"text": "a"}, StopReason.STOP),
    "a sequence stopped it": ("stop_sequence", {"text": "a"}, StopReason.STOP),
    "it was long enough": ("max_tokens", {"text": "a"}, StopReason.LENGTH),
    "the window was full": ("model_context_window_exceeded", {"text": "a"}, StopReason.LENGTH),
    "it calls": ("tool_use", CALL, StopReason.TOOL_USE),
    "it calls and reports the end of the turn": ("end_turn", CALL, StopReason.TOOL_USE),
    "a guardrail intervened": ("guardrail_intervened", {"text": "a"}, StopReason.ERROR),
    "the answer was filtered": ("content_filtered", {"text": "a"}, StopReason.ERROR),
    "the model wrote malformed output": ("malformed_model_output", {"text": "a"}, StopReason.ERROR),
    "the model wrote a malformed call": ("malformed_tool_use", CALL, StopReason.ERROR),
    "an unknown reason": ("hibernated", {"text": "a"}, StopReason.STOP),
}


@pytest.mark.parametrize(("raw", "block", "expected"), ENDINGS.values(), ids=ENDINGS.keys())
def test_why_a_reply_ended(raw, block, expected):
    body = reply(block, stopReason=raw)
    message = CODEC.decode_response(body, SONNET, {})
    assert (message.stop_reason, message.raw_stop_reason) == (expected, raw)
    assert (message.error_message is not None) is (expected == StopReason.ERROR)
    assert CODEC.encode_response(message, SONNET) == body


def test_a_reply_without_a_reason_was_cut_off():
    body = {"output": {"message": {"role": "assistant", "content": [{"text": "a"}]}}}
    message = CODEC.decode_response(body, SONNET, {})
    assert message.stop_reason == StopReason.ERROR
    assert CODEC.encode_response(message, SONNET) == body


COUNTS = {
    "plain": (
        {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15},
        Usage(input=10, output=5, total_tokens=15),
    ),
    "cached": (
        {
            "inputTokens": 10,
            "outputTokens": 5,
            "totalTokens": 315,
            "cacheReadInputTokens": 200,
            "cacheWriteInputTokens": 100,
        },
        Usage(input=10, output=5, cache_read=200, cache_write=100, total_tokens=315),
    ),
    "counts that are nothing": (
        {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2, "cacheReadInputTokens": 0, "serverToolUsage": {}},
        Usage(
            input=1,
            output=1,
            total_tokens=2,
            extra={P: {"serverToolUsage": {}, "verbatim": {"cacheReadInputTokens": {"to": 0}}}},
        ),
    ),
    "without a sum": (
        {"inputTokens": 1, "outputTokens": 1},
        Usage(input=1, output=1, total_tokens=2, extra={P: {"verbatim": {"totalTokens": {"from": 2}}}}),
    ),
}


@pytest.mark.parametrize(("wire", "usage"), COUNTS.values(), ids=COUNTS.keys())
def test_counts_are_read_and_written_back(wire, usage):
    message = CODEC.decode_response(reply({"text": "a"}, usage=wire), ANYONE, {})
    assert message.usage == usage
    assert CODEC.encode_response(message, ANYONE)["usage"] == wire


def test_what_is_kept_for_an_hour_costs_more():
    def cost(**details):
        usage = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 100, "cacheWriteInputTokens": 100, **details}
        message = CODEC.decode_response(reply({"text": "a"}, usage=usage), SONNET, {})
        assert message.usage is not None
        assert message.usage.cost is not None
        return message.usage.cost.cache_write

    assert cost(cacheDetails=[{"ttl": "1h", "inputTokens": 100}]) > cost(
        cacheDetails=[{"ttl": "5m", "inputTokens": 100}]
    )
    assert cost() == cost(cacheDetails=[{"ttl": "5m", "inputTokens": 100}])


def test_a_router_names_the_model_it_invoked():
    body = reply({"text": "a"}, trace={"promptRouter": {"invokedModelId": "arn:aws:bedrock:::foundation-model/a.b"}})
    assert CODEC.decode_response(body, NOVA, {}).response_model == "arn:aws:bedrock:::foundation-model/a.b"


def test_names_of_tools_are_mapped_back():
    message = CODEC.decode_response(reply(CALL), SONNET, {"f": "mcp.server/f"})
    assert message.tool_calls()[0].name == "mcp.server/f"


def test_a_reply_is_recognised_and_stamped():
    message = decode_response(BEDROCK.part("plain-text", "response"))
    assert (message.protocol, message.provider) == (P, "amazon-bedrock")


def test_what_only_the_reply_contains_is_in_no_request():
    message = CODEC.decode_response(BEDROCK.part("reasoning-then-calls", "response"), SONNET, {})
    prompt = CODEC.decode_request([{"role": "user", "content": [{"text": "hi"}]}], SONNET)
    context = prompt.context.add(message)
    body: Any = CODEC.encode_request(type(prompt)(context=context), SONNET)
    written = body["messages"][1]
    assert set(written) == {"role", "content"}
    assert [set(block.get("toolUse", {})) for block in written["content"][2:]] == [{"toolUseId", "name", "input"}] * 2


def test_a_body_that_is_an_error_is_a_message_that_failed():
    body = {"message": "Too many tokens, please wait before trying again.", "__type": "ThrottlingException"}
    message = CODEC.decode_response(body, SONNET, {})
    assert message.stop_reason == StopReason.ERROR
    assert message.error_message == "ThrottlingException: Too many tokens, please wait before trying again."
    assert CODEC.encode_response(message, SONNET) == body


NO_REPLIES = {"nothing": {}, "an output without a message": {"output": {}}, "another wire's": {"choices": []}}


@pytest.mark.parametrize("body", NO_REPLIES.values(), ids=NO_REPLIES.keys())
def test_what_is_no_reply_is_refused(body):
    with pytest.raises(DecodeError):
        CODEC.decode_response(body, SONNET, {})


def test_an_output_of_a_kind_to_come_is_kept():
    body = {"output": {"hologram": {"depth": 3}}, "stopReason": "end_turn"}
    message = CODEC.decode_response(body, SONNET, {})
    assert (message.content, message.stop_reason) == ((), StopReason.STOP)
    assert CODEC.encode_response(message, SONNET) == body


def test_a_reply_that_was_never_read_is_written():
    message = AssistantMessage(content=(), stop_reason=StopReason.LENGTH)
    assert CODEC.encode_response(message, SONNET) == {
        "output": {"message": {"role": "assistant", "content": []}},
        "stopReason": "max_tokens",
        "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        "metrics": {"latencyMs": 0},
    }


BLOCKED = "The model returned the following errors: messages.2.content.2.document.source.type: Field required"
ERRORS = {
    "a message alone": ({"message": BLOCKED}, 400, WireError(status=400, message=BLOCKED)),
    "a message of other services": ({"Message": "no"}, 403, WireError(status=403, message="no")),
    "a kind with its namespace": (
        {"__type": "com.amazon.coral.service#ThrottlingException", "message": "slow down"},
        429,
        WireError(status=429, type="ThrottlingException", message="slow down"),
    ),
    "a type as gateways write it": (
        {"type": "ValidationException", "message": "no"},
        400,
        WireError(status=400, type="ValidationException", message="no"),
    ),
    "a kind with a URL": (
        {"__type": "AccessDeniedException:http://internal.amazon.com/coral/", "Message": None},
        403,
        WireError(status=403, type="AccessDeniedException"),
    ),
    "an operation that is none": (
        {"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"},
        404,
        WireError(status=404, type="UnknownOperationException"),
    ),
    "the model's own failure": (
        {"message": "The model failed.", "originalStatusCode": 500, "resourceName": "m"},
        424,
        WireError(status=424, code="500", message="The model failed."),
    ),
    "an exception of a stream": (
        {"modelStreamErrorException": {"message": "broke", "originalMessage": "overflow", "originalStatusCode": 400}},
        None,
        WireError(code="400", type="modelStreamErrorException", message="broke overflow"),
    ),
    "an error of a stream": (
        {"error": {"code": "InternalError", "message": "gone"}},
        None,
        WireError(type="InternalError", message="gone"),
    ),
    "what boto3 makes of it": (
        {
            "Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."},
            "ResponseMetadata": {
                "HTTPStatusCode": 400,
                "HTTPHeaders": {"x-amzn-errortype": "ValidationException:http://x"},
            },
        },
        None,
        WireError(status=400, type="ValidationException", message="Input is too long for requested model."),
    ),
    "bytes": (b'{"message":"no"}', 400, WireError(status=400, message="no")),
    "a page": ("<html>", 502, WireError(status=502, message="<html>")),
    "a gateway's text": ({"error": "no route"}, 404, WireError(status=404, message="no route")),
    "nothing": (None, 500, WireError(status=500)),
}


@pytest.mark.parametrize(("body", "status", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_body_is_read(body, status, expected):
    assert decode_error(body, protocol=P, status=status) == expected


def test_a_reply_of_an_older_stored_file_is_written_in_the_default_format():
    old = {"reply": {P: {"metrics": {"latencyMs": 1}, "shape": {"absent": ["stopReason"], "output": "absent"}}}}
    message = AssistantMessage(content=(), stop_reason=StopReason.LENGTH, extra=old)
    assert CODEC.encode_response(message, SONNET) == {
        "output": {"message": {"role": "assistant", "content": []}},
        "stopReason": "max_tokens",
        "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        "metrics": {"latencyMs": 0},
    }
