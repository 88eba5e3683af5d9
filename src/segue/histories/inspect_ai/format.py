"""The record of Inspect AI: the messages of a sample in an evaluation log, or a list of messages.

Facts this file rests on (inspect-ai 0.3.285, 2026-11-15):
- Images and long texts of a log are stored once, in `attachments`, and named `attachment://<hash>`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from segue.histories.inspect_ai.codec import CODEC, TITLE
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_of,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import milliseconds_of

_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_ATTACHMENT: Final = "attachment://"
_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _replaced(value: object, names: Mapping[str, str]) -> object:
    """Replace texts in a value; used to resolve attachments, and to write them again."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_replaced(item, names) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _replaced(item, names) for key, item in object_of(cast("object", value)).items()}
    return value


def _texts_in(value: object) -> set[str]:
    if isinstance(value, str):
        return {value} if value.startswith(_ATTACHMENT) else set()
    inner = object_of(value).values() or items_of(value)
    return {text for item in inner for text in _texts_in(item)}


def _attachments(sample: Mapping[str, Any]) -> dict[str, str]:
    stored = object_of(sample.get("attachments"))
    return {f"{_ATTACHMENT}{name}": text for name, text in stored.items() if isinstance(text, str)}


def _open(value: object, session: str | None) -> EntryList | None:
    whole = object_of(value)
    if not whole:
        entries = list_of(value)
        found = entries and any(text_of(entry.get("role")) in _ROLES for entry in entries)
        return EntryList(entries) if entries and found else None
    samples_ = objects_of(whole.get("samples")) if "samples" in whole else [whole] if "attachments" in whole else []
    if not samples_:
        return None
    chosen = [at for at, sample in enumerate(samples_) if str(sample.get("id")) == session] or [0]
    sample = samples_[chosen[0]]
    entries = list_of(_replaced(sample.get("messages"), _attachments(sample)))
    if entries is None:
        return None
    return EntryList(
        entries,
        {"log": value, "at": chosen[0]},
        id=text_of(sample.get("uuid")),
        created=milliseconds_of(sample.get("started_at")),
        updated=milliseconds_of(sample.get("completed_at")),
        others=len(samples_) - 1,
    )


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add ids: 22 characters, as the framework makes them."""
    completed: list[Entry] = []
    for at, entry in enumerate(entries):
        digest = hashlib.sha256(f"{draft.id} {at}".encode()).digest()
        made = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:22])
        completed.append(entry if "id" in entry else {"id": made, **entry})
    return completed


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    log, at = object_of(rest.get("log")), rest.get("at")
    if not log or not isinstance(at, int):
        return entries
    samples_ = items_of(log["samples"]) if "samples" in log else [log]
    sample = object_of(samples_[at])
    used = _texts_in(sample.get("messages"))
    names = {text: name for name, text in _attachments(sample).items() if name in used}
    samples_[at] = {**sample, "messages": _replaced(entries, names)}
    return {**log, "samples": samples_} if "samples" in log else samples_[at]


def _give(files: tuple[WrittenFile, ...]) -> object:
    model: Any = import_module("inspect_ai.model")
    pydantic: Any = import_module("pydantic")
    whole = give_json(files)
    document = _open(whole, None)
    entries: list[Entry] = [] if document is None else document.entries
    return pydantic.TypeAdapter(list[model.ChatMessage]).validate_python(entries)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    close=_close,
    complete=_complete,
    plain=dumped_by("model_dump_json", "inspect_ai", alone=True, exclude_none=True),
    file_name="messages.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="inspect-ai 0.3.285, run against a scripted model",
)
