"""An Anthropic reply, both ways: content, usage, stop reason.

A reply is written in the default format. What the received one has differently is kept in `extra["reply"]` of the
message as one entry, which only `encode_response` reads.

The answers of `anthropic-messages` about models.

A model without a known date of release has the epoch; `display_name` and `lifecycle` are required.
                                                                 (anthropic 2.8.0: types/model_info.py, read 2026-11-15)

Error bodies of Anthropic's Messages API.

What replies of Claude's protocol hold of other replies.

Facts:
- `input_tokens`, `cache_creation_input_tokens` and `cache_read_input_tokens` add up to the whole input; `output_tokens`
  includes thinking.                                                    (anthropic 2.8.0: usage, read 2026-11-15)
- Cache writes kept for an hour are counted in `cache_creation` and cost more.                            (the same)
- Stop reasons and what they mean.                            (the same; Anthropic documentation: stop reasons)
- A finished reply has a stop reason: one without was cut off in transit. (pi-ai 1.5.0 and ktsoator/or report an error)
- `{"type": "error", "error": {type, message, details: {error_code}}, "request_id"}`; the code identifies the error.
                                                                            (anthropic 2.8.0, read 2026-11-15)
- Third-party servers respond in OpenAI's format on this path, with a number as code:
  `{"error": {"code": 400, "message", "type": "exceed_context_size_error"}}`.                   (llama.cpp, tried)
- Gateways respond with a text, a page, or `{"message"}` / `{"detail"}` / `{"error": "text"}`. (litellm, Cloudflare)
- `web_search_tool_result` and the citations of its pages hold encrypted data, without which they are refused when the
  client returns them. So searches of other models are text here.                  (anthropic 2.8.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, NativeContent, TextContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost, find_fees, find_share
from segue.protocols.anthropic_messages.content import decode_reply_block, encode_assistant_blocks
from segue.protocols.anthropic_messages.native import find_writer
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.families.claude_prefix import note_transformations
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, WireError
from segue.protocols.kit.error_bodies import describe_error, find_error_object
from segue.protocols.kit.error_writing import ErrorRow, error_headers, error_message, find_row
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.reading import expect_objects, number_of, parse_body, text_of
from segue.protocols.kit.replies import keep_reply, read_required_stop, restore_reply
from segue.protocols.kit.reply_form import TRANSFORMATIONS, ReplyForm, Search
from segue.protocols.kit.sources import CitedPage, objects_in

_BY_OTHERS: Final = ("advisor_message", "fallback_message")
"""Rounds of a reply that another model made, at its own price. (anthropic 2.8.0: BetaUsage.iterations; 2026-11-19)"""
_UNKNOWN_DATE: Final = "1970-01-01T00:00:00Z"


def _one(model: Model) -> Wire:
    window = model.max_input or model.context_window
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.name or model.id,
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "deprecated" if model.deprecated else "active",
        **({"max_input_tokens": window} if window else {}),
        **({"max_tokens": model.max_tokens} if model.max_tokens else {}),
    }


def _every(models: Sequence[Model]) -> Wire:
    ids = [model.id for model in models]
    return {
        "data": [_one(model) for model in models],
        "has_more": False,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
    }


MODEL_LIST: Final = ModelList(every=_every, one=_one)


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not, or the error frame of a stream."""
    error = find_error_object(parse_body(body), status)
    if isinstance(error, WireError):
        return error
    message = text_of(error.get("message")) or text_of(error.get("detail")) or ""
    return describe_error(error, status, message, object_of(error.get("details")).get("error_code"))


_ROWS: Final[Mapping[str, ErrorRow]] = {
    # Anthropic documentation: errors; anthropic 2.8.0: ErrorType; read 2026-11-15
    "overflow": ErrorRow(400, "invalid_request_error"),
    "payload_too_large": ErrorRow(413, "request_too_large"),
    "rate_limit": ErrorRow(429, "rate_limit_error"),
    "quota": ErrorRow(402, "billing_error"),
    "auth": ErrorRow(401, "authentication_error"),
    "auth 403": ErrorRow(403, "permission_error"),
    "auth 400": ErrorRow(400, "invalid_request_error"),
    "auth 502": ErrorRow(502, "api_error"),
    "opaque_rejected": ErrorRow(400, "invalid_request_error"),
    "invalid_history": ErrorRow(400, "invalid_request_error"),
    "invalid_request": ErrorRow(400, "invalid_request_error"),
    "not_found": ErrorRow(404, "not_found_error"),
    "overloaded": ErrorRow(529, "overloaded_error"),
    "server": ErrorRow(500, "api_error"),
    "network": ErrorRow(502, "api_error"),
    "refused": ErrorRow(400, "invalid_request_error"),
}
_OVERFLOW: Final = "prompt is too long: {used} tokens > {limit} maximum"
"""Claude Code reads both numbers."""


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body; it is the error frame of a stream, too."""
    row = find_row(_ROWS, fault)
    message = error_message(fault, _OVERFLOW, "prompt is too long")
    body: dict[str, object] = {"type": "error", "error": {"type": row.type, "message": message}}
    return ErrorReply(row.status, error_headers(fault, row.status), body)


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
    """Return the text of an error body, or of the error frame of a stream."""
    error = decode_error(body, None)
    kind = error.type if error.type != "error" else None  # the type of the frame, not of the error
    return ": ".join(part for part in (kind, error.message) if part) or "the provider reported an error"


def refusal_of(body: Block) -> str:
    """Return the reason of a refusal: the provider's explanation where there is one."""
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
    rounds = objects_in(wire.get("iterations"))
    share = None if any(each.get("type") in _BY_OTHERS for each in rounds) else find_share(model, wire)
    fees = find_fees(model, counts=wire) if wire.get("server_tool_use") else 0.0
    compacted = [_counted(each) for each in rounds if each.get("type") == "compaction"]
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


def _read_search(content: NativeContent) -> Search | None:
    block = content.block
    match block.get("type"):
        case "server_tool_use" if block.get("name") == "web_search":
            return Search(text_of(object_of(block.get("input")).get("query")) or "", is_open=True)
        case "web_search_tool_result":
            found = objects_in(block.get("content"))
            return Search(
                pages=tuple(
                    CitedPage(url, text_of(page.get("title")) or "")
                    for page in found
                    if (url := text_of(page.get("url")))
                )
            )
        case _:
            return None


REPLY_FORM: Final = ReplyForm(
    id_prefix="msg_",
    refusals=("refusal", "sensitive"),  # anthropic 2.8.0: StopReason; Z.ai's documentation of its endpoint, 2026-11
    read_search=_read_search,
)
