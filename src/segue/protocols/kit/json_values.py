"""JSON values: when two are the same, a digest, and places inside one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard, cast

import msgspec

Block: TypeAlias = Mapping[str, object]
"""A JSON object that is only read."""
Wire: TypeAlias = dict[str, object]
"""A JSON object under construction."""
MISSING: Final = object()
"""Stands for a key that is not there, where null would be a value."""
EMPTY: Final[Block] = {}
_SEARCH_DEPTH: Final = 4


def is_object(value: object) -> TypeGuard[Wire]:
    """Whether a value is a JSON object as parsers make it."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether a value is a JSON array as parsers make it."""
    return isinstance(value, list)


def object_of(value: object) -> Block:
    """Give an object as it is, an empty one for anything else."""
    return cast("Block", value) if isinstance(value, (dict, Mapping)) else EMPTY


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: True is not 1, but 1 is 1.0."""
    if one is other:
        return True
    if isinstance(one, (dict, Mapping)):
        if not isinstance(other, (dict, Mapping)):
            return False
        ours, theirs = cast("Block", one), cast("Block", other)
        return len(ours) == len(theirs) and all(
            key in theirs and same(value, theirs[key]) for key, value in ours.items()
        )
    if isinstance(one, (list, tuple)):
        if not isinstance(other, (list, tuple)):
            return False
        left, right = cast("Sequence[object]", one), cast("Sequence[object]", other)
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(one, bool) or isinstance(other, bool):
        return False  # equal ones are identical
    return one == other


def digest(value: object) -> str:
    """Give a short text that is the same for the same JSON; empty for a value that cannot be encoded."""
    try:
        text = msgspec.json.encode(value, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        # Half a surrogate pair, or a value that is no JSON: not to be recognised again, so the default is written.
        return ""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def parse_text(text: object) -> object:
    """Give the value that a text encodes as JSON; MISSING when it encodes none."""
    if not isinstance(text, str):
        return MISSING
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return MISSING


def find_path(value: object, part: object, depth: int = _SEARCH_DEPTH) -> list[str | int] | None:
    """Find where a text, an object or a list stands inside a value, if it stands in one place only."""
    found: list[list[str | int]] = []
    _search(value, part, [], depth, found)
    return found[0] if len(found) == 1 else None


def _search(value: object, part: object, path: list[str | int], depth: int, found: list[list[str | int]]) -> None:
    if type(value) is type(part) and same(value, part):
        found.append(path)
    elif depth and is_object(value):
        for key, item in value.items():
            _search(item, part, [*path, key], depth - 1, found)
    elif depth and is_list(value):
        for at, item in enumerate(value):
            _search(item, part, [*path, at], depth - 1, found)


def reach(value: object, path: Sequence[object]) -> object:
    """Give what stands at a path inside a value; MISSING when the path leads nowhere."""
    for step in path:
        if is_object(value):
            value = value.get(cast("str", step), MISSING)
        elif is_list(value) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return MISSING
    return value


def with_leaf(value: object, path: Sequence[object], leaf: object) -> object:
    """Give a copy of the value with another leaf at the path; the same value where the path leads nowhere."""
    if not path:
        return leaf
    step, rest = path[0], path[1:]
    if is_object(value) and isinstance(step, str) and step in value:
        return {**value, step: with_leaf(value[step], rest, leaf)}
    if is_list(value) and isinstance(step, int) and 0 <= step < len(value):
        listed = list(value)
        listed[step] = with_leaf(listed[step], rest, leaf)
        return listed
    return value
