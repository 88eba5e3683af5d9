"""Every leaf of a request is in the converted request or in its report.

The fields are those of the official SDKs (`request_fields.json`), each with values that its type has. A field is added
to a body; converting must then differ from converting without it, in the request or in the report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pytest

from segue import Context, Model, ToolDefinition, UserMessage, get_model, prepare
from segue.protocols.registry import get_protocol
from segue.requests.prepare import Request, convert

MODELS: Final[Mapping[str, Model]] = {
    "openai-chat": Model("gpt-4.1", "openai", "openai-chat"),
    "openai-responses": get_model("openai/gpt-5.4"),
    "anthropic-messages": get_model("anthropic/claude-sonnet-4-5"),
    "google-genai": get_model("google/gemini-2.5-flash"),
    "bedrock-converse": get_model("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "mistral-chat": get_model("mistral/mistral-large-latest"),
    "cohere-chat": Model("command-a-03-2025", "cohere", "cohere-chat"),
}
TOOL: Final = ToolDefinition(name="word", parameters={"type": "object", "properties": {}})
TARGETS: Final = {
    **MODELS,
    "another model": get_model("google/gemini-3.1-pro-preview"),
    "another vendor": get_model("groq/llama-3.3-70b-versatile"),
    "a local server": Model("qwen3", "my-server", "openai-chat"),
    "ollama-chat": Model("qwen3", "ollama", "ollama-chat"),
}
_ELSEWHERE: Final = frozenset(
    {
        "messages",
        "input",
        "contents",
        "model",
        "modelId",
        "system",
        "systemInstruction",
        "instructions",
        "tools",
        "stream",
        "web_search_options",
    }
)
"""The conversation and the tools, which have laws of their own, and the keys that a request always sets."""
_DEPTH: Final = 4

SAYS_NOTHING: Final[Mapping[str, object]] = {
    "reasoning_effort": "none",  # towards models that do not think
    "reasoning": {"effort": "none"},
    "thinking": {"type": "disabled"},
    "prompt_cache_retention": "in_memory",  # the default
}
"""Fields with a value that means what a body without them means. The URL of some protocols says whether to stream."""


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        return all(_is_default(inner, default.get(name)) for name, inner in value.items())
    return value == default and isinstance(value, bool) == isinstance(default, bool)


@cache
def _fields(protocol: str) -> Mapping[str, Any]:
    package = "segue.protocols." + protocol.replace("-", "_")
    return json.loads(files(package).joinpath("request_fields.json").read_text())


def _values(kind: Any, objects: Mapping[str, Any], depth: int) -> Iterator[Any]:
    """Yield values of a type; of an object, one for each of its fields."""
    if isinstance(kind, str):
        if kind.startswith("#"):
            yield from _values({"of": kind[1:]}, objects, depth)
        else:
            yield from {"string": ("word",), "integer": (3,), "number": (0.25,), "boolean": (True, False)}.get(kind, ())
        return
    if "enum" in kind:
        yield from kind["enum"]
    elif "is" in kind:
        yield from _values(kind["is"], objects, depth)
    elif "union" in kind:
        for one in kind["union"]:
            yield from _values(one, objects, depth)
    elif "list" in kind:
        yield from ([value] for value in _values(kind["list"], objects, depth))
    elif "of" in kind and depth:
        described = objects.get(kind["of"], {})
        fields = described.get("fields", {})
        needed = {}
        for name in described.get("required", ()):
            first = next(_values(fields.get(name, "string"), objects, depth - 1), None)
            if first is not None:
                needed[name] = first
        for name, inner in fields.items():
            for value in _values(inner, objects, depth - 1):
                yield {**needed, name: value}


def _additions(protocol: str) -> Iterator[tuple[str, Any]]:
    described = _fields(protocol)
    objects = described["objects"]
    body = objects[described["body"][1:]]
    defaults = get_protocol(protocol).default_fields
    for name, kind in body["fields"].items():
        if name not in _ELSEWHERE:
            for value in _values(kind, objects, _DEPTH):
                if not _is_default(value, defaults.get(name)) and not _is_default(value, SAYS_NOTHING.get(name)):
                    yield name, value


def _full(kind: Any, objects: Mapping[str, Any], depth: int) -> Any:
    """Return an object with all its fields, or the first value of another type; None if there is none."""
    if isinstance(kind, str) and kind.startswith("#") and depth:
        fields = objects.get(kind[1:], {}).get("fields", {})
        inner = {name: _full(one, objects, depth - 1) for name, one in fields.items()}
        return {name: value for name, value in inner.items() if value is not None}
    if isinstance(kind, Mapping) and "union" in kind:
        return _full(kind["union"][-1], objects, depth)
    return next(_values(kind, objects, depth), None)


def _changed(value: Any, kind: Any, objects: Mapping[str, Any], depth: int) -> Iterator[Any]:
    """Yield a value with one leaf changed or removed, for each leaf."""
    if isinstance(kind, str) and kind.startswith("#") and isinstance(value, dict) and depth:
        for name, inner in objects.get(kind[1:], {}).get("fields", {}).items():
            if name in value:
                yield {key: item for key, item in value.items() if key != name}
                yield from ({**value, name: item} for item in _changed(value[name], inner, objects, depth - 1))
    elif not isinstance(value, (dict, list)):
        yield from (other for other in _values(kind, objects, depth) if other != value)


def _cases(protocol: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield fields of a body, and the same with one leaf more or another one."""
    described = _fields(protocol)
    objects = described["objects"]
    for name, value in _additions(protocol):
        yield {}, {name: value}
    for name, kind in objects[described["body"][1:]]["fields"].items():
        if name not in _ELSEWHERE and isinstance(full := _full(kind, objects, _DEPTH), dict):
            for other in _changed(full, kind, objects, _DEPTH):
                yield {name: full}, {name: other}


def _lost(protocol: str, target: Model) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    model = MODELS[protocol]
    plain = prepare(Context(messages=(UserMessage.of("Reply in JSON."),), tools=(TOOL,)), model).body
    known: dict[str, Request] = {}
    for before, after in _cases(protocol):
        given = [{**plain, **before}, {**plain, **after}]
        if given[0] == given[1]:
            continue
        made: list[Request] = []
        for body in given:
            key = json.dumps(body)
            if key not in known:
                known[key] = convert(body, source=protocol, source_model=model, target=target)
            made.append(known[key])
        changes = made[1].report.changes
        is_named = any(name in change.detail or name in change.path for name in after for change in changes)
        if made[0].content == made[1].content and made[0].report == made[1].report and not is_named:
            yield before, after


@pytest.mark.parametrize("protocol", MODELS)
def test_a_field_is_sent_or_reported(protocol: str) -> None:
    lost = [(label, *case) for label, target in TARGETS.items() for case in _lost(protocol, target)]
    assert not lost, json.dumps(lost)[:3000]
