"""Keep what was received on the wire beside what it means, and write it back unchanged.

Every codec reads a wire object into a neutral value and can write that value in its default wire format. What the two
formats differ in is kept in `extra[protocol]` of the value:

- **data**: keys that segue has no field for, with a value. They stand under their own names. Dropping them is a loss.
- **format**: everything else (a string instead of a list of one text, null instead of absent, another order of nesting).
  It stands under `VERBATIM` as a patch: for each key, what the default was (`from`) and what was received (`to`).
  Dropping it loses nothing.

A patch is applied key by key, and only while the default is still what it was made from: whoever changes a value gets
the default format for it, and no stale text returns.

Choices of a parent that a child remembers ("this result began a wire message of its own") are patches too: they stand
under a name with `@`, see `choose` and `chosen`.

Entry of a patch, by key:
    {"to": v}                      the default has no such key; v was received
    {"from": d, "to": v}           the default is d (or its digest, `fromDigest`); v was received
    {"from": d}                    the default is d; the key was absent
    {"wrap": path, "to": v}        v was received, and at `path` inside it stands the default, a string
    {"unwrap": path, "from": d}    a string was received, which stands at `path` inside the default
    {"json": true}                 the default is a text; the value it encodes as JSON was received
    {"in": patch}                  both are objects; the patch for their keys
    {"at": {"0": entry}}           both are lists of one length; entries by position
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias, cast

import msgspec

from segue.conversation.content import Extra

Block: TypeAlias = Mapping[str, object]
"""A JSON object that is only read."""
Wire: TypeAlias = dict[str, object]
"""A JSON object under construction."""

VERBATIM: Final = "verbatim"
"""The key of `extra[protocol]` that holds the patch."""
RETIRED: Final = "shape"
"""The key under which segue/1 files written before the patch existed kept the format; it is ignored."""
FORMAT_KEYS: Final = frozenset({VERBATIM, RETIRED})
"""The keys of `extra[protocol]` that describe format; every other key is data."""

MISSING: Final = object()
"""Stands for a key that is not there, where null would be a value."""
EMPTY: Final[Block] = {}

_LITERAL_LENGTH: Final = 64
"""Defaults up to this many characters are kept as they are, longer ones as a digest."""
_SEARCH_DEPTH: Final = 3


# -- keep and restore --------------------------------------------------------------------------------------------------


def keep(
    protocol: str,
    received: Block,
    default: Block,
    known: Collection[str] = (),
    choices: Block = EMPTY,
    *,
    only_for: str | None = None,
) -> Extra | None:
    """Give the `extra` that turns the default wire object back into the received one; None when they are equal.

    `known` are the keys whose meaning was read: where they differ, it is format. A nested key is named with its parent
    ("function.strict"). Any other key that the default lacks is data, unless it is null, which says what absence says,
    or has the name of one of `FORMAT_KEYS`.
    `choices` come from `choose`. `only_for` names a model: for any other the format is not applied.
    """
    data, patch = _split(received, default, known, "")
    if choices:
        patch.update(choices)
    if patch:
        if only_for is not None:
            patch[_ONLY_FOR] = only_for
        data[VERBATIM] = patch
    return {protocol: data} if data else None


def restore(default: Wire, extra: Extra | None, protocol: str, *, model: str | None = None) -> Wire:
    """Write what `keep` kept into the default wire object, which is changed in place and returned.

    Data never replaces a key of the default. Format that was kept `only_for` a model is skipped for any other `model`.
    """
    part = extra.get(protocol) if extra is not None else None
    if part is None:
        return default
    for key, value in part.items():
        if key not in FORMAT_KEYS:
            _add(default, key, value)
    patch = part.get(VERBATIM)
    if isinstance(patch, (dict, Mapping)):
        rules = cast("Block", patch)
        if rules.get(_ONLY_FOR, model) == model:
            _apply_keys(default, rules)
    return default


_ONLY_FOR: Final = "onlyFor"


def data_of(extra: Extra | None, protocol: str) -> Block:
    """Give the data of `extra[protocol]`, without the format."""
    part = extra.get(protocol) if extra is not None else None
    if part is None:
        return EMPTY
    if FORMAT_KEYS.isdisjoint(part):
        return part
    return {key: value for key, value in part.items() if key not in FORMAT_KEYS}


def _split(received: Block, default: Block, known: Collection[str], parent: str) -> tuple[Wire, Wire]:
    """Compare two objects: the data, and the patch."""
    data: Wire = {}
    patch: Wire = {}
    for key, value in received.items():
        usual = default.get(key, MISSING)
        if usual is value:
            continue
        if usual is MISSING:
            if value is None or f"{parent}{key}" in known or (key in FORMAT_KEYS and not parent):
                patch[key] = {"to": value}
            else:
                data[key] = value
        elif isinstance(usual, dict) and isinstance(value, dict):
            inner, rules = _split(cast("Block", value), cast("Block", usual), known, f"{parent}{key}.")
            if inner:
                data[key] = inner
            if rules:
                patch[key] = {"in": rules}
        else:
            entry = difference(usual, value)
            if entry is not None:
                patch[key] = entry
    for key, usual in default.items():
        if key not in received:
            patch[key] = _from(usual)
    return data, patch


def _add(wire: Wire, key: str, value: object) -> None:
    """Add data; inside an object that both have, key by key."""
    held = wire.get(key, MISSING)
    if held is MISSING:
        wire[key] = value
    elif isinstance(held, dict) and isinstance(value, (dict, Mapping)):
        inner = wire[key] = dict(cast("Wire", held))
        for name, item in cast("Block", value).items():
            _add(inner, name, item)


def for_new_request(extra: Extra | None, protocol: str) -> Extra | None:
    """Give the extra of options for a new request: format that was kept `only_for` a model applies to none.

    A body that is decoded and encoded is the same request, wrong or not. A prepared request is a new one, and its
    options are written in the default format.
    """
    part = extra.get(protocol) if extra is not None else None
    patch = part.get(VERBATIM) if part is not None else None
    if extra is None or part is None or not isinstance(patch, (dict, Mapping)) or _ONLY_FOR not in patch:
        return extra
    return {**extra, protocol: {**part, VERBATIM: {**cast("Block", patch), _ONLY_FOR: ""}}}


# -- choices of a parent -----------------------------------------------------------------------------------------------


def choose(name: str, default: object, received: object) -> Wire:
    """Note a choice that is not the default one, as part of a patch; empty when it is."""
    return {} if same(default, received) else {f"@{name}": {"from": default, "to": received}}


def chosen(extra: Extra | None, protocol: str, name: str, default: object, *, model: str | None = None) -> object:
    """Give the choice to make: the one that was received while the default is what it was then, else the default.

    With `model`, a choice that was kept `only_for` another model is not made.
    """
    part = extra.get(protocol) if extra is not None else None
    patch = part.get(VERBATIM) if part is not None else None
    if not isinstance(patch, (dict, Mapping)):
        return default
    rules = cast("Block", patch)
    if model is not None and rules.get(_ONLY_FOR, model) != model:
        return default
    entry = rules.get(f"@{name}")
    if not isinstance(entry, (dict, Mapping)) or not same(cast("Block", entry).get("from"), default):
        return default
    return cast("Block", entry).get("to")


# -- values ------------------------------------------------------------------------------------------------------------


def difference(default: object, received: object) -> Wire | None:
    """Give the entry that leads from the default value to the received one; None when they are the same JSON."""
    if same(default, received):
        return None
    if isinstance(default, dict) and isinstance(received, dict):
        return {"in": _patch_of(cast("Block", default), cast("Block", received))}
    if isinstance(default, list) and isinstance(received, list):
        ours, theirs = cast("list[object]", default), cast("list[object]", received)
        if ours and len(ours) == len(theirs):
            entries = (
                (str(at), difference(one, other)) for at, (one, other) in enumerate(zip(ours, theirs, strict=True))
            )
            return {"at": {at: entry for at, entry in entries if entry is not None}}
    elif isinstance(default, str) and isinstance(received, (dict, list)):
        path = _find(received, default)
        if path is not None:
            return {"wrap": path, "to": _with(received, path, "")}
        if same(_parse(default), received):
            return {"json": True}
    elif isinstance(received, str) and isinstance(default, (dict, list)):
        path = _find(default, received)
        if path is not None:
            return {"unwrap": path, "from": _with(default, path, "")}
    return {**_from(default), "to": received}


def apply(default: object, entry: object) -> object:
    """Give the received value; the default where it is no longer what the entry was made from."""
    wire: Wire = {"": default}
    _apply_key(wire, "", entry)
    return wire.get("")


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


def _patch_of(default: Block, received: Block) -> Wire:
    """Give the patch between two objects where everything is format."""
    patch: Wire = {}
    for key, value in received.items():
        if key not in default:
            patch[key] = {"to": value}
        else:
            entry = difference(default[key], value)
            if entry is not None:
                patch[key] = entry
    patch.update({key: _from(value) for key, value in default.items() if key not in received})
    return patch


def _apply_keys(wire: Wire, patch: Block) -> None:
    for key, entry in patch.items():
        if key[:1] != "@" and key != _ONLY_FOR:
            _apply_key(wire, key, entry)


def _apply_key(wire: Wire, key: str, entry: object) -> None:
    """Change one key as its entry says, if the default is what the entry was made from."""
    if not isinstance(entry, (dict, Mapping)):
        return
    rule = cast("Block", entry)
    usual = wire.get(key, MISSING)
    if usual is MISSING:
        if "to" in rule and len(rule) == 1:
            wire[key] = rule["to"]
    elif "in" in rule:
        if isinstance(usual, dict):
            inner = wire[key] = dict(cast("Wire", usual))
            _apply_keys(inner, cast("Block", rule["in"]))
    elif "at" in rule:
        if isinstance(usual, list):
            wire[key] = _apply_items(cast("list[object]", usual), cast("Block", rule["at"]))
    elif "wrap" in rule:
        if isinstance(usual, str):
            wire[key] = _with(rule.get("to"), cast("Sequence[object]", rule["wrap"]), usual)
    elif "unwrap" in rule:
        path = cast("Sequence[object]", rule["unwrap"])
        inner_text = _reach(usual, path)
        if isinstance(inner_text, str) and same(_with(usual, path, ""), rule.get("from")):
            wire[key] = inner_text
    elif "json" in rule:
        value = _parse(usual)
        if value is not MISSING:
            wire[key] = value
    elif _is_from(rule, usual):
        if "to" in rule:
            wire[key] = rule["to"]
        else:
            del wire[key]


def _apply_items(items: list[object], entries: Block) -> list[object]:
    changed = list(items)
    for at, entry in entries.items():
        if at.isdecimal() and int(at) < len(changed):
            changed[int(at)] = apply(changed[int(at)], entry)
    return changed


# -- what an entry was made from ---------------------------------------------------------------------------------------


def _from(default: object) -> Wire:
    is_short = not default if isinstance(default, (dict, list)) else len(str(default)) <= _LITERAL_LENGTH
    return {"from": default} if is_short else {"fromDigest": _digest(default)}


def _is_from(rule: Block, usual: object) -> bool:
    if "from" in rule:
        return same(rule["from"], usual)
    return "fromDigest" in rule and rule["fromDigest"] == _digest(usual)


def _digest(value: object) -> str:
    try:
        text = msgspec.json.encode(value, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        # Half a surrogate pair, or a value that is no JSON: not to be recognised again, so the default is written.
        return ""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _parse(text: object) -> object:
    if not isinstance(text, str):
        return MISSING
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return MISSING


# -- places inside a value ---------------------------------------------------------------------------------------------


def _find(value: object, text: str, depth: int = _SEARCH_DEPTH) -> list[str | int] | None:
    """Find where a text stands inside a value, if it stands in one place only."""
    found: list[list[str | int]] = []
    _search(value, text, [], depth, found)
    return found[0] if len(found) == 1 else None


def _search(value: object, text: str, path: list[str | int], depth: int, found: list[list[str | int]]) -> None:
    if isinstance(value, str):
        if value == text:
            found.append(path)
    elif depth and isinstance(value, dict):
        for key, item in cast("Wire", value).items():
            _search(item, text, [*path, key], depth - 1, found)
    elif depth and isinstance(value, list):
        for at, item in enumerate(cast("list[object]", value)):
            _search(item, text, [*path, at], depth - 1, found)


def _reach(value: object, path: Sequence[object]) -> object:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str) and step in value:
            value = cast("Wire", value)[step]
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(cast("list[object]", value)):
            value = cast("list[object]", value)[step]
        else:
            return MISSING
    return value


def _with(value: object, path: Sequence[object], leaf: object) -> object:
    """Give a copy of the value with another leaf at the path; the same value where the path leads nowhere."""
    if not path:
        return leaf
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        items = cast("Wire", value)
        return {**items, step: _with(items[step], rest, leaf)}
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(cast("list[object]", value)):
        listed = list(cast("list[object]", value))
        listed[step] = _with(listed[step], rest, leaf)
        return listed
    return value
