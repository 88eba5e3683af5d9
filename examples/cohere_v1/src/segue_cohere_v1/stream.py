"""Streamed replies of Cohere's v1 chat endpoint.

Facts this file rests on, all of cohere 7.3.1 (StreamedChatResponse), read 2026-11-15:
- A stream is lines of JSON with an `event_type`: stream-start, text-generation, tool-calls-chunk (a delta of one call,
  by index), tool-calls-generation (all calls, complete), stream-end with the whole reply, and other types.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue import StopReason
from segue.protocols import Assembly, Endpoint, JsonObject, Part, StreamDecoder
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import expect_object, expect_objects, number_of, text_of
from segue_cohere_v1.errors import decode_error
from segue_cohere_v1.request import decode_call
from segue_cohere_v1.response import decode_response
from segue_cohere_v1.rules import PROTOCOL


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one reply."""
    return StreamDecoder(_Reader(endpoint, tool_names), Assembly(endpoint.model, PROTOCOL, tool_names))


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
