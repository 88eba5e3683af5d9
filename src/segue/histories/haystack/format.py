"""The record of Haystack: a list of `ChatMessage.to_dict()`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, cast

from segue.histories.haystack.codec import CODEC, TITLE
from segue.histories.kit.framework import (
    Framework,
    close_list,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_opener,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples


def _is_message(entry: Mapping[str, Any]) -> bool:
    content = entry.get("content")
    untyped = (
        all("type" not in object_of(part) for part in cast("list[object]", content))
        if isinstance(content, list)
        else False
    )
    return text_of(entry.get("role")) is not None and "meta" in entry and untyped


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("haystack.dataclasses")
    value = give_json(files)
    return [types.ChatMessage.from_dict(entry) for entry in items_of(object_of(value).get("messages", value))]


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=list_opener(_is_message), close=close_list, plain=dumped_by("to_dict", "haystack")
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="haystack-ai 3.4.0, its own dump",
)
