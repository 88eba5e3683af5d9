"""Tools and the tool choice, both ways.

Facts this file rests on:
- A tool is `function` {name, description, parameters, strict} or `custom`; an older format has bare `functions`.
                                                                                    (openai 3.49.0; read 2026-11-15)
- Gateways and hosts run tools of their own under other types.                         (recorded traffic, 2026-11)
- A choice is a string or an object that names a tool, with or without its type; `allowed_tools` narrows it and is kept
  as data.                                                             (openai 3.49.0; recorded traffic, 2026-11)

Choice that tools keep: `field`, "functions" for a tool of the older format, at the provider it was sent to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import MISSING, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, native_definition, text_of
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.cache import find_mark, without_mark, write_mark
from segue.protocols.openai_chat.native import choice_extra
from segue.protocols.openai_chat.rules import PROTOCOL

_FIELDS: Final[Mapping[str, type]] = {"description": str, "strict": bool}
_COMMON_TOOL: Final = frozenset({"type", "function"})
_COMMON_FUNCTION: Final = frozenset({"name", "description", "parameters"})
"""The keys of most tools."""
_MODES: Final = frozenset({"auto", "none", "required"})
_OTHER_MODES: Final[Mapping[str, str]] = {"any": "required"}
"""What Mistral and servers that follow it accept besides.          (mistralai 3.7.0; vLLM; read 2026-11-15)"""
_NAMED: Final = frozenset({"function", "tool"})
"""Types of a choice that names its tool directly, as the protocols of Anthropic and of OpenAI's Responses do."""


# -- tools -------------------------------------------------------------------------------------------------------------


def decode_tools(body: Block, endpoint: Endpoint) -> tuple[Tool, ...]:
    """Read the tools of a body, also those of the older format.

    Raises:
        DecodeError: they are no list of objects.
    """
    given, old = body.get("tools"), body.get("functions")
    tools = [_decode_tool(tool, endpoint) for tool in expect_objects(given, ("tools",))] if given is not None else []
    if isinstance(old, list):
        tools += [_decode_old(function, endpoint) for function in expect_objects(cast("object", old), ("functions",))]
    return tuple(tools)


def _decode_tool(tool: Block, endpoint: Endpoint) -> Tool:
    function = object_of(tool.get("function"))
    if tool.get("type", "function") != "function" or not isinstance(function.get("name"), str):
        mark = find_mark(tool)
        definition = without_mark(tool, mark)
        return NativeTool(protocol=PROTOCOL, definition=definition, cache_mark=mark)
    return _decode_function(tool, function, {}, endpoint)


def _decode_old(function: Block, endpoint: Endpoint) -> Tool:
    choices = choose("field", _tools_field(endpoint), "functions")
    return _decode_function({"type": "function", "function": function}, function, choices, endpoint)


def _decode_function(tool: Block, function: Block, choices: Wire, endpoint: Endpoint) -> ToolDefinition:
    name, description = function.get("name"), function.get("description")
    if not choices and _is_common(tool, function):
        return ToolDefinition(
            name=cast("str", name),
            description=cast("str", description or ""),
            parameters=cast("Block", function["parameters"]),
        )
    parameters, strict = function.get("parameters"), function.get("strict")
    read = ToolDefinition(
        name=name if isinstance(name, str) else "",
        description=description if isinstance(description, str) else "",
        parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
        strict=strict if isinstance(strict, bool) else None,
        cache_mark=find_mark(tool),
        extra=choice_extra(choices),
    )
    known = [f"function.{key}" for key, kind in _FIELDS.items() if isinstance(function.get(key), kind)]
    return replace(read, extra=keep(PROTOCOL, tool, _encode_function(read, endpoint), known, choices))


def _is_common(tool: Block, function: Block) -> bool:
    """Whether a tool with a name has the default format: nothing has to be kept of it."""
    if len(tool) != len(_COMMON_TOOL) or not (tool.keys() <= _COMMON_TOOL and function.keys() <= _COMMON_FUNCTION):
        return False
    description = function.get("description", MISSING)
    is_plain = description is MISSING or (isinstance(description, str) and bool(description))
    return is_plain and tool["type"] == "function" and type(function.get("parameters")) is dict and "name" in function


def _tools_field(endpoint: Endpoint) -> str:
    """Name the default field. A tool does not name its provider, so the choice does: it holds for no other."""
    return f"tools of {endpoint.model.provider}"


def encode_tools(tools: Sequence[Tool], endpoint: Endpoint) -> Wire:
    """Write the tools: `tools`, and `functions` for those of the older format.

    Raises:
        EncodeError: a tool that another protocol's provider runs.
    """
    fields: dict[str, list[object]] = {}
    for index, tool in enumerate(tools):
        if tool.kind == "native":
            fields.setdefault("tools", []).append(_encode_native(tool, ("tools", index)))
            continue
        wire = _encode_function(tool, endpoint)
        if tool.extra is not None and chosen(tool.extra, PROTOCOL, "field", _tools_field(endpoint)) == "functions":
            fields.setdefault("functions", []).append(wire["function"])
        else:
            fields.setdefault("tools", []).append(wire)
    return dict(fields)


def _encode_native(tool: NativeTool, path: Path) -> Wire:
    wire = dict(native_definition(PROTOCOL, tool, path))
    write_mark(wire, tool.cache_mark)
    return restore(wire, tool.extra, PROTOCOL)


def _encode_function(tool: ToolDefinition, endpoint: Endpoint) -> Wire:
    function: Wire = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None and endpoint.dialect.strict_tools:
        function["strict"] = tool.strict
    wire: Wire = {"type": "function", "function": function}
    write_mark(wire, tool.cache_mark)
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)


# -- the tool choice ---------------------------------------------------------------------------------------------------


def decode_tool_choice(body: Block, _: Endpoint) -> str | None:
    """Read a tool choice of either format; None when it is more than a mode or the name of a tool."""
    given = body.get("tool_choice")
    if isinstance(given, Mapping):
        choice = cast("Block", given)
        for key in ("function", "custom"):
            if choice.get("type", key) == key and isinstance(inner := choice.get(key), Mapping):
                return _name(cast("Block", inner))
        if text_of(choice.get("type")) in _NAMED and set(choice) == {"type", "name"}:
            return _name(choice)
        return _mode(choice.get("type")) if set(choice) == {"type"} else None
    if given is None:
        given = body.get("function_call")
        if isinstance(given, Mapping):
            return _name(cast("Block", given))
    return _mode(given)


def _mode(given: object) -> str | None:
    mode = _OTHER_MODES.get(given, given) if isinstance(given, str) else None
    return mode if mode in _MODES else None


def _name(inner: Block) -> str | None:
    name = inner.get("name")
    # The name of a tool that is also a mode would be read as the mode.
    return name if isinstance(name, str) and name not in _MODES else None


def encode_tool_choice(choice: str) -> object:
    """Write a tool choice: a mode, or the name of a tool."""
    return choice if choice in _MODES else {"type": "function", "function": {"name": choice}}
