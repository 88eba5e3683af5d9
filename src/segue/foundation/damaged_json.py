"""Read a JSON object whose text may be damaged: wrong escapes, raw control characters, an end that is cut off.

Facts:
- Inside strings a raw control character is read as itself, and so is a backslash that begins no escape.
                                                                   (ktsoator/or e3b9904, pi-ai 1.5.0; read 2026-11-15)

Any text is read in one pass, without recursion or backtracking.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, Literal, cast, final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r'[^"\\]*')
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_SCALAR: Final = re.compile(r'[^\x00-\x20,:\[\]{}"]*')
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_CUT_HEX: Final = re.compile(r"[0-9a-fA-F]{0,3}\Z")
_LOW_HALF: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CUT_LOW_HALF: Final = re.compile(r"(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?\Z")

_ESCAPES: Final[Mapping[str, str]] = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}
_LITERALS: Final[Mapping[str, object]] = {"true": True, "false": False, "null": None}
_MISSING: Final = object()


@final
class DamagedJson:
    """A parser for the text of an object.

    `at` is the index of the next character. It never decreases, so parsing takes linear time. At the end it is the
    length of a text that was cut off, otherwise the index of the first unexpected character.
    """

    def __init__(self, text: str, *, max_levels: int, max_digits: int) -> None:
        self.text: Final = text
        self._max_levels = max_levels
        self._max_digits = max_digits
        self.at: int = 0
        self.repaired: bool = False

    def peek(self) -> str:
        """Skip white space and return the next character; an empty string at the end."""
        self.at = _end_of(_SPACE, self.text, self.at)
        return self.text[self.at : self.at + 1]

    def read_object(self, root: dict[str, object]) -> Literal["complete", "cut", "broken", "too deep"]:
        """Fill `root` with everything that can be parsed."""
        if self.peek() != "{":
            return "broken"
        self.at += 1
        opened: list[dict[str, object] | list[object]] = [root]
        fresh = True  # the innermost container is still empty, so no comma is expected
        while opened:
            container = opened[-1]
            if self.peek() == ("}" if isinstance(container, dict) else "]"):
                self.at += 1
                opened.pop()
                fresh = False
                continue
            value = self._read_member(container, fresh=fresh)
            if value is _MISSING:
                break
            fresh = isinstance(value, dict | list)
            if fresh:
                if len(opened) == self._max_levels:
                    return "too deep"
                opened.append(cast("dict[str, object] | list[object]", value))
        if self.peek():
            return "broken"
        return "cut" if opened else "complete"

    def _read_member(self, container: dict[str, object] | list[object], *, fresh: bool) -> object:
        """Read one comma, key and value into the container; return the value, or `_MISSING` where there is none."""
        if not fresh:
            if self.peek() != ",":
                return _MISSING
            self.at += 1
        if isinstance(container, list):
            value = self._read_value()
            if value is not _MISSING:
                container.append(value)
            return value
        if self.peek() != '"':
            return _MISSING
        key, closed = self._read_string()
        if not closed or self.peek() != ":":
            return _MISSING
        self.at += 1
        value = self._read_value()
        if value is not _MISSING:
            container[key] = value
        return value

    def _read_value(self) -> object:
        """Read a scalar, or open an empty container that the caller fills."""
        match self.peek():
            case "{":
                self.at += 1
                return dict[str, object]()
            case "[":
                self.at += 1
                return list[object]()
            case '"':
                return self._read_string()[0]
            case _:
                return self._read_scalar()

    def _read_scalar(self) -> object:
        """Read a number or literal. One that is cut off is dropped, because its value is unknown."""
        end = _end_of(_SCALAR, self.text, self.at)
        term = self.text[self.at : end]
        value = _LITERALS.get(term, _MISSING)
        if value is _MISSING:
            value = _number(term, self._max_digits)
        if value is not _MISSING or (end == len(self.text) and _is_beginning(term)):
            self.at = end
        return value

    def _read_string(self) -> tuple[str, bool]:
        """Read a string; return it, and whether it was closed. An escape that is cut off is dropped."""
        text, pieces = self.text, list[str]()
        at = self.at + 1
        while True:
            end = _end_of(_PLAIN, text, at)
            piece = text[at:end]
            pieces.append(piece)
            self.repaired = self.repaired or _CONTROL.search(piece) is not None
            if text[end : end + 1] != "\\":
                break
            character, at = self._read_escape(end + 1)
            pieces.append(character)
        self.at = min(end + 1, len(text))
        return "".join(pieces), end < len(text)

    def _read_escape(self, at: int) -> tuple[str, int]:
        """Read what follows a backslash; return the character and the index after the escape."""
        text = self.text
        escape = text[at : at + 1]
        if escape in _ESCAPES:
            return _ESCAPES[escape], at + 1
        if escape == "u":
            if _HEX.match(text, at + 1):
                return _read_code_unit(text, at + 1)
            if _CUT_HEX.match(text, at + 1):
                return "", len(text)
        if not escape:
            return "", at
        self.repaired = True
        return "\\", at


def _read_code_unit(text: str, at: int) -> tuple[str, int]:
    """Read four hexadecimal digits, and the second half of a surrogate pair if they are the first half.

    A first half whose second half is cut off is dropped: alone it is not a character.
    """
    code, at = int(text[at : at + 4], 16), at + 4
    if not 0xD800 <= code <= 0xDBFF:
        return chr(code), at
    if low := _LOW_HALF.match(text, at):
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), low.end()
    if _CUT_LOW_HALF.match(text, at):
        return "", len(text)
    return chr(code), at


def _number(term: str, max_digits: int) -> object:
    """Parse a number; `_MISSING` for NaN, infinities and numbers that no float can hold."""
    try:
        if _INTEGER.fullmatch(term):
            return int(term) if len(term.lstrip("-")) <= max_digits else _MISSING
        if _NUMBER.fullmatch(term) and math.isfinite(value := float(term)):
            return value
    except ValueError:  # sys.set_int_max_str_digits() is below its default
        pass
    return _MISSING


def _is_beginning(term: str) -> bool:
    """Whether a number or literal can begin with this text."""
    return any(literal.startswith(term) for literal in _LITERALS) or _NUMBER.fullmatch(term + "0") is not None


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return the end of the match of a pattern that always matches."""
    match = pattern.match(text, at)
    return match.end() if match else at
