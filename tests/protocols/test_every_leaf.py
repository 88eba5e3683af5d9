"""Every leaf of a request is in the converted request or in its report.

Options are the fields of the official SDKs (`request_fields.json`), each with values that its type has. A field is
added to a body; converting must then differ from converting without it, in the request or in the report.

Conversations and tools are the samples of every protocol. Each leaf is changed in turn; converting must then differ, in
the request or in the report, unless the report says that what the leaf belongs to was removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import pytest

from segue import Context, Model, SegueError, ToolDefinition, UserMessage, get_model, prepare
from segue.projection.report import ChangeCode
from segue.protocols.registry import all_protocols, get_protocol
from segue.requests.prepare import Request, convert

MODELS: Final[Mapping[str, Model]] = {
    "openai-chat": Model("gpt-4.1", "openai", "openai-chat"),
    "openai-responses": get_model("openai/gpt-5.4"),
    "anthropic-messages": get_model("anthropic/claude-sonnet-4-5"),
    "google-genai": get_model("google/gemini-2.5-flash"),
    "bedrock-converse": get_model("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "mistral-chat": get_model("mistral/mistral-large-latest"),
    "cohere-chat": Model("command-a-03-2025", "cohere", "cohere-chat"),
    "google-interactions": Model("gemini-2.5-flash", "google", "google-interactions"),
}
TOOL: Final = ToolDefinition(name="word", parameters={"type": "object", "properties": {}})
TARGETS: Final = {
    **{record.name: record.example for record in all_protocols()},
    **MODELS,
    "another model": get_model("google/gemini-3.1-pro-preview"),
    "another vendor": get_model("groq/llama-3.3-70b-versatile"),
    "a local server": Model("qwen3", "my-server", "openai-chat"),
    "ollama-chat": Model("qwen3", "ollama", "ollama-chat"),
    "vscode-lm": Model("any", "vscode", "vscode-lm"),
    "plain-text": Model("reader", "plain-text", "plain-text"),
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
    # Tools are removed where there are none, whatever they say.
    targets = {label: target for label, target in TARGETS.items() if label != "plain-text"}
    lost = [(label, *case) for label, target in targets.items() for case in _lost(protocol, target)]
    assert not lost, json.dumps(lost)[:3000]


# -- conversations and tools -------------------------------------------------------------------------------------------

Convert = Callable[..., Request]
_FORM: Final[Mapping[str, str]] = {
    "role": "another role than those that are known is read as the user's",
    "type": "another type than those that are known is read as the default, or as a block that only its protocol has",
    "index": "the order of the list says it",
    "status": "what a provider writes of an item that is finished; it says nothing in a request",
    "call_id": "the id of a result is that of the call before it",
    "name": "the name of a result is that of its call",
    "tool_name": "the name of a result is that of its call",
    "stream": "the URL says it",
    "prefix": "only a last turn can be continued",
    "mime_type": "a server that takes the bytes alone finds their type in them",
    "mimeType": "a server that takes the bytes alone finds their type in them",
}
"""Leaves whose change says nothing where the last key of their path is this one, with the reason."""
_SIGNED: Final = frozenset({"signature_removed", "thinking_as_text", "thinking_dropped", "thinking_blank"})
_REMOVED: Final[Mapping[str, frozenset[str]]] = {
    "signature": _SIGNED | {"thinking_unsigned", "native_replaced", "native_dropped"},
    "thoughtSignature": _SIGNED | {"thinking_unsigned"},
    "encrypted_content": _SIGNED,
    "phase": _SIGNED,
    "id": _SIGNED | {"native_replaced", "native_dropped"},
    "text": frozenset({"thinking_dropped"}),
    "thinking": frozenset({"thinking_dropped"}),
    "resolution": frozenset({"media_omitted", "media_flattened", "extra_removed"}),
    "data": frozenset({"media_omitted"}),
    "start_index": frozenset({"sources_as_text"}),
    "end_index": frozenset({"sources_as_text"}),
    "queries": frozenset({"native_dropped", "native_replaced"}),
    "search_type": frozenset({"native_dropped", "native_replaced"}),
    "search_suggestions": frozenset({"native_dropped", "native_replaced"}),
    "threshold": frozenset({"extra_removed"}),
    "tools": frozenset({"tool_removed"}),
}
"""A key in the path of a leaf -> the codes one of which says that what has the leaf was removed."""
_OPTIONS: Final[Mapping[str, str]] = {
    "budget_tokens": "thinking",
    "think": "thinking",
    "seed": "seed",
    "stop_sequences": "stop",
    "parallel_tool_calls": "parallel_tool_calls",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "toolMode": "tool_choice",
}
"""A key of a leaf -> the option that it is, which the report names where the target does not have it."""


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, index))
    elif value is not None:
        yield path, value


def _with(value: Any, path: tuple[Any, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    copied = list(value) if isinstance(value, list) else dict(value)
    copied[path[0]] = _with(value[path[0]], path[1:], leaf)
    return copied


def _another(leaf: Any) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    return f"{leaf}X" if isinstance(leaf, str) else leaf + 1 if isinstance(leaf, int) else leaf / 2


def _is_named(path: tuple[Any, ...], made: Request) -> bool:
    """Whether a leaf has no meaning of its own, or the report says that what it belongs to was removed."""
    keys = [key for key in path if isinstance(key, str)]
    changes = made.report.changes
    codes = {change.code.value for change in changes}
    named = {change.path[1] for change in changes if change.path[0] == "options" and len(change.path) > 1}
    is_removed = any(not codes.isdisjoint(_REMOVED.get(key, ())) for key in keys)
    return is_removed or keys[-1] in _FORM or any(_OPTIONS.get(key) in named for key in keys)


def _unnamed(protocol: str, target: Model, convert: Convert = convert) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield the leaves of a protocol's samples that neither arrive at a target nor are named in the report."""
    for sample in get_protocol(protocol).samples():
        if sample.request is None:
            continue
        try:
            plain = convert(sample.request, source=protocol, target=target)
        except SegueError:
            continue  # the rest of the conversation is at its provider
        for path, leaf in _leaves(sample.request):
            if path[0] in ("model", "modelId"):
                continue
            try:
                made = convert(_with(sample.request, path, _another(leaf)), source=protocol, target=target)
            except SegueError:
                continue  # not silent
            is_same = made.content == plain.content and made.report == plain.report
            if is_same and not _is_named(path, made):
                yield sample.name, path


