"""The record of AG-UI: a list of messages, or the input of a run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from segue.histories.ag_ui.codec import CODEC, TITLE
from segue.histories.kit.framework import (
    Framework,
    add_ids,
    close_list,
    dumped_by,
    framework_format,
    give_json,
    list_opener,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "reasoning", "activity"})


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("role")) in _ROLES and "id" in entry and ("content" in entry or "toolCalls" in entry)


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("ag_ui.core")
    pydantic: Any = import_module("pydantic")
    value = give_json(files)
    entries = object_of(value).get("messages", value)
    return pydantic.TypeAdapter(list[types.Message]).validate_python(entries)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(_is_message),
    close=close_list,
    complete=add_ids,
    plain=dumped_by("model_dump_json", "ag_ui", alone=True, by_alias=True, exclude_none=True),
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="ag-ui-protocol 1.0.0; dumps of pydantic-ai's adapter",
)
