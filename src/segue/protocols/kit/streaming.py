"""A streamed reply: frames in, events out.

A protocol's reader says what a frame means, the `Assembly` keeps what comes of it; the `StreamDecoder` feeds the one to
the other. A frame that cannot be read ends the reply, and what had arrived is kept.
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

_DECODER: Final = msgspec.json.Decoder()
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class SdkChunk(Protocol):
    """A chunk of a provider's own client, as far as it is asked."""

    def model_dump(self) -> dict[str, object]:
        """Give it as plain values."""
        ...


NamedFrame: TypeAlias = tuple[str, bytes]
"""The kind of an AWS event, and the JSON that goes with it."""
Frame: TypeAlias = Mapping[str, object] | bytes | bytearray | memoryview | str | NamedFrame | SdkChunk
_Json: TypeAlias = dict[str, object] | list[object] | str | float | bool | None


class StreamReader(Protocol):
    """What a protocol brings: the meaning of its frames."""

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Take one frame in."""
        ...

    def end(self, out: Assembly) -> None:
        """The stream is over: end the assembly well or badly."""
        ...


Shortcut: TypeAlias = Callable[[bytes, Assembly], bool]
"""Takes in a frame, as bytes, that brings nothing but growth, and says whether it was one: else it did nothing."""
NamedShortcut: TypeAlias = Callable[[NamedFrame], list[Event] | None]
"""The same where the kind stands beside a frame; gives the events that came of it, or None and has done nothing."""


class StreamDecoder:
    """Reads one streamed reply. Feed it frames in order, then call `finish`; both give the events that came of it."""

    __slots__ = ("_assembly", "_named_shortcut", "_reader", "_shortcut")

    def __init__(
        self,
        reader: StreamReader,
        assembly: Assembly,
        shortcut: Shortcut | None = None,
        named_shortcut: NamedShortcut | None = None,
    ) -> None:
        self._reader = reader
        self._assembly = assembly
        self._shortcut = shortcut
        self._named_shortcut = named_shortcut

    def feed(self, frame: Frame) -> list[Event]:
        """Take one frame: the JSON of an SSE `data` or of an NDJSON line, parsed or as bytes.

        The `data` of an AWS event is taken as well, and a chunk of a provider's own client, by its shape.
        """
        out = self._assembly
        if out.final is not None:
            return []
        named = self._named_shortcut
        if named is not None and type(frame) is tuple:
            grown = named(frame)
            if grown is not None:
                return grown
        shortcut = self._shortcut
        if shortcut is None or type(frame) is not bytes or not shortcut(frame, out):
            self._read(frame, out)
        events, out.events = out.events, []
        return events

    def _read(self, frame: Frame, out: Assembly) -> None:
        try:
            if isinstance(frame, (bytes, str, bytearray, memoryview)):
                payload = parse_frame(frame)
            elif isinstance(frame, tuple):
                payload = _parse_named(*frame)
            else:
                payload = as_mapping(frame)
            if payload is None:
                self._reader.end(out)
            else:
                self._reader.read(payload, out)
        except DecodeError as error:
            out.fail(f"a frame of the stream cannot be read: {error}")

    def finish(self) -> list[Event]:
        """Say that no more frames come. A reply that was not complete ends as an error and keeps what arrived."""
        if self._assembly.final is None:
            self._reader.end(self._assembly)
            self._assembly.finish()
        return self._take()

    def abort(self, reason: str = "the request was aborted") -> list[Event]:
        """Break off: one `error` event whose message has stop reason `aborted` and can be stored."""
        self._assembly.fail(reason, StopReason.ABORTED)
        return self._take()

    @property
    def message(self) -> AssistantMessage:
        """The message as far as it has come; computed when asked for."""
        return self._assembly.message()

    def _take(self) -> list[Event]:
        events, self._assembly.events = self._assembly.events, []
        return events


def parse_frame(frame: bytes | bytearray | memoryview | str) -> Mapping[str, object] | None:
    """Parse the JSON of one frame; None for the `[DONE]` that some wires end with.

    Raises:
        DecodeError: it is not the JSON of an object.
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


def _parse_named(kind: str, frame: bytes) -> Mapping[str, object]:
    try:
        return {kind: _DECODER.decode(frame)}
    except _UNREADABLE:
        return {kind: _parse_slowly(frame)}


def _parse_slowly(frame: bytes | bytearray | memoryview | str) -> _Json:
    """Half a surrogate pair, which msgspec refuses, and the end mark."""
    text = frame if isinstance(frame, str) else bytes(frame).decode("utf-8", "replace")
    if text.strip() == "[DONE]":
        return None
    try:
        return cast("_Json", json.loads(text))
    except (ValueError, RecursionError) as error:
        raise DecodeError("a frame has to be JSON") from error
