"""Tool arguments: parse the JSON text of a model, even if it is damaged, and write the text that segue sends.

Facts this file rests on:
- Models write arguments that are cut off (by the token limit or a dropped stream), that hold raw line breaks or Windows
  paths with single backslashes, or that are not an object. Four modes distinguish them: `strict`, `repaired`,
  `partial`, `invalid`. An empty text is an empty object.          (ktsoator/or e3b9904, pi-ai 1.5.0; read 2026-11-15)
- Inside strings a raw control character is read as itself, and so is a backslash that begins no escape.
                                                                   (the same)
- Servers that repeat the arguments so far in every delta give `{"comm{"command": "l{"command": "ls"}` once their deltas
  are joined. The last text is the whole one, and the others are its beginnings.   (reports on compatible servers, 2026)
- Parsed arguments have to fit into a stored conversation: limits of depth and digits, no NaN.          (our promise)
- msgspec and orjson refuse lone surrogates, which JSON allows; msgspec writes NaN as null.     (msgspec 0.22.0, tried)

Complete JSON is parsed exactly. Any text is parsed in one pass, without recursion or backtracking.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast, final

import msgspec

from segue.conversation.limits import ABOVE_A_MESSAGE, MAX_DIGITS, MAX_NESTING
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError
from segue.foundation.json_text import last_snapshot

ArgumentsMode: TypeAlias = Literal["strict", "repaired", "partial", "invalid"]

MAX_LEVELS: Final = MAX_NESTING - ABOVE_A_MESSAGE - 3
"""How deep arguments may nest, counting themselves: what can be stored below a message, its content and a call."""

_DECODER: Final = msgspec.json.Decoder(dict[str, object])
_ENCODE: Final = msgspec.json.Encoder().encode

_LONG: Final = 400
_PLAIN_TYPES: Final = frozenset({str, int, bool})
"""Types of values that cannot be or contain NaN or an infinity."""

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
_LONE_HALF: Final = re.compile("[\ud800-\udfff]")

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

_NOT_AN_OBJECT: Final = "The tool arguments are not a JSON object; the call is kept without arguments."
_TOO_DEEP: Final = f"The tool arguments nest deeper than {MAX_LEVELS} levels; the call is kept without arguments."
_REPAIRED: Final = "The tool arguments were not valid JSON: wrong escapes or raw control characters were repaired."
_REPEATED: Final = "The tool arguments were sent several times, each time with more of them; the last are taken."
_CUT: Final = "The tool arguments are cut off; the complete part is kept."


@final
class ParsedArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Parsed tool arguments.

    `text` is the original text. It is kept only if it differs from the text that segue writes for `arguments`, or could
    not be parsed. `diagnostic` is None if the text was valid JSON.
    """

    arguments: dict[str, Any]
    text: str | None = None
    diagnostic: Diagnostic | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the text is missing from `arguments`; wrong escapes may have been repaired."""
        return self.diagnostic is None or self.diagnostic.message in (_REPAIRED, _REPEATED)


def parse_arguments(text: str | bytes) -> ParsedArguments:
    """Parse tool arguments that are complete or cut off anywhere; no text raises an error.

    This also parses the arguments of a call that is still being streamed: pass the deltas received so far, joined.
    Bytes that are not UTF-8 are replaced, and a character that is cut off at the end is dropped.
    """
    damaged = False
    if not isinstance(text, str):
        text, damaged = _decode_text(text)
    try:
        arguments = _DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # ValueError: a lone surrogate. RecursionError depends on the caller's stack, so the text may still be valid.
        return _recover(text, damaged)
    if len(text) > MAX_LEVELS and text.count("{") + text.count("[") > MAX_LEVELS and _is_too_deep(arguments):
        return _parsed("invalid", {}, text, _TOO_DEEP)
    if damaged:
        return _parsed("repaired", arguments, text, _REPAIRED)
    return ParsedArguments(arguments=arguments, text=None if _is_canonical(text, arguments) else text)


def read_arguments(given: object) -> ParsedArguments:
    """Read arguments where an object is expected, whatever was written there; no value raises an error.

    None is an empty object and a text is parsed. `text` is what could not be read as an object, as JSON.
    """
    if isinstance(given, dict):
        return ParsedArguments(arguments=cast("dict[str, object]", given))
    if given is None:
        return ParsedArguments(arguments={})
    if isinstance(given, str):
        parsed = parse_arguments(given)
        return parsed if parsed.diagnostic is not None else ParsedArguments(arguments=parsed.arguments)
    if isinstance(given, Mapping):
        return ParsedArguments(arguments=dict(cast("Mapping[str, object]", given)))
    try:
        text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (ValueError, RecursionError):  # it contains itself, or is too deep
        text = f"({type(given).__name__})"
    return _parsed("invalid", {}, _escape_halves(text), _NOT_AN_OBJECT)


def encode_arguments(arguments: Mapping[str, object]) -> str:
    """Write arguments as compact JSON in the order of their keys, a lone surrogate as its escape.

    Raises:
        EncodeError: a value is not JSON, such as NaN, an object of some class, or a list that contains itself.
    """
    try:
        encoded = _ENCODE(arguments).decode()
    except (TypeError, ValueError, RecursionError):
        return _encode_slowly(arguments) if isinstance(arguments, dict) else encode_arguments(dict(arguments))
    # Searching a long text costs half as much as writing it, and long arguments are nearly always strings.
    if len(encoded) > _LONG and _PLAIN_TYPES.issuperset(map(type, arguments.values())):
        return encoded
    if "null" in encoded and not _is_finite(arguments):
        raise EncodeError("JSON cannot represent NaN or an infinity; use null or a string", path=("arguments",))
    return encoded


def _encode_slowly(arguments: dict[str, object]) -> str:
    """Write what msgspec refuses: lone surrogates, as escapes."""
    try:
        written = json.dumps(msgspec.to_builtins(arguments), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"not JSON: {error}; use only dicts with string keys, lists, strings, numbers, booleans and None"
        raise EncodeError(message, path=("arguments",)) from error
    return _escape_halves(written)


def _escape_halves(text: str) -> str:
    """Write lone surrogates as the escapes of JSON."""
    return _LONE_HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _decode_text(data: bytes) -> tuple[str, bool]:
    """Decode bytes; give the text, and whether some bytes were replaced or dropped."""
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        # Without `final`, the decoder drops an incomplete character at the end.
        return codecs.getincrementaldecoder("utf-8")("replace").decode(data), True


def _parsed(mode: ArgumentsMode, arguments: dict[str, object], text: str, message: str | None) -> ParsedArguments:
    diagnostic = None
    if message is not None:
        diagnostic = Diagnostic(type="tool_arguments_recovered", message=message, details={"mode": mode})
    kept = text if mode in ("partial", "invalid") or not _is_canonical(text, arguments) else None
    return ParsedArguments(arguments=arguments, text=kept, diagnostic=diagnostic)


def _is_canonical(text: str, arguments: dict[str, object]) -> bool:
    try:
        # Parsed JSON holds no NaN and no infinity, so there is no need to check.
        return _ENCODE(arguments).decode() == text
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return _encode_slowly(arguments) == text
    except EncodeError:  # the caller has nearly used up the stack, so deep arguments cannot be written
        return False


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    if isinstance(value, list | tuple):
        return cast("Iterable[object]", value)
    return ()


def _is_too_deep(arguments: dict[str, object]) -> bool:
    level: list[object] = [arguments]
    for _ in range(MAX_LEVELS):
        level = [child for value in level for child in _members(value) if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _is_finite(arguments: Mapping[str, object]) -> bool:
    pending: list[object] = [arguments]
    for value in pending:
        if isinstance(value, float) and not math.isfinite(value):
            return False
        pending.extend(_members(value))
    return True


def _recover(text: str, damaged: bool) -> ParsedArguments:
    """Parse what msgspec refuses: damaged text, and lone surrogates, which are valid JSON (`strict`)."""
    reader = _Reader(text)
    if not reader.peek():
        return _parsed("strict", {}, text, None)
    if (last := last_snapshot(text)) is not None:
        return _parsed("repaired", last, text, _REPEATED)
    arguments: dict[str, object] = {}
    match reader.read_object(arguments):
        case "complete" if damaged or reader.repaired:
            return _parsed("repaired", arguments, text, _REPAIRED)
        case "complete":
            return _parsed("strict", arguments, text, None)
        case "cut":
            return _parsed("partial", arguments, text, _CUT)
        case "broken" if arguments:
            message = f"The tool arguments are not JSON from character {reader.at} on; the part before it is kept."
            return _parsed("partial", arguments, text, message)
        case "broken":
            return _parsed("invalid", {}, text, _NOT_AN_OBJECT)
        case "too deep":
            return _parsed("invalid", {}, text, _TOO_DEEP)


_MISSING: Final = object()


class _Reader:
    """A parser for JSON text that may be damaged, in one pass.

    `at` is the index of the next character. It never decreases, so parsing takes linear time. At the end it is the
    length of a text that was cut off, otherwise the index of the first unexpected character.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.repaired = False

    def peek(self) -> str:
        """Skip white space and give the next character; an empty string at the end."""
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
                if len(opened) == MAX_LEVELS:
                    return "too deep"
                opened.append(cast("dict[str, object] | list[object]", value))
        if self.peek():
            return "broken"
        return "cut" if opened else "complete"

    def _read_member(self, container: dict[str, object] | list[object], *, fresh: bool) -> object:
        """Read one comma, key and value into the container; give the value, or `_MISSING` where there is none."""
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
            value = _number(term)
        if value is not _MISSING or (end == len(self.text) and _is_beginning(term)):
            self.at = end
        return value

    def _read_string(self) -> tuple[str, bool]:
        """Read a string; give it, and whether it was closed. An escape that is cut off is dropped."""
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
        """Read what follows a backslash; give the character and the index behind the escape."""
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


def _number(term: str) -> object:
    """Parse a number; `_MISSING` for NaN, infinities and numbers that no float can hold."""
    try:
        if _INTEGER.fullmatch(term):
            return int(term) if len(term.lstrip("-")) <= MAX_DIGITS else _MISSING
        if _NUMBER.fullmatch(term) and math.isfinite(value := float(term)):
            return value
    except ValueError:  # sys.set_int_max_str_digits() is below its default
        pass
    return _MISSING


def _is_beginning(term: str) -> bool:
    """Whether a number or literal can begin with this text."""
    return any(literal.startswith(term) for literal in _LITERALS) or _NUMBER.fullmatch(term + "0") is not None


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Give the end of the match of a pattern that always matches."""
    match = pattern.match(text, at)
    return match.end() if match else at
