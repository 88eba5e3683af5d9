"""The record of LangChain, and of LangGraph, whose state holds LangChain messages.

Facts this file rests on (langchain-core 1.7.2, langgraph 1.2.20, 2026-11-15):
- `dumpd` writes a message as `{"lc": 1, "type": "constructor", "id": [..., "AIMessage"], "kwargs": {...}}`.
- The state of a graph is an object with `messages` and further channels.
- A checkpoint is msgpack; an object in it is an extension of type 5 with module, class, fields and method.
- The newest checkpoint of a thread has the largest id.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

import msgspec

from segue.errors import LoadError
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, framework_format, from_package, items_of, list_of
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase
from segue.histories.langchain.codec import CODEC

_CLASSES: Final[Mapping[str, str]] = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
}
_KINDS: Final = {kind: name for name, kind in _CLASSES.items()}
_TYPES: Final = frozenset({*_KINDS, *(f"{name}Chunk" for name in _CLASSES), "remove"})
_ID: Final = ["langchain", "schema", "messages"]
_OMITTED: Final[Mapping[str, object]] = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "id": None}
"""Values that `dumpd` leaves out."""


# -- forms -------------------------------------------------------------------------------------------------------------


def _from_constructor(entry: Entry) -> Entry:
    names = entry.get("id")
    name = str(cast("list[object]", names)[-1]) if isinstance(names, list) and names else ""
    kwargs = object_of(entry.get("kwargs"))
    kind = text_of(kwargs.get("type")) or _CLASSES.get(name.removesuffix("Chunk"), name)
    return {"type": kind, "data": kwargs}


def _to_constructor(entry: Entry) -> Entry:
    data = object_of(entry.get("data"))
    kept = {key: value for key, value in data.items() if key not in _OMITTED or value != _OMITTED[key]}
    for name in ("artifact", "usage_metadata"):
        if kept.get(name, 0) is None:
            del kept[name]
    kind = str(entry.get("type"))
    return {"lc": 1, "type": "constructor", "id": [*_ID, _KINDS.get(kind, kind)], "kwargs": kept}


def _is_constructor(entry: Mapping[str, Any]) -> bool:
    return entry.get("lc") == 1 and "kwargs" in entry


def _is_message(entry: Mapping[str, Any]) -> bool:
    return _is_constructor(entry) or (text_of(entry.get("type")) in _TYPES and isinstance(entry.get("data"), dict))


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        state = object_of(cast("object", value))
        values = state.get("values")
        if "messages" not in state and isinstance(values, dict):  # a snapshot of a state
            rest["around"] = {key: item for key, item in state.items() if key != "values"}
            state = object_of(cast("object", values))
        rest["state"] = {key: item for key, item in state.items() if key != "messages"}
        value = state.get("messages")
    entries = list_of(value)
    if entries is None or not any(_is_message(entry) for entry in entries):
        return None
    if _is_constructor(entries[0]):
        rest["form"] = "constructor"
        entries = [_from_constructor(entry) if _is_constructor(entry) else entry for entry in entries]
    return EntryList(entries, rest)


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    found: object = [_to_constructor(entry) for entry in entries] if rest.get("form") == "constructor" else entries
    if isinstance(rest.get("state"), Mapping):
        found = {"messages": found, **rest["state"]}
    if isinstance(rest.get("around"), Mapping):
        found = {"values": found, **rest["around"]}
    return found


# -- checkpoints of LangGraph ------------------------------------------------------------------------------------------

_PYDANTIC: Final = 5


def _extension(code: int, data: memoryview) -> object:
    """Read an object of a checkpoint; one that is no message is given as its fields."""
    parts = msgspec.msgpack.decode(bytes(data), ext_hook=_extension)
    if code == _PYDANTIC and isinstance(parts, list) and len(cast("list[object]", parts)) >= 3:
        module, name, fields, *_ = cast("list[object]", parts)
        if isinstance(name, str) and isinstance(fields, dict) and str(module).startswith("langchain_core.messages"):
            found = object_of(cast("object", fields))
            return {"type": text_of(found.get("type")) or _CLASSES.get(name, name), "data": found}
    return cast("object", parts)


def _open_database(database: AgentDatabase, session: str | None) -> EntryList:
    if "checkpoints" not in database.tables():
        raise LoadError("the database has no table checkpoints; it is not one of LangGraph")
    rows = [
        row
        for row in database.rows("checkpoints", **({"thread_id": session} if session else {}))
        if not row.get("checkpoint_ns")
    ]
    if not rows:
        raise LoadError(f"the database has no thread {session!r}" if session else "the database has no checkpoint")
    row = max(rows, key=lambda each: str(each.get("checkpoint_id")))
    data = row.get("checkpoint")
    try:
        checkpoint = msgspec.msgpack.decode(cast("bytes", data), ext_hook=_extension)
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError) as error:
        raise LoadError(f"the newest checkpoint cannot be read: {error}") from error
    values = object_of(object_of(checkpoint).get("channel_values"))
    document = _open(_as_json({key: values[key] for key in values if not key.startswith(("__", "branch:"))}), None)
    if document is None:
        raise LoadError("the newest checkpoint has no messages of LangChain")
    threads = {str(each.get("thread_id")) for each in database.rows("checkpoints")}
    return document._replace(id=text_of(row.get("thread_id")), others=len(threads) - 1)


def _as_json(value: object) -> object:
    """Give a value as JSON; what is none, such as a time, as text."""
    return cast("object", msgspec.json.decode(msgspec.json.encode(value, enc_hook=str)))


# -- objects -----------------------------------------------------------------------------------------------------------


def _plain(value: object) -> object:
    """Make JSON of messages, of a state, or of the snapshot of a state, which has it in `values`."""
    fields = object_of(value) or object_of(cast("object", getattr(value, "values", None)))
    items: object = fields.get("messages", value)
    if not from_package(items, "langchain_core"):
        return value
    messages: Any = import_module("langchain_core.messages")
    dicts = messages.messages_to_dict(items_of(items) or [items])
    return {**fields, "messages": dicts} if "messages" in fields else dicts


def _give(files: tuple[WrittenFile, ...]) -> object:
    messages: Any = import_module("langchain_core.messages")
    value: object = msgspec.json.decode(files[0].data)
    state = object_of(value)
    state = object_of(state.get("values")) or state
    entries = [object_of(entry) for entry in items_of(state.get("messages") if state else value)]
    made = messages.messages_from_dict([_from_constructor(each) if _is_constructor(each) else each for each in entries])
    return {**state, "messages": made} if state else made


# -- the record --------------------------------------------------------------------------------------------------------


FRAMEWORK: Final = Framework(
    codec=CODEC, title="LangChain", open=_open, close=_close, open_database=_open_database, plain=_plain
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    title="LangChain and LangGraph",
    give=_give,
    samples=read_samples(__package__),
    source="langchain-core 1.7.2 and langgraph 1.2.20, run against a scripted model",
)
