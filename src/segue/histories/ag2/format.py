"""The record of AG2: the events of a stream's history."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from segue.histories.ag2.codec import CODEC, EVENT, NAME, TITLE
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    Framework,
    close_list,
    framework_format,
    from_package,
    give_json,
    items_of,
    list_opener,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import number_of, object_of, text_of
from segue.histories.kit.samples import read_samples

_CREATED: Final = "created_at"


def _is_event(entry: Mapping[str, Any]) -> bool:
    return (text_of(entry.get(EVENT)) or "").startswith(f"{NAME}.")


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add the times that every event has, also those inside of others."""
    now = draft.started / 1000
    completed: list[Entry] = []
    for entry in entries:
        given = number_of(entry.get(_CREATED))
        now = now + 0.001 if given is None else given
        completed.append(cast("Entry", _timed(entry, now)))
    return completed


def _timed(value: object, time: float) -> object:
    if isinstance(value, list):
        return [_timed(item, time) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    fields: dict[str, object] = {key: _timed(item, time) for key, item in object_of(cast("object", value)).items()}
    return {_CREATED: time, **fields} if EVENT in fields else fields


def _plain(value: object) -> object:
    if not from_package(value, NAME):
        return value
    serialization: Any = import_module("ag2.events._serialization")
    return serialization.serialize_value(items_of(value) or [value])


def _give(files: tuple[WrittenFile, ...]) -> object:
    serialization: Any = import_module("ag2.events._serialization")
    value = give_json(files)
    return serialization.deserialize_value(object_of(value).get("messages", value))


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(_is_event),
    close=close_list,
    complete=_complete,
    plain=_plain,
    stores_system=False,
    file_name="events.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="ag2 1.2.1, its own dump",
)
