"""How an object of this wire was spelt, where it was not spelt as we do; kept in `extra` and put back.

A key that segue has no word for is data and stands beside the shape. A key that says nothing (null, an empty text or
list), one that is missing and one that says the same in other words are spelling: the shape keeps what we would have
written beside what was said, and what was said is written again only as long as we would still write the other. So
whoever changes a value changes the request.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, cast

from segue.conversation.content import Extra
from segue.protocols.kit.reading import VERBATIM
from segue.protocols.ollama_chat.rules import PROTOCOL

Wire = dict[str, object]
Json = Mapping[str, object]

RESPONSE: Final = "response"
"""The key of a message's shape under which stands what only its reply said; no request looks there."""
_ORIGINAL: Final = "spelt"
_MISSING: Final = object()
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def object_of(value: object) -> Json:
    """Give an object as it is, anything else as an empty one."""
    return cast("Json", value) if isinstance(value, (dict, Mapping)) else {}


def own_part(extra: Extra | None) -> Json | None:
    """Give what this wire said; None when that is nothing."""
    return None if extra is None else extra.get(PROTOCOL)


def keep(wire: Json, default: Json, skip: Collection[str] = ()) -> Wire:
    """Keep what an object says that the usual writing of it does not; empty when they agree."""
    part: Wire = {}
    original: Wire = {}
    for key, value in wire.items():
        if key in skip:
            continue
        if key in default:
            if default[key] != value:
                original[key] = {"usual": default[key], "said": value}
        elif value in _EMPTY or key == VERBATIM:
            original[key] = {"said": value}
        else:
            part[key] = value
    for key, value in default.items():
        if key not in wire and key not in skip:
            original[key] = {"usual": value}
    if original:
        part[VERBATIM] = {_ORIGINAL: original}
    return part


def put_back(wire: Wire, part: Json | None) -> Wire:
    """Spell an object as it was, and add what `keep` kept of it. Changes `wire` and gives it back."""
    if not part:
        return wire
    for key, given in object_of(object_of(part.get(VERBATIM)).get(_ORIGINAL)).items():
        entry = object_of(given)
        if wire.get(key, _MISSING) == entry.get("usual", _MISSING):
            if "said" in entry:
                wire[key] = entry["said"]
            else:
                wire.pop(key, None)
    for key, value in part.items():
        if key != VERBATIM:
            wire.setdefault(key, value)
    return wire
