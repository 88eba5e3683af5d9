"""JSON Lines as agents write them: read line by line, with a note for each line that cannot be read.

Facts:
- All agents skip a bad line when they continue a session.                             (seen: five programs, 2026-11-15)
- A program that is killed leaves its last line cut off.                               (seen)
- Two programs that append at the same time, or one after a kill, join two records in one line. (readers of others)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar, cast, final

import msgspec

from segue.conversation.limits import parse_json
from segue.errors import LoadError
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import LongData

T = TypeVar("T")
Fields = Mapping[str, Any]
_decode = msgspec.json.Decoder().decode
_WHERE = json.JSONDecoder().raw_decode
_BLANK = re.compile(r"[ \t\r]*")
_JOINT = re.compile(rb"\}[ \t\r]*\{")


@final
class Line(NamedTuple):
    """One line that is not blank: its number, counted from 1, and its bytes."""

    number: int
    data: bytes


def split_lines(data: bytes) -> Iterator[Line]:
    """Split a file into lines; blank ones are left out. A line is copied when it is asked for, not all at once."""
    start = number = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        line = data[start:end]
        start = end + 1
        if line and not line.isspace():
            yield Line(number, line)


def content_end(data: LongData) -> int:
    """Return the place after the last line that is not blank."""
    end = len(data)
    while end and data[end - 1 : end].isspace():
        end -= 1
    return end


def last_number(data: bytes) -> int:
    """Return the number of the last line that is not blank."""
    return data.count(b"\n", 0, content_end(data)) + 1


def decode_object(line: Line, notes: Notes, *, last: bool = False) -> dict[str, Any] | None:
    """Parse one line as an object; None, and a note, if it is not one."""
    try:
        value: object = msgspec.json.decode(line.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        value, reason = _parse_slowly(line.data, notes)
        if reason is not None:
            notes.unreadable(line.number, "the last line is cut off" if last else reason)
            return None
    if not isinstance(value, dict):
        notes.unreadable(line.number, f"an object is expected, not {type(value).__name__}")
        return None
    return cast("dict[str, Any]", value)


def _parse_slowly(data: bytes, notes: Notes) -> tuple[object, str | None]:
    """Parse a line that is not strict JSON, or return the reason why it is not JSON; a repeated line only once."""
    mark = blake2b(data, digest_size=16).digest()
    if mark in notes.refused:
        return None, notes.refused[mark]
    try:
        return parse_json(data), None
    except LoadError as error:
        notes.refused[mark] = error.reason
        return None, error.reason


def decode_objects(data: bytes, notes: Notes) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Parse every line as an object; other lines are noted and left out."""
    last = last_number(data)
    for line in split_lines(data):
        try:
            fields: object = _decode(line.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            if joined := _split_joined(line.data):
                yield from ((Line(line.number, each), value) for each, value in joined)
                continue
            fields = None
        if not isinstance(fields, dict):
            fields = decode_object(line, notes, last=line.number == last)
        if fields is not None:
            yield line, cast("dict[str, Any]", fields)


def _split_joined(data: bytes) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the objects of a line that holds several whole ones, and nothing else."""
    if _JOINT.search(data) is None:
        return []
    found: list[tuple[bytes, dict[str, Any]]] = []
    at = 0
    try:
        text = data.decode()
        while at < len(text):
            end = _WHERE(text, at)[1]
            part = text[at:end].encode()
            value = parse_json(part)
            if not isinstance(value, dict):
                return []
            found.append((part, cast("dict[str, Any]", value)))
            at = _BLANK.match(text, end).end()  # pyright: ignore[reportOptionalMemberAccess] - it matches nothing, too
    except (LoadError, ValueError, RecursionError):
        return []
    return found


def first_objects(data: bytes, count: int) -> list[dict[str, Any]]:
    """Parse the first lines of the beginning of a file; a line that cannot be read is left out."""
    found: list[dict[str, Any]] = []
    notes = Notes()
    for line in data.split(b"\n"):
        try:
            fields = _decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            fields = None if not line or line.isspace() else decode_object(Line(0, line), notes)
        if isinstance(fields, dict):
            found.append(cast("dict[str, Any]", fields))
            if len(found) >= count:
                break
    return found


def object_of(value: object) -> dict[str, Any]:
    """Return the value if it is an object; an empty object for any other value."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - `cast` costs more


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list for any other value."""
    if not isinstance(value, list):
        return []
    return cast("list[dict[str, Any]]", [item for item in cast("list[object]", value) if isinstance(item, dict)])


def text_of(value: object) -> str | None:
    """Return the value if it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def integer_of(value: object) -> int:
    """Return the value if it is an integer that is not negative and that every program can hold; 0 otherwise."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def number_of(value: object) -> float | None:
    """Return the value if it is a number that a float can hold; None for any other value."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not -1e308 < value < 1e308:
        return None
    return float(value)


def without(fields: Fields, names: Sequence[str] | frozenset[str]) -> dict[str, object]:
    """Return the fields except those with these names."""
    kept: dict[str, object] = dict(fields)
    for name in names:
        kept.pop(name, None)
    return kept


_TITLE = 100


def title_of(text: str) -> str:
    """Make a title from the first words of a text."""
    line = " ".join(text.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"


def task_id(name: str) -> str | None:
    """Return the folder that a file is in, which has the name of its task or session."""
    parts = name.split("/")
    return parts[-2] if len(parts) > 1 else None
