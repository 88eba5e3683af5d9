"""AWS event stream: bytes, cut anywhere, into messages.

Facts this file rests on:
- A message is a prelude (length of all, length of the headers, a checksum of the two), headers, a payload, and a
  checksum of everything before it; all numbers are big-endian, checksums are CRC-32.
                                                   (AWS: event stream encoding; botocore 1.44.0, read 2026-11-15)
- A header is a name, a type and a value; ten types, of which a reply uses text alone.                   (the same)
- `:message-type` is `event`, `exception` or `error`; the kind of event stands in `:event-type`, that of an exception
  in `:exception-type`, and an error has no payload but a code and a message among its headers.           (the same)
- Headers take up to 128 KiB, a payload up to 24 MiB.                                                     (the same)

What has come of a message that is not whole yet is kept in pieces and joined once, so a large message in many pieces
costs its length. Headers repeat from message to message: they are read once and remembered. What came whole before a
damaged message is given; the damage is told when more is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from struct import Struct, error
from typing import Final, TypeAlias, final
from zlib import crc32

import msgspec

from segue.errors import DecodeError

HeaderValue: TypeAlias = bool | int | bytes | str
Headers: TypeAlias = Mapping[str, HeaderValue]

_JSON: Final = msgspec.json.Decoder[object]()
_PRELUDE: Final = Struct("!III")
_CHECKSUM_LENGTH: Final = 4
_BEFORE_HEADERS: Final = 12
_LEAST: Final = 16
"""The length of a message with neither headers nor payload."""
_MOST_HEADERS: Final = 128 * 1024
_MOST_PAYLOAD: Final = 24 * 1024 * 1024
_REMEMBERED: Final = 64
"""How many headers are remembered; a stream has one for each kind of event."""


@final
class AwsEvent(msgspec.Struct, frozen=True, gc=False):
    """One message: what kind of event, exception or error it is, its payload, and all of its headers."""

    event: str
    payload: bytes
    headers: Headers

    @property
    def data(self) -> bytes | dict[str, object]:
        """The frame that a stream decoder takes: `{kind: payload}`; as JSON where the payload is none."""
        if self.headers.get(":message-type") == "error":
            return {"error": {"code": self.event, "message": str(self.headers.get(":error-message", ""))}}
        try:
            return {self.event: _JSON.decode(self.payload or b"{}")}
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            # The stream decoder says what is wrong with it, as with any frame.
            return b'{"%b":%b}' % (json.dumps(self.event)[1:-1].encode(), self.payload)


class AwsEventStreamDecoder:
    """Reads one stream. Feed it bytes as they come, then call `finish`; both give the messages that were completed."""

    __slots__ = ("_damage", "_known", "_length", "_pieces", "_wanted")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0  # of all pieces together
        self._wanted = _BEFORE_HEADERS  # how much is needed to go on: a prelude, or the whole message
        self._known: dict[bytes, tuple[str, Headers]] = {}
        self._damage: DecodeError | None = None  # behind it nothing can be read any more

    def feed(self, chunk: bytes) -> list[AwsEvent]:
        """Take the next bytes, however many.

        Raises:
            DecodeError: a checksum does not hold, or a length or a header is not what it can be.
        """
        if self._damage is not None:
            raise self._damage
        if not chunk:
            return []
        pieces = self._pieces
        if pieces:
            pieces.append(chunk)
            self._length += len(chunk)
            if self._length < self._wanted:
                return []
            chunk = b"".join(pieces)
        return self._read_chunk(chunk)

    def _read_chunk(self, data: bytes) -> list[AwsEvent]:
        events: list[AwsEvent] = []
        try:
            begin = self._read_whole(data, events)
        except DecodeError as damage:
            self._damage = damage
            if not events:
                raise
            return events
        if begin == len(data):
            self._pieces = []
            self._length = 0
        else:
            rest = data[begin:] if begin else data
            self._pieces = [rest]
            self._length = len(rest)
        return events

    def finish(self) -> list[AwsEvent]:
        """Say that no more bytes come. A message that is not whole says nothing: whoever reads notices its lack.

        Raises:
            DecodeError: behind the last message that was given, one was damaged.
        """
        if self._damage is not None:
            raise self._damage
        self._pieces.clear()
        self._length = 0
        return []

    def _read_whole(self, data: bytes, events: list[AwsEvent]) -> int:
        """Read every message that is there; give where the first that is not whole begins.

        The checksum of a whole message covers its beginning too, so the beginning's own is asked for only where the
        message is not whole yet, and its length has to be believed, or where the whole does not hold.
        """
        begin, end, view, known = 0, len(data), memoryview(data), self._known
        self._wanted = _BEFORE_HEADERS
        while end - begin >= _BEFORE_HEADERS:
            length, headers_length, _ = _PRELUDE.unpack_from(data, begin)
            last = begin + length - _CHECKSUM_LENGTH
            if last + _CHECKSUM_LENGTH > end or length < headers_length + _LEAST:
                self._wanted = _read_length(data, begin)
                break
            if crc32(view[begin:last]) != int.from_bytes(data[last : last + _CHECKSUM_LENGTH], "big"):
                _read_length(data, begin)
                raise DecodeError("the checksum of a message of the stream does not hold")
            after = begin + _BEFORE_HEADERS + headers_length
            raw = data[begin + _BEFORE_HEADERS : after]
            kind = known.get(raw) or self._learn(raw, data, begin)
            events.append(AwsEvent(kind[0], data[after:last], kind[1]))
            begin = last + _CHECKSUM_LENGTH
        return begin

    def _learn(self, raw: bytes, data: bytes, begin: int) -> tuple[str, Headers]:
        """Read headers that are new in this stream."""
        _read_length(data, begin)
        headers = _read_headers(raw)
        kind = _kind_of(headers), headers
        if len(self._known) < _REMEMBERED:
            self._known[raw] = kind
        return kind


def _read_length(data: bytes, begin: int) -> int:
    """Give the length of a message, which its beginning vouches for."""
    length, headers, expected = _PRELUDE.unpack_from(data, begin)
    if crc32(data[begin : begin + 8]) != expected:
        raise DecodeError("the checksum of the beginning of a message does not hold")
    if headers > _MOST_HEADERS:
        raise DecodeError(f"headers of {headers} bytes are longer than {_MOST_HEADERS}")
    payload = length - headers - _LEAST
    if not 0 <= payload <= _MOST_PAYLOAD:
        raise DecodeError(f"a payload cannot have {payload} bytes")
    return length


def _kind_of(headers: Headers) -> str:
    for name in (":event-type", ":exception-type", ":error-code"):
        if name in headers:
            return str(headers[name])
    return ""


# -- headers -----------------------------------------------------------------------------------------------------------

Reader: TypeAlias = Callable[[bytes, int], tuple[HeaderValue, int]]
"""Reads a value at a place, and says where the next thing begins."""


def _number(form: str) -> Reader:
    packed = Struct(form)

    def read(data: bytes, at: int) -> tuple[HeaderValue, int]:
        return packed.unpack_from(data, at)[0], at + packed.size

    return read


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    begin = at + 2
    end = begin + int.from_bytes(data[at:begin], "big")
    if end > len(data) or begin > len(data):
        raise DecodeError("a header is longer than the headers")
    return data[begin:end], end


def _text(data: bytes, at: int) -> tuple[HeaderValue, int]:
    value, end = _sized(data, at)
    return value.decode("utf-8"), end


def _uuid(data: bytes, at: int) -> tuple[HeaderValue, int]:
    if at + 16 > len(data):
        raise DecodeError("a header is longer than the headers")
    return data[at : at + 16], at + 16


_READERS: Final[tuple[Reader, ...]] = (
    lambda _, at: (True, at),
    lambda _, at: (False, at),
    _number("!b"),
    _number("!h"),
    _number("!i"),
    _number("!q"),
    _sized,
    _text,
    _number("!q"),  # a time, in milliseconds
    _uuid,
)
"""By the number of the type."""


def _read_headers(raw: bytes) -> Headers:
    headers: dict[str, HeaderValue] = {}
    at = 0
    try:
        while at < len(raw):
            end = at + 1 + raw[at]
            name = raw[at + 1 : end].decode("utf-8")
            if name in headers:
                raise DecodeError(f"the header {name!r} comes twice")
            headers[name], at = _READERS[raw[end]](raw, end + 1)
    except (IndexError, ValueError, error) as reason:
        raise DecodeError(f"the headers of a message cannot be read: {reason}") from reason
    return headers
