"""The client's own types, made strict, as judges of our requests.

As they stand they prove nothing: a message may be any mapping, and unknown keys are ignored. What the server reads and
the client does not know (ids, `truncate`, `shift`, `min_p`; server source @fb30760, read 2026-11-15) is looked at here.
Schemas of tools are open: the server ignores keywords it does not know.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ollama._types import ChatRequest, Message, Options, Tool
from pydantic import TypeAdapter, ValidationError

from protocols.strict_models import Strict

_BEYOND = {"truncate": bool, "shift": bool}


@lru_cache
def judge(kind: type) -> TypeAdapter[object]:
    """Give what accepts one of the client's types, or raises."""
    return Strict().adapter(kind)


def complaints(body: dict[str, object], endpoint: object = None) -> list[str]:  # the same in every folder
    """Say what the client's own types have against a request."""
    try:
        _judge(body)
    except (ValidationError, AssertionError, AttributeError, TypeError) as error:
        return [str(error)]
    return []


def _judge(body: dict[str, Any]) -> None:
    for key, kind in _BEYOND.items():
        assert isinstance(body.get(key), kind | None), key
    assert body["model"], "no model"
    # A tool, a message and the options are looked at below, each by its own type.
    frame = {key: value for key, value in body.items() if key not in {*_BEYOND, "messages", "tools", "options"}}
    judge(ChatRequest).validate_python(frame)
    for message in body["messages"]:
        judge(Message).validate_python(_as_known(message))
    for tool in body.get("tools") or []:
        judge(Tool).validate_python(_without_unknown_words(tool))
    options = dict(body.get("options") or {})
    assert isinstance(options.pop("min_p", 0.0), float | int), "min_p"
    judge(Options).validate_python(options)


def _as_known(message: dict[str, Any]) -> dict[str, Any]:
    """Give a message in the client's words: without the ids it does not know, pictures wrapped as it wraps them."""
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
"""What the client has a type for; it takes anything under `items` and `$defs`."""


def _without_unknown_words(tool: dict[str, Any]) -> dict[str, Any]:
    function = dict(tool["function"])
    schema = {key: value for key, value in function["parameters"].items() if key in _SCHEMA}
    schema["properties"] = {
        name: {key: value for key, value in inner.items() if key in _PROPERTY}
        for name, inner in schema.get("properties", {}).items()
    }
    function["parameters"] = schema
    return {**tool, "function": function}
