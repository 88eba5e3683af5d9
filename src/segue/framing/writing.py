"""Encode the frames of a stream as bytes: SSE, NDJSON, a JSON array, the AWS event stream format, chunks in it.

Facts:
- An SSE event is lines `event: name` and `data: ...` and a blank line. Clients of Anthropic, Cohere and OpenAI's
  Responses read the name from `event`; it is the `type` of the frame. Chunks without a `type` have no such line.
                                          (anthropic 2.8.0, openai 3.49.0, cohere 7.3.1: recorded traffic, 2026-11)
- JSON has no line breaks outside of escapes, so `data` is one line; `[DONE]` is a text without a name.  (OpenAI)
- Without `alt=sse` Google streams one JSON array, each element on its own.                (google-genai 3.1.0)
- An AWS message is a prelude with two lengths and their CRC-32, headers, a payload and a CRC-32 of all these bytes.
  An exception has `:exception-type` in place of `:event-type`.
                                                   (AWS: event stream encoding; botocore 1.44.0, read 2026-11-15)

A lone surrogate is written as an escape: msgspec refuses it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from struct import Struct
from typing import Final, Protocol, TypeAlias, cast
from zlib import crc32

import msgspec

from segue.errors import EncodeError
from segue.foundation.json_text import encode_json

StreamFrame: TypeAlias = Mapping[str, object] | str

_ENCODE: Final = msgspec.json.Encoder().encode
_PRELUDE: Final = Struct("!II")
_PACK_CHECKSUM: Final = Struct("!I").pack
_NOT_NAMED: Final = "a frame of an AWS event stream has one key, the type of the event; pass such a frame"
_NOT_AN_EVENT: Final = ("Exception", "Error")
_AROUND: Final = 16
"""The bytes of an AWS message other than headers and payload."""
_SHORT: Final = 512
"""Payloads below this size share the bytes before them, and as many names of events are kept: so the memory of an
encoder has a bound."""
_MOST_TYPES: Final = 32
"""Types of AWS events whose beginnings are kept; ConverseStream has twelve."""
_BEGINS: Final[dict[str, dict[int, tuple[bytes, int]]]] = {}
"""Prelude and headers of an AWS message, and their checksum, by type and length of the payload."""

_EXCEPTIONS: Final[Mapping[str, str]] = {
    "rate_limit_error": "throttlingException",
    "overloaded_error": "serviceUnavailableException",
    "timeout_error": "modelTimeoutException",
    "invalid_request_error": "validationException",
    "request_too_large": "validationException",
}
"""The exception that reports an error of a stream of chunks, by the type of the error (`aws_chunks`)."""


class FrameEncoder(Protocol):
    """Encodes the frames of one stream: `feed` returns the bytes of a frame, `finish` those that end the stream."""

    def feed(self, frame: StreamFrame) -> bytes:
        """Encode one frame."""
        ...

    def finish(self) -> bytes:
        """End the stream."""
        ...


class SseEncoder:
    """Encodes frames as server-sent events."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names: dict[object, bytes] = {None: b"data: "}  # the bytes before the JSON, by the type of the frame

    def feed(self, frame: StreamFrame) -> bytes:
        """Encode one frame; a text is written unchanged."""
        try:
            return self._names[frame.get("type")] + _ENCODE(frame) + b"\n\n"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - a text has no keys
        except (AttributeError, KeyError, TypeError, UnicodeEncodeError):
            if isinstance(frame, str):
                return b"data: " + frame.encode() + b"\n\n"
            return self._begin(frame.get("type")) + encode_json(frame) + b"\n\n"

    def _begin(self, kind: object) -> bytes:
        """Write what comes before the JSON of a frame."""
        if kind.__class__ is not str:
            return b"data: "
        kind = cast("str", kind)
        has_name = "\n" not in kind and "\r" not in kind
        begin = b"event: " + kind.encode("utf-8", "replace") + b"\ndata: " if has_name else b"data: "
        if len(self._names) < _SHORT:
            self._names[kind] = begin
        return begin

    def finish(self) -> bytes:
        """End the stream: SSE does not have its own end mark."""
        return b""


class NdjsonEncoder:
    """Encodes frames as lines of JSON."""

    __slots__ = ()

    def feed(self, frame: StreamFrame) -> bytes:
        """Encode one frame."""
        return encode_json(frame) + b"\n"

    def finish(self) -> bytes:
        """End the stream: lines have no end mark."""
        return b""


