"""A whole reply, both ways: its items, its usage, why it stopped.

Facts this file rests on:
- There is no stop reason for calls: a reply is `completed`, with calls among its items or without.    (openai 3.49.0)
- `incomplete` has its reason in `incomplete_details`; `failed` has it in `error`.                     (openai 3.49.0)
- `input_tokens` includes what came from the cache and what was written to it; `output_tokens` includes reasoning.
                                                             (openai 3.49.0; recorded traffic, 2026-11: cached of total)
- A reply repeats the request: tools, instructions, settings. All of it is kept, so that it can be written again:
  under `reply`, where only the way back to a reply looks. None of it belongs into a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.errors import DecodeError, EncodeError
from segue.models.origin import new_assistant_message
from segue.models.price import find_cost
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.reading import left_over, number_of, of_reply, reply_extra, text_of
from segue.protocols.openai_responses.content import ABSENT, Wire, object_of
from segue.protocols.openai_responses.errors import decode_error
from segue.protocols.openai_responses.items import TurnReader, write_turn
from segue.protocols.openai_responses.rules import PROTOCOL

_STATUSES: Final[Mapping[str, StopReason]] = {
    "completed": StopReason.STOP,
    "failed": StopReason.ERROR,
    "cancelled": StopReason.ABORTED,
    # Read before it was finished: what is there is not the reply.
    "in_progress": StopReason.ERROR,
    "queued": StopReason.ERROR,
}
_REASONS: Final[Mapping[str, StopReason]] = {
    "max_output_tokens": StopReason.LENGTH,
    "max_messages": StopReason.LENGTH,
    "content_filter": StopReason.ERROR,
    # The user spoke before it was done; what it had said stands.
    "steered": StopReason.STOP,
}
_UNKNOWN_INCOMPLETE: Final = StopReason.ERROR
"""`incomplete` for a reason that is not known: something is missing, and nobody knows what."""
_UNKNOWN_STATUS: Final = StopReason.STOP
"""A status that is not known, or none, on a reply that has content: vendors spell `completed` in other ways."""
_STATUS_OF: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "completed",
    StopReason.TOOL_USE: "completed",
    StopReason.LENGTH: "incomplete",
    StopReason.ERROR: "failed",
    StopReason.ABORTED: "cancelled",
}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_response(body: JsonObject, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantMessage:
    """Read a reply; one that is an error is a message that failed.

    Raises:
        DecodeError: it has neither output nor an error.
    """
    output = body.get("output")
    if "output" not in body and not _is_failure(body):
        raise DecodeError("a reply has to have output", path=("output",))
    reader = TurnReader(tool_names)
    items = cast("list[object]", output) if isinstance(output, list) else []
    content = reader.read_all(items)
    whole = all(isinstance(item, Mapping) for item in items) and isinstance(output, list)
    reason, raw = stop_of(body, called=any(piece.kind == "toolCall" for piece in content), has_content=bool(content))
    usage, written_long = decode_usage(body.get("usage"))
    if usage is not None:
        usage = replace(usage, cost=find_cost(endpoint.model.cost, usage, cache_write_long=written_long))
    return replace(
        new_assistant_message(endpoint.model, content=content),
        protocol=PROTOCOL,
        response_id=text_of(body.get("id")),
        response_model=text_of(body.get("model")),
        usage=usage,
        stop_reason=reason,
        raw_stop_reason=raw,
        error_message=error_message_of(body, reason),
        diagnostics=tuple(reader.diagnostics),
        extra=reply_extra_of(_beyond(body, usage is not None, whole=whole), has_output="output" in body),
    )


def _is_failure(body: JsonObject) -> bool:
    """Whether a body without output is a reply all the same: an error, or one that never came to its end."""
    status = _STATUSES.get(text_of(body.get("status")) or "", StopReason.STOP)
    return body.get("error") is not None or body.get("type") == "error" or status != StopReason.STOP


def stop_of(body: JsonObject, *, called: bool, has_content: bool) -> tuple[StopReason, str | None]:
    """Say why a reply stopped, in our words and in the provider's."""
    status = text_of(body.get("status"))
    if status == "incomplete":
        why = text_of(object_of(body.get("incomplete_details")).get("reason"))
        return _REASONS.get(why or "", _UNKNOWN_INCOMPLETE), why or status
    if status is None and (body.get("error") is not None or body.get("type") == "error"):
        return StopReason.ERROR, None
    reason = _STATUSES.get(status or "", _UNKNOWN_STATUS if has_content else StopReason.ERROR)
    return (StopReason.TOOL_USE if called and reason == StopReason.STOP else reason), status


