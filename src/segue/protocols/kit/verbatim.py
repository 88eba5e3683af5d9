"""Keep what was received on the wire beside what it means, and write it back unchanged.

Every codec reads a wire object into a neutral value and can write that value in its default wire format. What the two
formats differ in is kept in `extra[protocol]` of the value:

- **data**: keys that segue has no field for, with a value. They stand under their own names. Dropping them is a loss.
- **format**: everything else (a string instead of a list of one text, null instead of absent, another nesting). It
  stands under `VERBATIM` as a patch: for each key, what the default was (`from`) and what was received (`to`).
  Dropping it loses nothing.

A patch is applied key by key, and only while the default is still what it was made from: whoever changes a value gets
the default format for it, and no stale text returns.

Choices of a parent that a child remembers ("this result began a wire message of its own") are patches too: they stand
under a name that begins with `@`, see `choose` and `chosen`.

Entry of a patch, by key:
    {"to": v}                      the default has no such key; v was received
    {"from": d, "to": v}           the default is d (or its digest, `fromDigest`); v was received
    {"from": d}                    the default is d; the key was absent
    {"wrap": path, "to": v}        v was received, and at `path` inside it stands the default, a string
    {"unwrap": path, "from": d}    a string was received, which stands at `path` inside the default
    {"inner": path, "from": d}     the same for an object or a list
    {"json": true}                 the default is a text; the value it encodes as JSON was received
                                   (with `unwrap`: the text at `path` inside the default)
    {"base64": [...]}              the default is standard base64; "url" safe base64 was received, "bare" of padding
    {"in": patch}                  both are objects; the patch for their keys
    {"at": {"0": entry}, "of": n}  both are lists, the default has n items; entries by position. `more` are the
                                   received items beyond those
    {"as": key, ...}               what the default writes under `key` was received under this name; the rest of the
                                   entry, if any, is about the value. With `while`, a digest of the default: only while
                                   the default is unchanged
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeGuard, cast

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
_SEARCH_DEPTH: Final = 4
_NO_NAMES: Final[Mapping[str, str]] = {}
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_TO_URL_SAFE: Final = str.maketrans("+/", "-_")


class _Keys(NamedTuple):
    """What the keys of an object mean: see `keep`. `known` is None where every key is format."""

    known: Collection[str] | None = None
    aliases: Mapping[str, str] = _NO_NAMES
    instead: Mapping[str, str] = _NO_NAMES

    def is_known(self, path: str) -> bool:
        return self.known is None or path in self.known


_EVERY_KEY: Final = _Keys()


def _is_object(value: object) -> TypeGuard[Wire]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


# -- keep and restore --------------------------------------------------------------------------------------------------


def keep(
    protocol: str,
    received: Block,
    default: Block,
    known: Collection[str] = (),
    choices: Block = EMPTY,
    *,
    only_for: str | None = None,
    aliases: Mapping[str, str] = _NO_NAMES,
    instead: Mapping[str, str] = _NO_NAMES,
) -> Extra | None:
    """Give the `extra` that turns the default wire object back into the received one; None when they are equal.

    `known` are the keys whose meaning was read: where they differ, it is format. A nested key is named with its parent
    ("function.strict"). Any other key that the default lacks is data, unless it is null, which says what absence says,
    or has the name of one of `FORMAT_KEYS`.
    `choices` come from `choose`. `only_for` names a model: for any other the format is not applied.

    `aliases` gives other names of a key ({"top_p": "topP"}), at any depth: the value is compared with the one that has
    the default name, and data are kept under the default name. `instead` gives keys that have the same meaning in
    another form ({"max_completion_tokens": "max_tokens"}): they are written only while the default is unchanged.
    """
    data, patch = _split(received, default, _Keys(known, aliases, instead), "")
    if any(key[:1] == _MARK for key in patch):
        patch = {f"{_MARK}{key}" if key[:1] == _MARK else key: entry for key, entry in patch.items()}
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
            for key, entry in rules.items():
                if key[:1] != _MARK:
                    _apply_key(default, key, entry)
                elif key[1:2] == _MARK:
                    _apply_key(default, key[1:], entry)
    return default


_MARK: Final = "@"
"""Begins the names of a patch that are no keys of the wire object. A key that begins so itself has it twice."""
_ONLY_FOR: Final = "@onlyFor"


def data_of(extra: Extra | None, protocol: str) -> Block:
    """Give the data of `extra[protocol]`, without the format."""
    part = extra.get(protocol) if extra is not None else None
    if part is None:
        return EMPTY
    if FORMAT_KEYS.isdisjoint(part):
        return part
    return {key: value for key, value in part.items() if key not in FORMAT_KEYS}


def _split(received: Block, default: Block, keys: _Keys, parent: str) -> tuple[Wire, Wire]:
    """Compare two objects: the data, and the patch."""
    data: Wire = {}
    patch: Wire = {}
    may_rename = (keys.aliases or keys.instead) and not received.keys() <= default.keys()
    renamed = _renamed(received, default, keys) if may_rename else _NO_NAMES
    for key, value in received.items():
        name = renamed.get(key, key)
        usual = default.get(name, MISSING)
        if name != key:
            entry: Wire | None = {"as": name}
            if usual is not MISSING and keys.aliases.get(key) != name:  # another form, not another name
                entry["while"] = digest(usual)
                entry.update(_entry(usual, value, keys) or EMPTY)
                patch[key] = entry
                continue
        elif usual is value:
            continue
        else:
            entry = None
        if usual is MISSING:
            if value is None or keys.is_known(f"{parent}{name}") or (key in FORMAT_KEYS and not parent):
                patch[key] = {"to": value}
            else:
                data[name] = value
                if entry is not None:
                    patch[key] = entry
            continue
        if _is_object(usual) and _is_object(value):
            inner, found = _compare(usual, value, keys, f"{parent}{name}.")
            if inner:
                data[name] = inner
        else:
            found = _entry(usual, value, keys)
        if found is not None:
            entry = {**(entry or EMPTY), **found}
        if entry is not None:
            patch[key] = entry
    written = {renamed.get(key, key) for key in received} if renamed else received
    for key, usual in default.items():
        if key not in written:
            patch[key] = _from(usual)
    return data, patch


def _compare(default: Block, received: Block, keys: _Keys, parent: str) -> tuple[Wire, Wire | None]:
    """Compare two objects: the data inside, and the entry."""
    if default.keys().isdisjoint(received):
        entry = _entry_inside(default, received)
        if entry is not None:
            return {}, entry
    data, patch = _split(received, default, keys, parent)
    return data, {"in": patch} if patch else None


def _renamed(received: Block, default: Block, keys: _Keys) -> Mapping[str, str]:
    """Give the received keys that have another name in the default, or would have in the data."""
    found: dict[str, str] = {}
    for key in received:
        name = keys.aliases.get(key, key)
        if name != key and key not in default and name not in received:
            found[key] = name
    taken = set(found.values())
    for key, value in received.items():
        name = keys.instead.get(found.get(key, key))
        if name is None or value is None or key in default:
            continue
        if name in default and name not in received and name not in taken:
            found[key] = name
            taken.add(name)
    return found


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
    return {} if same(default, received) else {f"{_MARK}{name}": {"from": default, "to": received}}


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
    entry = rules.get(f"{_MARK}{name}")
    if not isinstance(entry, (dict, Mapping)) or not same(cast("Block", entry).get("from"), default):
        return default
    return cast("Block", entry).get("to")


# -- values ------------------------------------------------------------------------------------------------------------


def difference(default: object, received: object, *, aliases: Mapping[str, str] = _NO_NAMES) -> Wire | None:
    """Give the entry that leads from the default value to the received one; None when they are the same JSON."""
    return _entry(default, received, _Keys(aliases=aliases) if aliases else _EVERY_KEY)


def _entry(default: object, received: object, keys: _Keys) -> Wire | None:
    if same(default, received):
        return None
    if _is_object(default) and _is_object(received):
        every = keys if keys.known is None else keys._replace(known=None)
        return _compare(default, received, every, "")[1]
    if _is_list(default) and _is_list(received):
        if default and len(default) <= len(received):
            return _entry_of_lists(default, received, keys)
    elif isinstance(default, str):
        if isinstance(received, str):
            form = _base64_form(default, received)
            if form is not None:
                return {"base64": form}
        elif _is_object(received) or _is_list(received):
            path = _find(received, default)
            if path is not None:
                return {"wrap": path, "to": _with(received, path, "")}
            if same(_parse(default), received):
                return {"json": True}
    elif _is_object(default) or _is_list(default):
        entry = _entry_inside(default, received)
        if entry is not None:
            return entry
    return {**_from(default), "to": received}


def _entry_of_lists(default: list[object], received: list[object], keys: _Keys) -> Wire:
    entries = (
        (str(at), _entry(one, other, keys)) for at, (one, other) in enumerate(zip(default, received, strict=False))
    )
    entry: Wire = {"at": {at: entry for at, entry in entries if entry is not None}, "of": len(default)}
    if len(received) > len(default):
        entry["more"] = received[len(default) :]
    return entry


def _entry_inside(default: object, received: object) -> Wire | None:
    """Give the entry of a value that stands inside the default, itself or as JSON text; None when it does not."""
    if not received or not isinstance(received, (str, dict, list)):
        return None
    received = cast("object", received)
    path = _find(default, received)
    if path is not None:
        return {"unwrap" if isinstance(received, str) else "inner": path, "from": _with(default, path, "")}
    if _is_object(default) and len(default) == 1 and not isinstance(received, str):
        [(key, text)] = default.items()
        if isinstance(text, str) and text[:1] in ("{", "[") and same(_parse(text), received):
            return {"unwrap": [key], "json": True, "from": {key: ""}}
    return None


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


def _apply_key(wire: Wire, key: str, entry: object) -> None:
    """Change one key as its entry says, if the default is what the entry was made from."""
    if not isinstance(entry, (dict, Mapping)):
        return
    rule = cast("Block", entry)
    usual = wire.get(key, MISSING)
    if usual is MISSING:
        if "as" in rule:
            _apply_name(wire, key, rule)
        elif "to" in rule and len(rule) == 1:
            wire[key] = rule["to"]
    elif "as" not in rule:
        value = _changed(usual, rule)
        if value is MISSING:
            del wire[key]
        else:
            wire[key] = value


def _changed(usual: object, rule: Block) -> object:
    """Give the received value of a key that the default has: MISSING when it was absent, else the default."""
    if _is_object(usual) and "in" in rule:
        inner = dict(usual)
        for key, entry in cast("Block", rule["in"]).items():
            _apply_key(inner, key, entry)
        return inner
    if _is_list(usual) and "at" in rule:
        return _apply_items(usual, rule)
    if "unwrap" in rule or "inner" in rule:
        found = _unwrapped(usual, rule)
        return usual if found is MISSING else found
    if isinstance(usual, str):
        if "wrap" in rule:
            return _with(rule.get("to"), cast("Sequence[object]", rule["wrap"]), usual)
        if "json" in rule:
            value = _parse(usual)
            return usual if value is MISSING else value
        if "base64" in rule:
            form = cast("Sequence[object]", rule["base64"])
            return _in_base64_form(usual, form) if _BASE64.fullmatch(usual) else usual
    return rule.get("to", MISSING) if _is_from(rule, usual) else usual


def _apply_name(wire: Wire, key: str, rule: Block) -> None:
    """Write under another name what the default writes under its own."""
    name = rule["as"]
    if not isinstance(name, str) or name not in wire:
        return
    if "while" in rule and rule["while"] != digest(wire[name]):
        return
    value = wire.pop(name)
    inner = {word: item for word, item in rule.items() if word not in ("as", "while")}
    wire[key] = apply(value, inner) if inner else value


def _unwrapped(usual: object, rule: Block) -> object:
    """Give what stands inside the default, if all around it is as it was."""
    is_text = "unwrap" in rule
    path = cast("Sequence[object]", rule["unwrap" if is_text else "inner"])
    inner = _reach(usual, path)
    is_kind = isinstance(inner, str) if is_text else _is_object(inner) or _is_list(inner)
    if not is_kind or not same(_with(usual, path, ""), rule.get("from")):
        return MISSING
    return _parse(inner) if "json" in rule else inner


def _apply_items(items: list[object], rule: Block) -> list[object]:
    if rule.get("of") != len(items):
        return items
    changed = list(items)
    for at, entry in cast("Block", rule["at"]).items():
        if at.isdecimal() and int(at) < len(changed):
            changed[int(at)] = apply(changed[int(at)], entry)
    more = rule.get("more")
    return changed + list(cast("Sequence[object]", more)) if isinstance(more, (list, tuple)) else changed


# -- what an entry was made from ---------------------------------------------------------------------------------------


def _from(default: object) -> Wire:
    is_short = not default if _is_object(default) or _is_list(default) else len(str(default)) <= _LITERAL_LENGTH
    return {"from": default} if is_short else {"fromDigest": digest(default)}


def _is_from(rule: Block, usual: object) -> bool:
    if "from" in rule:
        return same(rule["from"], usual)
    return "fromDigest" in rule and rule["fromDigest"] == digest(usual)


def digest(value: object) -> str:
    """Give a short text that is the same for the same JSON; empty for a value that cannot be encoded."""
    try:
        text = msgspec.json.encode(value, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        # Half a surrogate pair, or a value that is no JSON: not to be recognised again, so the default is written.
        return ""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _base64_form(default: str, received: str) -> list[str] | None:
    """Tell in which form a long base64 text was received; None when it is another text, or no base64."""
    if len(default) <= _LITERAL_LENGTH or not 0 <= len(default) - len(received) <= 2:
        return None
    form = ["url"] if "-" in received or "_" in received else []
    if len(default) > len(received):
        form.append("bare")
    return form if _in_base64_form(default, form) == received and _BASE64.fullmatch(default) else None


def _in_base64_form(data: str, form: Sequence[object]) -> str:
    if "url" in form:
        data = data.translate(_TO_URL_SAFE)
    return data.rstrip("=") if "bare" in form else data


def _parse(text: object) -> object:
    if not isinstance(text, str):
        return MISSING
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return MISSING


# -- places inside a value ---------------------------------------------------------------------------------------------


def _find(value: object, part: object, depth: int = _SEARCH_DEPTH) -> list[str | int] | None:
    """Find where a text, an object or a list stands inside a value, if it stands in one place only."""
    found: list[list[str | int]] = []
    _search(value, part, [], depth, found)
    return found[0] if len(found) == 1 else None


def _search(value: object, part: object, path: list[str | int], depth: int, found: list[list[str | int]]) -> None:
    if type(value) is type(part) and same(value, part):
        found.append(path)
    elif depth and _is_object(value):
        for key, item in value.items():
            _search(item, part, [*path, key], depth - 1, found)
    elif depth and _is_list(value):
        for at, item in enumerate(value):
            _search(item, part, [*path, at], depth - 1, found)


def _reach(value: object, path: Sequence[object]) -> object:
    for step in path:
        if _is_object(value):
            value = value.get(cast("str", step), MISSING)
        elif _is_list(value) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return MISSING
    return value


def _with(value: object, path: Sequence[object], leaf: object) -> object:
    """Give a copy of the value with another leaf at the path; the same value where the path leads nowhere."""
    if not path:
        return leaf
    step, rest = path[0], path[1:]
    if _is_object(value) and isinstance(step, str) and step in value:
        return {**value, step: _with(value[step], rest, leaf)}
    if _is_list(value) and isinstance(step, int) and 0 <= step < len(value):
        listed = list(value)
        listed[step] = _with(listed[step], rest, leaf)
        return listed
    return value
