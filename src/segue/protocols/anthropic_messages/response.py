"""An Anthropic reply, both ways: content, usage, why it ended.

Facts this file rests on:
- `input_tokens`, `cache_creation_input_tokens` and `cache_read_input_tokens` add up to the whole input; `output_tokens`
  includes thinking.                                                    (anthropic 2.8.0: usage, read 2026-11-15)
- Cache writes kept for an hour are counted in `cache_creation` and cost more.                            (the same)
- Stop reasons and what they mean.                            (the same; Anthropic documentation: stop reasons)
- A finished reply has a reason: one without was cut off on its way.          (pi-ai 1.5.0 and ktsoator/or say error)

A reply is written the usual way, then what the one that was read had said differently is put in its place. That stands
in the message's shape under `response`, unusual or unknown keys beside the shape of their own that names the missing
ones: only the way back to a reply looks at it, and none of it belongs into a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.anthropic_messages.content import decode_assistant_block, encode_assistant_blocks
from segue.protocols.anthropic_messages.errors import decode_error
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.turns import restore_content
from segue.protocols.anthropic_messages.verbatim import keep, put_back
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import (
    expect_list,
    expect_object,
    number_of,
    of_reply,
    reply_extra,
    text_of,
    verbatim_of,
)

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "pause_turn": StopReason.STOP,  # the reply goes back as it is, and the model goes on
    "compaction": StopReason.STOP,  # beta: the reply is a summary, and the model goes on from it
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    "refusal": StopReason.ERROR,
    "sensitive": StopReason.ERROR,
}
UNKNOWN_STOP: Final = StopReason.STOP
"""For reasons nobody has heard of: they come with a reply that is whole."""

_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
}
_NOT_COMPARED: Final = frozenset({"content"})


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: it has no content, or content that is not what the protocol says.
    """
    content = body.get("content")
    verbatim: dict[str, object] = {}
    if "content" not in body:
        if "error" not in body and body.get("type") != "error":
            raise DecodeError("a reply has to have content", path=("content",))
        failed = finish_response(body, (), {"content": "absent"}, endpoint)
        return replace(failed, stop_reason=StopReason.ERROR, error_message=error_text(body))
    if isinstance(content, str):
        pieces: tuple[AssistantContent, ...] = (TextContent(text=content),)
        verbatim["content"] = "string"
    elif content is None:
        pieces = ()
        verbatim["content"] = "null"
    else:
        blocks = [expect_object(block, ("content", at)) for at, block in enumerate(expect_list(content, ("content",)))]
        pieces = tuple(decode_assistant_block(block, endpoint, tool_names) for block in blocks)
    return finish_response(body, pieces, verbatim, endpoint)


def finish_response(
    body: Mapping[str, object],
    pieces: tuple[AssistantContent, ...],
    verbatim: dict[str, object],
    endpoint: Endpoint,
) -> AssistantMessage:
    """Make a message of its content and of what the wire said about it as a whole."""
    raw = text_of(body.get("stop_reason"))
    stop = stop_reason_of(raw, pieces)
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(body.get("id")),
        response_model=text_of(body.get("model")),
        usage=decode_usage(body.get("usage"), endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=refusal_of(body) if stop == StopReason.ERROR else None,
    )
    return replace(message, extra=reply_extra_of(_difference(body, _frame(message), verbatim, skip=_NOT_COMPARED)))


def reply_extra_of(received: Extra | None) -> Extra | None:
    """Put what only a reply says where no request looks."""
    return None if received is None else of_reply(PROTOCOL, received[PROTOCOL])


def _of_reply(message: AssistantMessage) -> Extra | None:
    """Give back what only the reply said."""
    received = reply_extra(message.extra, PROTOCOL)
    return None if received is None else {PROTOCOL: received}


def stop_reason_of(raw: str | None, pieces: Sequence[AssistantContent]) -> StopReason:
    """Say why a reply ended; one that stopped with calls in it waits for their results, whatever it says.

    Without a reason only calls that came whole tell that it is finished.
    """
    calls = [piece for piece in pieces if piece.kind == "toolCall"]
    if raw is None:
        whole = bool(calls) and all(call.arguments_text is None for call in calls)
        return StopReason.TOOL_USE if whole else StopReason.ERROR
    stop = STOP_REASONS.get(raw, UNKNOWN_STOP)
    return StopReason.TOOL_USE if calls and stop == StopReason.STOP else stop


