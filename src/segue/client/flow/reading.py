"""Decodes the bytes of a reply into events or a message: framing and protocol together, without any I/O.

Facts:
- A server may answer a streaming request with one JSON document: proxies do it, and errors arrive that way, some with
  the content type of a stream. Others stream without being asked.                  (gateways; OpenRouter, vLLM: issues)
- Neither an SSE stream nor an AWS event stream can begin with a brace or a bracket. (WHATWG HTML, 9.2: such a line has
  no field name that counts; AWS: the first byte is the highest of a length)
- Servers begin a stream before they know whether they can answer: an error, or the end, may follow the start at once.
                                          (Anthropic: `overloaded_error` after `message_start`; LiteLLM, Gemini: issues)
- A reply that contains its stop reason is complete, even if the connection broke before the end of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from segue.client.output.replies import CallAsText
from segue.conversation.events import DoneEvent, ErrorEvent, Event
from segue.conversation.limits import MAX_NESTING
from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import DecodeError
from segue.framing.aws_chunks import AwsChunksDecoder
from segue.framing.aws_event_stream import AwsEvent, AwsEventStreamDecoder
from segue.framing.ndjson import NdjsonDecoder
from segue.framing.sse import SseDecoder, SseEvent
from segue.protocols.kit.storable import ParsedReply
from segue.protocols.kit.streaming import NamedFrame, StreamDecoder
from segue.requests.prepare import Request

Ending: TypeAlias = DoneEvent | ErrorEvent
_Frame: TypeAlias = SseEvent | AwsEvent | bytes
_Cut: TypeAlias = Callable[[bytes], Sequence[_Frame]]

_BOM: Final = b"\xef\xbb\xbf"
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode
_BRACKETS: Final = (b"{", b"[")
_BEFORE_CONTENT: Final = frozenset({"start", "usage", "ping", "notice"})

_FRAMINGS: Final[Mapping[str, type[SseDecoder | NdjsonDecoder | AwsEventStreamDecoder | AwsChunksDecoder]]] = {
    "sse": SseDecoder,
    "ndjson": NdjsonDecoder,
    "aws-event-stream": AwsEventStreamDecoder,
    "aws-chunks": AwsChunksDecoder,
}


class StreamReading:
    """Decodes one streamed reply into events; the bytes may be split anywhere."""

    __slots__ = ("_answer", "_cut", "_decoder", "_document", "_feed", "_feed_next", "_frames", "_held", "_quiet")

    def __init__(
        self,
        request: Request,
        account: str | None = None,
        key: str | None = None,
        answer: CallAsText | None = None,
    ) -> None:
        self._decoder: StreamDecoder = request.stream_decoder(account=account, key=key)
        self._feed_next = self._decoder.feed if answer is None else self._feed_as_text
        self._feed = self._feed_first
        self._held: list[Event] = []
        self._answer = answer
        self._quiet: list[Event] = []
        framing = request.framing
        self._frames = _FRAMINGS[framing]()
        self._document: list[bytes] = []
        # In NDJSON a document is a stream of one line.
        self._cut: _Cut = self._frames.feed if framing == "ndjson" else self._cut_first_chunk

    @property
    def document(self) -> bytes | None:
        """The JSON document received so far instead of a stream; None for a stream."""
        return b"".join(self._document) if self._document else None

    def feed(self, chunk: bytes) -> list[Event]:
        """Decode the next bytes; after the terminal event the list is empty."""
        try:
            frames = self._cut(chunk)
        except DecodeError as error:
            return self.fail(f"the stream cannot be read: {error}")
        if len(frames) == 1:  # the common case in a live stream
            frame = frames[0]
            return self._feed(frame if isinstance(frame, bytes) else frame.data)
        return self._read(frames)

    def _feed_as_text(self, frame: bytes | NamedFrame) -> list[Event]:
        assert self._answer is not None, "without it the decoder itself is fed"
        return self._answer.events(self._decoder.feed(frame))

    def _feed_first(self, frame: bytes | NamedFrame) -> list[Event]:
        """Hold the start of a reply until its content begins: if there is none, another attempt can be made."""
        self._held += self._feed_next(frame)
        if all(event.type in _BEFORE_CONTENT for event in self._held):
            return []
        self._feed = self._feed_next
        return self._release([])

    def _release(self, events: list[Event]) -> list[Event]:
        held, self._held = self._held, []
        return held + events

    def feed_quietly(self, chunk: bytes) -> list[Event]:
        """Decode the next bytes; return the events only at the end, all at once."""
        self._quiet += self.feed(chunk)
        return self._quiet if ending_of(self._quiet) is not None else []

    def _cut_first_chunk(self, chunk: bytes) -> Sequence[_Frame]:
        """Split the first bytes into frames, unless they begin a JSON document."""
        if self._document or chunk.removeprefix(_BOM).lstrip()[:1] in _BRACKETS:
            self._document.append(chunk)
            return ()
        if not chunk.isspace():
            self._cut = self._frames.feed
        return self._frames.feed(chunk)

    def finish(self) -> list[Event]:
        """End the stream; an incomplete reply ends with an error and keeps what arrived."""
        try:
            events = self._read(self._frames.finish())
        except DecodeError as error:
            return self.fail(f"the stream cannot be read: {error}")
        return self._release(events + self._as_text(self._decoder.finish()))

    def _as_text(self, events: list[Event]) -> list[Event]:
        return events if self._answer is None else self._answer.events(events)

    def fail(self, reason: str) -> list[Event]:
        """End the stream after a broken connection; an incomplete reply ends with an error that has this reason."""
        events = self._release(self._as_text(self._decoder.finish()))
        ending = ending_of(events)
        if ending is not None and ending.type == "error":
            events[-1] = with_message(ending, replace(ending.message, error_message=reason))
        return events

    def abort(self, reason: str) -> list[Event]:
        """End the stream because the caller closed it: one `error` event with an `aborted` message."""
        return self._release(self._as_text(self._decoder.abort(reason)))

    @property
    def message(self) -> AssistantMessage:
        """The message so far."""
        message = self._decoder.message
        return message if self._answer is None else self._answer.message(message)

    def _read(self, frames: Sequence[_Frame]) -> list[Event]:
        events: list[Event] = []
        for frame in frames:
            events += self._feed(frame if isinstance(frame, bytes) else frame.data)
        return events


def is_streamed(request: Request, headers: Mapping[str, str]) -> bool:
    """Whether a reply is decoded as a stream: by its content type if that is clear, otherwise by the request."""
    kind = headers.get("content-type", "").lower()
    framing = request.framing
    if is_page(headers) or (framing == "sse" and kind.startswith("application/json")):
        return False
    if framing == "sse" and kind.startswith("text/event-stream"):
        return True
    return bool(request.projection.options.stream)


def is_page(headers: Mapping[str, str]) -> bool:
    """Whether the reply is a web page."""
    return headers.get("content-type", "").lower().startswith("text/html")


def ending_of(events: Sequence[Event]) -> Ending | None:
    """Return the terminal event, which is always the last one, if there is one."""
    if events:
        last = events[-1]
        if last.type == "done" or last.type == "error":
            return last
    return None


def with_message(event: Ending, message: AssistantMessage) -> Ending:
    """Return a terminal event with another message; its type follows the stop reason of the message."""
    if message.stop_reason in (StopReason.ERROR, StopReason.ABORTED):
        return ErrorEvent(reason=message.stop_reason, message=message)
    return DoneEvent(reason=message.stop_reason, message=message) if event.type == "done" else event


def parse_body(body: bytes) -> object:
    """Parse a whole body, also one that begins with a byte order mark; what is not JSON is returned as text."""
    body = body.removeprefix(_BOM)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
    try:
        return cast("object", json.loads(text))  # accepts half a surrogate pair, which msgspec refuses
    except (ValueError, RecursionError):
        return text


def read_whole(body: bytes, request: Request, account: str | None = None, key: str | None = None) -> AssistantMessage:
    """Decode a reply that was not streamed; `account` and `key` are the labels that the request was sent with.

    Raises:
        DecodeError: the body does not fit the protocol.
    """
    try:
        parsed: object = _DECODE(body)
        # Counted by taking them out, because `count` looks at each byte: there are no more levels than brackets.
        brackets = 2 * len(body) - len(body.replace(b"{", b"")) - len(body.replace(b"[", b""))
        parsed = ParsedReply(parsed) if brackets <= MAX_NESTING else parsed
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        parsed = parse_body(body)
    if not isinstance(parsed, (dict, Mapping)):
        raise DecodeError("the reply is not a JSON object")
    return request.decode(cast("Mapping[str, object]", parsed), account=account, key=key)
