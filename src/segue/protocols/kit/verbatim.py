"""Keep the difference between a received wire object and the default format, and write it back unchanged.

Every codec reads a wire object into a neutral value and can write that value in its default wire format. The difference
between the received and the default object is kept in `extra[protocol]` of the value:

- **data**: keys that segue has no field for, with a value. They are kept under their own names. Dropping them is a
  loss.
- **format**: everything else (a string instead of a list of one text, null instead of absent, another nesting). It is
  kept under `VERBATIM` as a patch: for each key, the default (`from`) and the received value (`to`). Dropping it loses
  nothing.

A patch is applied key by key, and only if the default is the one that it was made from. So a changed value is written
in the default format, and no outdated value is written.

A patch also keeps choices, such as "this result began a wire message of its own". Their names begin with `@`; see
`choose` and `chosen`.

`json_patch` describes the entries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, cast

from segue.conversation.content import Extra
from segue.protocols.kit.json_patch import NO_NAMES, Keys, add_data, apply_key, split_object
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_object, list_of, object_of, same

VERBATIM: Final = "verbatim"
"""The key of `extra[protocol]` that holds the patch."""
RETIRED: Final = "shape"
"""The key under which segue/1 files written before the patch existed kept the format; it is ignored."""
FORMAT_KEYS: Final = frozenset({VERBATIM, RETIRED})
"""The keys of `extra[protocol]` that describe format; every other key is data."""


_MARK: Final = "@"
"""Prefix of names in a patch that are not keys of the wire object. A key with this prefix is written with two."""
_ONLY_FOR: Final = "@onlyFor"


def keep(
    protocol: str,
    received: Block,
    default: Block,
    known: Collection[str] = (),
    choices: Block = EMPTY,
    *,
    only_for: str | None = None,
    aliases: Mapping[str, str] = NO_NAMES,
    instead: Mapping[str, str] = NO_NAMES,
) -> Extra | None:
    """Return the `extra` that turns the default wire object back into the received one; None when they are equal.

    `known` are the keys that the codec has read: a difference in them is format. A nested key is named with its parent
    ("function.strict"). Any other key that the default lacks is data, unless its value is null, which means the same as
    an absent key, or its name is one of `FORMAT_KEYS`.
    `choices` come from `choose`. `only_for` names a model: the format is not applied for any other.

    `aliases` gives other names of a key ({"top_p": "topP"}), at any depth: the value is compared with the one that has
    the default name, and data are kept under the default name. `instead` gives keys that replace a default key in
    another form ({"max_completion_tokens": "max_tokens"}): they are written only if the default is unchanged.
    """
    data, patch = split_object(received, default, Keys(known, aliases, instead, FORMAT_KEYS), "")
    if patch:
        patch = {f"{_MARK}{key}" if key[:1] == _MARK else key: entry for key, entry in patch.items()}
    patch.update(choices)
    if patch:
        if only_for is not None:
            patch[_ONLY_FOR] = only_for
        data[VERBATIM] = patch
    return {protocol: data} if data else None


def restore(default: Wire, extra: Extra | None, protocol: str, *, model: str | None = None) -> Wire:
    """Apply the `extra` of `keep` to the default wire object, which is changed in place and returned.

    Data never replaces a key of the default. Format that was kept `only_for` a model is skipped for any other `model`.
    """
    part = extra.get(protocol) if extra is not None else None
    if part is None:
        return default
    for key, value in part.items():
        if key not in FORMAT_KEYS:
            add_data(default, key, value)
    patch = part.get(VERBATIM)
    if isinstance(patch, (dict, Mapping)):
        rules = cast("Block", patch)
        if rules.get(_ONLY_FOR, model) == model:
            for key, entry in rules.items():
                if key[:1] != _MARK:
                    apply_key(default, key, entry)
                elif key[1:2] == _MARK:
                    apply_key(default, key[1:], entry)
    return default


def data_of(extra: Extra | None, protocol: str) -> Block:
    """Return the data of `extra[protocol]`, without the format."""
    part = extra.get(protocol) if extra is not None else None
    if part is None:
        return EMPTY
    if FORMAT_KEYS.isdisjoint(part):
        return part
    return {key: value for key, value in part.items() if key not in FORMAT_KEYS}


def for_new_request(extra: Extra | None, protocol: str) -> Extra | None:
    """Return the extra of options for a new request: format that was kept `only_for` a model is disabled.

    Decoding and encoding a body gives the same body, valid or not. A prepared request is a new request, so its options
    are written in the default format, unless `for_same_model` says that the received one is right.
    """
    part, patch = _patch_of(extra, protocol)
    if extra is None or _ONLY_FOR not in patch:
        return extra
    return {**extra, protocol: {**part, VERBATIM: {**patch, _ONLY_FOR: ""}}}


def for_same_model(extra: Extra | None, protocol: str, names: Collection[str]) -> Extra | None:
    """Return the extra of options whose received format is written in a new request for the model that it was kept for.

    What a request adds to the options that were received (`store: false`, usage in a stream) is still added: entries
    that only leave out a default are dropped. The same object if no format was kept for a model of these names.
    """
    part, patch = _patch_of(extra, protocol)
    if extra is None or patch.get(_ONLY_FOR) not in names:
        return extra
    written: Wire = {}
    for key, entry in patch.items():
        if key not in _NEVER_AGAIN and (kept := _adding(entry, is_choice=key[:1] == _MARK != key[1:2])) is not None:
            written[key] = kept
    rest = {key: value for key, value in part.items() if key != VERBATIM}
    others = {key: inner for key, inner in extra.items() if key != protocol}
    rest |= {VERBATIM: written} if written else {}
    return ({**others, protocol: rest} if rest else others) or None


def _adding(entry: object, *, is_choice: bool = False) -> object:
    """Return an entry of a patch without the parts that only leave out a default; None if nothing else is in it."""
    rule = object_of(entry)
    if is_choice:
        return {**rule, "to": _with_missing(rule.get("to"), rule.get("from"))}
    for inside in ("in", "at"):
        if inside in rule:
            inner = {key: kept for key, one in object_of(rule[inside]).items() if (kept := _adding(one)) is not None}
            if inner or inside == "at":
                return {**rule, inside: inner} if inner or "more" in rule else None
            return {key: value for key, value in rule.items() if key != inside} or None
    is_null = "to" in rule and rule["to"] is None  # null means the same as an absent key
    return entry if rule.keys() - {"from", "fromDigest"} and not is_null else None


def _with_missing(received: object, default: object) -> object:
    """Return what was received for an option with the keys of the default, `[value, keys]`, that it lacks."""
    keys = list_of(default)
    written = keys[1] if len(keys) == _PAIR else None
    if is_object(received) and is_object(written) and received.keys() < written.keys():
        return {**written, **received}
    return received


_PAIR: Final = 2
_NEVER_AGAIN: Final = frozenset({_ONLY_FOR, f"{_MARK}prefix", f"{_MARK}refused"})
"""Names in the patch of options that do not apply to a new request: choices about the messages of the one received."""


def _patch_of(extra: Extra | None, protocol: str) -> tuple[Block, Block]:
    """Return the part of a protocol, and the patch in it."""
    part = (extra.get(protocol) if extra is not None else None) or EMPTY
    patch = part.get(VERBATIM)
    return part, cast("Block", patch) if patch is not None and isinstance(patch, (dict, Mapping)) else EMPTY


def choose(name: str, default: object, received: object) -> Wire:
    """Return the part of a patch that keeps a choice; empty if the choice is the default."""
    return {} if same(default, received) else {f"{_MARK}{name}": {"from": default, "to": received}}


def chosen(extra: Extra | None, protocol: str, name: str, default: object, *, model: str | None = None) -> object:
    """Return the received choice if the default is the one it was kept with; else the default.

    With `model`, a choice that was kept `only_for` another model is ignored.
    """
    part = extra.get(protocol) if extra is not None else None
    patch = part.get(VERBATIM) if part is not None else None
    if patch is None or not isinstance(patch, (dict, Mapping)):
        return default
    rules = cast("Block", patch)
    if model is not None and rules.get(_ONLY_FOR, model) != model:
        return default
    entry = rules.get(f"{_MARK}{name}")
    if not isinstance(entry, (dict, Mapping)) or not same(cast("Block", entry).get("from"), default):
        return default
    return cast("Block", entry).get("to")
