"""Exact comparison: whether two values are written as the same JSON, byte for byte.

`==` is not enough to reuse what was written for one value for another: in Python `1 == True == 1.0`, `0.0 == -0.0`, and
the order of keys does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec


def is_exact(one: object, other: object) -> bool:
    """Whether two values have the same types, the same items in the same order, and equal leaves."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if isinstance(one, str):
        return one == other
    if isinstance(one, msgspec.Struct):
        for name in one.__struct_fields__:
            mine, its = getattr(one, name), getattr(other, name)
            if mine is not its and not is_exact(mine, its):
                return False
        return True
    if isinstance(one, Mapping):
        ours, theirs = cast("Mapping[object, object]", one), cast("Mapping[object, object]", other)
        return (
            len(ours) == len(theirs)
            and all(map(is_exact, ours, theirs))
            and all(map(is_exact, ours.values(), theirs.values()))
        )
    if isinstance(one, list | tuple):
        left, right = cast("Sequence[object]", one), cast("Sequence[object]", other)
        return len(left) == len(right) and all(map(is_exact, left, right))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return one == other
