"""Definitions of tools.

Facts this file rests on:
- A function is flat here: `name`, `description`, `parameters` and `strict` stand beside `type`.     (openai 3.49.0)
- The server makes a function without `strict` strict: it then requires every property and closes the object. A schema
  that has to stay unchanged needs `strict: false`.                             (recorded traffic, 2026-11: 14 of 17)
- A custom tool takes one text, free or restricted by a grammar in `format`.                         (openai 3.49.0)
- All other tools, namespaces among them, are the provider's and are kept unchanged.

Choice kept in `extra`: `type`, "custom" for a custom tool. Default "function".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import DecodeError, Path
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import expect_object, native_definition, text_of
from segue.protocols.kit.verbatim import choose, keep, restore
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.turns import is_custom

_TEXT_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""The parameters of a custom tool, for other protocols."""


def decode_tools(tools: object) -> tuple[Tool, ...]:
    """Read the list of tools.

    Raises:
        DecodeError: it is not a list of objects.
    """
    if not isinstance(tools, list):
        raise DecodeError("expected an array", path=("tools",))
    return tuple(
        decode_tool(expect_object(tool, ("tools", index))) for index, tool in enumerate(cast("list[object]", tools))
    )


def decode_tool(tool: Block) -> Tool:
    """Read one tool; a tool that is not a function becomes a `NativeTool`."""
    kind, name = tool.get("type"), tool.get("name")
    if not isinstance(name, str) or kind not in ("function", "custom"):
        return NativeTool(protocol=PROTOCOL, definition=dict(tool))
    description = text_of(tool.get("description")) or ""
    if kind == "custom":
        read = ToolDefinition(name=name, description=description, parameters=_TEXT_SCHEMA)
    else:
        parameters = tool.get("parameters")
        read = ToolDefinition(
            name=name,
            description=description,
            parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
            strict=True if tool.get("strict") is True else None,
        )
    known = ("description",) if tool.get("description") == "" else ()
    extra = keep(PROTOCOL, tool, _default_tool(read, kind), known, choose("type", "function", kind))
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
    wire = _default_tool(tool, "custom" if is_custom(tool) else "function")
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)


def _default_tool(tool: ToolDefinition, kind: object) -> Wire:
    wire: Wire = {"type": kind, "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if kind == "function":
        wire["parameters"] = tool.parameters
        wire["strict"] = tool.strict is True
    return wire


def custom_names(tools: Sequence[Tool]) -> frozenset[str]:
    """Name the custom tools."""
    return frozenset(tool.name for tool in tools if tool.kind == "function" and is_custom(tool))
