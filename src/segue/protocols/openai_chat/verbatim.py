"""Words for what stands on the wire: those of every protocol, and values as parsers make them."""

from __future__ import annotations

from typing import TypeAlias

from segue.protocols.kit.retired_format import MISSING, NOTHING, Block, object_of

__all__ = ["MISSING", "NOTHING", "Block", "Json", "fill_in", "object_of"]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"
"""A value of JSON as parsers make it: its class tells what is in it, where `cast` would cost a call each time."""


def fill_in(wire: dict[str, object], left: Block) -> dict[str, object]:
    """Add what was left over; it never takes the place of what we say ourselves."""
    for key, value in left.items():
        wire.setdefault(key, value)
    return wire