def error_message_of(body: JsonObject, reason: StopReason) -> str | None:
    """Give what the provider says went wrong; None when nothing did."""
    if reason not in (StopReason.ERROR, StopReason.ABORTED):
        return None
    if body.get("error") is not None or body.get("type") == "error":
        return decode_error(body, None).message or "the provider reported an error"
    why = text_of(object_of(body.get("incomplete_details")).get("reason"))
    return f"the reply ended with {why or body.get('status') or 'no status'}"


def decode_usage(given: object) -> tuple[Usage | None, int]:
    """Read the tokens of a reply; with them how many were written to the cache for the longer time."""
    if not isinstance(given, Mapping):
        return None, 0
    wire = cast("JsonObject", given)
    into, out = object_of(wire.get("input_tokens_details")), object_of(wire.get("output_tokens_details"))
    cached, written = number_of(into.get("cached_tokens")), number_of(into.get("cache_write_tokens"))
    usage = Usage(
        input=max(0, number_of(wire.get("input_tokens")) - cached - written),
        output=number_of(wire.get("output_tokens")),
        cache_read=cached,
        cache_write=written,
        reasoning=number_of(out.get("reasoning_tokens")),
        total_tokens=number_of(wire.get("total_tokens")),
    )
    if _plain_usage(usage) != wire:
        usage = replace(usage, extra={PROTOCOL: {"usage": wire}})
    return usage, number_of(object_of(into.get("cache_write_tokens_details")).get("ttl_12h_tokens"))


def _beyond(body: JsonObject, has_usage: bool, *, whole: bool) -> Wire:
    """Give what a reply says that the message itself does not tell."""
    known = {"id", "model", "output", "usage"}
    for key in ("id", "model"):
        if not isinstance(body.get(key), str):
            known.discard(key)
    if not has_usage:
        known.discard("usage")
    if not whole:
        known.discard("output")
    return {key: value for key, value in body.items() if key not in known}


def reply_extra_of(body: JsonObject, *, has_output: bool = True) -> Extra:
    """Keep what only a reply says. An empty record still says that it was read, and that nothing is to be added."""
    kept: Wire = {"body": body}
    if not has_output:
        kept["output"] = ABSENT
    return of_reply(PROTOCOL, kept)


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_response(message: AssistantMessage, endpoint: Endpoint) -> Wire:
    """Write a reply as its provider would have sent it; one that was read comes out as it was.

    Raises:
        EncodeError: content that this wire has no word for.
    """
    output: list[Wire] = []
    try:
        write_turn(output, message.content, open_reasoning=True)
    except EncodeError as error:
        raise EncodeError(error.reason, path=("content", *error.path)) from error
    reply = reply_extra(message.extra, PROTOCOL)
    if reply is None:
        body: Wire = _fresh(message, output, endpoint)
    else:
        body = dict(object_of(reply.get("body")))
        if "output" not in body and reply.get("output") != ABSENT:
            body["output"] = output
    if message.response_id is not None:
        body["id"] = message.response_id
    if message.response_model is not None:
        body["model"] = message.response_model
    if message.usage is not None:
        kept = left_over(message.usage.extra, PROTOCOL).get("usage")
        body["usage"] = kept if isinstance(kept, Mapping) else _plain_usage(message.usage)
    return body


def _plain_usage(usage: Usage) -> Wire:
    into: Wire = {"cached_tokens": usage.cache_read}
    if usage.cache_write:
        into["cache_write_tokens"] = usage.cache_write
    return {
        "input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "input_tokens_details": into,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total_tokens,
    }


def _fresh(message: AssistantMessage, output: list[Wire], endpoint: Endpoint) -> Wire:
    """Write a reply that never was on this wire."""
    status = _STATUS_OF[StopReason(message.stop_reason)]
    failed = status == "failed"
    return {
        "id": message.response_id or "",
        "object": "response",
        "status": status,
        "error": {"code": "server_error", "message": message.error_message or ""} if failed else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "model": message.model or endpoint.model.id,
        "output": [_as_output(item, index) for index, item in enumerate(output)],
    }


def _as_output(item: Wire, index: int) -> Wire:
    """Spell a message the way replies do: with an id, a status and parts."""
    content = item.get("content")
    if item.get("role") != "assistant" or not isinstance(content, str):
        return item
    part: Wire = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
    return {"type": "message", "id": f"msg_{index}", "status": "completed", **item, "content": [part]}
