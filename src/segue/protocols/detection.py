"""Detect the protocol of a body from weighted clues.

Each protocol declares its own clues (`segue.protocols.kit.clues`). Weights are added, and each clue counts once,
because vendors add keys of their own anywhere. A body without any clue whose messages have a role belongs to the
protocol with `plain_messages`: openai-chat, the most common one. A key that two protocols share counts for both, so
that many such keys do not outweigh the one clue that separates them. The key that holds the turns outweighs all clues:
a body with `messages` is never a request of a protocol whose turns are in `input`, even if a tool has its format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast, final

from segue.protocols.kit.clues import Clues
from segue.protocols.kit.json_values import object_of
from segue.protocols.registry import all_clues, registered_count

_Clue = Mapping[str, int]
"""The weight of one key or value for each protocol."""

_RESPONSE_SETTINGS: Final = frozenset({"stream", "temperature", "top_p", "stop", "n"})
"""Keys that a request for a response may have, and a request to count tokens does not have."""


@final
class _Tables:
    """The clues of all protocols, indexed by key."""

    def __init__(self, clues: Mapping[str, Clues]) -> None:
        self.body_keys = _merge({name: each.body_keys for name, each in clues.items()})
        self.object_keys = _merge({name: each.object_keys for name, each in clues.items()})
        self.message_keys = _merge({name: each.message_keys for name, each in clues.items()})
        self.block_keys = _merge({name: each.block_keys for name, each in clues.items()})
        self.types = _merge({name: each.types for name, each in clues.items()})
        self.tool_keys = _merge({name: each.tool_keys for name, each in clues.items()})
        self.option_keys = _merge({name: each.option_keys for name, each in clues.items()})
        self.reply_keys = _merge({name: each.reply_keys for name, each in clues.items()})
        self.options_object = {name: each.options_object for name, each in clues.items() if each.options_object}
        self.object_arguments = {name: each.object_arguments for name, each in clues.items() if each.object_arguments}
        self.untyped_text = {name: each.untyped_text for name, each in clues.items() if each.untyped_text}
        self.plain_messages = {name: each.plain_messages for name, each in clues.items() if each.plain_messages}
        self.turns_key_of = {name: each.turns_key for name, each in clues.items() if each.turns_key is not None}
        self.turns_keys = tuple(dict.fromkeys(self.turns_key_of.values()))
        self.model_ids: tuple[tuple[str, str | None, _Clue], ...] = tuple(
            (prefix, each.model_ids_need, {name: weight})
            for name, each in clues.items()
            for prefix, weight in each.model_ids.items()
        )


def _merge(weights: Mapping[str, _Clue]) -> dict[str, dict[str, int]]:
    merged: dict[str, dict[str, int]] = {}
    for name, table in weights.items():
        for key, weight in table.items():
            merged.setdefault(key, {})[name] = weight
    return merged


@lru_cache(maxsize=4)
def _read_tables(count: int) -> _Tables:  # noqa: ARG001 - the cache key: new records need new tables
    return _Tables(all_clues())


def detect_protocol(body: object) -> str | None:
    """Name the protocol of a request body or of its bare list of messages; None if no clue is found."""
    tables = _read_tables(registered_count())
    scores: Counter[str] = Counter()
    for clues in {id(clues): clues for clues in _clues(body, tables)}.values():
        scores.update(clues)
    if isinstance(body, list) and not scores and _is_plain(cast("list[object]", body)):
        scores.update(tables.plain_messages)
    if isinstance(body, (dict, Mapping)):
        for name in _with_other_turns(cast("Mapping[str, object]", body), tables):
            scores.pop(name, None)
    ranked = scores.most_common(1)
    return ranked[0][0] if ranked and ranked[0][1] > 0 else None


def _with_other_turns(body: Mapping[str, object], tables: _Tables) -> Sequence[str]:
    """Name the protocols whose turns are under another key than those of the body."""
    present = {key for key in tables.turns_keys if body.get(key) is not None}
    return [name for name, key in tables.turns_key_of.items() if key not in present] if present else ()


def detect_reply(body: object) -> str | None:
    """Name the protocol of a whole reply; None if no clue is found."""
    scores: dict[str, int] = {}
    body = object_of(body)
    for clue in _found(body, _read_tables(registered_count()).reply_keys):
        for name, weight in clue.items():
            scores[name] = max(weight, scores.get(name, 0))
    return max(scores, key=scores.__getitem__) if scores else None


def _is_plain(messages: Sequence[object]) -> bool:
    return bool(messages) and all(isinstance(message, Mapping) and "role" in message for message in messages)


def _clues(body: object, tables: _Tables) -> Iterator[_Clue]:
    messages: object = body
    if isinstance(body, (dict, Mapping)):
        mapping = cast("Mapping[str, object]", body)
        yield from _found(mapping, tables.body_keys)
        for key, clue in tables.object_keys.items():
            if key in mapping and isinstance(mapping[key], Mapping):
                yield clue
        messages = next((mapping[key] for key in tables.turns_keys if mapping.get(key) is not None), ())
        model_id = mapping.get("model")
        if isinstance(model_id, str):
            yield from _of_model(model_id, mapping, tables)
        options = mapping.get("options")
        if isinstance(options, Mapping):
            found = tuple(_found(cast("Mapping[str, object]", options), tables.option_keys))
            yield from found or (tables.options_object,)
        for tool in _objects(mapping.get("tools")):
            yield from _found(tool, tables.tool_keys)
    message_keys = tables.message_keys
    for message in _objects(messages):
        # Inlined for speed: a history is long, and an iterator for each message costs more than the look-ups.
        for key in message:
            if key in message_keys:
                yield message_keys[key]
        if "type" in message:
            yield from _typed(message, tables)
        if "tool_calls" in message:
            yield from _of_calls(message["tool_calls"], tables)
        content = message.get("content")
        if content is not None and type(content) is not str:
            yield from _of_blocks(content, tables)


def _of_model(model_id: str, body: Mapping[str, object], tables: _Tables) -> Iterator[_Clue]:
    for prefix, needed, clue in tables.model_ids:
        if model_id.startswith(prefix) and (needed is None or needed in body or _RESPONSE_SETTINGS.isdisjoint(body)):
            yield clue


def _of_calls(calls: object, tables: _Tables) -> Iterator[_Clue]:
    for call in _objects(calls):
        function = call.get("function")
        if isinstance(function, (dict, Mapping)):
            arguments = cast("Mapping[str, object]", function).get("arguments")
            if type(arguments) is not str and isinstance(arguments, Mapping):
                yield tables.object_arguments


def _of_blocks(content: object, tables: _Tables) -> Iterator[_Clue]:
    block_keys = tables.block_keys
    for block in _objects(content):
        for key in block:
            if key in block_keys:
                yield block_keys[key]
        if "type" in block:
            yield from _typed(block, tables)
        elif "text" in block:
            yield tables.untyped_text


def _objects(value: object) -> Sequence[Mapping[str, object]]:
    if not isinstance(value, (list, tuple)):
        return ()
    # JSON objects are dicts; the check for any other mapping costs ten times as much, so it comes second.
    items = cast("Sequence[object]", value)
    return [cast("Mapping[str, object]", item) for item in items if type(item) is dict or isinstance(item, Mapping)]


def _found(mapping: Mapping[str, object], table: Mapping[str, _Clue]) -> Iterator[_Clue]:
    return (table[key] for key in mapping if key in table)


def _typed(mapping: Mapping[str, object], tables: _Tables) -> Iterator[_Clue]:
    kind = mapping.get("type")
    if isinstance(kind, str) and kind in tables.types:
        yield tables.types[kind]
