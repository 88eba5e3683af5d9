"""Tools, both ways.

Facts this file rests on:
- A function is flat here: `name`, `description`, `parameters` and `strict` stand beside `type`.     (openai 3.49.0)
- A function without `strict` is made strict by the server, which then demands every property and closes the object; an
  unchanged schema needs `strict: false`.                                       (recorded traffic, 2026-11: 14 of 17)
- A custom tool takes one text, free or by a grammar in `format`.                                    (openai 3.49.0)
- All other tools, name spaces among them, are the provider's and are kept as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.reading import expect_object, extra_of, left_over, text_of, verbatim_of
from segue.protocols.openai_responses.content import ABSENT, Wire, original
from segue.protocols.openai_responses.rules import PROTOCOL

_TEXT_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""What a tool that takes one text looks like to others."""


def decode_tools(tools: object) -> tuple[Tool, ...]:
    """Read the list of tools.

    Raises:
        DecodeError: it is not a list of objects.
    """
    if not isinstance(tools, list):
        raise DecodeError("expected an array", path=("tools",))
    return tuple(
        _decode_tool(expect_object(tool, ("tools", index))) for index, tool in enumerate(cast("list[object]", tools))
    )


def _decode_tool(tool: Mapping[str, object]) -> Tool:
    kind, name = tool.get("type"), tool.get("name")
    if not isinstance(name, str) or kind not in ("function", "custom"):
        return NativeTool(protocol=PROTOCOL, definition=dict(tool))
    known, verbatim = {"type", "name"}, dict[str, object]()
    description = tool.get("description")
    if isinstance(description, str):
        known.add("description")
        if not description:
            verbatim["description"] = ""
    if kind == "custom":
        verbatim["custom"] = True
        extra = extra_of(PROTOCOL, tool, known, verbatim)
        return ToolDefinition(name=name, description=text_of(description) or "", parameters=_TEXT_SCHEMA, extra=extra)
    parameters = tool.get("parameters")
    if isinstance(parameters, Mapping):
        known.add("parameters")
    elif "parameters" not in tool:
        verbatim["parameters"] = ABSENT
    strict = tool.get("strict")
    if isinstance(strict, bool):
        known.add("strict")
    elif "strict" not in tool:
        verbatim["strict"] = ABSENT
    return ToolDefinition(
        name=name,
        description=text_of(description) or "",
        parameters=cast("Mapping[str, object]", parameters) if isinstance(parameters, Mapping) else {},
        strict=True if strict is True else None,
        extra=extra_of(PROTOCOL, tool, known, verbatim),
    )


def encode_tools(tools: Sequence[Tool]) -> list[Wire]:
    """Write the list of tools.

    Raises:
        EncodeError: a tool of another protocol.
    """
    return [_encode_tool(tool, ("tools", index)) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, path: Path) -> Wire:
    if tool.kind == "native":
        if tool.protocol != PROTOCOL:
            raise EncodeError(f"a tool of {tool.protocol}", path=path)
        return dict(tool.definition)
    wire: Wire = {"type": "function", "name": tool.name}
    if not original(tool.extra):
        if tool.description:
            wire["description"] = tool.description
        wire["parameters"] = tool.parameters
        wire["strict"] = tool.strict is True
        return wire
    verbatim, rest = verbatim_of(tool.extra, PROTOCOL), left_over(tool.extra, PROTOCOL)
    wire = {**rest, **wire}
    if tool.description or verbatim.get("description") == "":
        wire["description"] = tool.description
    if verbatim.get("custom") is True:
        wire["type"] = "custom"
        return wire
    if tool.parameters or ("parameters" not in rest and verbatim.get("parameters") != ABSENT):
        wire["parameters"] = tool.parameters
    if tool.strict is not None or ("strict" not in rest and verbatim.get("strict") != ABSENT):
        wire["strict"] = tool.strict is True
    return wire


def custom_names(tools: Sequence[Tool]) -> frozenset[str]:
    """Name the tools that take one text."""
    return frozenset(
        tool.name
        for tool in tools
        if tool.kind == "function"
        and tool.extra is not None
        and verbatim_of(tool.extra, PROTOCOL).get("custom") is True
    )
