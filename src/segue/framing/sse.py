"""Decode server-sent events: chunks of bytes, split anywhere, into events.

Facts:
- A line ends in LF, CR or CRLF; an event ends at an empty line; a line that begins with a colon is a comment; one space
  after the colon of a field is not part of its value; a byte order mark may come first.   (WHATWG HTML, 9.2; 2026-11)
- An event without data is dropped; several data lines are joined by LF.                                    (the same)
- The payload is JSON, which is parsed from bytes. So data stays bytes, and characters split between two chunks need no
  special handling.
- Some servers end the stream without the empty line that the standard requires. The last event is returned then, where
  the standard would drop it. The caller notices if its JSON is incomplete.                           (our choice)

A chunk of complete events without CR is split at empty lines. Any other chunk is split by `bytes.splitlines`, which
splits exactly at the three line ends of the standard. The chunks of an incomplete line are kept in a list and joined
once.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_CR: Final = 13
_LF: Final = 10  # as integers: searching for one byte is many times faster that way
_MOST_NAMES: Final = 64
"""How many event names are cached; the longest known list has about sixty (openai-responses)."""


@final
class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name (empty if it has none), its data, and the last id of the stream."""

    event: str
    data: bytes
    id: str | None = None


class SseDecoder:
    """Decodes a stream of server-sent events (SSE).

    Feed it bytes as they arrive, then call `finish`; both return the events that were completed.
    """

    __slots__ = (
        "_between",
        "_data",
        "_event",
        "_head",
        "_head_event",
        "_head_size",
        "_id",
        "_names",
        "_pieces",
        "_skip_newline",
        "_start",
    )

    def __init__(self) -> None:
        self._between = False  # no event is incomplete: the next byte begins one
        self._start: bytes | None = b""  # the first bytes, until it is certain whether they are a byte order mark
        self._pieces: list[bytes] = []  # of an incomplete line
        self._skip_newline = False  # the last chunk ended in CR: an LF at the start of the next belongs to it
        self._event = ""
        self._data: list[bytes] = []
        self._id: str | None = None
        self._head = _DATA  # the first bytes of the last event on the fast path: the next one often begins alike
        self._head_size = len(_DATA)
        self._head_event = ""
        self._names: dict[bytes, str] = {}  # `event:` lines, and the names in them

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Decode the next chunk. Live streams send one event per chunk, so there is a fast path for that."""
        if self._between and chunk[-2:] == b"\n\n":
            size = self._head_size
            if chunk[:size] == self._head:
                data = chunk[size:-2]
                if _LF not in data and _CR not in data:
                    return [SseEvent(self._head_event, data, self._id)]
            elif _CR not in chunk:
                event = self._fast_read(chunk[:-2])
                if event is not None:
                    return [event]
        events: list[SseEvent] = []
        self._read_piece(chunk, events)
        pending = self._pieces or self._data or self._event or self._skip_newline
        self._between = self._start is None and not pending
        return events

    def _read_piece(self, chunk: bytes, events: list[SseEvent]) -> None:
        """Decode a chunk that may begin or end inside an event."""
        if self._start is not None:
            chunk = self._without_mark(self._start + chunk)
        if self._skip_newline and chunk:
            self._skip_newline = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        end = -1 if _CR in chunk else chunk.rfind(b"\n\n")
        if end >= 0:
            begin = 0
            if self._pieces or self._data or self._event:
                begin = chunk.find(b"\n\n") + 2
                self._read_lines(chunk[:begin], events)
            if begin < end:
                self._read_blocks(chunk[begin:end].split(b"\n\n"), events)
            chunk = chunk[end + 2 :]
        if chunk:
            self._read_lines(chunk, events)

    def finish(self) -> list[SseEvent]:
        """End the stream; return the last event if it has data."""
        if self._start:
            self._pieces.append(self._start)
        self._start = None
        events: list[SseEvent] = []
        self._read([b"".join(self._pieces), b""] if self._pieces else [b""], events)
        self._pieces.clear()
        return events

    def _without_mark(self, first: bytes) -> bytes:
        if len(first) < len(_BOM) and _BOM.startswith(first):
            self._start = first
            return b""
        self._start = None
        return first.removeprefix(_BOM)

    def _fast_read(self, block: bytes) -> SseEvent | None:
        """Decode an event of one data line, or of a cached name and one data line; None for any other."""
        head = self._head
        if not block.startswith(head):
            line = block.partition(b"\n")[0]
            event = self._names.get(line)
            if event is None and line.startswith(b"event:") and len(self._names) < _MOST_NAMES:
                event = self._names[line] = line[6:].removeprefix(b" ").decode("utf-8", "replace")
            head = _DATA if event is None else line + b"\n" + _DATA
            if not block.startswith(head):
                return None
            self._head, self._head_size, self._head_event = head, len(head), event or ""
        data = block[len(head) :]
        return None if _LF in data else SseEvent(self._head_event, data, self._id)

    def _read_blocks(self, blocks: list[bytes], events: list[SseEvent]) -> None:
        """Decode complete events; nearly all take the fast path."""
        for block in blocks:
            event = self._fast_read(block)
            if event is not None:
                events.append(event)
            else:
                self._read([*block.split(b"\n"), b""], events)

    def _read_lines(self, chunk: bytes, events: list[SseEvent]) -> None:
        lines, pieces = chunk.splitlines(), self._pieces
        last, rest = chunk[-1:], b""
        if last == b"\r":
            self._skip_newline = True
        elif last != b"\n":
            rest = lines.pop()
        if pieces and lines:
            pieces.append(lines[0])
            lines[0] = b"".join(pieces)
            pieces.clear()
        if rest:
            pieces.append(rest)
        self._read(lines, events)

    def _read(self, lines: list[bytes], events: list[SseEvent]) -> None:
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(SseEvent(self._event, data[0] if len(data) == 1 else b"\n".join(data), self._id))
                    data.clear()
                self._event = ""
            elif line.startswith(_DATA):
                data.append(line[6:])
            else:
                self._read_field(line)

    def _read_field(self, line: bytes) -> None:
        """Decode other lines: names, ids, comments, fields without a space or a colon, unknown fields."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
