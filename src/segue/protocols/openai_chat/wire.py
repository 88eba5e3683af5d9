"""Words for what stands on the wire: an object, one that may be missing, a key that is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

Block: TypeAlias = Mapping[str, object]
"""A JSON object of the wire."""

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"
"""A value of JSON as parsers make it: its class tells what is in it, where `cast` would cost a call each time."""

MISSING: Final = object()
"""Stands for a key that is not there, where null would mean something else."""

NOTHING: Final[Block] = {}
"""An object that says nothing."""


def object_of(value: object) -> Block:
    """Give an object as it is, anything else as an empty one."""
    return cast("Block", value) if isinstance(value, (dict, Mapping)) else NOTHING  # a dict is told at once


def fill_in(wire: dict[str, object], left: Block) -> dict[str, object]:
    """Add what was left over; it never takes the place of what we say ourselves."""
    for key, value in left.items():
        wire.setdefault(key, value)
    return wire
