"""Makes a reply storable as JSON, whatever the server sent.

Facts this file relies on:
- Servers written in Python send `NaN` for missing numbers, mostly in log probabilities, and `json.loads` accepts it.
  Standard JSON does not support it.                                              (RFC 8259; vLLM, seen 2026)
- No text is lost: such values occur only in fields that segue stores without interpreting them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.messages import AssistantMessage, Diagnostic
from segue.conversation.stored import dump_message
from segue.errors import DumpError

_DEEPEST: Final = 100
"""Levels of nesting that are kept: stored JSON allows 200, and the message around the value takes some."""
_TOO_DEEP: Final = "(nested too deeply to be stored)"
_Values = TypeVar("_Values", bound=Mapping[str, object] | None)


def make_storable(message: AssistantMessage) -> AssistantMessage:
    """Return the message, with text in place of each value that cannot be stored and a diagnostic about it."""
    try:
        dump_message(message)
    except DumpError as error:
        note = Diagnostic(
            type="unstorable", message=f"values that JSON cannot store were replaced by text: {error.reason}"
        )
        return replace(
            message,
            content=tuple(map(_repair_content, message.content)),
            diagnostics=(*map(_repair_details, message.diagnostics), note),
            extra=_repair_all(message.extra),
        )
    return message


def _repair_content(content: AssistantContent) -> AssistantContent:
    extra = _repair_all(content.extra)
    match content.kind:
        case "text" | "thinking":
            return replace(content, extra=extra)
        case "toolCall":
            return replace(content, arguments=_repair_all(content.arguments), extra=extra)
        case "native":
            return replace(content, block=_repair_all(content.block), extra=extra)


def _repair_details(diagnostic: Diagnostic) -> Diagnostic:
    return replace(diagnostic, details=_repair_all(diagnostic.details))


def _repair_all(values: _Values) -> _Values:
    return cast("_Values", _repair(values, _DEEPEST))


def _repair(value: object, levels: int) -> object:
    if isinstance(value, Mapping | list):
        if levels == 0:
            return _TOO_DEEP
        if isinstance(value, list):
            return [_repair(item, levels - 1) for item in cast("list[object]", value)]
        return {key: _repair(item, levels - 1) for key, item in cast("Mapping[str, object]", value).items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
