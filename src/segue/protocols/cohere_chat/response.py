"""Whole replies of Cohere's v2 chat endpoint, both ways: content, usage, stop reason.

The answers of `cohere-chat` about models (cohere 7.3.1: GetModelResponse, ListModelsResponse, read 2026-11-15).

Error bodies of Cohere's endpoint, and errors in its streams.

Facts:
- `{"id", "finish_reason", "message", "usage", "logprobs"}`; it does not name the model.
                                                                                   (cohere 7.3.1, read 2026-11-15)
- Finish reasons: COMPLETE, STOP_SEQUENCE, MAX_TOKENS, TOOL_CALL, ERROR, TIMEOUT; earlier also ERROR_TOXIC, ERROR_LIMIT
  and USER_CANCEL.                                                 (cohere 7.3.1; Oracle's SDK for the same models)
- `usage.tokens` is what was processed, `billed_units` what is charged for; both are floats, and `cached_tokens` are
  those of the prompt that were found in the cache.                                                  (cohere 7.3.1)
- `{"id", "message"}` with the HTTP status; there is no code and no type.          (cohere 7.3.1, read 2026-11-15)
- A stream ends with `delta.error` in its `message-end`.                                             (cohere 7.3.1)
- Proxies in front of it respond with a text or `{"error": ...}` or `{"detail": ...}`.        (as at every provider)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.cohere_chat.content import REFUSAL, is_first_reply
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.cohere_chat.turns import CITATIONS, decode_assistant, encode_assistant
from segue.protocols.families.chat_errors import describe_unknown, find_error_object
from segue.protocols.kit.codec import Endpoint, ErrorReply, Fault, JsonObject, WireError
from segue.protocols.kit.error_bodies import describe_error
from segue.protocols.kit.error_writing import STATUSES, error_headers, error_message, find_status
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.model_lists import ModelList
from segue.protocols.kit.reading import number_of, text_of
from segue.protocols.kit.replies import ended_with, keep_reply, read_stop, restore_reply


def _one(model: Model) -> Wire:
    features = ["tools", *(["vision"] if "image" in model.input else []), *(["reasoning"] if model.reasoning else [])]
    return {
        "name": model.id,
        "is_deprecated": bool(model.deprecated),
        "endpoints": ["chat"],
        "finetuned": False,
        **({"context_length": model.context_window} if model.context_window else {}),
        "default_endpoints": [],
        "features": features,
    }


def _every(models: Sequence[Model]) -> Wire:
    return {"models": [_one(model) for model in models]}


MODEL_LIST: Final = ModelList(every=_every, one=_one)


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error in any of these formats; in an unknown format the message is the JSON of the body."""
    error = find_error_object(body, status)
    if isinstance(error, WireError):
        return error
    message = text_of(error.get("message")) or text_of(error.get("detail"))
    return describe_error(error, status, message or describe_unknown(error))


