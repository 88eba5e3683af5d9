"""The record of the AI SDK: a list of `UIMessage`, or the body that a chat page sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, add_ids, framework_format, give_json, list_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.vercel_ui.codec import CODEC, TITLE

_ROLES: Final = frozenset({"system", "user", "assistant"})


def _is_message(entry: Mapping[str, Any]) -> bool:
    parts = objects_of(entry.get("parts"))
    typed = all(isinstance(part.get("type"), str) for part in parts)
    return text_of(entry.get("role")) in _ROLES and isinstance(entry.get("parts"), list) and typed


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        whole = object_of(cast("object", value))
        rest = {"body": {key: item for key, item in whole.items() if key != "messages"}}
        value = cast("object", whole.get("messages"))
    entries = list_of(value)
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    return EntryList(entries, rest, id=text_of(object_of(rest.get("body")).get("id")))


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    body = rest.get("body")
    return {"messages": entries, **cast("Mapping[str, Any]", body)} if isinstance(body, Mapping) else entries


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=_open, close=_close, complete=add_ids, file_name="ui-messages.json"
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    title="Vercel AI SDK (UIMessage)",
    source="ai 6.0.326 and 7.0.169, run against a scripted model",
)
