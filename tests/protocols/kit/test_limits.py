"""Rows of limits: each one fires on a body that it is about, and has a source."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from segue.models.model import Model
from segue.protocols.api import find_endpoint
from segue.protocols.kit.limits import Limit, Limits
from segue.protocols.registry import _FOLDERS

PROTOCOLS = (
    *("openai-chat", "openai-responses", "anthropic-messages", "google-genai"),
    *("mistral-chat", "cohere-chat", "bedrock-converse"),
)
ROWS = [(name, limit) for name in PROTOCOLS for limit in import_module(f"{_FOLDERS[name]}.limits").LIMITS.rows]
MODELS = (
    *("gpt-4.1", "gpt-4.1-nano", "gpt-5", "o4-mini", "o1-pro", "gpt-audio", "gpt-4o-search-preview", "whisper-1"),
    *("o3-deep-research", "claude-sonnet-4-5", "gemini-2.5-flash", "gemini-2.0-flash", "gemini-embedding-001"),
    *("gemini-2.5-flash-preview-tts", "gemma-3-27b-it", "qwen3-32b", "qwq-32b", "gpt-oss-120b", "deepseek-chat"),
    *("gpt-4o", "gpt-5.5", "claude-3-haiku-20240307", "gemini-2.0-flash-lite", "us.amazon.nova-lite-v1:0"),
    *(
        "us.meta.llama3-3-70b-instruct-v1:0",
        "sonar",
        "grok-4",
        "command-r-plus",
        "mistral-large-latest",
        "amazon.titan-text-express-v1",
        "gpt-5.6-sol",
        "gemini-3.6-flash",
        "kimi-k2.6",
    ),
)
REFUSED_TEXTS = ("a b", "search", "http://x", "https://x", "application/zip", "a@b.com", "|", "é", "x" * 300)


def put(body: dict[str, Any], path: str, value: Any) -> None:
    """Set a value in a place: in the first item of a list, or under a key of an object that has any keys."""
    first, *rest = path.split(".")
    if first == "~":
        body[value] = {}
    elif not rest:
        body[first] = value
    elif rest == ["~"]:
        body[first] = {value: "x"}
    elif rest[0] == "*" and first in ("metadata", "requestMetadata", "logit_bias"):
        body[first] = {"1": value}
    elif rest == ["*"]:
        body[first] = [value]
    elif rest[0] == "*":
        if not (isinstance(body.get(first), list) and isinstance(body[first][0], dict)):
            body[first] = [{}]
        put(body[first][0], ".".join(rest[1:]), value)
    else:
        put(body.setdefault(first, {}), ".".join(rest), value)


def meet(body: dict[str, Any], limit: Limit, condition: str) -> None:
    """Make a condition hold."""
    place, _, text = condition.lstrip(".").partition("=")
    beside = ".".join([*limit.path.split(".")[:-1], place]) if condition[0] == "." else place
    put(body, beside, json.loads(text) if text else "x")


def values_outside(limit: Limit) -> Iterator[Any]:
    """Give values of which at least one is outside of a limit."""
    if limit.equals is not None:
        yield limit.equals
        return
    if limit.unique:
        item: dict[str, Any] = {}
        put(item, limit.unique, "x")
        yield [item, item]
    yield from ("x", "", *REFUSED_TEXTS)
    if limit.path.endswith("~"):
        return
    yield from (["x"], {"x": "y"})
    if limit.least is not None:
        yield limit.least - 1
    if limit.most is not None:
        count = int(limit.most) + 1
        yield limit.most + 1
        yield {str(at): "x" for at in range(min(count, 99))}
        yield "x" * count
        yield ["x"] * count


@pytest.mark.parametrize(("protocol", "limit"), ROWS, ids=[f"{protocol}: {limit.path}" for protocol, limit in ROWS])
def test_a_row_fires_on_what_it_is_about_and_has_a_source(protocol, limit):
    name = next(one for one in MODELS if not limit.models or re.search(limit.models, one, re.IGNORECASE))
    provider = limit.providers[0] if limit.providers else "any"
    endpoint = find_endpoint(protocol, Model(name, provider, protocol), None, None)
    for value in values_outside(limit):
        body: dict[str, Any] = {}
        put(body, limit.path, value)
        for condition in (*limit.when, *limit.excludes[:1]):
            if limit.path.endswith("~") or not condition.startswith(limit.path):
                meet(body, limit, condition)
        if found := list(Limits((limit,)).check(body, endpoint)):
            break
    else:
        pytest.fail("nothing was found")
    assert limit.source
    assert all("; " in one.message for one in found), "a message says what to do"


BEYOND = {
    "a condition that holds": (
        {"stream_options": {}, "stream": True},
        Limit("stream_options", "", needs=("stream=true",)),
    ),
    "a value of another provider": ({"n": 9}, Limit("n", "", most=1, providers=("other",))),
    "a value of another model": ({"n": 9}, Limit("n", "", most=1, models="^other")),
    "a null": ({"n": None}, Limit("n", "", least=1)),
    "an empty list beside": ({"a": 1, "tools": []}, Limit("a", "", excludes=("tools",))),
    "true is no number": ({"n": True}, Limit("n", "", most=0)),
    "a reference that exists": ({"a": "x", "tools": [{"name": "x"}]}, Limit("a", "", among="tools.*.name")),
    "another value than the one meant": ({"a": "y"}, Limit("a", "", equals="x", refused="remove it")),
    "a condition of the same object": (
        {"parts": [{"type": "b", "data": ""}]},
        Limit("parts.*.data", "", least=1, when=('.type="a"',)),
    ),
}


@pytest.mark.parametrize(("body", "limit"), BEYOND.values(), ids=BEYOND.keys())
def test_a_row_accepts(body, limit):
    endpoint = find_endpoint("openai-chat", Model("gpt-4.1", "openai", "openai-chat"), None, None)
    assert not list(Limits((limit,)).check(body, endpoint))