# cohere 7.3.1: errors by their status; it has no types and no codes; read 2026-11-15
_STATUSES: Final = {**STATUSES, "network": 504}
_OVERFLOW: Final = (
    "too many tokens: total number of tokens in the prompt cannot exceed {limit} - received {used}. "
    "Try using a shorter prompt."
)
_UNKNOWN_OVERFLOW: Final = "too many tokens: the prompt exceeds the context length. Try using a shorter prompt."


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body."""
    status = find_status(_STATUSES, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"message": message})


STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "COMPLETE": StopReason.STOP,
    "STOP_SEQUENCE": StopReason.STOP,
    "MAX_TOKENS": StopReason.LENGTH,
    "TOOL_CALL": StopReason.TOOL_USE,
    "ERROR": StopReason.ERROR,
    "TIMEOUT": StopReason.ERROR,
    "ERROR_TOXIC": StopReason.ERROR,
    "ERROR_LIMIT": StopReason.LENGTH,
    "USER_CANCEL": StopReason.ABORTED,
}
_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "COMPLETE",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.TOOL_USE: "TOOL_CALL",
    StopReason.ERROR: "ERROR",
    StopReason.ABORTED: "ERROR",
}

# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; an error body becomes a message with the stop reason `error`.

    Raises:
        DecodeError: there is neither a message nor an error, or it is of another type than the protocol defines.
    """
    wire = body.get("message")
    begun = replace(new_assistant_message(endpoint.model), protocol=PROTOCOL, response_id=text_of(body.get("id")))
    if not isinstance(wire, Mapping):
        if is_first_reply(body):
            raise DecodeError(REFUSAL)
        if not isinstance(wire, str) and "error" not in body:
            reason = "the body is not a reply: it has neither `message` nor `error`; pass a whole v2 reply"
            raise DecodeError(reason, path=("message",))
        failed = replace(begun, stop_reason=StopReason.ERROR, error_message=decode_error(body, None).message)
        return replace(failed, extra=keep_reply(PROTOCOL, encode_default(failed), body))
    turn = decode_assistant(cast("Block", wire), ("message",), tool_names, reply=True)
    citations = cast("Block", wire).get(CITATIONS)
    reason = text_of(body.get("finish_reason"))
    stop = read_stop(STOP_REASONS, reason, [piece.kind for piece in turn.content])
    message = replace(
        begun,
        content=turn.content,
        diagnostics=turn.notes,
        usage=decode_usage(body.get("usage"), endpoint.model),
        stop_reason=stop,
        raw_stop_reason=reason,
        error_message=ended_with(reason, stop),
        extra={PROTOCOL: {CITATIONS: citations}} if isinstance(citations, list) and citations else None,
    )
    return replace(message, extra=keep_reply(PROTOCOL, encode_default(message), body, message.extra))


def decode_usage(given: object, model: Model) -> Usage | None:
    """Read the token counts, and compute the cost of what was billed."""
    if not isinstance(given, Mapping):
        return None
    wire = cast("Block", given)
    billed = object_of(wire.get("billed_units"))
    tokens = object_of(wire.get("tokens")) or billed
    prompt, output = number_of(tokens.get("input_tokens")), number_of(tokens.get("output_tokens"))
    cached = min(prompt, number_of(wire.get("cached_tokens")))
    usage = Usage(input=prompt - cached, output=output, cache_read=cached, total_tokens=prompt + output)
    charged = Usage(input=number_of(billed.get("input_tokens")), output=number_of(billed.get("output_tokens")))
    return replace(usage, cost=find_cost(model.cost, charged if billed else usage))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:  # noqa: ARG001 - the contract of every codec
    """Write a whole reply; one that `decode_response` read is written as it was received.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    return restore_reply(PROTOCOL, encode_default(message), message.extra)


def encode_default(message: AssistantMessage) -> Wire:
    """Write a whole reply in the default format."""
    wire = encode_assistant(message.content, ("message",))
    content = wire.get("content")
    if isinstance(content, str):
        wire["content"] = [{"type": "text", "text": content}] if content else []
    part = (message.extra or {}).get(PROTOCOL, {})
    if CITATIONS in part:
        wire[CITATIONS] = part[CITATIONS]
    stop, raw = StopReason(message.stop_reason), message.raw_stop_reason
    # The reason of another protocol is not one of this one; an unknown one is kept as the format of the reply.
    reason = raw if raw is not None and STOP_REASONS.get(raw) == stop else _FINISH_REASONS[stop]
    body: Wire = {"id": message.response_id or "", "message": wire, "finish_reason": reason}
    usage = message.usage
    if usage is not None:
        counts = {
            "input_tokens": usage.input + usage.cache_read + usage.cache_write,
            "output_tokens": usage.output,
        }
        body["usage"] = {"billed_units": counts, "tokens": counts}
        if usage.cache_read:
            body["usage"] = {"billed_units": counts, "tokens": counts, "cached_tokens": usage.cache_read}
    return body
