"""Differences between a default JSON value and a received one, and how to apply them.

An entry leads from the default to the received value. It is applied only while the default is still what the entry was
made from, so a changed value is written in the default format. A patch holds the entries of an object by key.

Entries:
    {"to": v}                      the default has no such key; v was received
    {"from": d, "to": v}           the default is d (or its digest, `fromDigest`); v was received
    {"from": d}                    the default is d; the key was absent
    {"wrap": path, "to": v}        v was received; the default is a string and is at `path` inside v
    {"unwrap": path, "from": d}    a string was received; it is at `path` inside the default
    {"inner": path, "from": d}     the same for an object or a list
    {"json": true}                 the default is JSON text; the value of that JSON was received
                                   (with `unwrap`: the text at `path` inside the default)
    {"base64": [...]}              the default is standard base64, or a data URL of it; received were "url" (URL-safe
                                   base64) and/or "bare" (no padding)
    {"in": patch, "add": {...}}    both are objects; the patch for their keys, and the received values of keys that the
                                   default does not have (written by earlier versions as {"to": v} in the patch)
    {"at": {"0": entry}, "of": n}  both are lists, the default has n items; entries by position. `more` are the
                                   received items beyond those
    {"as": key, ...}               the value that the default has under `key` was received under this name; the rest of
                                   the entry, if any, changes the value. With `while`, a digest of the default: applied
                                   only if the default is unchanged
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from segue.protocols.kit.json_values import (
    ATOMS,
    EMPTY,
    MISSING,
    Block,
    Wire,
    digest,
    find_path,
    is_list,
    is_object,
    object_of,
    parse_text,
    reach,
    same,
    same_if_equal,
    with_leaf,
)

_LITERAL_LENGTH: Final = 64
"""Defaults up to this many characters are stored in full, longer ones as a digest."""
NO_NAMES: Final[Mapping[str, str]] = {}
_BASE64: Final = re.compile(r"(?:data:[^,]*;base64,)?[A-Za-z0-9+/]+={0,2}")
_TO_URL_SAFE: Final = str.maketrans("+/", "-_")


class Keys(msgspec.Struct, frozen=True):
    """Which keys are known, renamed or `reserved` (never data): see `keep`. Without `known` every key is format."""

    known: Collection[str] | None = None
    aliases: Mapping[str, str] = NO_NAMES
    instead: Mapping[str, str] = NO_NAMES
    reserved: Collection[str] = ()

    def is_known(self, path: str) -> bool:
        """Whether the meaning of a key was read; `path` names the objects around it: "function.strict"."""
        return self.known is None or path in self.known or path in self.reserved


_EVERY_KEY: Final = Keys()


def split_object(received: Block, default: Block, keys: Keys, parent: str) -> tuple[Wire, Wire]:
    """Compare two objects; return the data and the patch."""
    data: Wire = {}
    patch: Wire = {}
    may_rename = (keys.aliases or keys.instead) and not received.keys() <= default.keys()
    renamed = _renamed(received, default, keys) if may_rename else NO_NAMES
    for key, value in received.items():
        name = renamed.get(key, key) if renamed else key
        current = default.get(name, MISSING)
        if name != key:
            entry: Wire | None = {"as": name}
            if current is not MISSING and keys.aliases.get(key) != name:  # another form, not another name
                entry["while"] = digest(current)
                entry.update(_entry(current, value, keys) or EMPTY)
                patch[key] = entry
                continue
        elif current is value or (type(current) is type(value) in ATOMS and current == value):
            continue
        else:
            entry = None
        if current is MISSING:
            if value is None or keys.is_known(f"{parent}{name}"):
                patch[key] = {"to": value}
            else:
                data[name] = value
                if entry is not None:
                    patch[key] = entry
            continue
        if is_object(current) and is_object(value) and f"{parent}{name}" not in keys.reserved:
            inner, found = _compare(current, value, keys, f"{parent}{name}.")
            if inner:
                data[name] = inner
        else:
            found = _entry(current, value, keys)
        if found is not None:
            entry = {**(entry or EMPTY), **found}
        if entry is not None:
            patch[key] = entry
    written = {renamed.get(key, key) for key in received} if renamed else received
    for key, current in default.items():
        if key not in written:
            patch[key] = _from(current)
    return data, patch


def _compare(default: Block, received: Block, keys: Keys, parent: str) -> tuple[Wire, Wire | None]:
    """Compare two nested objects; return the data and the entry."""
    if default.keys().isdisjoint(received):
        entry = _entry_inside(default, received)
        if entry is not None:
            return {}, entry
    data, patch = split_object(received, default, keys, parent)
    return data, _inside(patch) if patch else None


def _inside(patch: Wire) -> Wire:
    """Return the entry of a patch. Added keys are together: an object for each costs as much as its value to store."""
    entries = cast("dict[str, Wire]", patch).items()
    added = {key: entry["to"] for key, entry in entries if len(entry) == 1 and "to" in entry}
    if not added:
        return {"in": patch}
    rest = {key: entry for key, entry in patch.items() if key not in added}
    return {"in": rest, "add": added} if rest else {"add": added}


def _renamed(received: Block, default: Block, keys: Keys) -> Mapping[str, str]:
    """Map received keys to the names that they have in the default or get in the data, where these differ."""
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


def form_names(patch: Block, parent: str = "") -> Iterator[str]:
    """Name the entries of a patch by key and kind ("content:unwrap"), and choices by their name ("@turn")."""
    for key, entry in patch.items():
        if key[:1] == "@" and key[1:2] != "@":
            yield key
        else:
            yield from _form_names(object_of(entry), f"{parent}{key}")


def _form_names(rule: Block, name: str) -> Iterator[str]:
    if "in" in rule or "add" in rule:
        yield from form_names(object_of(rule.get("in")), f"{name}.")
        for key, value in object_of(rule.get("add")).items():
            yield f"{name}.{key}:{type(value).__name__}"
    elif "at" in rule:
        for inner in object_of(rule["at"]).values():
            yield from _form_names(object_of(inner), f"{name}.#")
        if "more" in rule:
            yield f"{name}:more"
    else:
        kind = next((kind for kind in ("as", "wrap", "unwrap", "inner", "json", "base64") if kind in rule), None)
        yield f"{name}:{kind or (type(rule['to']).__name__ if 'to' in rule else 'absent')}"


def add_data(wire: Wire, key: str, value: object) -> None:
    """Add data to a wire object; nested objects are merged key by key."""
    held = wire.get(key, MISSING)
    if held is MISSING:
        wire[key] = value
    elif isinstance(held, dict) and isinstance(value, (dict, Mapping)):
        inner = wire[key] = dict(cast("Wire", held))
        for name, item in cast("Block", value).items():
            add_data(inner, name, item)


def difference(default: object, received: object, *, aliases: Mapping[str, str] = NO_NAMES) -> Wire | None:
    """Return the entry that turns the default value into the received one; None if they are the same JSON."""
    return _entry(default, received, Keys(aliases=aliases) if aliases else _EVERY_KEY)


def _entry(default: object, received: object, keys: Keys) -> Wire | None:
    is_equal = default == received  # many times faster than `same`, and nearly always the same
    if is_equal and same_if_equal(default, received):
        return None
    if type(default) in ATOMS and type(default) is not str:
        return {**_from(default), "to": received}
    if is_object(default) and is_object(received):
        every = keys if keys.known is None else replace(keys, known=None)
        return _compare(default, received, every, "")[1]
    if not is_equal and same(default, received):
        return None
    if is_list(default) and is_list(received):
        if default and len(default) <= len(received):
            return _entry_of_lists(default, received, keys)
    elif isinstance(default, str):
        if isinstance(received, str):
            form = _base64_form(default, received)
            if form is not None:
                return {"base64": form}
        elif is_object(received) or is_list(received):
            path = find_path(received, default)
            if path is not None:
                return {"wrap": path, "to": with_leaf(received, path, "")}
            if same(parse_text(default), received):
                return {"json": True}
    elif is_object(default) or is_list(default):
        entry = _entry_inside(default, received)
        if entry is not None:
            return entry
    return {**_from(default), "to": received}


def _entry_of_lists(default: list[object], received: list[object], keys: Keys) -> Wire:
    entries = (
        (str(at), _entry(one, other, keys)) for at, (one, other) in enumerate(zip(default, received, strict=False))
    )
    entry: Wire = {"at": {at: entry for at, entry in entries if entry is not None}, "of": len(default)}
    if len(received) > len(default):
        entry["more"] = received[len(default) :]
    return entry


def _entry_inside(default: object, received: object) -> Wire | None:
    """Return the entry of a value that is inside the default, as a value or as JSON text; None if it is not."""
    if not received or not isinstance(received, (str, dict, list)):
        return None
    received = cast("object", received)
    path = find_path(default, received)
    if path is not None:
        return {"unwrap" if isinstance(received, str) else "inner": path, "from": with_leaf(default, path, "")}
    if is_object(default) and len(default) == 1 and not isinstance(received, str):
        [(key, text)] = default.items()
        if isinstance(text, str) and text[:1] in ("{", "[") and same(parse_text(text), received):
            return {"unwrap": [key], "json": True, "from": {key: ""}}
    return None


def apply(default: object, entry: object) -> object:
    """Return the received value; the default if it differs from the one that the entry was made from."""
    wire: Wire = {"": default}
    apply_key(wire, "", entry)
    return wire.get("")


def apply_key(wire: Wire, key: str, entry: object) -> None:
    """Apply an entry to one key, if the default is the one that the entry was made from."""
    if not isinstance(entry, (dict, Mapping)):
        return
    rule = cast("Block", entry)
    current = wire.get(key, MISSING)
    if current is MISSING:
        if "as" in rule:
            _apply_name(wire, key, rule)
        elif "to" in rule and len(rule) == 1:
            wire[key] = rule["to"]
    elif "as" not in rule:
        value = _changed(current, rule)
        if value is MISSING:
            del wire[key]
        else:
            wire[key] = value


def _changed(current: object, rule: Block) -> object:
    """Apply an entry to the value of a key: the received value, MISSING if the key was absent, else `current`."""
    if is_object(current) and ("in" in rule or "add" in rule):
        inner = dict(current)
        for key, entry in object_of(rule.get("in")).items():
            apply_key(inner, key, entry)
        for key, value in object_of(rule.get("add")).items():
            inner.setdefault(key, value)
        return inner
    if is_list(current) and "at" in rule:
        return _apply_items(current, rule)
    if "unwrap" in rule or "inner" in rule:
        found = _unwrapped(current, rule)
        return current if found is MISSING else found
    if isinstance(current, str):
        if "wrap" in rule:
            return with_leaf(rule.get("to"), cast("Sequence[object]", rule["wrap"]), current)
        if "json" in rule:
            value = parse_text(current)
            return current if value is MISSING else value
        if "base64" in rule:
            form = cast("Sequence[object]", rule["base64"])
            return _in_base64_form(current, form) if _BASE64.fullmatch(current) else current
    return rule.get("to", MISSING) if _is_from(rule, current) else current


def _apply_name(wire: Wire, key: str, rule: Block) -> None:
    """Move the value of the default key to the received key."""
    name = rule["as"]
    if not isinstance(name, str) or name not in wire:
        return
    if "while" in rule and rule["while"] != digest(wire[name]):
        return
    value = wire.pop(name)
    inner = {name: item for name, item in rule.items() if name not in ("as", "while")}
    wire[key] = apply(value, inner) if inner else value


def _unwrapped(current: object, rule: Block) -> object:
    """Return the value at the entry's path inside the default; MISSING if the rest of the default has changed."""
    is_text = "unwrap" in rule
    path = cast("Sequence[object]", rule["unwrap" if is_text else "inner"])
    inner = reach(current, path)
    is_kind = isinstance(inner, str) if is_text else is_object(inner) or is_list(inner)
    if not is_kind or not same(with_leaf(current, path, ""), rule.get("from")):
        return MISSING
    return parse_text(inner) if "json" in rule else inner


