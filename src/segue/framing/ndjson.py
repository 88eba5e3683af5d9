"""Lines of JSON: bytes, cut anywhere, into whole lines.

Facts this file rests on:
- One value a line, LF or CRLF at its end; empty lines mean nothing.       (ndjson-spec 1.0; ollama server @fb30760)
- A CR alone is white space inside JSON and ends no line.                                                (RFC 8259)
- The last line may come without its end.

What has no line end yet is kept in pieces and joined once, so a long line that comes in many pieces costs its length.
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
        self._first = True  # no line has been read yet: a byte order mark may stand before the first

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes, however many."""
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
        """Say that no more bytes come; gives the last line if it had no end."""
        lines = [b"".join(self._pieces)]
        self._pieces.clear()
        return self._whole(lines)

    def _whole(self, lines: list[bytes]) -> list[bytes]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        return [stripped for line in lines if (stripped := line.strip(_SPACE))]
