"""The limits of stored JSON: depth, numbers, keys and types of values.

Facts:
- JSON cannot represent NaN, infinities, bytes, dates and sets, and its keys are strings.                    (RFC 8259)
- Python's `json` accepts lone surrogates, which msgspec refuses. It also accepts NaN, and integers of up to 4,300
  digits.                                                                             (Python 3.11, json and int)
- Both parse about 1,000 levels and then raise RecursionError, earlier when the caller's stack is deep. The limit here
  does not depend on the stack.                                                             (tried 2026-11-15)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from segue.conversation.content import Value
from segue.conversation.fast_checks import is_plain
from segue.errors import LoadError, Path

Stored: TypeAlias = bytes | bytearray | memoryview | str
"""JSON as read from a file, a socket or a database."""

MAX_NESTING: Final = 200
"""How deep objects and lists may nest; the document itself is the first level."""

MAX_DIGITS: Final = 4300
"""The longest integer: the default limit of Python's own conversion."""

ABOVE_A_MESSAGE: Final = 2
"""Levels above a message in its document. They also count for a message alone, so that it fits into any document."""

MAX_ARGUMENT_LEVELS: Final = MAX_NESTING - ABOVE_A_MESSAGE - 3
"""How deep arguments may nest, counting themselves: what can be stored below a message, its content and a call."""

_TOO_LONG: Final = 10**MAX_DIGITS
_TOO_DEEP: Final = f"nested deeper than {MAX_NESTING} levels; flatten the value or store it as a string"
_TOO_MANY_DIGITS: Final = f"an integer of more than {MAX_DIGITS:,} digits; store it as a string"

_FREE_FIELDS: Final = frozenset({"arguments", "block", "definition", "details", "extra", "parameters"})
"""Fields of free-form JSON. They cannot hold values of segue's own types."""


class StorageFault(NamedTuple):
    """A value that cannot be stored as JSON, and its path."""

    reason: str
    path: Path


def find_fault(value: object, *, above: int = 0) -> StorageFault | None:
    """Find the first value, in document order, that cannot be stored as JSON; None when there is none.

    `above` is the number of levels above the value. Nothing here recurses, so neither a deep value nor one that
    contains itself can exhaust the stack.
    """
    waiting: list[tuple[object, Path, int, bool]] = [(value, (), above, False)]
    while waiting:
        value, path, level, is_free = waiting.pop()
        if value is None or isinstance(value, str | int | float):
            if reason := _number_fault(value):
                return StorageFault(reason, path)
            continue
        if isinstance(value, Value) and is_free:
            reason = f"a {type(value).__name__} is not allowed inside free-form JSON; convert it to plain values first"
            return StorageFault(reason, path)
        if not isinstance(value, Value | Mapping | list | tuple):
            reason = (
                f"JSON cannot represent a value of type {type(value).__name__}; convert it to a string, number or dict"
            )
            return StorageFault(reason, path)
        if level == MAX_NESTING:
            return StorageFault(_TOO_DEEP, path)
        inside = list(_parts(cast("Value | Mapping[object, object] | Sequence[object]", value)))
        for step, _ in inside:
            if not isinstance(step, str | int) or (isinstance(value, Mapping) and not isinstance(step, str)):
                return StorageFault(f"the key {step!r} is not a string; keys of JSON objects have to be", path)
        steps = cast("list[tuple[str | int, object]]", inside)
        waiting += [
            (item, (*path, step), level + 1, is_free or isinstance(value, Mapping) or step in _FREE_FIELDS)
            for step, item in reversed(steps)
        ]
    return None


def _parts(value: Value | Mapping[object, object] | Sequence[object]) -> Iterator[tuple[object, object]]:
    """Yield the members of a container, with their keys in the document."""
    if isinstance(value, Value):
        for name, field in zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True):
            yield name, getattr(value, field)
    elif isinstance(value, Mapping):
        yield from value.items()
    else:
        yield from enumerate(value)


