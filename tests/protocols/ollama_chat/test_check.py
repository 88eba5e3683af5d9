"""`check` reports what an Ollama server refuses, and nothing that it accepts."""

from __future__ import annotations

import pytest

from protocols.ollama_chat.endpoints import QWEN
from segue.protocols.ollama_chat.protocol import PROTOCOL as CODEC

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def body(message: dict[str, object] | None = None, **top: object) -> dict[str, object]:
    return {"model": "m", "messages": [message or {"role": "user", "content": "hi"}], **top}


def function(**fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", **fields}}]}


REFUSED = {
    "a list as content (litellm #6808)": (body({"role": "user", "content": []}), ("messages", 0, "content")),
    "arguments as a string (ollama #12794)": (
        body(function(arguments="{}")),
        ("messages", 0, "tool_calls", 0, "function", "arguments"),
    ),
    "arguments as a list (langchain #34790)": (
        body(function(arguments=[])),
        ("messages", 0, "tool_calls", 0, "function", "arguments"),
    ),
    "a data URL (litellm)": (
        body({"role": "user", "content": "", "images": [f"data:image/png;base64,{PNG}"]}),
        ("messages", 0, "images", 0),
    ),
    "a URL": (
        body({"role": "user", "content": "", "images": ["https://example.org/i.png"]}),
        ("messages", 0, "images", 0),
    ),
    "an image that is an object": (body({"role": "user", "images": [{}]}), ("messages", 0, "images")),
    "a message that is a string": ({"model": "m", "messages": ["hi", 3]}, ("messages", 1, "role")),
    "thinking that is an object": (body({"role": "assistant", "thinking": {}}), ("messages", 0, "thinking")),
    "no model": ({"messages": []}, ("model",)),
    "an unknown way to think": (body(think="enormous"), ("think",)),
    "an unknown format (ollama #8126)": (body(format="xml"), ("format",)),
    "one stop as a string": (body(options={"stop": "x"}), ("options", "stop")),
    "a temperature as a string": (body(options={"temperature": "hot"}), ("options", "temperature")),
    "options as a list": (body(options=[]), ("options",)),
    "too many probabilities": (body(top_logprobs=21), ("top_logprobs",)),
    "a stream as a string": (body(stream="yes"), ("stream",)),
    "tools as an object": (body(tools={}), ("tools",)),
    "a tool's name as a number": (
        body(tools=[{"type": "function", "function": {"name": 1}}]),
        ("tools", 0, "function", "name"),
    ),
    "what is required as a string": (
        body(tools=[{"type": "function", "function": {"name": "f", "parameters": {"required": "a"}}}]),
        ("tools", 0, "function", "parameters", "required"),
    ),
    "a schema of another type": (
        body(tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}]),
        ("tools", 0, "function", "parameters", "type"),
    ),
    "half a surrogate pair": (body({"role": "user", "content": "\ud800"}), ()),
}


@pytest.mark.parametrize(("given", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_server_refuses_is_reported(given, path):
    assert [violation.path for violation in CODEC.check(given, QWEN)] == [path]


ACCEPTED = {
    "unknown roles": body({"role": "Developer", "content": "x"}),
    "null for everything": body({"role": "user", "content": None, "images": None, "tool_calls": None}, think=None),
    "no messages, which loads the model": {"model": "m", "messages": []},
    "unknown keys and options": body(vendor=1, options={"new": "x"}),
    "a result that answers nothing": body({"role": "tool", "content": "x"}),
    "an image": body({"role": "user", "content": "", "images": [PNG]}),
    "JSON and no schema": body(format="json"),
    "every way to think": body(think="max"),
    "seconds or a duration": body(keep_alive=-1),
    "a tool with a name only": body(tools=[{"type": "function", "function": {"name": "f"}}]),
    "the assistant last": body({"role": "assistant", "content": "x"}),
}


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_server_accepts_passes(given):
    assert CODEC.check(given, QWEN) == []
