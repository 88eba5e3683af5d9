"""Name what a provider sent that its official SDK does not know: blocks, reasons to stop, fields.

Codecs keep all of it. It is named in addition, so that a change of a provider's API is seen in the counts of a gateway
or of a corpus before a user reports it. The names of each protocol are in `reply_names.json` of its folder, which
`scripts/write_reply_names.py` reads from the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pkgutil import get_data
from typing import Final, NamedTuple, cast

from segue.conversation.content import Extra
from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.json_values import ATOMS, object_of
from segue.protocols.kit.reading import REPLY
from segue.protocols.kit.verbatim import FORMAT_KEYS, VERBATIM

_DEPTH: Final = 8
"""How deep fields are read: deeper ones are data of a tool."""
_LONGEST: Final = 64
"""How much of a name is shown."""


class _Known(NamedTuple):
    """The names of a protocol, and those of fields whose values may have any keys."""

    names: frozenset[str]
    open: frozenset[str]


def find_drift(message: AssistantMessage) -> tuple[str, ...]:
    """Name what the SDK of a reply's protocol does not know, such as `openai-chat: field service_hint`, sorted.

    Nothing is named for a protocol without a list of names.
    """
    known = _known(message.protocol)
    if known is None:
        return ()
    fields: set[str] = set()
    for each in (message, *message.content):
        if each.extra is not None:
            _add_fields(each.extra, message.protocol, known, fields)
    found = {f"field {name}" for name in fields} if fields else set[str]()
    if message.raw_stop_reason and message.raw_stop_reason not in known.names:
        found.add(f"stop reason {message.raw_stop_reason}")
    for piece in message.content:
        if piece.kind == "native":
            kind = piece.block.get("type")
            names = [kind] if isinstance(kind, str) else list(piece.block)
            found |= {f"block {name}" for name in names if name not in known.names}
    return tuple(sorted(f"{message.protocol}: {name[:_LONGEST]}" for name in found)) if found else ()


def _add_fields(extra: Extra, protocol: str, known: _Known, found: set[str]) -> None:
    """Add the names of unknown fields in what a codec kept."""
    data = extra.get(protocol)
    if data is not None:
        _walk({key: value for key, value in data.items() if key not in FORMAT_KEYS}, known, _DEPTH, found)
        _walk_patch(data.get(VERBATIM), known, _DEPTH, found)
    _walk_patch(object_of(extra.get(REPLY)).get(protocol), known, _DEPTH, found)


def _walk_patch(patch: object, known: _Known, depth: int, found: set[str]) -> None:
    """Add the unknown keys of a patch, which `json_patch` describes."""
    if not isinstance(patch, (dict, Mapping)) or not depth:
        return
    entries = cast("Mapping[str, object]", patch)
    for part in ("to", "add", "more"):
        if part in entries:
            _walk(entries[part], known, depth, found)
    for key, inner in object_of(entries.get("in")).items():
        if key in known.names:
            if key not in known.open:
                _walk_patch(inner, known, depth - 1, found)
        elif key[:1] != "@" and "to" in object_of(inner):
            found.add(key)
    for inner in object_of(entries.get("at")).values():
        _walk_patch(inner, known, depth - 1, found)


def _walk(value: object, known: _Known, depth: int, found: set[str]) -> None:
    """Add the unknown keys; what is below one is not looked at."""
    if isinstance(value, (list, tuple)):
        for item in cast("list[object]", value):
            _walk(item, known, depth, found)
    elif depth and type(value) not in ATOMS and isinstance(value, (dict, Mapping)):
        for key, inner in cast("Mapping[str, object]", value).items():
            if key not in known.names:
                found.add(key)
            elif key not in known.open and type(inner) not in ATOMS:
                _walk(inner, known, depth - 1, found)


@lru_cache
def _known(protocol: str) -> _Known | None:
    """Read the names of a protocol; None if it has no list."""
    try:
        data = get_data(f"segue.protocols.{protocol.replace('-', '_')}", "reply_names.json")
    except (FileNotFoundError, ModuleNotFoundError, ValueError):
        return None
    if data is None:
        return None
    names = json.loads(data)
    return _Known(frozenset([*names["fields"], *names["values"]]), frozenset(names["open"]))
