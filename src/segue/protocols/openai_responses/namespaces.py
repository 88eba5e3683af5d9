"""Functions in namespaces.

Facts this file rests on:
- A namespace has a name, a description and functions or custom tools; `defer_loading` stands on the functions.
                                                                                   (openai 3.49.0, read 2026-11-15)
- A call names its namespace; the call of a deferred function without one names the function itself.
                                                                                         (recorded traffic, 2026-11)
- Sent back without it: "Missing namespace for function_call 'x'."  (pi #7709, 2026-08-06; vercel/ai #15193, 2026-05-12)
- A deferred function that another model called has to be sent in full.                  (dust #31323, 2026-08-28)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import ToolCall
from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.namespaces import Namespace, Namespaces
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import objects_in
from segue.protocols.kit.verbatim import data_of
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.thinking import read_signature
from segue.protocols.openai_responses.tools import decode_tool
from segue.protocols.openai_responses.turns import NAMESPACE

_DEFERRED: Final = "defer_loading"


def _read(tool: NativeTool) -> Namespace | None:
    definition = tool.definition
    name = definition.get("name")
    if definition.get("type") != "namespace" or not isinstance(name, str):
        return None
    functions = [decode_tool(inner) for inner in _inner(definition)]
    return Namespace(
        name=name,
        description=text_of(definition.get("description")) or "",
        functions=tuple(function for function in functions if function.kind == "function"),
    )


def _inner(definition: Block) -> list[Block]:
    tools = definition.get("tools")
    return objects_in(tools)


def _find(call: ToolCall) -> str | None:
    signature = call.thought_signature
    if signature is not None and NAMESPACE in signature:
        return text_of((read_signature(signature) or {}).get(NAMESPACE))
    return text_of(data_of(call.extra, PROTOCOL).get(NAMESPACE)) if call.extra is not None else None


def _add(call: ToolCall, namespace: str) -> ToolCall:
    extra = dict(call.extra or {})
    if extra.get(PROTOCOL, {}).get(NAMESPACE) == namespace:
        return call
    return replace(call, extra={**extra, PROTOCOL: {**extra.get(PROTOCOL, {}), NAMESPACE: namespace}})


def _is_deferred(tool: ToolDefinition) -> bool:
    return tool.extra is not None and data_of(tool.extra, PROTOCOL).get(_DEFERRED) is True


def _load(tool: Tool, names: Collection[str]) -> Tool:
    if tool.kind == "native":
        tools = [
            {key: value for key, value in inner.items() if key != _DEFERRED} if inner.get("name") in names else inner
            for inner in _inner(tool.definition)
        ]
        return replace(tool, definition={**tool.definition, "tools": tools})
    if tool.extra is None or tool.name not in names:
        return tool
    rest = {key: value for key, value in tool.extra.get(PROTOCOL, {}).items() if key != _DEFERRED}
    others = {protocol: part for protocol, part in tool.extra.items() if protocol != PROTOCOL}
    return replace(tool, extra=({**others, PROTOCOL: rest} if rest else others) or None)


NAMESPACES: Final = Namespaces(read=_read, find=_find, key=NAMESPACE, add=_add, is_deferred=_is_deferred, load=_load)
