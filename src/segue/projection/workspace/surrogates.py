"""Find and repair halves of surrogate pairs in strings.

Facts:
- Providers refuse such a string as invalid JSON: "no low surrogate in string".  (claude-code #1709, opencode #13985)
- A high half followed by a low half encodes one character; a half alone encodes none.                     (Unicode)
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Final, NamedTuple, TypeVar, cast, final

import msgspec

_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF: Final = re.compile("[\ud800-\udfff]")

_NUMBERS: Final = (int, float)
NOT_FINITE: Final = "JSON cannot represent NaN or an infinity"
_ENCODE: Final = msgspec.json.Encoder().encode

AnyValue = TypeVar("AnyValue")


@final
class TextLength(NamedTuple):
    """Not fewer than the characters of some texts, and of those beyond ASCII, which take the most tokens."""

    characters: int
    beyond_ascii: int

    def plus(self, other: TextLength) -> TextLength:
        """Return the length of both."""
        return TextLength(self.characters + other.characters, self.beyond_ascii + other.beyond_ascii)


def is_clean(text: str) -> bool:
    """Whether a text can be encoded as UTF-8. The test for ASCII, which most texts are, takes constant time."""
    if text.isascii():
        return True
    try:
        text.encode()  # the fastest way to check every character; Python may have cached the result
    except UnicodeEncodeError:
        return False
    return True


def count_beyond_ascii(text: str) -> int:
    """Return an upper bound of the characters of a text beyond ASCII: each has more than one byte. -1 if not clean."""
    try:
        return len(text.encode()) - len(text)
    except UnicodeEncodeError:
        return -1


def is_clean_value(value: object) -> bool:
    """Whether every string of a JSON value is clean, keys included."""
    if isinstance(value, str):
        return value.isascii() or is_clean(value)
    if value is None or isinstance(value, _NUMBERS):
        return True
    try:
        _ENCODE(value)  # checks every string, ten times faster than a loop in Python
    except UnicodeEncodeError:
        return False
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return _is_clean(value)  # not storable as JSON; check its strings one by one
    return True


def measure_arguments(arguments: Sequence[Mapping[str, object]]) -> tuple[TextLength | None, bool]:
    """Return the length of the arguments of calls as JSON, and whether every string inside them is clean.

    The length is None if they are not clean, or not JSON.

    Raises:
        TypeError: the arguments of a call are not an object.
        ValueError: they hold NaN or an infinity. msgspec would write null, which is another value.
    """
    for call in arguments:
        if type(call) is not dict and not isinstance(call, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the arguments of a call have to be an object, not {type(call).__name__}")
    try:
        data = _encode_finite(arguments)
    except (TypeError, UnicodeEncodeError, RecursionError, msgspec.MsgspecError):
        checked = [_is_clean_argument(value) for call in arguments for value in call.values()]
        return None, all(checked) and all(is_clean(key) for call in arguments for key in call)
    return TextLength(len(data), 0 if data.isascii() else len(data) - len(data.decode())), True


def _is_clean_argument(value: object) -> bool:
    try:
        _encode_finite(value)
    except (TypeError, UnicodeEncodeError, RecursionError, msgspec.MsgspecError):
        return is_clean_value(value)
    return True


def _encode_finite(value: object) -> bytes:
    data = _ENCODE(value)
    if b"null" in data and _has_infinity(value):
        raise ValueError(NOT_FINITE)
    return data


def _has_infinity(value: object) -> bool:
    pending = [value]
    for item in pending:
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, Mapping):
            pending.extend(cast("Mapping[str, object]", item).values())
        elif isinstance(item, list | tuple):
            pending.extend(cast("list[object]", item))
    return False


def _is_clean(value: object) -> bool:
    if isinstance(value, str):
        return is_clean(value)
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, object]", value)
        return all(map(_is_clean, mapping)) and all(map(_is_clean, mapping.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_clean, cast("list[object] | tuple[object, ...]", value)))
    return True


def clean_text(text: str) -> str:
    """Join adjacent halves and replace lone ones by U+FFFD; the same object when there are none."""
    return text if is_clean(text) else _HALF.sub("\ufffd", _join(text))


def clean_value(value: AnyValue) -> AnyValue:
    """Clean every string of a JSON value, keys included; the same object when nothing changes."""
    return cast("AnyValue", _clean(value))


def only_joins(value: object) -> bool:
    """Whether cleaning only joins halves, which loses nothing."""
    if isinstance(value, str):
        return is_clean(value) or is_clean(_join(value))
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        keys = {clean_text(key) for key in mapping}
        return len(keys) == len(mapping) and all(map(only_joins, mapping)) and all(map(only_joins, mapping.values()))
    if isinstance(value, list | tuple):
        return all(map(only_joins, cast("list[object] | tuple[object, ...]", value)))
    if isinstance(value, msgspec.Struct):
        return all(only_joins(getattr(value, name)) for name in value.__struct_fields__)
    return True


def _join(text: str) -> str:
    return _PAIR.sub(lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else clean_text(value)
    if isinstance(value, (dict, Mapping)):  # `dict` first: the check for other mappings is slow
        mapping = cast("Mapping[str, object]", value)
        if is_clean_value(mapping):
            return mapping
        return {clean_text(key): _clean(inner) for key, inner in mapping.items()}
    if isinstance(value, list | tuple):
        items = cast("list[object] | tuple[object, ...]", value)
        cleaned = [_clean(inner) for inner in items]
        return items if all(map(is_, cleaned, items)) else type(items)(cleaned)
    if isinstance(value, msgspec.Struct) and not is_clean_value(value):  # a cache mark
        fields = {name: _clean(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value
