"""Decode the AWS event stream format: chunks of bytes, split anywhere, into messages.

Facts:
- A message is a prelude (length of all, length of the headers, a checksum of the two), headers, a payload, and a
  checksum of everything before it; all numbers are big-endian, checksums are CRC-32.
                                                   (AWS: event stream encoding; botocore 1.44.0, read 2026-11-15)
- A header is a name, a type and a value. There are ten types; replies use only text.                    (the same)
- `:message-type` is `event`, `exception` or `error`. `:event-type` names the event, `:exception-type` the exception; an
  error has no payload, but a code and a message in its headers.                                          (the same)
- Headers have up to 128 KiB, a payload up to 24 MiB.                                                     (the same)
- Events of one kind always have the same headers. So messages of the same kind and length have the same bytes up to
  the payload.                                                                          (recorded traffic, 2026-11)

The chunks of an incomplete message are kept in a list and joined once, so that decoding takes linear time. The bytes
before the payload are parsed once and cached with their checksum, from which the checksum of the message is continued.
All streams share this cache: an entry depends on its bytes alone, and is used for the same bytes only. Messages before
a damaged one are returned; the error is raised by the next call.
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
"""The index of the checksum of a message, from its end."""
_BEFORE_HEADERS: Final = 12
_LEAST: Final = 16
"""The length of a message with neither headers nor payload."""
_MOST_HEADERS: Final = 128 * 1024
_MOST_PAYLOAD: Final = 24 * 1024 * 1024
_CACHED_HEADERS: Final = 512
"""How many heads are cached: one for each length of a message, one or two hundred in a stream."""
_MAX_CACHED_BYTES: Final = 1024
"""The longest head that is cached; those of a reply have about a hundred bytes."""


@final
class AwsEvent(msgspec.Struct, frozen=True, gc=False):
    """One message: the kind of event, exception or error, its payload, and its headers.

    `data` is the frame for a stream decoder: the kind, and its JSON.
    """

    event: str
    payload: bytes
    headers: Headers
    data: tuple[str, bytes]


class _Head(msgspec.Struct, frozen=True, gc=False):
    """The parsed bytes before a payload; valid for every message that begins with the same bytes."""

    raw: bytes
    size: int
    checksum: int  # of the head; the checksum of the message is continued from it
    event: str
    headers: Headers


_HEADS: Final[dict[int, _Head]] = {}
"""The last head for each length of a message."""
_KINDS: Final[dict[bytes, tuple[str, Headers]]] = {}
"""Parsed headers, and the kind of event that they name."""


class AwsEventStreamDecoder:
    """Decodes a stream of AWS event stream messages.

    Feed it bytes as they arrive, then call `finish`; both return the messages that were completed.
    """

    __slots__ = ("_between", "_damage", "_length", "_pieces", "_wanted")

    def __init__(self) -> None:
        self._between = True  # no message is incomplete: the next byte begins one
        self._pieces: list[bytes] = []
        self._length = 0  # of all pieces together
        self._wanted = _BEFORE_HEADERS  # bytes needed to continue: a prelude, or the whole message
        self._damage: DecodeError | None = None  # set once: nothing after the damage can be decoded

    def feed(self, chunk: bytes) -> list[AwsEvent]:
        """Decode the next chunk. Live streams send one message per chunk, so there is a fast path for that.

        Raises:
            DecodeError: a checksum does not match, or a length or header is invalid.
        """
        head = _HEADS.get(len(chunk))
        if head is not None and self._between:
            size = head.size
            if chunk[:size] == head.raw:
                payload = chunk[size:_LAST]
                if payload and crc32(payload, head.checksum) == _READ_CHECKSUM(chunk, _LAST)[0]:
                    event = head.event
                    return [AwsEvent(event, payload, head.headers, (event, payload))]
        return self._read_pieces(chunk)

    def finish(self) -> list[AwsEvent]:
        """End the stream. An incomplete message is dropped; the stream decoder notices that events are missing.

        Raises:
            DecodeError: a message after the last returned one was damaged.
        """
        if self._damage is not None:
            raise self._damage
        self._keep(b"", _BEFORE_HEADERS)
        return []

    def _read_pieces(self, chunk: bytes) -> list[AwsEvent]:
        """Decode a chunk that holds parts of messages, or several messages."""
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
        """Keep the bytes of an incomplete message until `wanted` bytes are there."""
        self._pieces = [rest] if rest else []
        self._length, self._wanted, self._between = len(rest), wanted, not rest

    def _read_whole(self, data: bytes, events: list[AwsEvent]) -> tuple[int, int]:
        """Decode every complete message; return the index of the first incomplete one, and its length.

        A cached head was verified before. For a new one the prelude is verified before its length is used, and the
        message before its headers are parsed.
        """
        begin, end = 0, len(data)
        while end - begin >= _BEFORE_HEADERS:
            length, headers_length, _ = _PRELUDE.unpack_from(data, begin)
            payload_at, after = begin + _BEFORE_HEADERS + headers_length, begin + length
            raw = data[begin:payload_at]
            head = _HEADS.get(length)
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
                raise DecodeError("event stream: the checksum of a message does not match; the response is damaged")
            if head is None:
                head = _learn(raw, length, checksum)
                frame = _frame_of(head, payload)
            else:
                frame = head.event, payload or b"{}"
            events.append(AwsEvent(head.event, payload, head.headers, frame))
            begin = after
        return begin, _BEFORE_HEADERS


def _learn(raw: bytes, length: int, checksum: int) -> _Head:
    """Parse a new head and cache it."""
    named = raw[_BEFORE_HEADERS:]
    kind = _KINDS.get(named)
    if kind is None:
        headers = _read_headers(named)
        kind = _event_of(headers), headers
    head = _Head(raw, len(raw), checksum, *kind)
    if len(raw) <= _MAX_CACHED_BYTES and not _is_error(head.headers):
        for known in (_HEADS, _KINDS):
            if len(known) >= _CACHED_HEADERS:
                known.clear()
        _HEADS[length] = head
        _KINDS[named] = kind
    return head


def _check_prelude(data: bytes, begin: int) -> None:
    length, headers, expected = _PRELUDE.unpack_from(data, begin)
    if crc32(data[begin : begin + 8]) != expected:
        raise DecodeError("event stream: the checksum of a prelude does not match; the response is damaged")
    if headers > _MOST_HEADERS:
        raise DecodeError(f"event stream: a message has {headers} bytes of headers; the limit is {_MOST_HEADERS}")
    payload = length - headers - _LEAST
    if not 0 <= payload <= _MOST_PAYLOAD:
        raise DecodeError(f"event stream: a message has a payload of {payload} bytes; the limit is {_MOST_PAYLOAD}")


def _frame_of(head: _Head, payload: bytes) -> tuple[str, bytes]:
    """Return the frame for a stream decoder. The code and message of an error are in its headers."""
    if not _is_error(head.headers):
        return head.event, payload or b"{}"
    body = {"code": head.event, "message": str(head.headers.get(":error-message", ""))}
    return "error", json.dumps(body).encode()


def _is_error(headers: Headers) -> bool:
    return headers.get(":message-type") == "error"


def _event_of(headers: Headers) -> str:
    for name in (":event-type", ":exception-type", ":error-code"):
        if name in headers:
            return str(headers[name])
    return ""


# -- headers -----------------------------------------------------------------------------------------------------------

Reader: TypeAlias = Callable[[bytes, int], tuple[HeaderValue, int]]
"""Reads a value at an index; returns it and the index after it."""


def _number(form: str) -> Reader:
    packed = Struct(form)

    def read(data: bytes, at: int) -> tuple[HeaderValue, int]:
        return packed.unpack_from(data, at)[0], at + packed.size

    return read


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    begin = at + 2
    end = begin + int.from_bytes(data[at:begin], "big")
    if end > len(data) or begin > len(data):
        raise DecodeError("event stream: a header extends beyond the headers; the response is damaged")
    return data[begin:end], end


def _text(data: bytes, at: int) -> tuple[HeaderValue, int]:
    value, end = _sized(data, at)
    return value.decode("utf-8"), end


def _uuid(data: bytes, at: int) -> tuple[HeaderValue, int]:
    if at + 16 > len(data):
        raise DecodeError("event stream: a header extends beyond the headers; the response is damaged")
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
"""Indexed by the number of the type."""


def _read_headers(raw: bytes) -> Headers:
    headers: dict[str, HeaderValue] = {}
    at = 0
    try:
        while at < len(raw):
            end = at + 1 + raw[at]
            name = raw[at + 1 : end].decode("utf-8")
            if name in headers:
                raise DecodeError(f"event stream: a message has the header {name!r} twice")
            headers[name], at = _READERS[raw[end]](raw, end + 1)
    except (IndexError, ValueError, error) as reason:
        raise DecodeError(f"event stream: invalid headers: {reason}") from reason
    return headers
