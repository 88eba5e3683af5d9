"""Replies of Cohere's v1 chat endpoint: whole, streamed, and errors.

Facts this file rests on, all of cohere 7.3.1 (NonStreamedChatResponse, StreamedChatResponse), read 2026-11-15:
- A reply has `text`, `generation_id`, `finish_reason`, `tool_calls` and `meta` with `tokens` and `billed_units`.
- A stream is lines of JSON with an `event_type`: stream-start, text-generation, tool-calls-chunk (a delta of one call,
  by index), tool-calls-generation (all calls, complete), stream-end with the whole reply, and other types.
- An error is an object with `message`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue import AssistantMessage, DecodeError, StopReason, TextContent, Usage, WireError, new_assistant_message
from segue.protocols import Assembly, Endpoint, JsonObject, Part, StreamDecoder, apply, difference
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import (
    expect_object,
    expect_objects,
    number_of,
    of_reply,
    parse_body,
    reply_extra,
    text_of,
)
from segue_cohere_v1.request import decode_call
from segue_cohere_v1.rules import NAME

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
        protocol=NAME,
        response_id=reply_id,
        usage=_decode_usage(body.get("meta")),
        stop_reason=stop,
        raw_stop_reason=reason,
        error_message=f"the reply ended with {reason}" if stop in (StopReason.ERROR, StopReason.ABORTED) else None,
    )
    entry = difference(_encode_default(message), dict(body))
    return message if entry is None else replace(message, extra=of_reply(NAME, entry))


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
    return cast("dict[str, object]", apply(_encode_default(message), reply_extra(message.extra, NAME)))


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


# -- streams -----------------------------------------------------------------------------------------------------------


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one reply."""
    return StreamDecoder(_Reader(endpoint, tool_names), Assembly(endpoint.model, NAME, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint, tool_names: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._tool_names = tool_names
        self._text: Part | None = None
        self._calls: dict[int, Part] = {}

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Read one event."""
        match frame.get("event_type"):
            case "stream-start":
                out.response_id = text_of(frame.get("generation_id"))
                out.start()
            case "text-generation":
                self._grow_text(text_of(frame.get("text")), out)
            case "tool-calls-chunk":
                self._grow_call(object_of(frame.get("tool_call_delta")), out)
            case "tool-calls-generation":
                if self._text is None:
                    self._grow_text(text_of(frame.get("text")), out)
                self._set_calls(frame.get("tool_calls"), out)
            case "stream-end":
                self._finish(frame, out)
            case None if "message" in frame:
                out.fail(decode_error(frame, None).message)
            case _:
                pass  # search results, citations, debug: stream-end repeats those that are part of the reply

    def end(self, out: Assembly) -> None:
        """Do nothing: a stream without stream-end is incomplete, which `Assembly.finish` reports."""

    def _grow_text(self, text: str | None, out: Assembly) -> None:
        if text:
            if self._text is None:
                self._text = out.open_text()
            out.grow(self._text, text)

    def _grow_call(self, delta: JsonObject, out: Assembly) -> None:
        self._grow_text(text_of(delta.get("text")), out)
        if "index" not in delta and "name" not in delta:
            return
        part = self._open_call(number_of(delta.get("index")), text_of(delta.get("name")) or "", out)
        if isinstance(more := delta.get("parameters"), str) and more:
            out.grow(part, more)

    def _open_call(self, index: int, name: str, out: Assembly) -> Part:
        if index not in self._calls:
            if self._text is not None:
                out.close(self._text)
            self._calls[index] = out.open_call(f"{out.response_id or 'call'}_{len(self._calls) + 1}", name)
        return self._calls[index]

    def _set_calls(self, given: object, out: Assembly) -> None:
        """Replace the streamed calls by the complete ones, in the order of their indexes."""
        streamed = sorted(self._calls)
        for at, wire in enumerate(expect_objects(given, ("tool_calls",))):
            call = decode_call(wire, "", {}, ("tool_calls", at))
            index = streamed[at] if at < len(streamed) else max(self._calls, default=-1) + 1
            part = self._open_call(index, call.name, out)
            part.name = self._tool_names.get(call.name, call.name)
            part.chunks, part.arguments, part.extra = [], call.arguments, call.extra
            out.close(part)

    def _finish(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Finish with the whole reply of the last event."""
        response = expect_object(frame.get("response"), ("response",))
        body = {"finish_reason": frame.get("finish_reason"), **response}
        whole = decode_response(body, self._endpoint, self._tool_names)
        if not out.parts:
            self._grow_text(whole.text(), out)
            self._set_calls(response.get("tool_calls") or [], out)
        out.close_all()
        out.response_id, out.usage, out.extra = whole.response_id, whole.usage, whole.extra
        out.stop_reason, out.raw_stop_reason = StopReason(whole.stop_reason), whole.raw_stop_reason
        out.error_message = whole.error_message
        out.finish()


# -- errors ------------------------------------------------------------------------------------------------------------


def decode_error(body: object, status: int | None) -> WireError:
    """Read an error body, parsed or not."""
    parsed = parse_body(body)
    if not isinstance(parsed, Mapping):
        return WireError(status=status, message=text_of(parsed) or "")
    return WireError(status=status, message=text_of(cast("JsonObject", parsed).get("message")) or "")
