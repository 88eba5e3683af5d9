"""Tool arguments: parse the JSON text of a model, even if it is damaged, and write the text that segue sends.

Facts:
- Models write arguments that are cut off (by the token limit or a dropped stream), that hold raw line breaks or Windows
  paths with single backslashes, or that are not an object. Four modes distinguish them: `strict`, `repaired`,
  `partial`, `invalid`. An empty text is an empty object.          (ktsoator/or e3b9904, pi-ai 1.5.0; read 2026-11-15)
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

from segue.conversation.limits import MAX_ARGUMENT_LEVELS, MAX_DIGITS
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError
from segue.foundation.json_text import last_snapshot

ArgumentsMode: TypeAlias = Literal["strict", "repaired", "partial", "invalid"]

_DECODER: Final = msgspec.json.Decoder(dict[str, object])
_ENCODE: Final = msgspec.json.Encoder().encode

_LONG: Final = 400
_PLAIN_TYPES: Final = frozenset({str, int, bool})
"""Types of values that cannot be or contain NaN or an infinity."""

_LONE_HALF: Final = re.compile("[\ud800-\udfff]")

_NOT_AN_OBJECT: Final = "The tool arguments are not a JSON object; the call is kept without arguments."
_TOO_DEEP: Final = (
    f"The tool arguments nest deeper than {MAX_ARGUMENT_LEVELS} levels; the call is kept without arguments."
)
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
    if (
        len(text) > MAX_ARGUMENT_LEVELS
        and text.count("{") + text.count("[") > MAX_ARGUMENT_LEVELS
        and _is_too_deep(arguments)
    ):
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
    """Decode bytes; return the text, and whether some bytes were replaced or dropped."""
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
    for _ in range(MAX_ARGUMENT_LEVELS):
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
    from segue.foundation.damaged_json import DamagedJson  # few texts need it, and its patterns take long to compile

    reader = DamagedJson(text, max_levels=MAX_ARGUMENT_LEVELS, max_digits=MAX_DIGITS)
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
