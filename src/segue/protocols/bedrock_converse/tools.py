"""Tools of a Bedrock request, both ways.

Facts this file rests on:
- A tool is the application's (`toolSpec`), the provider's (`systemTool`) or a cache point behind the ones before it; a
  description is never empty.                                        (botocore 1.44.0 service model, read 2026-11-15)
- `strict` is taken by the models that list it.                                       (pi-ai 1.5.0 catalogue)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.verbatim import (
    MARK,
    NOTHING,
    Block,
    Wire,
    keep,
    lone_mark,
    mark_of,
    marked,
    object_of,
    put_back,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import native_definition, verbatim_of

_TOOL_KEYS: Final = frozenset({"name", "description", "inputSchema", "strict"})


def decode_tools(blocks: Sequence[Block], endpoint: Endpoint) -> tuple[Tool, ...]:
    """Read the tools; cache points stand behind what they cache."""
    tools: list[Tool] = []
    for block in blocks:
        mark = lone_mark(block)
        if mark is not None and tools and (with_mark := marked(tools[-1], mark)):
            tools[-1] = with_mark
        else:
            tools.append(_decode_tool(block, endpoint) or NativeTool(protocol=PROTOCOL, definition=block))
    return tuple(tools)


def _decode_tool(block: Block, endpoint: Endpoint) -> ToolDefinition | None:
    spec = object_of(block.get("toolSpec")) if len(block) == 1 else NOTHING
    schema = object_of(spec.get("inputSchema"))
    name, parameters, strict = spec.get("name"), schema.get("json"), spec.get("strict")
    description = spec.get("description", "")
    if not isinstance(name, str) or len(schema) != 1 or not isinstance(parameters, Mapping):
        return None
    verbatim: Wire = {}
    if "description" in spec and (not description or not isinstance(description, str)):
        verbatim["description"] = description
    if "strict" in spec and not (isinstance(strict, bool) and endpoint.dialect.strict_tools):
        verbatim["strict"] = strict
    return ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=cast("Mapping[str, object]", parameters),
        strict=strict if isinstance(strict, bool) else None,
        extra=keep(spec, _TOOL_KEYS, verbatim),
    )


def encode_tools(tools: Sequence[Tool], endpoint: Endpoint) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: one is a tool of another wire.
    """
    blocks: list[Wire] = []
    for index, tool in enumerate(tools):
        if tool.kind == "native":
            definition = native_definition(PROTOCOL, tool, ("tools", index))
            blocks.append(definition if isinstance(definition, dict) else dict(definition))
        else:
            blocks.append({"toolSpec": _encode_tool(tool, endpoint)})
        mark = mark_of(tool.extra)
        if mark is not None:
            blocks.append({MARK: mark})
    return blocks


def _encode_tool(tool: ToolDefinition, endpoint: Endpoint) -> Wire:
    verbatim = verbatim_of(tool.extra, PROTOCOL)
    spec: Wire = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    elif "description" in verbatim:
        spec["description"] = verbatim["description"]
    spec["inputSchema"] = {"json": tool.parameters}
    if tool.strict is not None and endpoint.dialect.strict_tools:
        spec["strict"] = tool.strict
    elif "strict" in verbatim:
        spec["strict"] = verbatim["strict"]
    spec.update(put_back(tool.extra))
    return spec
