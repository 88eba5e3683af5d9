"""The record of pydantic-ai."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import msgspec

from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    framework_format,
    from_package,
    has_separate_instructions,
    items_of,
    list_of,
    prompt_text,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import objects_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.pydantic_ai.codec import CODEC, stamp_of


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("kind")) in {"request", "response"} and isinstance(entry.get("parts"), list)


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    entries = list_of(value)
    if entries is None or not any(_is_message(entry) for entry in entries):
        return None
    instructions = [text for entry in entries if (text := text_of(entry.get("instructions")))]
    names = (text_of(entry.get("conversation_id")) for entry in entries)
    return EntryList(
        entries,
        id=next((name for name in names if name), None),
        system=instructions[-1] if instructions else None,
    )


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add times, because the framework would replace a missing one by the current time."""
    now = draft.started
    completed: list[Entry] = []
    for entry in entries:
        parts: list[Entry] = []
        for part in objects_of(entry.get("parts")):
            now = milliseconds_of(part.get("timestamp")) or now
            needs = "timestamp" in part and part["timestamp"] is None
            parts.append({**part, "timestamp": stamp_of(now)} if needs else part)
        now = milliseconds_of(entry.get("timestamp")) or now
        needs = entry.get("kind") == "response" and entry.get("timestamp") is None
        completed.append({**entry, "parts": parts, **({"timestamp": stamp_of(now)} if needs else {})})
    return completed


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    """Write the instructions back to the newest request that had them, or else to the newest one."""
    requests = [at for at, entry in enumerate(entries) if entry.get("kind") == "request"]
    if not requests or not has_separate_instructions(draft.history.context, CODEC.name):
        return entries
    newest = max((at for at in requests if text_of(entries[at].get("instructions"))), default=requests[-1])
    entries[newest] = {**entries[newest], "instructions": prompt_text(draft.history.context)}
    return entries


def _plain(value: object) -> object:
    """Make JSON of messages, or of the result of a run."""
    if from_package(value, "pydantic_ai") and hasattr(value, "all_messages"):
        result: Any = value
        value = result.all_messages()
    if not from_package(value, "pydantic_ai"):
        return value
    adapter: Any = import_module("pydantic_ai.messages")
    data = adapter.ModelMessagesTypeAdapter.dump_json(items_of(value) or [value])
    return msgspec.json.decode(data)


def _give(files: tuple[WrittenFile, ...]) -> object:
    adapter: Any = import_module("pydantic_ai.messages")
    return adapter.ModelMessagesTypeAdapter.validate_json(files[0].data)


FRAMEWORK: Final = Framework(
    codec=CODEC, title="pydantic-ai", open=_open, close=_close, complete=_complete, plain=_plain
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="pydantic-ai 2.66.0, run against a scripted model",
)