class JsonArrayEncoder:
    """Encodes frames as the elements of one JSON array."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun = False

    def feed(self, frame: StreamFrame) -> bytes:
        """Encode one frame."""
        before = b",\r\n" if self._begun else b"["
        self._begun = True
        return before + encode_json(frame)

    def finish(self) -> bytes:
        """End the array."""
        return b"]" if self._begun else b"[]"


class AwsEventStreamEncoder:
    """Encodes frames `{event type: payload}` as AWS messages with checksums.

    What comes before a payload depends only on its type and its length, and most deltas have one of few lengths: so
    all streams share it.
    """

    __slots__ = ()

    def feed(self, frame: StreamFrame) -> bytes:
        """Encode one frame.

        Raises:
            EncodeError: it is not one event type with its payload.
        """
        try:
            (kind,) = frame
            payload = _ENCODE(frame[kind])  # pyright: ignore[reportArgumentType, reportCallIssue] - a text has no keys
            begin, checksum = _BEGINS[kind][len(payload)]
        except (KeyError, TypeError, ValueError):
            if isinstance(frame, str) or len(frame) != 1:
                raise EncodeError(_NOT_NAMED) from None
            (kind,) = frame
            payload = encode_json(frame[kind])
            begin, checksum = _begin(kind, len(payload))
        return begin + payload + _PACK_CHECKSUM(crc32(payload, checksum))

    def finish(self) -> bytes:
        """End the stream: it has no end mark."""
        return b""


def _begin(kind: str, size: int) -> tuple[bytes, int]:
    """Write what comes before a payload: the prelude with its checksum, and the headers; and their checksum."""
    head = _headers(kind)
    prelude = _PRELUDE.pack(_AROUND + len(head) + size, len(head))
    begin = prelude + _PACK_CHECKSUM(crc32(prelude)) + head
    made = (begin, crc32(begin))
    if size < _SHORT and (kind in _BEGINS or len(_BEGINS) < _MOST_TYPES):
        _BEGINS.setdefault(kind, {})[size] = made
    return made


class AwsChunksEncoder:
    """Encodes frames as chunks; the frame of an error becomes an exception."""

    __slots__ = ("_messages",)

    def __init__(self) -> None:
        self._messages = AwsEventStreamEncoder()

    def feed(self, frame: StreamFrame) -> bytes:
        """Encode one frame.

        Raises:
            EncodeError: it is a text; a chunk has an object.
        """
        if isinstance(frame, str):
            raise EncodeError("a chunk of an AWS event stream has a JSON object, not a text; pass the frame as a dict")
        error = frame.get("error") if frame.get("type") == "error" else None
        if isinstance(error, Mapping):
            given = cast("Mapping[str, object]", error)
            kind = _EXCEPTIONS.get(str(given.get("type")), "internalServerException")
            return self._messages.feed({kind: {"message": given.get("message", "")}})
        return self._messages.feed({"chunk": {"bytes": b64encode(encode_json(frame)).decode()}})

    def finish(self) -> bytes:
        """End the stream: it has no end mark."""
        return b""


_ENCODERS: Final[Mapping[str, type[FrameEncoder]]] = {
    "sse": SseEncoder,
    "ndjson": NdjsonEncoder,
    "none": NdjsonEncoder,
    "json-array": JsonArrayEncoder,
    "aws-event-stream": AwsEventStreamEncoder,
    "aws-chunks": AwsChunksEncoder,
}


def frame_encoder(framing: str) -> FrameEncoder:
    """Make the encoder of a framing: `Protocol.framing`, or "json-array" for Google without `alt=sse`.

    Raises:
        EncodeError: there is no such framing.
    """
    found = _ENCODERS.get(framing)
    if found is None:
        raise EncodeError(f"there is no framing {framing!r}; use one of {', '.join(_ENCODERS)}")
    return found()


@lru_cache(_MOST_TYPES)
def _headers(kind: str) -> bytes:
    is_exception = kind.endswith(_NOT_AN_EVENT)
    values = (
        (":exception-type" if is_exception else ":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "exception" if is_exception else "event"),
    )
    return b"".join(_header(name, value) for name, value in values)


def _header(name: str, value: str) -> bytes:
    data = value.encode()
    return bytes((len(name),)) + name.encode() + b"\x07" + len(data).to_bytes(2, "big") + data
