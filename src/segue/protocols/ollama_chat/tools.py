"""Tools on Ollama's wire, both ways: {type: function, function: {name, description, parameters}}.

Fact this file relies on: the server reads those keys and no others.     (ollama server source @fb30760, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, native_definition
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.ollama_chat.rules import PROTOCOL

_KNOWN: Final = frozenset({"function.description"})


def decode_tools(received: object) -> tuple[Tool, ...]:
    """Read the tools of a body.

    Raises:
        DecodeError: it is not a list of objects.
    """
    return tuple(_decode_tool(tool) for tool in expect_objects(received, ("tools",))) if received else ()


def _decode_tool(wire: Block) -> Tool:
    function = object_of(wire.get("function"))
    name, description, parameters = function.get("name"), function.get("description"), function.get("parameters")
    is_ours = isinstance(name, str) and isinstance(description, str | None) and isinstance(parameters, Mapping | None)
    if not is_ours or wire.get("type") not in (None, "function"):
        return NativeTool(protocol=PROTOCOL, definition=dict(wire))
    tool = ToolDefinition(
        name=cast("str", name),
        description=description if isinstance(description, str) else "",
        parameters=cast("Block", parameters or EMPTY),
    )
    extra = keep(PROTOCOL, wire, _default_tool(tool), known=_KNOWN)
    return tool if extra is None else replace(tool, extra=extra)


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: a native tool of another protocol.
    """
    return [_encode_tool(tool, index) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, index: int) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, ("tools", index)))
    return restore(_default_tool(tool), tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition) -> Wire:
    function: Wire = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return {"type": "function", "function": function}
