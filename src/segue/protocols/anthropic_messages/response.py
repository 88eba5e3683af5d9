"""An Anthropic reply, both ways: content, usage, stop reason.

Facts this file relies on:
- `input_tokens`, `cache_creation_input_tokens` and `cache_read_input_tokens` add up to the whole input; `output_tokens`
  includes thinking.                                                    (anthropic 2.8.0: usage, read 2026-11-15)
- Cache writes kept for an hour are counted in `cache_creation` and cost more.                            (the same)
- Stop reasons and what they mean.                            (the same; Anthropic documentation: stop reasons)
- A finished reply has a stop reason: one without was cut off in transit. (pi-ai 1.5.0 and ktsoator/or report an error)

A reply is written in the default format. What the received one has differently is kept in `extra["reply"]` of the
message as one entry, which only `encode_response` reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_fees, find_share
from segue.protocols.anthropic_messages.content import decode_reply_block, encode_assistant_blocks
from segue.protocols.anthropic_messages.errors import decode_error
from segue.protocols.anthropic_messages.native import find_writer
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.claude_prefix import TRANSFORMATIONS, note_transformations
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import expect_objects, number_of, text_of
from segue.protocols.kit.replies import keep_reply, read_required_stop, restore_reply
from segue.protocols.kit.sources import objects_in

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "pause_turn": StopReason.STOP,  # the reply is sent back unchanged, and the model continues
    "compaction": StopReason.STOP,  # beta: the reply is a summary, and the model continues from it
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "refusal": StopReason.ERROR,
    "sensitive": StopReason.ERROR,
}
NO_USAGE: Final[Wire] = {"input_tokens": 0, "output_tokens": 0}
"""What a reply without counts has: the SDK does not read it without `usage`. (anthropic 2.8.0)"""
_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; an error body is a message that failed.

    Raises:
        DecodeError: it has no content, or content that is not what the protocol defines.
    """
    content = body.get("content")
    if "content" not in body:
        if "error" not in body and body.get("type") != "error":
            raise DecodeError("the reply has no `content`; pass the body of a reply", path=("content",))
        return finish_response(body, (), endpoint, error=error_text(body))
    if isinstance(content, str):
        return finish_response(body, (TextContent(text=content),), endpoint)
    if content is None:
        return finish_response(body, (), endpoint)
    blocks = expect_objects(content, ("content",))
    pieces = tuple(decode_reply_block(block, endpoint, tool_names) for block in blocks)
    return finish_response(body, pieces, endpoint)


def finish_response(
    body: Block, pieces: tuple[AssistantContent, ...], endpoint: Endpoint, *, error: str | None = None
) -> AssistantMessage:
    """Make a message of a reply and of its content, which was read from the same body."""
    raw = text_of(body.get("stop_reason"))
    stop = read_required_stop(STOP_REASONS, raw, pieces) if error is None else StopReason.ERROR
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(body.get("id")) or None,
        response_model=find_writer(pieces) or text_of(body.get("model")),
        usage=decode_usage(body.get("usage"), endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=error or (refusal_of(body) if stop == StopReason.ERROR else None),
        diagnostics=note_transformations(body.get(TRANSFORMATIONS)),
    )
    return replace(message, extra=keep_reply(PROTOCOL, _default_reply(message, endpoint), dict(body)))


def error_text(body: Block) -> str:
    """Give the text of an error body, or of the error frame of a stream."""
    error = decode_error(body, None)
    kind = error.type if error.type != "error" else None  # the type of the frame, not of the error
    return ": ".join(part for part in (kind, error.message) if part) or "the provider reported an error"


def refusal_of(body: Block) -> str:
    """Give the reason of a refusal: the provider's explanation where there is one."""
    if body.get("stop_reason") is None:
        return "the reply ended without a stop reason"
    details = body.get("stop_details")
    explanation = cast("Block", details).get("explanation") if isinstance(details, Mapping) else None
    return text_of(explanation) or f"the reply ended with {body.get('stop_reason')}"


def decode_usage(given: object, endpoint: Endpoint) -> Usage | None:
    """Read the token counts, and compute what they cost."""
    if not isinstance(given, Mapping) or given == NO_USAGE:
        return None
    wire = cast("Block", given)
    usage, kept_long = _counted(wire)
    model = endpoint.model
    share = find_share(model, wire)
    fees = find_fees(model, counts=wire) if wire.get("server_tool_use") else 0.0
    compacted = [_counted(each) for each in objects_in(wire.get("iterations")) if each.get("type") == "compaction"]
    if compacted:  # "not included in the top-level `usage` fields" (anthropic 2.8.0: BetaUsage.iterations)
        costs = [find_cost(model.cost, each, cache_write_long=long, share=share) for each, long in compacted]
        fees += sum(cost.total for cost in costs if cost is not None)
        usage = replace(usage, total_tokens=usage.total_tokens + sum(each.total_tokens for each, _ in compacted))
    return replace(usage, cost=find_cost(model.cost, usage, cache_write_long=kept_long, share=share, fees=fees))


def _counted(wire: Block) -> tuple[Usage, int]:
    """Read the tokens of a reply or of a part of it, and how many were written to the cache for the longer time."""
    counted = Usage(
        input=number_of(wire.get("input_tokens")),
        output=number_of(wire.get("output_tokens")),
        cache_read=number_of(wire.get("cache_read_input_tokens")),
        cache_write=number_of(wire.get("cache_creation_input_tokens")),
        reasoning=_inner(wire, "output_tokens_details", "thinking_tokens"),
    )
    total = counted.input + counted.output + counted.cache_read + counted.cache_write
    kept_long = min(_inner(wire, "cache_creation", "ephemeral_1h_input_tokens"), counted.cache_write)
    return replace(counted, total_tokens=total), kept_long


def _inner(wire: Block, key: str, name: str) -> int:
    inner = wire.get(key)
    return number_of(cast("Block", inner).get(name)) if isinstance(inner, Mapping) else 0


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a whole reply; what `decode_response` read is written as it was received.

    Raises:
        EncodeError: the protocol does not support something in its content.
    """
    return restore_reply(PROTOCOL, _default_reply(message, endpoint), message.extra)


def _default_reply(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    raw = message.raw_stop_reason
    wire: Wire = {
        "id": message.response_id or "",
        "type": "message",
        "role": "assistant",
        "model": message.response_model or message.model,
        "content": encode_assistant_blocks(message.content, endpoint, is_reply=True),
        "stop_reason": raw if raw in STOP_REASONS else _REASONS_BACK.get(message.stop_reason),
        "stop_sequence": None,
        "usage": NO_USAGE if message.usage is None else encode_usage(message.usage),
    }
    return wire


def encode_usage(usage: Usage) -> Wire:
    """Write the token counts."""
    wire: Wire = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        wire["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return wire
