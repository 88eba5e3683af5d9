"""How a wire spelt something: kept beside what it means, and put back.

Two ways, for two places. What a request says beyond segue's words is kept on the node it belongs to, key by key
(`keep`, `put_back`): a projection may change the node, and what it changed must not come back. A whole reply belongs to
one message that is written again as it came or not at all, so there the difference between what we would have written
and what was said is enough (`difference`, `restored`), whatever it is about.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.conversation.content import Extra
from segue.protocols.kit.reading import VERBATIM
from segue.protocols.kit.verbatim import MISSING as MISSING  # noqa: PLC0414 - one value for both formats

Block: TypeAlias = Mapping[str, object]
"""A JSON object of the wire."""
Wire: TypeAlias = dict[str, object]

NOTHING: Final[Block] = {}
"""An object that says nothing."""

_NULL: Final = "null"


def object_of(value: object) -> Block:
    """Give an object as it is, anything else as an empty one."""
    return cast("Block", value) if isinstance(value, (dict, Mapping)) else NOTHING


# -- key by key --------------------------------------------------------------------------------------------------------


def keep(protocol: str, wire: Block, known: Collection[str], verbatim: Block | None = None) -> Extra | None:
    """Keep what a wire object says beyond the known keys, and how it was spelt; None when there is nothing.

    A key with a value is data. A key that is null says what its absence says, so it is spelling.
    """
    left: Wire = {}
    nulls: list[str] = []
    for key, value in wire.items():
        if key in known:
            continue
        if value is None:
            nulls.append(key)
        else:
            left[key] = value
    if nulls:
        left[VERBATIM] = {**(verbatim or NOTHING), _NULL: nulls}
    elif verbatim:
        left[VERBATIM] = dict(verbatim)
    return {protocol: left} if left else None


def put_back(wire: Wire, extra: Extra | None, protocol: str) -> Wire:
    """Add what `keep` kept; it never takes the place of what is there already."""
    if extra is None or protocol not in extra:
        return wire
    part = extra[protocol]
    for key, value in part.items():
        if key != VERBATIM:
            wire.setdefault(key, value)
    nulls = object_of(part.get(VERBATIM)).get(_NULL)
    for key in cast("Sequence[object]", nulls) if isinstance(nulls, (list, tuple)) else ():
        if isinstance(key, str):
            wire.setdefault(key, None)
    return wire


# -- as a whole --------------------------------------------------------------------------------------------------------

_IS: Final = "is"
_KEYS: Final = "keys"
_WITHOUT: Final = "without"
_ITEMS: Final = "items"
_MORE: Final = "more"


def difference(default: object, given: object) -> Wire | None:
    """Say how to get from the usual JSON to what was said; None when they are equal."""
    if isinstance(default, dict) and isinstance(given, Mapping):
        return _difference_of_objects(cast("Block", default), cast("Block", given))
    if isinstance(default, list) and isinstance(given, (list, tuple)):
        ours, theirs = cast("list[object]", default), cast("Sequence[object]", given)
        return _difference_of_lists(ours, theirs) if len(theirs) >= len(ours) else {_IS: list(theirs)}
    is_same = default == given and isinstance(default, bool) == isinstance(given, bool)
    return None if is_same else {_IS: given}


def _difference_of_objects(default: Block, given: Block) -> Wire | None:
    keys: Wire = {}
    for key, value in given.items():
        inner = difference(default[key], value) if key in default else {_IS: value}
        if inner is not None:
            keys[key] = inner
    without = [key for key in default if key not in given]
    found: Wire = {_KEYS: keys} if keys else {}
    if without:
        found[_WITHOUT] = without
    return found or None


def _difference_of_lists(default: list[object], given: Sequence[object]) -> Wire | None:
    items: Wire = {}
    for index, value in enumerate(default):
        inner = difference(value, given[index])
        if inner is not None:
            items[str(index)] = inner
    found: Wire = {_ITEMS: items} if items else {}
    if len(given) > len(default):
        found[_MORE] = list(given[len(default) :])
    return found or None


def restored(default: object, found: object) -> object:
    """Apply a difference; where the value is no longer what it was taken from, that part of it is left alone."""
    how = object_of(found)
    if _IS in how:
        return how[_IS]
    if isinstance(default, dict):
        known = cast("Wire", default)
        out = {key: value for key, value in known.items() if key not in _strings(how.get(_WITHOUT))}
        for key, inner in object_of(how.get(_KEYS)).items():
            if key in out or _IS in object_of(inner):
                out[key] = restored(out.get(key), inner)
        return out
    if isinstance(default, list):
        listed = list(cast("list[object]", default))
        for key, inner in object_of(how.get(_ITEMS)).items():
            if key.isdecimal() and int(key) < len(listed):
                listed[int(key)] = restored(listed[int(key)], inner)
        more = how.get(_MORE)
        return listed + list(cast("Sequence[object]", more)) if isinstance(more, (list, tuple)) else listed
    return default


def _strings(value: object) -> Collection[str]:
    return cast("Collection[str]", value) if isinstance(value, (list, tuple)) else ()
