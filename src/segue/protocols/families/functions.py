"""Function tools in OpenAI's format, which other protocols use too: definitions and calls, both ways; output schemas.

Facts:
- A tool is `{"type": "function", "function": {name, description, parameters}}`, a call `{"id", "type": "function",
  "function": {name, arguments}}` with arguments as text.     (mistralai 3.7.0, cohere 7.3.1; read 2026-11-15)
- The type may be missing; arguments also come as an object or not at all, a call with an index.
                                                                  (mistralai 3.7.0; recorded traffic, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import ToolCall
from segue.conversation.context import Context, NativeTool, Tool, ToolDefinition
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError, Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, native_definition
from segue.protocols.kit.verbatim import keep, restore

_FUNCTION: Final = "function"
_FIELDS: Final[Mapping[str, type]] = {"description": str, "strict": bool}
_CALL_KEYS: Final = frozenset({"index"})
"""Keys of a call that repeat what its position in the list already states."""

TEXT_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""The parameters of a freeform tool, which takes one text, for wires that have only functions."""

# -- tools -------------------------------------------------------------------------------------------------------------


def decode_tools(protocol: str, body: Block, *, strict_taken: bool) -> tuple[Tool, ...]:
    """Read the tools of a body; null and an empty list give no tools, and the caller keeps the difference.

    Raises:
        DecodeError: the tools are not a list of objects.
    """
    given = body.get("tools")
    if not given:
        return ()
    tools = expect_objects(given, ("tools",))
    return tuple(decode_tool(protocol, tool, strict_taken=strict_taken) for tool in tools)


def encode_tools(protocol: str, context: Context, *, strict_taken: bool) -> Wire:
    """Write the tools of a context as keys of the body; an empty object if there are none.

    Raises:
        EncodeError: a native tool of another protocol.
    """
    tools = [
        encode_tool(protocol, tool, ("tools", index), strict_taken=strict_taken)
        for index, tool in enumerate(context.tools)
    ]
    return {"tools": tools} if tools else {}


def decode_tool(protocol: str, tool: Block, *, strict_taken: bool) -> Tool:
    """Read a tool; a tool that is not a function becomes a `NativeTool`.

    `strict_taken` is whether the protocol has the key `strict`.
    """
    inner = object_of(tool.get(_FUNCTION))
    name = inner.get("name")
    if tool.get("type", _FUNCTION) != _FUNCTION or not isinstance(name, str):
        return NativeTool(protocol=protocol, definition=tool)
    definition = read_function(inner)
    known = known_keys(inner)
    extra = keep(protocol, tool, encode_tool(protocol, definition, (), strict_taken=strict_taken), known)
    return definition if extra is None else replace(definition, extra=extra)


def read_function(function: Block) -> ToolDefinition:
    """Read the definition of a function; what is of another type than it should be is left out."""
    name, description = function.get("name"), function.get("description")
    parameters, strict = function.get("parameters"), function.get("strict")
    return ToolDefinition(
        name=name if isinstance(name, str) else "",
        description=description if isinstance(description, str) else "",
        parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
        strict=strict if isinstance(strict, bool) else None,
    )


def known_keys(function: Block) -> list[str]:
    """Return the paths in a tool of what was read of its function and is not written by default."""
    return [f"function.{key}" for key, kind in _FIELDS.items() if isinstance(function.get(key), kind)]


def write_function(tool: ToolDefinition, *, strict_taken: bool) -> Wire:
    """Write the definition of a function."""
    function: Wire = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None and strict_taken:
        function["strict"] = tool.strict
    return function


def encode_tool(protocol: str, tool: Tool, path: Path, *, strict_taken: bool) -> Wire:
    """Write a tool.

    Raises:
        EncodeError: a native tool of another protocol.
    """
    if tool.kind == "native":
        return restore(dict(native_definition(protocol, tool, path)), tool.extra, protocol)
    wire: Wire = {"type": _FUNCTION, _FUNCTION: write_function(tool, strict_taken=strict_taken)}
    return wire if tool.extra is None else restore(wire, tool.extra, protocol)


def read_output_schema(body: Block, _: Endpoint) -> Block | None:
    """Read the schema of the output; None if the body has another format, or none."""
    form = object_of(body.get("response_format"))
    schema = object_of(form.get("json_schema")).get("schema")
    return cast("Block", schema) if form.get("type") == "json_schema" and isinstance(schema, Mapping) else None


# -- calls -------------------------------------------------------------------------------------------------------------


def decode_call(
    protocol: str, call: Block, tool_names: Mapping[str, str], notes: list[Diagnostic], *, reply: bool
) -> ToolCall | None:
    """Read a call; None when it names no function.

    The format of a call in a reply is not kept here: requests are written in the default format.
    """
    function = object_of(call.get(_FUNCTION))
    name, call_id, received = function.get("name"), call.get("id"), function.get("arguments")
    if not isinstance(name, str):
        return None
    parsed = parse_arguments(received) if isinstance(received, str) and received else read_arguments(received)
    if parsed.diagnostic is not None:
        notes.append(parsed.diagnostic)
    decoded = ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=tool_names.get(name, name),
        arguments=parsed.arguments,
        arguments_text=parsed.text,
    )
    is_default = len(call) == 3 and len(function) == 2 and isinstance(received, str) and received
    if reply or (is_default and isinstance(call_id, str) and call.get("type") == _FUNCTION):
        return decoded
    extra = keep(protocol, call, _encode_default(protocol, decoded), _CALL_KEYS)
    return decoded if extra is None else replace(decoded, extra=extra)


def _encode_default(protocol: str, call: ToolCall) -> Wire:
    """Write a call in the default format, for comparison; arguments that are not JSON are left out."""
    try:
        return encode_call(protocol, call)
    except EncodeError:
        return encode_call(protocol, replace(call, arguments={}))


def encode_call(protocol: str, call: ToolCall) -> Wire:
    """Write a call."""
    arguments = call.arguments_text
    if arguments is None:
        arguments = encode_arguments(call.arguments)
    function: Wire = {"name": call.name, "arguments": arguments}
    wire: Wire = {"id": call.id, "type": _FUNCTION, _FUNCTION: function}
    return wire if call.extra is None else restore(wire, call.extra, protocol)


def free_text(call: ToolCall, *, has_grammar: bool) -> str:
    """Return the input of a freeform tool, however the model wrote it.

    Models that get such a tool as a function, or do not know it, write text without JSON, or JSON around the text.
    """
    given, text = call.arguments, call.arguments_text
    if not given:
        return text or ""
    inner = next(iter(given.values())) if len(given) == 1 else None
    if isinstance(inner, list) and inner:
        inner = cast("list[object]", inner)[-1]  # a command line: `["apply_patch", "*** Begin Patch ..."]`
    if not isinstance(inner, str):
        return encode_arguments(given) if text is None else text
    wrapped = parse_arguments(inner) if inner.lstrip().startswith("{") else None
    if wrapped is None or wrapped.diagnostic is not None or not (has_grammar or wrapped.arguments.keys() == {"input"}):
        return inner
    again = list(wrapped.arguments.values())
    return again[0] if len(again) == 1 and isinstance(again[0], str) else inner
