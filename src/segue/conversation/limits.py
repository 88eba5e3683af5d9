"""What stored JSON can carry: how deep, which numbers, which keys, which values.

Facts this file rests on:
- JSON has no word for NaN, infinities, bytes, dates and sets, and no keys but text.                          (RFC 8259)
- Python's own reader takes lone surrogates, which msgspec does not, but also NaN, and any number of digits up to 4,300.
                                                                                      (Python 3.11, json and int)
- Both read some 1,000 levels and then raise RecursionError, sooner when the caller's stack is deep. The limit here is
  the same on every stack.                                                                  (tried 2026-11-15)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from segue.conversation.content import Value
from segue.conversation.screening import is_plain
from segue.errors import LoadError, Path

Stored: TypeAlias = bytes | bytearray | memoryview | str
"""JSON as it comes out of a file, a socket or a database."""

MAX_NESTING: Final = 200
"""How deep objects and lists may stand in one another, the document itself being the first level."""

MAX_DIGITS: Final = 4300
"""The longest integer: what Python itself converts unless told otherwise."""

ABOVE_A_MESSAGE: Final = 2
"""Levels over a message in its document. A message alone is counted the same, so that it fits wherever it goes."""

_TOO_LONG: Final = 10**MAX_DIGITS
_TOO_DEEP: Final = f"nested deeper than {MAX_NESTING} levels"
_TOO_MANY_DIGITS: Final = f"an integer of more than {MAX_DIGITS:,} digits"

_FREE_FIELDS: Final = frozenset({"arguments", "block", "definition", "details", "extra", "parameters"})
"""Fields that hold what JSON they like, and therefore no value of ours."""


class Fault(NamedTuple):
    """What stored JSON cannot carry, and where it stands."""

    reason: str
    path: Path


def find_fault(value: object, *, above: int = 0) -> Fault | None:
    """Give the first thing, in the order of the document, that stored JSON cannot carry; None where all is well.

    `above` counts the levels that will stand over the value. Nothing here recurses, so that neither a deep value nor
    one that contains itself can exhaust the stack.
    """
    waiting: list[tuple[object, Path, int, bool]] = [(value, (), above, False)]
    while waiting:
        value, path, level, is_free = waiting.pop()
        if value is None or isinstance(value, str | int | float):
            if reason := _number_fault(value):
                return Fault(reason, path)
            continue
        if isinstance(value, Value) and is_free:
            return Fault(f"a {type(value).__name__} cannot stand inside free-form JSON", path)
        if not isinstance(value, Value | Mapping | list | tuple):
            return Fault(f"JSON has no word for a value of type {type(value).__name__}", path)
        if level == MAX_NESTING:
            return Fault(_TOO_DEEP, path)
        inside = list(_parts(cast("Value | Mapping[object, object] | Sequence[object]", value)))
        for step, _ in inside:
            if not isinstance(step, str | int) or (isinstance(value, Mapping) and not isinstance(step, str)):
                return Fault(f"the key {step!r} is no text", path)
        steps = cast("list[tuple[str | int, object]]", inside)
        waiting += [
            (item, (*path, step), level + 1, is_free or isinstance(value, Mapping) or step in _FREE_FIELDS)
            for step, item in reversed(steps)
        ]
    return None


def _parts(value: Value | Mapping[object, object] | Sequence[object]) -> Iterator[tuple[object, object]]:
    """Give what a container holds, by the names the document has for it."""
    if isinstance(value, Value):
        for name, field in zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True):
            yield name, getattr(value, field)
    elif isinstance(value, Mapping):
        yield from value.items()
    else:
        yield from enumerate(value)


def _number_fault(value: object) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return f"JSON has no word for {value}"
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        return _TOO_MANY_DIGITS
    return None


def parse_json(data: Stored, *, above: int = 0) -> object:
    """Read JSON into plain values, lone surrogates and all; `above` counts the levels that stand over it.

    Raises:
        LoadError: no JSON, or JSON beyond the limits.
    """
    try:
        value: object = json.loads(_as_text(data))
    except json.JSONDecodeError as error:
        raise LoadError(_explain(error)) from error
    except UnicodeDecodeError as error:
        raise LoadError(f"no UTF-8: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise LoadError(_TOO_DEEP) from error
    except ValueError as error:
        raise LoadError(_TOO_MANY_DIGITS) from error
    check_limits(value, above=above)
    return value


def check_limits(value: object, *, above: int) -> None:
    """Let pass what was read from JSON and keeps to the limits.

    Raises:
        LoadError: it does not.
    """
    if not is_plain([value]) and (fault := find_fault(value, above=above)):
        raise LoadError(fault.reason, path=fault.path)


def is_json(data: bytes) -> bool:
    """Say whether bytes are one complete JSON value, whatever it holds."""
    try:
        json.loads(_as_text(data))
    except (ValueError, RecursionError):
        return False
    return True


def _as_text(data: Stored) -> str:
    # Editors on Windows put a mark in front, which is no JSON.
    if not isinstance(data, str):
        return str(data, "utf-8-sig")
    # In memory the two halves of a character may stand side by side; in JSON they are one character.
    return data.removeprefix("\ufeff").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _explain(error: json.JSONDecodeError) -> str:
    if not error.doc.strip():
        return "nothing to read: the text is empty"
    if error.msg == "Extra data":
        return f"more than one document, the second on line {error.lineno}; read_session reads files of several"
    return f"no JSON: {error}"
