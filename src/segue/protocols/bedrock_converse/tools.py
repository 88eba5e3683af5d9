"""Tools of a Bedrock request, both ways.

Facts this file rests on:
- A tool is the application's (`toolSpec`), the provider's (`systemTool`) or a cache point behind the tools before it; a
  description is never empty.                                        (botocore 1.44.0 service model, read 2026-11-15)
- `strict` is accepted by the models that list it.                                    (pi-ai 1.5.0 catalogue)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.protocols.bedrock_converse.cache import MARK, add_mark, encode_mark, restore_block
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.reading import native_definition
from segue.protocols.kit.verbatim import keep


def decode_tools(blocks: Sequence[Block], endpoint: Endpoint) -> tuple[Tool, ...]:
    """Read the tools, and the cache points behind them."""
    tools: list[Tool] = []
    for block in blocks:
        if MARK in block and tools and (marked := add_mark(tools[-1], block)):
            tools[-1] = marked
        else:
            tools.append(_decode_tool(block, endpoint) or NativeTool(protocol=PROTOCOL, definition=block))
    return tuple(tools)


def _decode_tool(block: Block, endpoint: Endpoint) -> ToolDefinition | None:
    spec = object_of(block.get("toolSpec")) if len(block) == 1 else EMPTY
    schema = object_of(spec.get("inputSchema"))
    name, parameters = spec.get("name"), schema.get("json")
    description, strict = spec.get("description"), spec.get("strict")
    if not isinstance(name, str) or len(schema) != 1 or not isinstance(parameters, Mapping):
        return None
    known: set[str] = set()
    if isinstance(description, str):
        known.add("description")
    if isinstance(strict, bool):
        known.add("strict")
    tool = ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=cast("Mapping[str, object]", parameters),
        strict=strict if isinstance(strict, bool) else None,
    )
    extra = keep(PROTOCOL, spec, _default_spec(tool, endpoint), known=known)
    return tool if extra is None else replace(tool, extra=extra)


def encode_tools(tools: Sequence[Tool], endpoint: Endpoint) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: one is a native tool of another protocol.
    """
    blocks: list[Wire] = []
    for index, tool in enumerate(tools):
        if tool.kind == "native":
            definition = native_definition(PROTOCOL, tool, ("tools", index))
            blocks.append(definition if isinstance(definition, dict) else dict(definition))
        else:
            spec = _default_spec(tool, endpoint)
            blocks.append({"toolSpec": spec if tool.extra is None else restore_block(spec, tool.extra)})
        if tool.cache_mark is not None:
            blocks.append(encode_mark(tool.cache_mark))
    return blocks


def _default_spec(tool: ToolDefinition, endpoint: Endpoint) -> Wire:
    spec: Wire = {"name": tool.name}
    if tool.description:
        spec["description"] = tool.description
    spec["inputSchema"] = {"json": tool.parameters}
    if tool.strict is not None and endpoint.dialect.strict_tools:
        spec["strict"] = tool.strict
    return spec
