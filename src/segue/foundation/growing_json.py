"""Complete the JSON object that a model writes piece by piece.

Facts:
- The SDK of Anthropic raises an error for a streamed call whose arguments are not JSON, and so do readers of other
  wires that have an object there. Models write raw line breaks, wrong escapes and Python's literals.
                                                                              (anthropic 2.9.0: accumulate_event; tried)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, final

import msgspec

_TOKENS: Final = re.compile(
    r'[^"\\\x00-\x1f]+|"|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\(?:u[0-9a-fA-F]{0,3})?\Z|[\\\x00-\x1f]'
)
_WORDS: Final = frozenset("0123456789+-.:eEtrufalsn")
_STRING: Final = r'[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+'
_BETWEEN: Final = r"[0-9+\-.:eEtrufalsn \t\n\r]*+(?:,(?=[ \t\n\r]*+[^ \t\n\r,\]}])[0-9+\-.:eEtrufalsn \t\n\r]*+)*+"
_SOUND: Final = (
    re.compile(rf'{_BETWEEN}(?:"{_STRING}"{_BETWEEN})*+(?:(")(?:{_STRING})|(,[ \t\n\r]*+))?'),
    re.compile(rf'{_STRING}(?:"{_BETWEEN}"{_STRING})*+(?:(")(?:{_BETWEEN})(,[ \t\n\r]*+)?)?'),
)
"""Sound JSON without brackets that begins outside of a string, and inside of one. The first group is the quote after
which the text is inside of a string, or outside of one; the second is a comma at the end."""
_AFTER_COMMA: Final = ("", " ", "\t", "\n", "\r", ",", "]", "}")
_CLOSING: Final = {"{": "}", "[": "]"}
_ENDINGS: Final = (
    "",
    '"',
    "null",
    ":null",
    '":null',
    "0",
    *["rue", "ue", "e", "alse", "lse", "se", "ull", "ll", "l", "{}"],
)
"""What completes a text that was cut in a string, a key, a number or a word."""


_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode


def _is_object(text: str) -> bool:
    """Whether a text is a whole object: most servers send arguments all at once."""
    try:
        _DECODE(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


@final
class GrowingJson:
    """A JSON object that arrives in pieces: `add` returns what to write of a piece, `end` what completes the object.

    Valid JSON is written unchanged. Raw control characters and wrong escapes in strings are escaped, a comma before a
    closing bracket is left out, and the text ends before the first character that no JSON object has there.
    """

    __slots__ = ("_comma", "_cut", "_has_begun", "_inside", "_is_broken", "_stack", "_written")

    def __init__(self) -> None:
        self._written: list[str] = []
        self._stack: list[str] = []  # the brackets that are open, as what closes them
        self._cut = ""  # the beginning of an escape
        self._comma = ""  # waits for the next value
        self._inside = self._has_begun = self._is_broken = False

    def add(self, text: str) -> str:
        """Return what to write of the next piece."""
        if not self._inside or self._cut or not text.isprintable() or '"' in text or "\\" in text:
            text = self._read(self._cut + text)
        self._written.append(text)
        return text

    def end(self) -> str:
        """Return what completes an object that ended before its text did; one that is only cut off stays so."""
        if not self._is_broken:
            return ""
        text, closing = "".join(self._written), "".join(reversed(self._stack))
        for ending in _ENDINGS:
            try:
                if isinstance(json.loads(f"{text}{ending}{closing}"), dict):
                    return f"{ending}{closing}"
            except (ValueError, RecursionError):
                continue
        return ""

    def _read(self, text: str) -> str:
        """Read a piece at once if it is sound and has no bracket, but those of the whole object at its ends."""
        self._cut = ""
        begins = not self._has_begun and text[:1] == "{"
        if begins and text[-1:] == "}" and _is_object(text):
            self._has_begun = True
            return text
        ends = text[-1:] == "}" and (begins or self._stack == ["}"])
        comma, inner = self._comma, text[begins : len(text) - ends]
        is_whole = not self._is_broken and (begins or self._stack) and not (comma and text[:1] in _AFTER_COMMA)
        found = _SOUND[self._inside].fullmatch(inner) if is_whole else None
        if found is None:
            return "".join(self._read_slowly(text))
        if begins:
            self._has_begun, self._stack = True, ["}"]
        self._inside, self._comma = self._inside != (found[1] is not None), found[2] or ""
        if comma or self._comma:
            text = comma + text[:begins] + inner.removesuffix(self._comma) + text[len(text) - ends :]
        if ends and not self._inside:
            self._comma = ""
            self._stack.pop()
        return text

    def _read_slowly(self, text: str) -> Iterator[str]:
        for found in _TOKENS.finditer(text):
            piece = found[0]
            if not self._inside:
                for char in piece:
                    self._is_broken = self._is_broken or not self._takes(char)
                    if self._is_broken:
                        return
                    if char != "," and not (self._comma and char.isspace()):
                        yield ("" if char in "]}" else self._comma) + char
                        self._comma = ""
            elif piece[0] == "\\" and len(piece) < (6 if piece[1:2] == "u" else 2):
                if found.end() < len(text):
                    yield "\\\\"
                else:
                    self._cut = piece
            else:
                self._inside = piece != '"'
                yield json.dumps(piece)[1:-1] if piece < " " else piece

    def _takes(self, char: str) -> bool:
        """Note a character outside of strings; say whether an object may have it there."""
        stack = self._stack
        if char in " \t\n\r":
            self._comma += char if self._comma else ""
        elif not stack:
            if char != "{" or self._has_begun:
                return False
            self._has_begun = True
            stack.append("}")
        elif char in _CLOSING:
            stack.append(_CLOSING[char])
        elif char == stack[-1]:
            stack.pop()
        elif char == '"':
            self._inside = True
        elif char == "," and not self._comma:
            self._comma = char
        else:
            return char in _WORDS
        return True
