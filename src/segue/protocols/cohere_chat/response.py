"""A whole reply of Cohere's v2 chat endpoint, both ways: content, usage, why it ended.

Facts this file rests on:
- `{"id", "finish_reason", "message", "usage", "logprobs"}`; it does not say which model answered.
                                                                                   (cohere 7.3.1, read 2026-11-15)
- Finish reasons: COMPLETE, STOP_SEQUENCE, MAX_TOKENS, TOOL_CALL, ERROR, TIMEOUT; of old also ERROR_TOXIC, ERROR_LIMIT
  and USER_CANCEL.                                                 (cohere 7.3.1; Oracle's SDK for the same models)
- `usage.tokens` is what was processed, `billed_units` what is charged for; both are told as floats, and
  `cached_tokens` are those of the prompt that were found in the cache.                              (cohere 7.3.1)

A reply is written the usual way; what the one that was read had said differently stands in the shape under `response`,
and only the way back to a reply looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.codec import Endpoint, JsonObject
from segue.protocols.cohere_chat.assistant import CITATIONS, decode_assistant, encode_assistant
from segue.protocols.cohere_chat.errors import decode_error
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.reading import SHAPE, number_of, shape_of, text_of
from segue.protocols.spelling import Block, Wire, difference, object_of, respelt

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
UNKNOWN_REASON: Final = StopReason.STOP
"""A reason nobody knows ends a reply that said something; one that said nothing has failed."""
_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "COMPLETE",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.TOOL_USE: "TOOL_CALL",
    StopReason.ERROR: "ERROR",
    StopReason.ABORTED: "ERROR",
}
_FAILED: Final = (StopReason.ERROR, StopReason.ABORTED)
_RESPONSE: Final = "response"


def read_stop(reason: str | None, kinds: Sequence[str]) -> StopReason:
    """Say why a reply stopped; one that stopped with calls in it waits for their results, whatever it says."""
    found = StopReason.STOP if reason is None else STOP_REASONS.get(reason)
    if found is None:
        found = UNKNOWN_REASON if kinds else StopReason.ERROR
    return StopReason.TOOL_USE if found == StopReason.STOP and "toolCall" in kinds else found


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: there is neither a message nor an error, or it is not what the protocol says.
    """
    wire = body.get("message")
    begun = replace(new_assistant_message(endpoint.model), protocol=PROTOCOL, response_id=text_of(body.get("id")))
    if not isinstance(wire, Mapping):
        if not isinstance(wire, str) and "error" not in body:
            raise DecodeError("this is no reply: it has neither a message nor an error", path=("message",))
        failed = replace(begun, stop_reason=StopReason.ERROR, error_message=decode_error(body, None).message)
        return replace(failed, extra=said_by_reply(failed, body))
    turn = decode_assistant(cast("Block", wire), ("message",), tool_names, reply=True)
    reason = text_of(body.get("finish_reason"))
    stop = read_stop(reason, [piece.kind for piece in turn.content])
    message = replace(
        begun,
        content=turn.content,
        diagnostics=turn.notes,
        usage=decode_usage(body.get("usage"), endpoint.model),
        stop_reason=stop,
        raw_stop_reason=reason,
        error_message=f"the reply ended with {reason or stop.value}" if stop in _FAILED else None,
        extra=turn.extra,
    )
    return replace(message, extra=said_by_reply(message, body))


def said_by_reply(message: AssistantMessage, body: JsonObject) -> Extra | None:
    """Keep what a reply said differently from how we would have written it, beside what goes back with the turn."""
    found = difference(_usual(message), body)
    part: Wire = dict((message.extra or {}).get(PROTOCOL, {}))
    if found is not None:
        part[SHAPE] = {_RESPONSE: found}
    return {PROTOCOL: part} if part else None


def decode_usage(given: object, model: Model) -> Usage | None:
    """Read the counts, and compute what was billed."""
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
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: its content has no word on this wire.
    """
    return cast("Wire", respelt(_usual(message), shape_of(message.extra, PROTOCOL).get(_RESPONSE)))


def _usual(message: AssistantMessage) -> Wire:
    wire = encode_assistant(message.content, ("message",))
    content = wire.get("content")
    if isinstance(content, str):
        wire["content"] = [{"type": "text", "text": content}] if content else []
    part = (message.extra or {}).get(PROTOCOL, {})
    if CITATIONS in part:
        wire[CITATIONS] = part[CITATIONS]
    body: Wire = {
        "id": message.response_id or "",
        "message": wire,
        "finish_reason": message.raw_stop_reason or _REASONS_BACK[StopReason(message.stop_reason)],
    }
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
