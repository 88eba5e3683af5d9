"""Detect the protocol of a body from weighted clues.

Each protocol declares its own clues (`segue.protocols.kit.clues`). Weights are added, and each clue counts once,
because vendors add keys of their own anywhere. A body without any clue whose messages have a role belongs to the
protocol with `plain_messages`: openai-chat, the most common one. A key that two protocols share counts for both, so
that many such keys do not outweigh the one clue that separates them. The key that holds the turns outweighs all clues:
a body with `messages` is never a request of a protocol whose turns are in `input`, even if a tool has its format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, cast, final

from segue.protocols.kit.clues import Clues
from segue.protocols.kit.json_values import object_of
from segue.protocols.registry import all_clues, registered_count

_Clue = Mapping[str, int]
"""The weight of one key or value for each protocol."""

_TURN_KEYS: Final = frozenset({"role", "parts", "call_id", "content"})
"""In every protocol, a turn has one of these keys."""
_RESPONSE_SETTINGS: Final = frozenset({"stream", "temperature", "top_p", "stop", "n"})
"""Keys that a request for a response may have, and a request to count tokens does not have."""


@final
class _Tables:
    """The clues of all protocols, indexed by key."""

    def __init__(self, clues: Mapping[str, Clues]) -> None:
        self.clues = clues
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
        self._model_ids: tuple[tuple[str, str | None, _Clue], ...] = tuple(
            (prefix, each.model_ids_need, {name: weight})
            for name, each in clues.items()
            for prefix, weight in each.model_ids.items()
        )
        self.of_model = lru_cache(maxsize=256)(self._of_model)
        self._others: dict[tuple[str, ...], tuple[str, ...]] = {}

    def _of_model(self, model_id: str) -> tuple[tuple[str | None, _Clue], ...]:
        """Return the clues of a model id, each with the key that the body needs."""
        return tuple((needed, clue) for prefix, needed, clue in self._model_ids if model_id.startswith(prefix))

    def find_turns(self, body: Mapping[str, object]) -> tuple[str, ...]:
        """Return the keys of turns that a body has."""
        return tuple([key for key in self.turns_keys if body.get(key) is not None])

    def with_other_turns(self, present: tuple[str, ...]) -> tuple[str, ...]:
        """Name the protocols whose turns are under another key than the present ones."""
        known = self._others.get(present)
        if known is None:
            others = [name for name, key in self.turns_key_of.items() if key not in present] if present else ()
            known = self._others[present] = tuple(others)
        return known


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
    scores: dict[str, int] = {}
    for clue in _find_clues(body, tables).values():
        for name, weight in clue.items():
            scores[name] = scores.get(name, 0) + weight
    if isinstance(body, list) and not scores and _is_plain(cast("list[object]", body)):
        scores.update(tables.plain_messages)
    if isinstance(body, (dict, Mapping)):
        for name in tables.with_other_turns(tables.find_turns(cast("Mapping[str, object]", body))):
            scores.pop(name, None)
    best = max(scores, key=scores.__getitem__, default=None)
    return best if best is not None and scores[best] > 0 else None


def has_turns(body: object, protocol: str) -> bool:
    """Whether a body has turns where this protocol has them: other data can have some keys of a request too."""
    if isinstance(body, (dict, Mapping)):
        tables, mapping = _read_tables(registered_count()), cast("Mapping[str, object]", body)
        key = tables.turns_key_of.get(protocol)
        if key is None:
            return True
        body = mapping.get(key)
        if not isinstance(body, (list, tuple)):
            return body is not None
        if not body:
            return True
    return any(not _TURN_KEYS.isdisjoint(item) for item in _objects(cast("object", body)))


def detect_reply(body: object, expected: str | None = None) -> str | None:
    """Name the protocol of a whole reply, the expected one if the reply has a key of it; None if no clue is found."""
    tables, scores, body = _read_tables(registered_count()), dict[str, int](), object_of(body)
    clues = tables.clues.get(expected or "")
    if clues is not None and not body.keys().isdisjoint(clues.reply_keys.keys() | clues.shared_reply_keys):
        return expected
    found: _Found = {}
    _add_keys(body, tables.reply_keys, found)
    for clue in found.values():
        for name, weight in clue.items():
            scores[name] = max(weight, scores.get(name, 0))
    return max(scores, key=scores.__getitem__) if scores else None


def _is_plain(messages: Sequence[object]) -> bool:
    return bool(messages) and all(isinstance(message, Mapping) and "role" in message for message in messages)


_Found = dict[int, _Clue]
"""The clues that were found by their identity, because each counts once."""


def _find_clues(body: object, tables: _Tables) -> _Found:
    found: _Found = {}
    messages: object = body
    if isinstance(body, (dict, Mapping)):
        mapping = cast("Mapping[str, object]", body)
        _add_keys(mapping, tables.body_keys, found)
        for key, clue in tables.object_keys.items():
            if key in mapping and isinstance(mapping[key], Mapping):
                _add(clue, found)
        present = tables.find_turns(mapping)
        messages = mapping[present[0]] if present else ()
        model_id = mapping.get("model")
        if isinstance(model_id, str):
            for needed, clue in tables.of_model(model_id):
                if needed is None or needed in mapping or _RESPONSE_SETTINGS.isdisjoint(mapping):
                    _add(clue, found)
        options = mapping.get("options")
        if options is not None and isinstance(options, Mapping):
            given = cast("Mapping[str, object]", options)
            _add_keys(given, tables.option_keys, found)
            if tables.option_keys.keys().isdisjoint(given):
                _add(tables.options_object, found)
        if "tools" in mapping:
            for tool in _objects(mapping["tools"]):
                _add_keys(tool, tables.tool_keys, found)
    _add_messages(messages, tables, found)
    return found


def _add_messages(messages: object, tables: _Tables, found: _Found) -> None:
    message_keys = tables.message_keys
    for message in _objects(messages):
        for key in message:  # as `_add_keys`, without a call for each message of a long history
            if key in message_keys:
                clue = message_keys[key]
                found[id(clue)] = clue
        if "type" in message:
            _add_type(message, tables, found)
        if "tool_calls" in message:
            _add_calls(message["tool_calls"], tables, found)
        content = message.get("content")
        if content is not None and type(content) is not str:
            _add_blocks(content, tables, found)


def _add(clue: _Clue, found: _Found) -> None:
    found[id(clue)] = clue


def _add_keys(mapping: Mapping[str, object], table: Mapping[str, _Clue], found: _Found) -> None:
    for key in mapping:
        if key in table:
            clue = table[key]
            found[id(clue)] = clue


def _add_calls(calls: object, tables: _Tables, found: _Found) -> None:
    if id(tables.object_arguments) in found:
        return
    for call in _objects(calls):
        function = call.get("function")
        if isinstance(function, (dict, Mapping)):
            arguments = cast("Mapping[str, object]", function).get("arguments")
            if type(arguments) is not str and isinstance(arguments, Mapping):
                _add(tables.object_arguments, found)


def _add_blocks(content: object, tables: _Tables, found: _Found) -> None:
    for block in _objects(content):
        _add_keys(block, tables.block_keys, found)
        if "type" in block:
            _add_type(block, tables, found)
        elif "text" in block:
            _add(tables.untyped_text, found)


def _add_type(mapping: Mapping[str, object], tables: _Tables, found: _Found) -> None:
    kind = mapping.get("type")
    if isinstance(kind, str) and kind in tables.types:
        _add(tables.types[kind], found)


def _objects(value: object) -> Sequence[Mapping[str, object]]:
    if not isinstance(value, (list, tuple)):
        return ()
    # JSON objects are dicts; the check for any other mapping costs ten times as much, so it comes second.
    items = cast("Sequence[object]", value)
    return [cast("Mapping[str, object]", item) for item in items if type(item) is dict or isinstance(item, Mapping)]
