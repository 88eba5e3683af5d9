"""Decode a streamed JSON array: chunks of bytes, split anywhere, into complete elements.

Facts:
- Without `alt=sse` Google streams a reply as one JSON array; each element is one event. (google-genai 3.1.0; Google
  documentation: streamGenerateContent; read 2026-11-15)
- An error before the first element may be an object without an array.                              (the same)
- Brackets and commas inside strings are text, and so is a quote after a backslash.                  (RFC 8259)

An object is returned as soon as its closing bracket has arrived. Every byte is read once; the chunks of an incomplete
element are kept in a list and joined once. Elements are not parsed here: the caller finds out whether they are JSON.
"""

from __future__ import annotations

import re
from typing import Final

_OUTSIDE: Final = re.compile(rb'["\[\]{},]')
_INSIDE: Final = re.compile(rb'["\\]')
_SPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"


class JsonArrayDecoder:
    """Decodes a stream that is one JSON array, element by element.

    Feed it bytes as they arrive, then call `finish`; both return the elements that were completed.
    """

    __slots__ = ("_depth", "_in_array", "_in_string", "_pieces", "_skip")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._depth = 0  # open brackets inside the array
        self._in_array = False
        self._in_string = False
        self._skip = False  # the next byte is escaped by a backslash

    def feed(self, chunk: bytes) -> list[bytes]:
        """Decode the next chunk."""
        whole: list[bytes] = []
        start = at = 0
        end = len(chunk)
        while at < end:
            if self._skip:
                self._skip = False
                at += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(chunk, at)
            if found is None:
                break
            at = found.end()
            mark = chunk[at - 1 : at]
            if self._in_string:
                self._in_string = mark == b"\\"
                self._skip = mark == b"\\"
            elif mark == b'"':
                self._in_string = True
            elif mark in b"[{":
                if mark == b"[" and not self._depth and not self._in_array:
                    self._in_array = True
                    self._pieces.clear()
                    start = at
                else:
                    self._depth += 1
            elif mark in b"]}" and self._depth:
                self._depth -= 1
                if not self._depth:
                    self._give(chunk[start:at], whole)
                    start = at
            elif not self._depth:  # a comma between elements, or the end of the array
                self._give(chunk[start : at - 1], whole)
                start = at
        if start < end:
            self._pieces.append(chunk[start:])
        return whole

    def finish(self) -> list[bytes]:
        """End the stream; return an incomplete element, so that the caller can report it."""
        whole: list[bytes] = []
        self._give(b"", whole)
        return whole

    def _give(self, last: bytes, whole: list[bytes]) -> None:
        self._pieces.append(last)
        element = b"".join(self._pieces).removeprefix(_BOM).strip(_SPACE)
        self._pieces.clear()
        if element:
            whole.append(element)
