"""Calls that a request requires of a local model: the request for the JSON of a call."""

from __future__ import annotations

from typing import Any

import pytest

from segue.client.local.forced_calls import require_call

WEATHER = {"name": "weather", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}
TOOLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": {"name": "stop"}}]
HELLO = {"role": "user", "content": "hello"}
PARTS = [{"type": "text", "text": "Be short."}]


def required(messages: list[dict[str, Any]], choice: object = "required") -> dict[str, Any] | None:
    return require_call({"messages": messages, "tools": TOOLS, "tool_choice": choice, "stream": True})


@pytest.mark.parametrize(
    ("messages", "added", "rest"),
    [
        ([{"role": "system", "content": "Be short."}, HELLO], "Be short.\n\nCall one of", [HELLO]),
        ([HELLO], "Call one of", [HELLO]),
        ([], "Call one of", []),
        ([{"role": "system", "content": PARTS}], "Call one of", [{"role": "system", "content": PARTS}]),
    ],
    ids=["instructions", "a question", "nothing", "instructions in parts"],
)
def test_the_tools_are_added_to_the_instructions(messages, added, rest):
    body = required(messages)
    assert body is not None
    first, *others = body["messages"]
    assert first["role"] == "system"
    assert first["content"].startswith(added)
    assert first["content"].endswith('\n{"name":"stop"}')
    assert others == rest
    assert body.keys() == {"messages", "response_format"}


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", ["weather", "stop"]),
        ({"type": "function", "function": {"name": "stop"}}, ["stop"]),
        ({"type": "function", "function": {"name": "other"}}, None),
        ("auto", None),
        ("none", None),
        (None, None),
    ],
)
def test_a_call_is_required_of_the_tools_that_are_chosen(choice, names):
    body = required([HELLO], choice)
    if names is None:
        assert body is None
        return
    assert body is not None
    schema = body["response_format"]["json_schema"]["schema"]
    calls = schema.get("anyOf", [schema])
    assert [call["properties"]["name"]["const"] for call in calls] == names
    assert all(call["required"] == ["name", "arguments"] for call in calls)
