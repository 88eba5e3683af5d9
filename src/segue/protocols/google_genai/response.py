"""A generateContent reply, both ways: content, usage, why it ended.

Facts this file rests on:
- `promptTokenCount` includes the cached tokens; thoughts are counted beside the candidates; what server tools gave back
  to the model is counted by itself. All of them add up to the total.
                                      (google-genai 3.1.0, read 2026-11-15; recorded traffic, 2026-11)
- There is no reason of its own for calls: a reply with calls stops with STOP.             (recorded traffic, 2026-11)
- Every other reason than STOP and the two limits says that something was withheld or came out wrong.
                                                                     (google-genai 3.1.0: finish reasons)
- A prompt that was blocked has no candidates: `promptFeedback` says why.                  (google-genai 3.1.0)
- A whole reply may say something and not why it ended.                 (1.5 Flash, as pydantic-ai has recorded it)
- Google's generated clients ask for words as numbers (`enum-encoding=int`); up to 5 both endpoints count finish reasons
  alike.             (google.ai.generativelanguage and google.cloud.vertexai: Candidate.FinishReason, read 2026-11-15)

A reply is written the usual way, then what the one that was read had said differently is put in its place. That stands
in the message's `extra` under `reply`: only the way back to a reply looks at it, and none of it belongs into a request
(grounding, citations, ratings, log probabilities, times). The first candidate is the message, the others are kept so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.google_genai.content import encode_assistant_parts
from segue.protocols.google_genai.errors import decode_error
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.turns import decode_model_parts, parts_of
from segue.protocols.google_genai.verbatim import Block, Wire, close_object, object_of, open_object, texts_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import (
    VERBATIM,
    expect_list,
    expect_object,
    number_of,
    of_reply,
    reply_extra,
    text_of,
)

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "STOP": StopReason.STOP,
    "MAX_TOKENS": StopReason.LENGTH,
    "CONTINUATION": StopReason.LENGTH,  # the limit of one request; `continuationToken` goes on from there
}
"""Everything else is an error: what was written is not the whole answer, or none."""

_NUMBERED: Final[Mapping[object, str | None]] = {
    0: None,  # nothing was said
    1: "STOP",
    2: "MAX_TOKENS",
    3: "SAFETY",
    4: "RECITATION",
    5: "OTHER",
}
"""Finish reasons by their numbers; the endpoints disagree about the others."""

_REASONS_BACK: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "STOP",
    StopReason.TOOL_USE: "STOP",
    StopReason.LENGTH: "MAX_TOKENS",
}
_BODY_KEYS: Final = frozenset(
    {"promptFeedback", "usageMetadata", "error", "modelVersion", "responseId", "createTime", "modelStatus"}
)
"""Keys of a reply beside its candidates, of which there may be none."""
_ABSENT: Final = "absent"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_response(body: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a whole reply; one that is an error, or whose prompt was blocked, is a message that failed.

    Raises:
        DecodeError: it is no reply, or its content is not what the protocol says.
    """
    wire, verbatim = open_object(body)
    others: Sequence[object] = ()
    received: Block = {}
    candidates = wire.get("candidates")
    if candidates is not None:
        items = expect_list(candidates, ("candidates",))
        if items:
            received, others = expect_object(items[0], ("candidates", 0)), items[1:]
        else:
            verbatim["candidates"] = "empty"
    elif wire.keys().isdisjoint(_BODY_KEYS) and "candidates" not in body:
        raise DecodeError("a reply has to have candidates", path=("candidates",))
    else:
        verbatim["candidates"] = _ABSENT
    candidate, candidate_verbatim = open_object(received)
    content = candidate.get("content")
    parts: Sequence[Block] = ()
    if content is not None:
        turn = expect_object(content, ("candidates", 0, "content"))
        parts = parts_of(turn, ("candidates", 0, "content"), candidate_verbatim)
    pieces = decode_model_parts(parts, id_prefix(text_of(wire.get("responseId"))), tool_names)
    return finish_response(wire, candidate, pieces, endpoint, Original(verbatim, candidate_verbatim, others))