ALL: Final = sorted(record.name for record in all_protocols())


@pytest.mark.parametrize("protocol", ALL)
def test_a_leaf_of_a_conversation_is_sent_or_named(protocol: str) -> None:
    lost = [(label, *found) for label, target in TARGETS.items() for found in _unnamed(protocol, target)]
    told = "these leaves change nothing, and no report names them; a key that says nothing is a row of `_FORM`"
    assert not lost, "\n".join((told, *map(str, lost)))[:3000]


def test_the_law_is_over_every_protocol() -> None:
    assert {
        name for name in ALL if (files(f"segue.protocols.{name.replace('-', '_')}") / "request_fields.json").is_file()
    } == set(MODELS)


@pytest.mark.parametrize("protocol", ALL)
def test_the_law_finds_a_leaf_that_is_lost(protocol: str) -> None:
    """A reader that overlooks texts of the conversation, or a report without its changes, is found."""

    def forgetful(body: Any, **settings: Any) -> Request:
        for path, leaf in list(_leaves(body)):
            if path[-1] in ("text", "content", "value", "arguments") and isinstance(leaf, str):
                body = _with(body, path, "lost")
        return convert(body, **settings)

    assert any(any(_unnamed(protocol, target, forgetful)) for target in TARGETS.values())


def test_the_law_finds_a_change_that_is_not_reported() -> None:
    def silent(body: Any, **settings: Any) -> Request:
        made = convert(body, **settings)
        kept = [change for change in made.report.changes if change.code is not ChangeCode.SIGNATURE_REMOVED]
        made.report = type(made.report)(tuple(kept))
        return made

    lost = {path[-1] for _, path in _unnamed("openai-responses", TARGETS["google-genai"], silent)}
    assert "phase" in lost
