"""Function tools and calls are written back as received; changed values are written in the default format."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from segue.conversation.context import NativeTool, ToolDefinition
from segue.errors import EncodeError
from segue.protocols.families.functions import decode_call, decode_tool, encode_call, encode_tool
from segue.protocols.kit.verbatim import data_of

PROTOCOL = "some-wire"
SCHEMA = {"type": "object", "properties": {}}

TOOLS = {
    "the default": {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    "strict": {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}},
    "no type": {"function": {"name": "f", "description": "", "parameters": SCHEMA}},
    "no parameters": {"type": "function", "function": {"name": "f"}},
    "nulls": {"type": "function", "function": {"name": "f", "description": None, "parameters": None, "strict": None}},
    "values of another type": {"type": "function", "function": {"name": "f", "description": 1, "strict": "x"}},
    "unknown keys": {"type": "function", "x": 1, "function": {"name": "f", "parameters": SCHEMA, "y": 2}},
    "no function": {"type": "web_search"},
}


@pytest.mark.parametrize("strict_taken", [True, False])
@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS.keys())
def test_a_tool_is_written_back_unchanged(tool, strict_taken):
    decoded = decode_tool(PROTOCOL, tool, strict_taken=strict_taken)
    assert encode_tool(PROTOCOL, decoded, (), strict_taken=strict_taken) == tool


def test_only_unknown_keys_of_a_tool_are_data():
    tool = decode_tool(PROTOCOL, TOOLS["unknown keys"], strict_taken=True)
    assert data_of(tool.extra, PROTOCOL) == {"x": 1, "function": {"y": 2}}
    for name in ("no type", "no parameters", "nulls"):
        assert data_of(decode_tool(PROTOCOL, TOOLS[name], strict_taken=True).extra, PROTOCOL) == {}


def test_a_tool_that_was_changed_is_written_with_the_change():
    tool = decode_tool(PROTOCOL, TOOLS["nulls"], strict_taken=True)
    assert isinstance(tool, ToolDefinition)
    changed = replace(tool, description="d", parameters=SCHEMA, strict=False)
    function = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": False}
    assert encode_tool(PROTOCOL, changed, (), strict_taken=True) == {"type": "function", "function": function}


def test_a_tool_of_another_protocol_is_refused():
    with pytest.raises(EncodeError) as caught:
        encode_tool(PROTOCOL, NativeTool(protocol="other", definition={}), ("tools", 0), strict_taken=True)
    assert caught.value.path == ("tools", 0)


CALLS = {
    "the default": {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
    "arguments with spaces": {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{ "a": 1 }'}},
    "arguments as an object": {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
    "no arguments": {"id": "1", "type": "function", "function": {"name": "f"}},
    "empty arguments": {"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}},
    "arguments that are null": {"id": "1", "type": "function", "function": {"name": "f", "arguments": None}},
    "arguments that are a list": {"id": "1", "type": "function", "function": {"name": "f", "arguments": [1]}},
    "an index and no type": {"id": "1", "index": 0, "function": {"name": "f", "arguments": "{}"}},
    "no id": {"type": "function", "function": {"name": "f", "arguments": "{}"}},
    "an id that is null": {"id": None, "type": "x", "function": {"name": "f", "arguments": "{}"}},
    "unknown keys": {"id": "1", "type": "function", "x": 1, "function": {"name": "f", "arguments": "{}", "y": 2}},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_is_written_back_unchanged(call):
    decoded = decode_call(PROTOCOL, call, {}, [], reply=False)
    assert decoded is not None
    assert encode_call(PROTOCOL, decoded) == call


def test_a_call_that_was_changed_is_written_with_the_change():
    decoded = decode_call(PROTOCOL, CALLS["arguments as an object"], {}, [], reply=False)
    assert decoded is not None
    changed = replace(decoded, id="2", name="g", arguments={"b": 2})
    assert encode_call(PROTOCOL, changed) == {
        "id": "2",
        "type": "function",
        "function": {"name": "g", "arguments": {"b": 2}},
    }
    nameless = decode_call(PROTOCOL, CALLS["no id"], {}, [], reply=False)
    assert nameless is not None
    assert encode_call(PROTOCOL, replace(nameless, id="2"))["id"] == "2"


def test_a_reply_leaves_no_format_and_no_data_on_its_calls():
    for call in CALLS.values():
        decoded = decode_call(PROTOCOL, call, {"f": "mcp.f"}, [], reply=True)
        assert decoded is not None
        assert (decoded.name, decoded.extra) == ("mcp.f", None)


def test_arguments_that_are_not_json_are_refused_when_they_are_sent():
    call = {"id": "1", "function": {"name": "f", "arguments": {"a": math.nan}}}
    decoded = decode_call(PROTOCOL, call, {}, [], reply=False)
    assert decoded is not None
    with pytest.raises(EncodeError):
        encode_call(PROTOCOL, decoded)
