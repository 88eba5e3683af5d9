"""An Ollama reply, both ways: the message, the counters, why it ended.

Facts this file rests on:
- {model, created_at, message, done, done_reason, durations in nanoseconds, prompt_eval_count, eval_count, logprobs};
  counters of zero are left out.                                       (ollama server source @fb30760, read 2026-11-15)
- There is no reason for tool calls; `load` and `unload` answer a request without words; old servers give no reason, and
  once none of the message.                                                     (the same; ollama #1407)
- Nothing is said of a cache: `prompt_eval_count` is the whole prompt.                                      (the same)

A reply is written the usual way, then what the one that was read had said differently is put in its place. That stands
in the message's shape under `response`: only the way back to a reply looks at it; none of it belongs into a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason, Usage
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import expect_object, number_of, of_reply, text_of
from segue.protocols.ollama_chat.errors import decode_error
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.turns import decode_assistant, encode_assistant, reply_parts
from segue.protocols.ollama_chat.verbatim import Json, Wire, keep, object_of, put_back

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.STOP,
    "length": StopReason.LENGTH,
    "load": StopReason.STOP,
    "unload": StopReason.STOP,
    "": StopReason.STOP,
}
UNKNOWN_REASON: Final = StopReason.STOP
"""For reasons nobody has heard of: they come with a reply that is whole."""
_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.TOOL_USE: "stop",
    StopReason.LENGTH: "length",
}
_UNFINISHED: Final = "the reply was not finished"
_MESSAGE: Final = "message"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Mapping[str, object], endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error is a message that failed.

    Raises:
        DecodeError: it has neither a message nor an error, or a message that is not what the protocol says.
    """
    if _MESSAGE not in body and "error" in body:
        message = replace(new_assistant_message(endpoint.model), protocol=PROTOCOL, stop_reason=StopReason.ERROR)
        return replace(message, error_message=error_text(body), extra=reply_extra_of({"error": dict(body)}))
    if _MESSAGE not in body and "done" not in body:
        raise DecodeError("a reply has to have a message", path=(_MESSAGE,))
    given = body.get(_MESSAGE)
    if given is None:
        return finish_response(body, (), {}, {}, endpoint)
    notes: list[Diagnostic] = []
    wire = expect_object(given, (_MESSAGE,))
    pieces, left, parts = decode_assistant(wire, tool_names, (_MESSAGE,), notes)
    return finish_response(body, pieces, left, parts, endpoint, notes=notes)


def finish_response(
    body: Json,
    pieces: tuple[AssistantContent, ...],
    left: Wire,
    parts: Mapping[str, Wire],
    endpoint: Endpoint,
    *,
    notes: Sequence[Diagnostic] = (),
) -> AssistantMessage:
    """Make a message of its content and of what the wire said about it as a whole."""
    raw = text_of(body.get("done_reason"))
    stop = StopReason.ERROR if body.get("done") is False else stop_reason_of(raw, pieces)
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_model=text_of(body.get("model")),
        usage=decode_usage(body, endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=_UNFINISHED if stop == StopReason.ERROR else None,
        diagnostics=tuple(notes),
    )
    skip = () if body.get(_MESSAGE) is None else (_MESSAGE,)
    received: Wire = {"body": keep(body, _frame(message), skip), _MESSAGE: left, "calls": dict(parts)}
    if skip == ():
        received["no_message"] = True
    return replace(message, extra=reply_extra_of({key: value for key, value in received.items() if value}))


def reply_extra_of(received: Json) -> Mapping[str, Mapping[str, object]] | None:
    """Put what only a reply says where no request looks."""
    return of_reply(PROTOCOL, received) if received else None


def stop_reason_of(raw: str | None, pieces: tuple[AssistantContent, ...]) -> StopReason:
    """Say why a reply that came to its end stopped; one with calls in it waits for their results."""
    stop = StopReason.STOP if raw is None else STOP_REASONS.get(raw, UNKNOWN_REASON)
    calls = any(piece.kind == "toolCall" for piece in pieces)
    return StopReason.TOOL_USE if calls and stop == StopReason.STOP else stop


def error_text(body: Json) -> str:
    """Say what an error body, or the error line of a stream, reports."""
    return decode_error(body, None).message or "the server reported an error"


def decode_usage(body: Json, endpoint: Endpoint) -> Usage | None:
    """Read the counters, and compute what they cost; None when there are none."""
    if "prompt_eval_count" not in body and "eval_count" not in body:
        return None
    given, made = number_of(body.get("prompt_eval_count")), number_of(body.get("eval_count"))
    usage = Usage(input=given, output=made, total_tokens=given + made)
    return replace(usage, cost=find_cost(endpoint.model.cost, usage))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: a block of another wire.
    """
    reply = reply_parts(message) or {}
    error = reply.get("error")
    if isinstance(error, Mapping) and not message.content:
        return dict(cast("Json", error))
    body = _frame(message)
    if "no_message" not in reply or message.content:
        parts = cast("Mapping[str, Json]", object_of(reply.get("calls")))
        wire = encode_assistant(message.content, endpoint, ("content",), parts=parts, verbatim=True)
        body[_MESSAGE] = put_back(wire, object_of(reply.get(_MESSAGE)))
    if isinstance(error, Mapping):
        body.update(cast("Json", error))
    return put_back(body, object_of(reply.get("body")))


def _frame(message: AssistantMessage) -> Wire:
    """Write everything but the message itself, the usual way."""
    raw = message.raw_stop_reason
    reason = raw if raw in STOP_REASONS else _REASONS_BACK.get(message.stop_reason)
    wire: Wire = {"model": message.response_model or message.model, "done": True}
    if reason is not None:
        wire["done_reason"] = reason
    usage = message.usage
    if usage is not None:
        counts = {
            "prompt_eval_count": usage.input + usage.cache_read + usage.cache_write,
            "eval_count": usage.output,
        }
        wire.update((key, count) for key, count in counts.items() if count)
    return wire
