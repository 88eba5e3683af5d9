"""`StreamDecoder`: decodes the frames of a streamed reply into events.

The decoder parses each frame and passes it to the protocol's `StreamReader`, which updates the `Assembly`. A frame that
cannot be read ends the reply with an error; the content received so far is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, Protocol, TypeAlias, cast

import msgspec

from segue.conversation.events import Event
from segue.conversation.messages import AssistantMessage, StopReason
from segue.errors import DecodeError
from segue.protocols.kit.assembly import Assembly
from segue.protocols.kit.reading import as_mapping
from segue.protocols.kit.storable import UNEXPECTED, UNREADABLE

_DECODER: Final = msgspec.json.Decoder()
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)
"""What msgspec raises for a frame that the slow path may read; a lone surrogate in a `str` is a ValueError."""

MISFIT: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The errors of a decoder of structs whose frame does not fit, so that the frame is decoded into plain values."""

_SHALLOW: Final = 32
"""A frame with so few brackets has no more levels than plain JSON may have."""
_JSON_TYPES: Final = frozenset[type]({bytes, str, bytearray, memoryview})


class ClosedForm(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The parent of structs that a frame fits only if it has no other key."""


class SdkChunk(Protocol):
    """A chunk of a provider's SDK."""

    def model_dump(self) -> dict[str, object]:
        """Convert it to plain values."""
        ...


NamedFrame: TypeAlias = tuple[str, bytes]
"""The type of an AWS event, and its JSON payload."""
Frame: TypeAlias = Mapping[str, object] | bytes | bytearray | memoryview | str | NamedFrame | SdkChunk
_Json: TypeAlias = dict[str, object] | list[object] | str | float | bool | None


class StreamReader(Protocol):
    """The part of a stream decoder that each protocol implements."""

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Apply one frame to the assembly."""
        ...

    def end(self, out: Assembly) -> None:
        """Handle the end of the stream; the decoder calls `Assembly.finish` afterwards."""
        ...


Shortcut: TypeAlias = Callable[[bytes], list[Event] | None]
"""Fast path: applies a frame that only appends a delta, and returns its events; for any other frame it returns None and
changes nothing. It may raise what a reader raises."""
NamedShortcut: TypeAlias = Callable[[NamedFrame], list[Event] | None]
"""The same for a `NamedFrame`."""


class StreamDecoder:
    """Decodes one streamed reply. Feed it frames in order, then call `finish`; both return the new events."""

    __slots__ = ("_assembly", "_fast_type", "_reader", "_shortcut")

    def __init__(
        self,
        reader: StreamReader,
        assembly: Assembly,
        shortcut: Shortcut | None = None,
        named_shortcut: NamedShortcut | None = None,
    ) -> None:
        self._reader = reader
        self._assembly = assembly
        self._shortcut: Callable[..., list[Event] | None] | None = named_shortcut or shortcut
        """None without a fast path, and after the terminal event."""
        self._fast_type: type = bytes if named_shortcut is None else tuple
        """The type of the frames that the fast path accepts."""

    def stamp_with(self, stamp: Callable[[AssistantMessage], AssistantMessage]) -> None:
        """Have the message completed with what only the request knows, before it is given to anyone."""
        self._assembly.stamp = stamp

    def feed(self, frame: Frame) -> list[Event]:
        """Decode one frame: the JSON of an SSE `data` field or of an NDJSON line, parsed or as bytes.

        The `data` of an AWS event and a chunk object of a provider's SDK are accepted too.
        """
        if type(frame) is self._fast_type and self._shortcut is not None:
            try:
                events = self._shortcut(frame)
            except (DecodeError, *UNEXPECTED) as error:
                self._fail(error)
                return self._take()
            if events is not None:  # nearly all frames
                return events
        out = self._assembly
        if out.final is not None:
            return []
        self._read(frame, out)
        return self._take()

    def _read(self, frame: Frame, out: Assembly) -> None:
        try:
            if type(frame) is bytes and is_shallow(frame):
                payload = _parse_shallow(frame, out)
            elif isinstance(frame, (bytes, str, bytearray, memoryview)):
                payload = parse_frame(frame)
                payload = payload if payload is None else out.make_plain(payload)
            elif isinstance(frame, tuple):
                payload = _parse_named(frame, out)
            else:
                payload = out.make_plain(as_mapping(frame))
            if payload is None:
                out.ended = True
                self._reader.end(out)
            else:
                self._reader.read(payload, out)
                if out.usage is not None:
                    out.report_usage()
        except (DecodeError, *UNEXPECTED) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        what = f"{error}" if isinstance(error, DecodeError) else f"{UNREADABLE}: {type(error).__name__}: {error}"
        self._assembly.fail(f"a frame of the stream cannot be read: {what}")

    def finish(self) -> list[Event]:
        """End the stream. An incomplete reply ends with an error and keeps the content received so far."""
        out = self._assembly
        if out.final is None:
            try:
                self._reader.end(out)
            except UNEXPECTED as error:
                out.fail(f"the end of the stream cannot be read: {UNREADABLE}: {type(error).__name__}: {error}")
            out.finish()
        return self._take()

    def abort(self, reason: str = "the request was aborted") -> list[Event]:
        """End the reply with one `error` event; its message has stop reason `aborted` and can be stored."""
        self._assembly.fail(reason, StopReason.ABORTED)
        return self._take()

    @property
    def message(self) -> AssistantMessage:
        """The message received so far; computed at each access."""
        return self._assembly.message()

    def _take(self) -> list[Event]:
        out = self._assembly
        if out.final is not None:
            self._shortcut = None
        events, out.events = out.events, []
        return events


def parse_frame(frame: bytes | bytearray | memoryview | str) -> Mapping[str, object] | None:
    """Parse the JSON of one frame; None for the end mark `[DONE]` of some protocols.

    Raises:
        DecodeError: it is not a JSON object.
    """
    try:
        payload: _Json = _DECODER.decode(frame)
    except _UNREADABLE:
        payload = _parse_slowly(frame)
    if isinstance(payload, dict):
        return payload
    if payload is None:
        return None
    raise DecodeError("a frame has to be a JSON object")


def is_shallow(frame: bytes) -> bool:
    """Whether a frame has few levels. What msgspec accepts of it is plain JSON, so it need not be checked."""
    return len(frame) <= 2 * _SHALLOW or frame.count(b"{") + frame.count(b"[") <= _SHALLOW


def _parse_shallow(frame: bytes, out: Assembly) -> Mapping[str, object] | None:
    """Parse a frame of few levels."""
    try:
        payload: _Json = _DECODER.decode(frame)
    except _UNREADABLE:
        slow = parse_frame(frame)
        return slow if slow is None else out.make_plain(slow)
    if payload is None or isinstance(payload, dict):
        return payload
    raise DecodeError("a frame has to be a JSON object")


def _parse_named(frame: tuple[object, ...], out: Assembly) -> Mapping[str, object]:
    if len(frame) != 2 or not isinstance(frame[0], str) or type(frame[1]) not in _JSON_TYPES:
        raise DecodeError("a frame that is a tuple has to be the type of an event and its JSON payload")
    kind, payload = cast("tuple[str, bytes]", frame)
    try:
        named = {kind: _DECODER.decode(payload)}
    except _UNREADABLE:
        return out.make_plain({kind: _parse_slowly(payload)})
    return named if type(payload) is bytes and is_shallow(payload) else out.make_plain(named)


def _parse_slowly(frame: bytes | bytearray | memoryview | str) -> _Json:
    """Parse what msgspec refuses: lone surrogates, and the end mark."""
    text = frame if isinstance(frame, str) else bytes(frame).decode("utf-8", "replace")
    if text.strip() == "[DONE]":
        return None
    try:
        return cast("_Json", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise DecodeError("a frame has to be JSON") from error
