"""Bodies made of the fields that the SDKs have, and what of a body was sent; for tests of identity."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

NOT_TRIED: Final = frozenset({"model", "modelId", "messages", "contents", "input", "stream", "prompt", "system"})
"""Fields of every request, of the conversation, and those that name something at a provider."""
REFERENCES: Final = frozenset(
    {"conversation", "previous_response_id", "previous_interaction_id", "cachedContent", "cached_content", "container"}
    | {"thread", "agent", "agent_config", "environment", "continuation_token", "continuationToken", "promptVariables"}
)
NO_TYPES: Final = {"body": "#None", "objects": {"None": {"fields": {}}}}


@cache
def fields_of(protocol: str) -> Mapping[str, Any]:
    file = files("segue.protocols") / protocol.replace("-", "_") / "request_fields.json"
    return json.loads(file.read_text()) if file.is_file() else NO_TYPES


def value_of(spec: Any, objects: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value of a type: the simplest one that says something; None if there is none."""
    match spec:
        case "string":
            return "abc"
        case "number" | "integer":
            return 1
        case "boolean":
            return True
        case {"enum": [*values]}:
            return values[-1]
        case {"list": inner}:
            value = value_of(inner, objects, depth + 1)
            return None if value is None else [value]
        case {"map": inner}:
            value = value_of(inner, objects, depth + 1)
            return None if value is None else {"a": value}
        case {"union": [*kinds]}:
            return next((value for kind in kinds if (value := value_of(kind, objects, depth + 1)) is not None), None)
        case str() if spec.startswith("#") and depth < 3:
            known = objects[spec[1:]]
            wanted = known.get("required", ()) if depth else known["fields"]
            made = {key: value_of(known["fields"][key], objects, depth + 1) for key in wanted if key in known["fields"]}
            return {key: value for key, value in made.items() if value is not None} or None
        case _:
            return None


@cache
def values_of(protocol: str) -> Mapping[str, Any]:
    """Return a value for every field of a request."""
    table = fields_of(protocol)
    objects = table["objects"]
    typed = objects[str(table["body"])[1:]]["fields"]
    made = {key: value_of(spec, objects) for key, spec in typed.items() if key not in NOT_TRIED | REFERENCES}
    return {key: value for key, value in made.items() if value is not None}


def leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], object]]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from leaves(item, (*path, index))
    elif value is not None:
        yield path, value


def missing(body: Mapping[str, Any], sent: Mapping[str, Any]) -> set[str]:
    """Return the fields of a body that were not sent as they are; a limit may have its newer name."""
    got = dict(leaves(sent))
    limit = got.get(("max_completion_tokens",), got.get(("max_tokens",)))
    return {
        str(path[0])
        for path, value in leaves(dict(body))
        if got.get(path, ...) != value
        and not (path in {("max_tokens",), ("max_completion_tokens",)} and value == limit)
    }


OWN_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "thinking": ("reasoning_effort", "reasoning", "output_config", "additionalModelRequestFields"),
    "tool": ("tools", "toolConfig", "functions", "tool_choice", "function_call", "web_search_options"),
    "output_schema": ("response_format", "text", "outputConfig", "format"),
    "options": ("generationConfig", "inferenceConfig", "generation_config"),
    "session_id": ("prompt_cache_key",),
    "user_id": ("user", "safety_identifier", "metadata"),
    "cache_retention": ("prompt_cache_retention", "cache_control"),
    "stop": ("stop_sequences",),
    "seed": ("random_seed",),
    "max_tokens": ("max_completion_tokens", "max_output_tokens"),
    "top_p": ("p",),
    "system": ("instructions", "systemInstruction", "system_instruction"),
}
"""What a report calls a field of a body that is an option."""


def is_told(name: str, value: object, told: str) -> bool:
    names = [name, *(own for own, wires in OWN_NAMES.items() if name in wires)]
    inner = list(cast("dict[str, object]", value)) if isinstance(value, dict) else []
    return any(one in told for one in (*names, *inner))
