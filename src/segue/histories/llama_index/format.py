"""The record of LlamaIndex: a list of `ChatMessage`, or the JSON of a `SimpleChatStore`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    list_of,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.llama_index.codec import CODEC, TITLE


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("role")) is not None and isinstance(entry.get("blocks"), list)


def _open(value: object, session: str | None) -> EntryList | None:
    store = object_of(object_of(value).get("store"))
    rest: dict[str, Any] = {}
    key: str | None = None
    if store:
        key = session if session in store else next(iter(store))
        rest = {"whole": {**object_of(value), "store": {**store, key: None}}, "key": key}
        value = cast("object", store[key])
    entries = list_of(value)
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    return EntryList(entries, rest, id=key, others=max(0, len(store) - 1))


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    whole, key = object_of(rest.get("whole")), rest.get("key")
    return {**whole, "store": {**object_of(whole.get("store")), key: entries}} if whole else entries


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("llama_index.core.llms")
    document = _open(give_json(files), None)
    return [types.ChatMessage.model_validate(entry) for entry in ([] if document is None else document.entries)]


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=_open, close=_close, plain=dumped_by("model_dump_json", "llama_index")
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="llama-index-core 0.14.25, run against a scripted model",
)
