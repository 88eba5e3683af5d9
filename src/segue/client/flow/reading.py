"""Bytes of a reply into events or a message: framing and codec put together, without any I/O.

Facts this file rests on:
- A server that was asked to stream may answer with one JSON document all the same: proxies do, and errors come so,
  some of them under the name of a stream. Others stream though nobody asked.       (gateways; OpenRouter, vLLM: issues)
- Neither an event stream nor one of AWS's can begin with a brace or a bracket.  (WHATWG HTML, 9.2: such a line says
  nothing; AWS: the first byte is the highest of a length)
- A reply that has said why it stopped is whole, even if the connection broke before the stream said goodbye.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.events import DoneEvent, ErrorEvent, Event
from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import DecodeError
from segue.framing.aws_event_stream import AwsEvent, AwsEventStreamDecoder
from segue.framing.ndjson import NdjsonDecoder
from segue.framing.sse import SseDecoder, SseEvent
from segue.protocols.kit.protocol import Framing
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.registry import get_protocol
from segue.request import Request

Ending: TypeAlias = DoneEvent | ErrorEvent
_Frame: TypeAlias = SseEvent | AwsEvent | bytes
_Cut: TypeAlias = Callable[[bytes], Sequence[_Frame]]

_BOM: Final = b"\xef\xbb\xbf"
_BRACKETS: Final = (b"{", b"[")

_FRAMINGS: Final[Mapping[Framing, type[SseDecoder | NdjsonDecoder | AwsEventStreamDecoder]]] = {
    "sse": SseDecoder,
    "ndjson": NdjsonDecoder,
    "aws-event-stream": AwsEventStreamDecoder,
}


class StreamReading:
    """Reads one streamed reply: bytes as they come, cut anywhere, into events."""

    __slots__ = ("_cut", "_decoder", "_document", "_feed", "_frames")

    def __init__(self, request: Request) -> None:
        self._decoder: StreamDecoder = request.stream_decoder()
        self._feed = self._decoder.feed
        framing = get_protocol(request.protocol).framing
        self._frames = _FRAMINGS[framing]()
        self._document: list[bytes] = []
        # Where every line begins with a brace, a document is a stream of one line.
        self._cut: _Cut = self._frames.feed if framing == "ndjson" else self._cut_first

    @property
    def document(self) -> bytes | None:
        """The JSON document that came instead of a stream, as far as it has come; None for a stream."""
        return b"".join(self._document) if self._document else None

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes; after the terminal event there are no more events."""
        try:
            frames = self._cut(chunk)
        except DecodeError as error:
            return self.fail(f"the stream cannot be read: {error}")
        if len(frames) == 1:  # a live stream brings one event at a time
            frame = frames[0]
            return self._feed(frame if isinstance(frame, bytes) else frame.data)
        return self._read(frames)

    def _cut_first(self, chunk: bytes) -> Sequence[_Frame]:
        """Cut the first bytes into frames, unless they show that this is no stream but one JSON document."""
        if self._document or chunk.removeprefix(_BOM).lstrip()[:1] in _BRACKETS:
            self._document.append(chunk)
            return ()
        if not chunk.isspace():
            self._cut = self._frames.feed
        return self._frames.feed(chunk)

    def finish(self) -> list[Event]:
        """Say that the stream is over; a reply that was not whole ends as an error and keeps what arrived."""
        try:
            events = self._read(self._frames.finish())
        except DecodeError as error:
            return self.fail(f"the stream cannot be read: {error}")
        return events + self._decoder.finish()

    def fail(self, reason: str) -> list[Event]:
        """Say that the connection broke. A reply that was whole stays so; any other ends as an error with a reason."""
        events = self._decoder.finish()
        ending = ending_of(events)
        if ending is not None and ending.type == "error":
            events[-1] = with_message(ending, replace(ending.message, error_message=reason))
        return events

    def abort(self, reason: str) -> list[Event]:
        """Say that nobody wants the rest: one `error` event whose message was `aborted` and can be stored."""
        return self._decoder.abort(reason)

    @property
    def message(self) -> AssistantMessage:
        """The message as far as it has come."""
        return self._decoder.message

    def _read(self, frames: Sequence[_Frame]) -> list[Event]:
        events: list[Event] = []
        for frame in frames:
            events += self._feed(frame if isinstance(frame, bytes) else frame.data)
        return events


def is_streamed(request: Request, headers: Mapping[str, str]) -> bool:
    """Whether a reply is read as a stream: by its type where that says so, else by what was asked for."""
    kind = headers.get("content-type", "").lower()
    framing = get_protocol(request.protocol).framing
    if is_page(headers) or (framing == "sse" and kind.startswith("application/json")):
        return False
    if framing == "sse" and kind.startswith("text/event-stream"):
        return True
    return bool(request.projection.options.stream)


def is_page(headers: Mapping[str, str]) -> bool:
    """Whether a web page came."""
    return headers.get("content-type", "").lower().startswith("text/html")


def ending_of(events: Sequence[Event]) -> Ending | None:
    """Give the terminal event if it is among them; it always comes last."""
    if events:
        last = events[-1]
        if last.type == "done" or last.type == "error":
            return last
    return None


def with_message(event: Ending, message: AssistantMessage) -> Ending:
    """Give a terminal event another message; whether it ended well goes by the message."""
    if message.stop_reason in (StopReason.ERROR, StopReason.ABORTED):
        return ErrorEvent(reason=message.stop_reason, message=message)
    return DoneEvent(reason=message.stop_reason, message=message) if event.type == "done" else event


def parse_body(body: bytes) -> object:
    """Parse a whole body; what is not JSON is given as text."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
    try:
        return cast("object", json.loads(text))  # half a surrogate pair, which msgspec refuses
    except (ValueError, RecursionError):
        return text


def read_whole(body: bytes, request: Request) -> AssistantMessage:
    """Read a whole reply.

    Raises:
        DecodeError: it is not what the protocol says.
    """
    parsed = parse_body(body)
    if not isinstance(parsed, Mapping):
        raise DecodeError("the reply is not a JSON object")
    return request.decode(cast("Mapping[str, object]", parsed))
