"""A Bedrock reply, both ways: content, usage, stop reason.

Facts this file rests on:
- `inputTokens`, `cacheReadInputTokens` and `cacheWriteInputTokens` add up to the whole input; `totalTokens` is the sum
  of them and the output. The lifetime of cache writes stands in `cacheDetails`.
                                         (recorded traffic, 2026-11; botocore 1.44.0 service model, read 2026-11-15)
- Stop reasons.                                                                                       (service model)
- A prompt router names the model that it invoked in `trace`.                                         (service model)
- boto3 adds `ResponseMetadata`, with the id of the request.                         (botocore 1.44.0, tried 2026-11-15)

The difference between the default format of a reply and the received body stands in the message's `extra` under
`reply`. Only `encode_response` reads it; a request never contains it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_share
from segue.protocols.bedrock_converse.content import decode_assistant_block, encode_assistant_blocks
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.errors import decode_error, is_error
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.bedrock_converse.turns import find_blocks, texts_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_patch import difference
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import number_of, of_reply, text_of
from segue.protocols.kit.replies import read_required_stop, rename_calls, restore_reply
from segue.protocols.kit.verbatim import keep, restore

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "guardrail_intervened": StopReason.ERROR,
    "content_filtered": StopReason.ERROR,
    "malformed_model_output": StopReason.ERROR,
    "malformed_tool_use": StopReason.ERROR,
}
_WIRE_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
}
_COUNTS: Final = frozenset({"totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"})
_LONG: Final = "1h"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; a body that is an error becomes a failed message.

    Raises:
        DecodeError: it has no message, or content of an unexpected type.
    """
    output = object_of(body.get("output"))
    turn = output.get("message")
    if not isinstance(turn, Mapping):
        if output and "message" not in output and "stopReason" in body:
            # `output` is a union, and may have more members one day.
            return finish_response(body, (), endpoint)
        if "output" in body or not is_error(body):
            raise DecodeError("the reply has no message; pass the body of a Converse reply", path=("output", "message"))
        return finish_response(body, (), endpoint, error=error_text(body))
    content = cast("Block", turn).get("content")
    blocks = find_blocks(content, ("output", "message", "content"))
    pieces: Sequence[AssistantContent] = texts_of(content)
    if blocks is not None:
        received = [
            block if "text" in block or "toolUse" in block else object_of(without_bytes(block)) for block in blocks
        ]
        pieces = [decode_assistant_block(block, endpoint, reply=True) for block in received]
        message = {**cast("Block", turn), "content": received}
        body = {**body, "output": {**output, "message": message}}
    decoded = finish_response(body, tuple(pieces), endpoint)
    return replace(decoded, content=rename_calls(decoded.content, tool_names)) if tool_names else decoded


def finish_response(
    body: Block, pieces: tuple[AssistantContent, ...], endpoint: Endpoint, *, error: str | None = None
) -> AssistantMessage:
    """Make a message of its content and of the whole body, which a stream puts together from its events."""
    raw = text_of(body.get("stopReason"))
    stop = StopReason.ERROR if error is not None else read_required_stop(STOP_REASONS, raw, pieces)
    if stop == StopReason.ERROR and error is None:
        error = "the reply ended without a stop reason" if raw is None else f"the reply ended with {raw}"
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(object_of(body.get("ResponseMetadata")).get("RequestId")),
        response_model=_invoked_model(body),
        usage=decode_usage(body, endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=error,
    )
    entry = difference(_default_response(message, endpoint), body)
    return message if entry is None else replace(message, extra=of_reply(PROTOCOL, object_of(without_bytes(entry))))


def error_text(body: object) -> str:
    """Give the message of an error body, or of the exception of a stream."""
    error = decode_error(body, None)
    return ": ".join(part for part in (error.type, error.message) if part) or "the provider reported an error"


def _invoked_model(body: Block) -> str | None:
    router = object_of(object_of(body.get("trace")).get("promptRouter"))
    return text_of(router.get("invokedModelId"))


def decode_usage(body: Block, endpoint: Endpoint) -> Usage | None:
    """Read the counts of a reply, and compute the cost."""
    given = body.get("usage")
    if not isinstance(given, Mapping) or given == _default_usage(Usage()):
        return None  # what a reply without counts has: the fields are required
    wire = cast("Block", given)
    counted = Usage(
        input=number_of(wire.get("inputTokens")),
        output=number_of(wire.get("outputTokens")),
        cache_read=number_of(wire.get("cacheReadInputTokens")),
        cache_write=number_of(wire.get("cacheWriteInputTokens")),
    )
    total = counted.input + counted.output + counted.cache_read + counted.cache_write
    usage = replace(counted, total_tokens=number_of(wire.get("totalTokens")) or total)
    long, share = min(_long_writes(wire), usage.cache_write), find_share(endpoint.model, body)
    cost = find_cost(endpoint.model.cost, usage, cache_write_long=long, share=share)
    return replace(usage, cost=cost, extra=keep(PROTOCOL, wire, _default_usage(usage), known=_COUNTS))


def _long_writes(wire: Block) -> int:
    details = wire.get("cacheDetails")
    rows = [object_of(row) for row in cast("Sequence[object]", details)] if isinstance(details, list | tuple) else []
    return sum(number_of(row.get("inputTokens")) for row in rows if row.get("ttl") == _LONG)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a whole reply; what `decode_response` read is written as it was received.

    Raises:
        EncodeError: the wire does not support its content.
    """
    return restore_reply(PROTOCOL, _default_response(message, endpoint), message.extra)


def _default_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    blocks = encode_assistant_blocks(message.content, endpoint, DocumentNames(), reply=True)
    wire: Wire = {"output": {"message": {"role": "assistant", "content": blocks}}}
    raw = message.raw_stop_reason
    reason = raw if raw in STOP_REASONS else _WIRE_REASONS.get(message.stop_reason)
    if reason is not None:
        wire["stopReason"] = reason
    usage = message.usage or Usage()
    wire["usage"] = restore(_default_usage(usage), usage.extra, PROTOCOL)
    wire["metrics"] = {"latencyMs": 0}
    return wire


def _default_usage(usage: Usage) -> Wire:
    total = usage.total_tokens or usage.input + usage.output + usage.cache_read + usage.cache_write
    wire: Wire = {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": total}
    if usage.cache_read:
        wire["cacheReadInputTokens"] = usage.cache_read
    if usage.cache_write:
        wire["cacheWriteInputTokens"] = usage.cache_write
    return wire