class Original:
    """How a reply was spelt: the shapes of its body and of its first candidate, and the other candidates."""

    __slots__ = ("body", "candidate", "others")

    def __init__(self, body: Wire, candidate: Wire, others: Sequence[object] = ()) -> None:
        self.body = body
        self.candidate = candidate
        self.others = others


def id_prefix(response_id: str | None) -> str:
    """Begin the ids of calls that come without one: the reply's own id tells those of different replies apart."""
    return f"call_{response_id}_" if response_id else "call_"


def finish_response(
    wire: Block, candidate: Block, pieces: tuple[AssistantContent, ...], endpoint: Endpoint, original: Original
) -> AssistantMessage:
    """Make a message of its content and of what the opened body and candidate said about it as a whole."""
    raw = finish_reason(candidate) or block_reason(wire)
    stop = stop_reason_of(raw, pieces)
    message = replace(
        new_assistant_message(endpoint.model, content=pieces),
        protocol=PROTOCOL,
        response_id=text_of(wire.get("responseId")),
        response_model=text_of(wire.get("modelVersion")),
        usage=decode_usage(wire.get("usageMetadata"), endpoint),
        stop_reason=stop,
        raw_stop_reason=raw,
        error_message=_failure(wire, candidate, raw) if stop == StopReason.ERROR else None,
    )
    content = object_of(candidate.get("content"))
    response: Wire = {
        "body": _difference(wire, _frame(message), original.body, ("candidates",)),
        "candidate": _difference(candidate, _candidate_frame(message), original.candidate, ("content",)),
        "content": _difference(content, {"role": "model"}, {}, ("parts",)),
    }
    if candidate.get("content") is None:
        response["content"] = _ABSENT
    if original.others:
        response["others"] = list(original.others)
    kept = {key: value for key, value in response.items() if value}
    return replace(message, extra=of_reply(PROTOCOL, kept) if kept else None)


def finish_reason(candidate: Block) -> str | None:
    """Give the word for why a candidate ended, also where it is told as a number; None when it was not said."""
    reason = candidate.get("finishReason")
    if isinstance(reason, int) and not isinstance(reason, bool):
        return _NUMBERED.get(reason, str(reason))
    return text_of(reason)


def stop_reason_of(raw: str | None, pieces: Sequence[AssistantContent]) -> StopReason:
    """Say why a reply ended; one that stopped with calls in it waits for their results.

    One that gives no reason came whole all the same, if it says something.
    """
    has_calls = any(piece.kind == "toolCall" for piece in pieces)
    omitted = StopReason.STOP if pieces else StopReason.ERROR
    stop = omitted if raw is None else STOP_REASONS.get(raw.upper(), StopReason.ERROR)
    return StopReason.TOOL_USE if has_calls and stop == StopReason.STOP else stop


def block_reason(wire: Block) -> str | None:
    """Say why a prompt was blocked; None when it was not."""
    feedback, _ = open_object(object_of(wire.get("promptFeedback")))
    return text_of(feedback.get("blockReason"))


def error_text(body: Block) -> str:
    """Say what an error body, or the error frame of a stream, reports."""
    error = decode_error(body, None)
    return ": ".join(literal for literal in (error.type, error.message) if literal) or "the provider reported an error"


def _failure(wire: Block, candidate: Block, raw: str | None) -> str:
    """Say what went wrong, in the provider's words where there are any."""
    if "error" in wire:
        return error_text(wire)
    feedback, _ = open_object(object_of(wire.get("promptFeedback")))
    if "finishReason" not in candidate and raw is not None:
        return text_of(feedback.get("blockReasonMessage")) or f"the prompt was blocked: {raw}"
    if raw is None:
        return "the reply ended without a finish reason"
    return text_of(candidate.get("finishMessage")) or f"the reply ended with {raw}"


