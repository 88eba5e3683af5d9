"""AWS event stream: bytes, cut anywhere, into messages.

Facts this file rests on:
- A message is a prelude (length of all, length of the headers, a checksum of the two), headers, a payload, and a
  checksum of everything before it; all numbers are big-endian, checksums are CRC-32.
                                                   (AWS: event stream encoding; botocore 1.44.0, read 2026-11-15)
- A header is a name, a type and a value; ten types, of which a reply uses text alone.                   (the same)
- `:message-type` is `event`, `exception` or `error`; the kind of event stands in `:event-type`, that of an exception
  in `:exception-type`, and an error has no payload but a code and a message among its headers.           (the same)
- Headers take up to 128 KiB, a payload up to 24 MiB.                                                     (the same)
- A kind of event has the same headers every time: so messages of the same kind and length begin alike, byte for byte,
  up to the payload.                                                                    (recorded traffic, 2026-11)

What has come of a message that is not whole yet is kept in pieces and joined once, so a large message in many pieces
costs its length. Everything before the payload is read once and remembered, with its checksum, which the message's own
goes on from. What came whole before a damaged message is given; the damage is told when more is asked for.
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

_PRELUDE: Final = Struct("!III")
_READ_CHECKSUM: Final = Struct("!I").unpack_from
_CHECKSUM_LENGTH: Final = 4
_LAST: Final = -4
"""Where the checksum of a message begins, told from its end."""
_BEFORE_HEADERS: Final = 12
_LEAST: Final = 16
"""The length of a message with neither headers nor payload."""
_MOST_HEADERS: Final = 128 * 1024
_MOST_PAYLOAD: Final = 24 * 1024 * 1024
_CACHED_HEADERS: Final = 512
"""How many heads are remembered: one for each length of message, a hundred or two in a stream."""
_MAX_CACHED_BYTES: Final = 1024
"""Up to what length; those of a reply have some hundred bytes."""


@final
class AwsEvent(msgspec.Struct, frozen=True, gc=False):
    """One message: what kind of event, exception or error it is, its payload, and all of its headers.

    `data` is the frame that a stream decoder takes: the kind, and the JSON that goes with it.
    """

    event: str
    payload: bytes
    headers: Headers
    data: tuple[str, bytes]


class _Head(msgspec.Struct, frozen=True, gc=False):
    """All that stands before a payload, read: it holds for every message that begins with the same bytes."""

    raw: bytes
    size: int
    checksum: int  # of the head: that of the message goes on from it
    event: str
    headers: Headers


class AwsEventStreamDecoder:
    """Decodes a stream of AWS event stream messages.

    Feed it bytes as they arrive, then call `finish`; both return the messages that were completed.
    """

    __slots__ = ("_between", "_damage", "_heads", "_kinds", "_length", "_pieces", "_wanted")

    def __init__(self) -> None:
        self._between = True  # nothing is pending: the next byte begins a message
        self._pieces: list[bytes] = []
        self._length = 0  # of all pieces together
        self._wanted = _BEFORE_HEADERS  # how much is needed to go on: a prelude, or the whole message
        self._heads: dict[int, _Head] = {}  # the last one that was seen, by the length of its message
        self._kinds: dict[bytes, tuple[str, Headers]] = {}  # what headers say
        self._damage: DecodeError | None = None  # behind it nothing can be read any more

    def feed(self, chunk: bytes) -> list[AwsEvent]:
        """Take the next bytes, however many. A live stream brings one message at a time, so that goes first.

        Raises:
            DecodeError: a checksum does not hold, or a length or a header is not what it can be.
        """
        if self._between:
            head = self._heads.get(len(chunk))
            if head is not None:
                size = head.size
                if chunk[:size] == head.raw:
                    payload = chunk[size:_LAST]
                    if payload and crc32(payload, head.checksum) == _READ_CHECKSUM(chunk, _LAST)[0]:
                        event = head.event
                        return [AwsEvent(event, payload, head.headers, (event, payload))]
        return self._read_pieces(chunk)

    def finish(self) -> list[AwsEvent]:
        """Say that no more bytes come. A message that is not whole says nothing: whoever reads notices its lack.

        Raises:
            DecodeError: behind the last message that was given, one was damaged.
        """
        if self._damage is not None:
            raise self._damage
        self._keep(b"", _BEFORE_HEADERS)
        return []

    def _read_pieces(self, chunk: bytes) -> list[AwsEvent]:
        """Read bytes that begin or end in the middle of something, or hold several messages."""
        if self._damage is not None:
            raise self._damage
        events: list[AwsEvent] = []
        pieces = self._pieces
        if pieces:
            pieces.append(chunk)
            self._length += len(chunk)
            if self._length < self._wanted:
                return events
            chunk = b"".join(pieces)
        try:
            begin, wanted = self._read_whole(chunk, events)
        except DecodeError as damage:
            self._between, self._damage = False, damage
            if not events:
                raise
            return events
        self._keep(chunk[begin:], wanted)
        return events

    def _keep(self, rest: bytes, wanted: int) -> None:
        """Keep what is not a whole message yet, until there is as much as is wanted."""
        self._pieces = [rest] if rest else []
        self._length, self._wanted, self._between = len(rest), wanted, not rest

    def _read_whole(self, data: bytes, events: list[AwsEvent]) -> tuple[int, int]:
        """Read every message that is there; give where the first that is not whole begins, and how long it has to be.

        A head that is known was vouched for when it was learnt. One that is not has to be before its length is
        believed, and its message before its headers are.
        """
        begin, end, heads = 0, len(data), self._heads
        while end - begin >= _BEFORE_HEADERS:
            length, headers_length, _ = _PRELUDE.unpack_from(data, begin)
            payload_at, after = begin + _BEFORE_HEADERS + headers_length, begin + length
            raw = data[begin:payload_at]
            head = heads.get(length)
            if head is not None and head.raw != raw:
                head = None
            if head is None:
                _check_prelude(data, begin)
            if after > end:
                return begin, length
            last = after - _CHECKSUM_LENGTH
            payload = data[payload_at:last]
            checksum = crc32(raw) if head is None else head.checksum
            if crc32(payload, checksum) != _READ_CHECKSUM(data, last)[0]:
                raise DecodeError("the checksum of a message of the stream does not hold")
            if head is None:
                head = self._learn(raw, length, checksum)
                frame = _frame_of(head, payload)
            else:
                frame = head.event, payload or b"{}"
            events.append(AwsEvent(head.event, payload, head.headers, frame))
            begin = after
        return begin, _BEFORE_HEADERS

    def _learn(self, raw: bytes, length: int, checksum: int) -> _Head:
        """Read a head that is new in this stream, or stands in another one's place, and remember it."""
        named = raw[_BEFORE_HEADERS:]
        kind = self._kinds.get(named)
        if kind is None:
            headers = _read_headers(named)
            kind = _event_of(headers), headers
        head = _Head(raw, len(raw), checksum, *kind)
        if len(raw) <= _MAX_CACHED_BYTES and not _is_error(head.headers):
            for known in (self._heads, self._kinds):
                if len(known) >= _CACHED_HEADERS:
                    known.clear()
            self._heads[length] = head
            self._kinds[named] = kind
        return head


def _check_prelude(data: bytes, begin: int) -> None:
    length, headers, expected = _PRELUDE.unpack_from(data, begin)
    if crc32(data[begin : begin + 8]) != expected:
        raise DecodeError("the checksum of the beginning of a message does not hold")
    if headers > _MOST_HEADERS:
        raise DecodeError(f"headers of {headers} bytes are longer than {_MOST_HEADERS}")
    payload = length - headers - _LEAST
    if not 0 <= payload <= _MOST_PAYLOAD:
        raise DecodeError(f"a payload cannot have {payload} bytes")


def _frame_of(head: _Head, payload: bytes) -> tuple[str, bytes]:
    """Give what a stream decoder takes; an error says everything in its headers."""
    if not _is_error(head.headers):
        return head.event, payload or b"{}"
    told = {"code": head.event, "message": str(head.headers.get(":error-message", ""))}
    return "error", json.dumps(told).encode()


def _is_error(headers: Headers) -> bool:
    return headers.get(":message-type") == "error"


def _event_of(headers: Headers) -> str:
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
