"""The record of OpenTelemetry's messages: the value of `gen_ai.input.messages`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from segue.histories.kit.framework import (
    Framework,
    close_list,
    framework_format,
    give_json,
    list_opener,
)
from segue.histories.kit.lines import objects_of, text_of
from segue.histories.kit.samples import read_samples
from segue.histories.opentelemetry.codec import CODEC, TITLE

_PARTS: Final = frozenset(
    {"text", "reasoning", "thinking", "tool_call", "tool_call_response", "blob", "binary", "uri", "file"}
)


def _is_message(entry: Mapping[str, Any]) -> bool:
    parts = objects_of(entry.get("parts"))
    known = all(text_of(part.get("type")) in _PARTS and "text" not in part for part in parts)
    return text_of(entry.get("role")) is not None and isinstance(entry.get("parts"), list) and known


FRAMEWORK: Final = Framework(codec=CODEC, title=TITLE, open=list_opener(_is_message), close=close_list)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=give_json,
    samples=read_samples(__package__),
    title="OpenTelemetry GenAI messages",
    source="semantic-conventions-genai b49cb9d; dumps of pydantic-ai",
)
