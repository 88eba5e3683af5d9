"""The record of Microsoft's Agent Framework: a list of `Message.to_dict()`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from segue.histories.agent_framework.codec import CODEC, TITLE
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
from segue.histories.kit.lines import object_of
from segue.histories.kit.samples import read_samples


def _is_message(entry: Mapping[str, Any]) -> bool:
    return "role" in entry and isinstance(entry.get("contents"), list)


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("agent_framework")
    value = give_json(files)
    return [types.Message.from_dict(entry) for entry in items_of(object_of(value).get("messages", value))]


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(_is_message),
    close=close_list,
    plain=dumped_by("to_dict", "agent_framework"),
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    title="Microsoft Agent Framework",
    source="agent-framework-core 1.23.0, its own dump",
)
