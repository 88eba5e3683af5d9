"""Whole replies of Cohere's v1 chat endpoint.

Facts this file rests on, all of cohere 7.3.1 (NonStreamedChatResponse), read 2026-11-15:
- A reply has `text`, `generation_id`, `finish_reason`, `tool_calls` and `meta` with `tokens` and `billed_units`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue import AssistantMessage, DecodeError, StopReason, TextContent, Usage, new_assistant_message
from segue.protocols import Endpoint, JsonObject, apply, difference
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import expect_objects, number_of, of_reply, reply_extra, text_of
from segue_cohere_v1.request import decode_call
from segue_cohere_v1.rules import PROTOCOL

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "COMPLETE": StopReason.STOP,
    "STOP_SEQUENCE": StopReason.STOP,
    "MAX_TOKENS": StopReason.LENGTH,
    "ERROR_LIMIT": StopReason.LENGTH,
    "ERROR": StopReason.ERROR,
    "ERROR_TOXIC": StopReason.ERROR,
    "TIMEOUT": StopReason.ERROR,
    "USER_CANCEL": StopReason.ABORTED,
}
_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "COMPLETE",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.TOOL_USE: "COMPLETE",
    StopReason.ERROR: "ERROR",
    StopReason.ABORTED: "USER_CANCEL",
}


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply.

    Raises:
        DecodeError: it has no `text`, or calls of another type than the protocol defines.
    """
    text, given = body.get("text"), body.get("tool_calls")
    if not isinstance(text, str):
        raise DecodeError("the body is not a reply: `text` has to be a string; pass a whole v1 reply", path=("text",))
    reply_id = text_of(body.get("generation_id"))
    wires = [] if given is None else expect_objects(given, ("tool_calls",))
    calls = tuple(
        decode_call(wire, f"{reply_id or 'call'}_{at + 1}", tool_names, ("tool_calls", at))
        for at, wire in enumerate(wires)
    )
    content = (TextContent(text=text), *calls) if text else calls
    reason = text_of(body.get("finish_reason"))
    stop = _read_stop(reason, has_calls=bool(calls))
    message = replace(
        new_assistant_message(endpoint.model, content=content),
        protocol=PROTOCOL,
        response_id=reply_id,
        usage=_decode_usage(body.get("meta")),
        stop_reason=stop,
        raw_stop_reason=reason,
        error_message=f"the reply ended with {reason}" if stop in (StopReason.ERROR, StopReason.ABORTED) else None,
    )
    entry = difference(_encode_default(message), dict(body))
    return message if entry is None else replace(message, extra=of_reply(PROTOCOL, entry))


def _read_stop(reason: str | None, *, has_calls: bool) -> StopReason:
    stop = STOP_REASONS.get(reason or "COMPLETE", StopReason.STOP)
    return StopReason.TOOL_USE if has_calls and stop == StopReason.STOP else stop


def _decode_usage(meta: object) -> Usage | None:
    counts = object_of(object_of(meta).get("tokens"))
    if not counts:
        return None
    given, made = number_of(counts.get("input_tokens")), number_of(counts.get("output_tokens"))
    cached = min(given, number_of(object_of(meta).get("cached_tokens")))
    return Usage(input=given - cached, output=made, cache_read=cached, total_tokens=given + made)


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:  # noqa: ARG001 - common signature
    """Write a whole reply; one that was read is written back unchanged."""
    return cast("dict[str, object]", apply(_encode_default(message), reply_extra(message.extra, PROTOCOL)))


def _encode_default(message: AssistantMessage) -> dict[str, object]:
    calls = [{"name": call.name, "parameters": dict(call.arguments)} for call in message.tool_calls()]
    body: dict[str, object] = {
        "text": "\n".join(piece.text for piece in message.content if piece.kind == "text"),
        "generation_id": message.response_id or "",
        "finish_reason": message.raw_stop_reason or _FINISH_REASONS[StopReason(message.stop_reason)],
    }
    if calls:
        body["tool_calls"] = calls
    usage = message.usage
    if usage is not None:
        tokens = {"input_tokens": usage.input + usage.cache_read + usage.cache_write, "output_tokens": usage.output}
        body["meta"] = {"tokens": tokens, "cached_tokens": usage.cache_read} if usage.cache_read else {"tokens": tokens}
    return body