def _number_fault(value: object) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return f"JSON cannot represent the number {value}; use None or a string"
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        return _TOO_MANY_DIGITS
    return None


def parse_json(data: Stored, *, above: int = 0) -> object:
    """Parse JSON into plain values, including lone surrogates; `above` is the number of levels above it.

    Raises:
        LoadError: the data is not JSON, or exceeds the limits.
    """
    try:
        value: object = json.loads(_as_text(data))
    except json.JSONDecodeError as error:
        raise LoadError(_explain(error)) from error
    except UnicodeDecodeError as error:
        raise LoadError(_explain_bytes(error)) from error
    except RecursionError as error:
        raise LoadError(_TOO_DEEP) from error
    except ValueError as error:
        raise LoadError(_TOO_MANY_DIGITS) from error
    check_limits(value, above=above)
    return value


def without_line(reason: str) -> str:
    """Return the reason why one line of a file is not JSON, without the number 1 of that line."""
    return reason.replace("not valid JSON: line 1, column", "not valid JSON: column")


def check_limits(value: object, *, above: int) -> None:
    """Check that a parsed value keeps to the limits.

    Raises:
        LoadError: it does not; `path` locates the problem.
    """
    if not is_plain([value]) and (fault := find_fault(value, above=above)):
        raise LoadError(fault.reason, path=fault.path)


def is_json(data: bytes) -> bool:
    """Whether bytes are one complete JSON value."""
    try:
        json.loads(_as_text(data))
    except (ValueError, RecursionError):
        return False
    return True


def _as_text(data: Stored) -> str:
    # Editors on Windows write a byte order mark, which is not JSON.
    if not isinstance(data, str):
        if not isinstance(data, bytes | bytearray | memoryview):  # pyright: ignore[reportUnnecessaryIsInstance]
            name = type(cast("object", data)).__name__
            raise LoadError(f"expected JSON as bytes or text, got a value of type {name}; read the file, or encode it")
        return str(data, "utf-8-sig")
    # A Python string may hold both halves of a surrogate pair separately; in JSON they are one character.
    return data.removeprefix("\ufeff").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


_BINARY: Final = "this is a binary file; a conversation in JSON or JSON Lines is expected"
_HEAD: Final = 4096
"""How many bytes of a file are searched for one that no text has."""
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
"""How a text in UTF-16 begins."""
_REASONS: Final = {
    "Expecting value": "a JSON value is expected here",
    "Expecting ',' delimiter": "a comma or the end of the list or object is expected here",
    "Expecting ':' delimiter": "a colon is expected here",
    "Expecting property name enclosed in double quotes": "a name in double quotes is expected here",
    "Unterminated string starting at": "the string that begins here has no end",
    "Invalid control character at": "a string contains a line break or another control character here",
    "Illegal trailing comma before end of object": "there is a comma before the end of the object",
    "Illegal trailing comma before end of array": "there is a comma before the end of the list",
}
"""The texts of Python's parser; a position follows most of them.                    (CPython 3.11 to 3.14, json)"""


def _explain_bytes(error: UnicodeDecodeError) -> str:
    head = bytes(error.object[:_HEAD])
    if head.startswith(_UTF_16):
        return "not valid UTF-8: the file is UTF-16; save the file as UTF-8"
    if b"\0" in head:
        return _BINARY
    return f"not valid UTF-8: {error.reason} at byte {error.start}; save the file as UTF-8"


def _explain(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "the input is empty; expected a JSON object"
    if "\0" in error.doc[:_HEAD]:
        return _BINARY
    if error.msg == "Extra data":
        return (
            f"the input holds more than one JSON value, the second one on line {error.lineno}; "
            "use read_session() for session files"
        )
    return f"not valid JSON: line {error.lineno}, column {error.colno}: {_REASONS.get(error.msg, error.msg)}"
