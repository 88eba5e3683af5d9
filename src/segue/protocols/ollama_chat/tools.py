"""Tools on Ollama's wire, both ways: {type: function, function: {name, description, parameters}}.

Fact this file rests on: those keys, and no others, are read by the server.  (ollama server source @fb30760, 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.protocols.kit.reading import expect_objects, native_definition
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.verbatim import Json, Wire, keep, object_of, own_part, put_back


def decode_tools(given: object) -> tuple[Tool, ...]:
    """Read the tools of a body.

    Raises:
        DecodeError: it is no list of objects.
    """
    return tuple(_decode_tool(tool) for tool in expect_objects(given, ("tools",))) if given else ()


def _decode_tool(wire: Json) -> Tool:
    function = object_of(wire.get("function"))
    name, description, parameters = function.get("name"), function.get("description"), function.get("parameters")
    is_ours = isinstance(name, str) and isinstance(description, str | None) and isinstance(parameters, Mapping | None)
    if not is_ours or wire.get("type") not in (None, "function"):
        return NativeTool(protocol=PROTOCOL, definition=dict(wire))
    tool = ToolDefinition(
        name=cast("str", name),
        description=description if isinstance(description, str) else "",
        parameters=cast("Json", parameters) if isinstance(parameters, Mapping) else {},
    )
    part = keep(wire, {"type": "function"}, skip=("function",))
    inner = keep(function, _encode_function(tool))
    if inner:
        part["function"] = inner
    if not part:
        return tool
    return ToolDefinition(
        name=tool.name, description=tool.description, parameters=tool.parameters, extra={PROTOCOL: part}
    )


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: a tool that another provider runs.
    """
    return [_encode_tool(tool, index) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, index: int) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, ("tools", index)))
    function, part = _encode_function(tool), own_part(tool.extra)
    if part is None:
        return {"type": "function", "function": function}
    put_back(function, object_of(part.get("function")))
    return put_back({"type": "function", "function": function}, part)


def _encode_function(tool: ToolDefinition) -> Wire:
    function: Wire = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    return function