def error_text(body: Mapping[str, object]) -> str:
    """Say what an error body, or the error frame of a stream, reports."""
    error = decode_error(body, None)
    kind = error.type if error.type != "error" else None  # which names the frame, not the kind of error
    return ": ".join(literal for literal in (kind, error.message) if literal) or "the provider reported an error"


def refusal_of(body: Mapping[str, object]) -> str:
    """Say why the model refused, in its provider's words where there are any."""
    if body.get("stop_reason") is None:
        return "the reply ended without a stop reason"
    details = body.get("stop_details")
    explanation = cast("Mapping[str, object]", details).get("explanation") if isinstance(details, Mapping) else None
    return text_of(explanation) or f"the reply ended with {body.get('stop_reason')}"


def decode_usage(given: object, endpoint: Endpoint) -> Usage | None:
    """Read the counts, and compute what they cost."""
    if not isinstance(given, Mapping):
        return None
    wire = cast("Mapping[str, object]", given)
    counted = Usage(
        input=number_of(wire.get("input_tokens")),
        output=number_of(wire.get("output_tokens")),
        cache_read=number_of(wire.get("cache_read_input_tokens")),
        cache_write=number_of(wire.get("cache_creation_input_tokens")),
        reasoning=_inner(wire, "output_tokens_details", "thinking_tokens"),
    )
    total = counted.input + counted.output + counted.cache_read + counted.cache_write
    usage = replace(counted, total_tokens=total)
    kept_long = min(_inner(wire, "cache_creation", "ephemeral_1h_input_tokens"), usage.cache_write)
    cost = find_cost(endpoint.model.cost, usage, cache_write_long=kept_long)
    return replace(usage, cost=cost, extra=_difference(wire, _encode_counts(usage), {}))


def _inner(wire: Mapping[str, object], key: str, name: str) -> int:
    inner = wire.get(key)
    return number_of(cast("Mapping[str, object]", inner).get(name)) if isinstance(inner, Mapping) else 0


def _difference(
    wire: Mapping[str, object],
    default: Mapping[str, object],
    verbatim: dict[str, object],
    skip: frozenset[str] = frozenset(),
) -> Extra | None:
    """Keep what the wire says that the usual writing does not, and which keys of the usual writing it lacks."""
    received = skip | {key for key, value in default.items() if key in wire and wire[key] == value}
    if absent := [key for key in default if key not in wire]:
        verbatim = {**verbatim, "absent": absent}
    return keep(wire, received, verbatim)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: its content has no word on this wire.
    """
    blocks = encode_assistant_blocks(message.content, endpoint)
    received = _of_reply(message)
    verbatim = verbatim_of(received, PROTOCOL)
    content = restore_content(message.content, blocks, verbatim.get("content"))
    wire = _completed(_frame(message), received)
    if content is not None or verbatim.get("content") != "absent":
        wire["content"] = content
    return wire


def _frame(message: AssistantMessage) -> dict[str, object]:
    """Write everything but the content, the usual way."""
    raw = message.raw_stop_reason
    wire: dict[str, object] = {
        "type": "message",
        "role": "assistant",
        "model": message.response_model or message.model,
        "stop_reason": raw if raw in STOP_REASONS else _REASONS_BACK.get(message.stop_reason),
        "stop_sequence": None,
    }
    if message.response_id is not None:
        wire["id"] = message.response_id
    if message.usage is not None:
        wire["usage"] = _completed(_encode_counts(message.usage), message.usage.extra)
    return wire


def _encode_counts(usage: Usage) -> dict[str, object]:
    wire: dict[str, object] = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        wire["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return wire


def _completed(wire: dict[str, object], extra: Extra | None) -> dict[str, object]:
    if extra is None or PROTOCOL not in extra:
        return wire
    wire.update(put_back(extra))
    absent = verbatim_of(extra, PROTOCOL).get("absent")
    for key in cast("Sequence[str]", absent) if isinstance(absent, list | tuple) else ():
        wire.pop(key, None)
    return wire