def _apply_items(items: list[object], rule: Block) -> list[object]:
    if rule.get("of") != len(items):
        return items
    changed = list(items)
    for at, entry in cast("Block", rule["at"]).items():
        if at.isdecimal() and int(at) < len(changed):
            changed[int(at)] = apply(changed[int(at)], entry)
    more = rule.get("more")
    return changed + list(cast("Sequence[object]", more)) if isinstance(more, (list, tuple)) else changed


def _from(default: object) -> Wire:
    is_short = not default if is_object(default) or is_list(default) else len(str(default)) <= _LITERAL_LENGTH
    return {"from": default} if is_short else {"fromDigest": digest(default)}


def _is_from(rule: Block, current: object) -> bool:
    if "from" in rule:
        return same(rule["from"], current)
    return "fromDigest" in rule and rule["fromDigest"] == digest(current)


def _base64_form(default: str, received: str) -> list[str] | None:
    """Return the form in which a long base64 text was received; None if it is another text or not base64."""
    if len(default) <= _LITERAL_LENGTH or not 0 <= len(default) - len(received) <= 2:
        return None
    digits = received.rpartition(",")[2]
    form = ["url"] if "-" in digits or "_" in digits else []
    if len(default) > len(received):
        form.append("bare")
    return form if _in_base64_form(default, form) == received and _BASE64.fullmatch(default) else None


def _in_base64_form(data: str, form: Sequence[object]) -> str:
    if "url" in form:
        head, comma, digits = data.rpartition(",")
        data = f"{head}{comma}{digits.translate(_TO_URL_SAFE)}"
    return data.rstrip("=") if "bare" in form else data
