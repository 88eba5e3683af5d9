"""Decode newline-delimited JSON: chunks of bytes, split anywhere, into complete lines.

Facts:
- Each line is one value and ends in LF or CRLF; empty lines are ignored.  (ndjson-spec 1.0; ollama server @fb30760)
- A CR alone is white space inside JSON and does not end a line.                                         (RFC 8259)
- The last line may have no line end.

The chunks of an incomplete line are kept in a list and joined once, so that decoding takes linear time.
"""

from __future__ import annotations

from typing import Final

_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r"


class NdjsonDecoder:
    """Decodes a stream of JSON lines (NDJSON).

    Feed it bytes as they arrive, then call `finish`; both return the lines that were completed.
    """

    __slots__ = ("_first", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._first = True  # no line has been decoded: the first may begin with a byte order mark

    def feed(self, chunk: bytes) -> list[bytes]:
        """Decode the next chunk."""
        pieces = self._pieces
        if b"\n" not in chunk:
            if chunk:
                pieces.append(chunk)
            return []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if pieces:
            pieces.append(lines[0])
            lines[0] = b"".join(pieces)
            pieces.clear()
        if rest:
            pieces.append(rest)
        return self._whole(lines)

    def finish(self) -> list[bytes]:
        """End the stream; return the last line if it has no line end."""
        lines = [b"".join(self._pieces)]
        self._pieces.clear()
        return self._whole(lines)

    def _whole(self, lines: list[bytes]) -> list[bytes]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        return [stripped for line in lines if (stripped := line.strip(_SPACE))]
