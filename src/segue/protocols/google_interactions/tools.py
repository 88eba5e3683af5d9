"""Definitions of tools.

Facts this file rests on:
- A function is flat: `name`, `description` and `parameters`, any JSON schema, stand beside `type`. All other tools are
  run by Google, by an MCP server or, as `computer_use`, by the client.
                                       (google-genai 3.1.0: FunctionParam, ToolParam; read 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import Path
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import expect_objects, native_definition, text_of
from segue.protocols.kit.verbatim import keep, restore


def decode_tools(tools: object) -> tuple[Tool, ...]:
    """Read the list of tools.

    Raises:
        DecodeError: it is not a list of objects.
    """
    return tuple([_decode_tool(tool) for tool in expect_objects(tools, ("tools",))])


def _decode_tool(tool: Block) -> Tool:
    name, parameters = tool.get("name"), tool.get("parameters")
    if not isinstance(name, str) or tool.get("type") != "function":
        return NativeTool(protocol=PROTOCOL, definition=tool)
    read = ToolDefinition(
        name=name,
        description=text_of(tool.get("description")) or "",
        parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
    )
    known = [key for key, value in (("description", read.description), ("parameters", read.parameters)) if not value]
    extra = keep(PROTOCOL, tool, _default_tool(read), known)
    return read if extra is None else replace(read, extra=extra)


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the list of tools.

    Raises:
        EncodeError: a tool of another protocol.
    """
    return [_encode_tool(tool, ("tools", index)) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, path: Path) -> Wire:
    if tool.kind == "native":
        return dict(native_definition(PROTOCOL, tool, path))
    wire = _default_tool(tool)
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition) -> Wire:
    wire: Wire = {"type": "function", "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.parameters:
        wire["parameters"] = tool.parameters
    return wire
