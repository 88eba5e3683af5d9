"""Validate requests with the client's own types, made strict.

Unchanged, the types accept any mapping as a message and ignore unknown keys. Fields that only the server has (ids,
`truncate`, `shift`, `min_p`; server source @fb30760, read 2026-11-15) are checked here. Schemas of tools are open: the
server ignores unknown keywords.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ollama._types import ChatRequest, Message, Options, Tool
from pydantic import TypeAdapter, ValidationError

from protocols.strict_models import Strict

_BEYOND = {"truncate": bool, "shift": bool}


@lru_cache
def validator(kind: type) -> TypeAdapter[object]:
    """Give the strict validator of one of the client's types."""
    return Strict().adapter(kind)


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:  # the same in every folder
    """List the errors that the client's own types find in a request."""
    try:
        _validate(body)
    except (ValidationError, AssertionError, AttributeError, TypeError) as error:
        return [str(error)]
    return []


def _validate(body: dict[str, Any]) -> None:
    for key, kind in _BEYOND.items():
        assert isinstance(body.get(key), kind | None), key
    assert body["model"], "no model"
    # Tools, messages and options are checked below, each by its own type.
    frame = {key: value for key, value in body.items() if key not in {*_BEYOND, "messages", "tools", "options"}}
    validator(ChatRequest).validate_python(frame)
    for message in body["messages"]:
        validator(Message).validate_python(_as_known(message))
    for tool in body.get("tools") or []:
        validator(Tool).validate_python(_without_unknown_keywords(tool))
    options = dict(body.get("options") or {})
    assert isinstance(options.pop("min_p", 0.0), float | int), "min_p"
    validator(Options).validate_python(options)


def _as_known(message: dict[str, Any]) -> dict[str, Any]:
    """Give a message in the client's format: without the ids, images wrapped."""
    known = dict(message)
    assert isinstance(known.pop("tool_call_id", ""), str), "tool_call_id"
    if "images" in known:
        known["images"] = [{"value": image} for image in known["images"]]
    if "tool_calls" in known:
        calls = [dict(call) for call in known["tool_calls"]]
        for call in calls:
            assert isinstance(call.pop("id", ""), str), "id"
            call["function"] = {key: value for key, value in call["function"].items() if key != "index"}
        known["tool_calls"] = calls
    return known


_SCHEMA = frozenset({"type", "required", "properties"})
_PROPERTY = frozenset({"type", "description", "enum"})
"""The keywords that the client has types for; it accepts anything under `items` and `$defs`."""


def _without_unknown_keywords(tool: dict[str, Any]) -> dict[str, Any]:
    function = dict(tool["function"])
    schema = {key: value for key, value in function["parameters"].items() if key in _SCHEMA}
    schema["properties"] = {
        name: {key: value for key, value in inner.items() if key in _PROPERTY}
        for name, inner in schema.get("properties", {}).items()
    }
    function["parameters"] = schema
    return {**tool, "function": function}
