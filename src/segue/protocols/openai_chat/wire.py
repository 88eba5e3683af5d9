"""Words for what stands on the wire: an object, one that may be missing, a key that is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

Block: TypeAlias = Mapping[str, object]
"""A JSON object of the wire."""

MISSING: Final = object()
"""Stands for a key that is not there, where null would mean something else."""

_NONE: Final[Block] = {}


def object_of(value: object) -> Block:
    """Give an object as it is, anything else as an empty one."""
    return cast("Block", value) if isinstance(value, Mapping) else _NONE


def fill_in(wire: dict[str, object], left: Block) -> dict[str, object]:
    """Add what was left over; it never takes the place of what we say ourselves."""
    for key, value in left.items():
        wire.setdefault(key, value)
    return wire