def decode_usage(given: object, endpoint: Endpoint) -> Usage | None:
    """Read the counts, and compute what they cost."""
    if not isinstance(given, (dict, Mapping)):
        return None
    wire, verbatim = open_object(cast("Block", given))
    prompt, cached = number_of(wire.get("promptTokenCount")), number_of(wire.get("cachedContentTokenCount"))
    tools, thoughts = number_of(wire.get("toolUsePromptTokenCount")), number_of(wire.get("thoughtsTokenCount"))
    output = number_of(wire.get("candidatesTokenCount")) + thoughts
    counted = Usage(
        input=max(prompt - cached, 0) + tools,
        output=output,
        cache_read=cached,
        reasoning=thoughts,
        total_tokens=number_of(wire.get("totalTokenCount")) or prompt + tools + output,
    )
    received = _difference(wire, _encode_counts(counted), verbatim)
    cost = find_cost(endpoint.model.cost, counted)
    return replace(counted, cost=cost, extra={PROTOCOL: received} if received else None)


def _difference(wire: Block, default: Block, verbatim: Block, skip: Collection[str] = ()) -> Wire:
    """Keep what the wire says that the usual writing does not, and which keys of the usual writing it lacks."""
    left: Wire = {
        key: value for key, value in wire.items() if key not in skip and not (key in default and default[key] == value)
    }
    absent = [key for key in default if key not in wire]
    if absent or verbatim:
        left[VERBATIM] = {**verbatim, _ABSENT: absent} if absent else dict(verbatim)
    return left


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> dict[str, object]:
    """Write a whole reply; what `decode_response` read comes out as it was.

    Raises:
        EncodeError: its content has no word on this wire.
    """
    received = reply_extra(message.extra, PROTOCOL) or {}
    body_given, candidate_given = object_of(received.get("body")), object_of(received.get("candidate"))
    parts = encode_assistant_parts(message.content, endpoint, {})
    body = _completed(_frame(message), body_given, close=False)
    verbatim = object_of(body_given.get(VERBATIM))
    listed = verbatim.get("candidates")
    if listed != _ABSENT and listed != "empty":
        candidate = _completed(_candidate_frame(message), candidate_given, close=False)
        wire_format = object_of(candidate_given.get(VERBATIM))
        if parts or received.get("content") != _ABSENT:
            content: Wire = {"parts": parts, **_completed({"role": "model"}, object_of(received.get("content")))}
            _restore_parts(content, parts, wire_format.get("parts"))
            candidate["content"] = content
        others = received.get("others")
        rest = cast("list[object]", others) if isinstance(others, (list, tuple)) else []
        body["candidates"] = [close_object(candidate, wire_format), *rest]
    elif listed == "empty":
        body["candidates"] = []
    return close_object(body, verbatim)


def _restore_parts(content: Wire, parts: list[Wire], wire_format: object) -> None:
    if wire_format == "single" and len(parts) == 1:
        content["parts"] = parts[0]
    elif wire_format == "null" and not parts:
        content["parts"] = None
    elif wire_format == "absent" and not parts:
        del content["parts"]


def _frame(message: AssistantMessage) -> Wire:
    """Write everything but the candidates, the usual way."""
    wire: Wire = {}
    if message.usage is not None:
        wire["usageMetadata"] = _completed(_encode_counts(message.usage), (message.usage.extra or {}).get(PROTOCOL, {}))
    wire["modelVersion"] = message.response_model or message.model
    if message.response_id is not None:
        wire["responseId"] = message.response_id
    return wire


def _candidate_frame(message: AssistantMessage) -> Wire:
    """Write what a candidate says besides its content, the usual way."""
    raw = message.raw_stop_reason
    reason = raw if raw in STOP_REASONS else _REASONS_BACK.get(message.stop_reason, "OTHER")
    return {"finishReason": reason, "index": 0}


def _encode_counts(usage: Usage) -> Wire:
    wire: Wire = {
        "promptTokenCount": usage.input + usage.cache_read + usage.cache_write,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.total_tokens,
    }
    if usage.cache_read:
        wire["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning:
        wire["thoughtsTokenCount"] = usage.reasoning
    return wire


def _completed(wire: Wire, received: Block, *, close: bool = True) -> Wire:
    verbatim = object_of(received.get(VERBATIM))
    wire.update((key, value) for key, value in received.items() if key != VERBATIM)
    for key in texts_of(verbatim.get(_ABSENT)):
        wire.pop(key, None)
    return close_object(wire, verbatim) if close else wire
