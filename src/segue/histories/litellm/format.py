"""The record of LiteLLM: a list of messages in the form of Chat, with `thinking_blocks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from segue.histories.kit.chat_messages import ChatForm
from segue.histories.kit.framework import (
    Framework,
    close_list,
    framework_format,
    from_package,
    give_json,
    items_of,
    list_opener,
)
from segue.histories.kit.lines import text_of
from segue.histories.kit.samples import read_samples

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("role")) in _ROLES and ("content" in entry or "tool_calls" in entry)


def _plain(value: object) -> object:
    """Make JSON of messages: LiteLLM mixes dicts with the objects of its replies."""
    items: list[Any] = items_of(value)
    if not any(from_package(item, "litellm") for item in items):
        return value
    return [
        msgspec.json.decode(item.model_dump_json(exclude_none=True)) if from_package(item, "litellm") else item
        for item in items
    ]


FRAMEWORK: Final = Framework(
    codec=ChatForm(name="litellm", title="LiteLLM", blocks=True).codec(),
    title="LiteLLM",
    open=list_opener(_is_message, bare=True),
    close=close_list,
    plain=_plain,
)
FORMAT: Final = framework_format(
    FRAMEWORK, give=give_json, samples=read_samples(__package__), source="LiteLLM 1.106.2, run against a scripted model"
)
