"""Functions as OpenAI spelt them and others took over: definitions of tools, and calls, both ways.

Facts this file rests on:
- A tool is `{"type": "function", "function": {name, description, parameters}}`, a call `{"id", "type": "function",
  "function": {name, arguments}}` with arguments as text.     (mistralai 3.7.0, cohere 7.3.1; read 2026-11-15)
- The type may be missing; arguments also come as an object or not at all, a call with an index.
                                                                  (mistralai 3.7.0; recorded traffic, 2026-11)

What a wire spelt differently stands in the shape of the tool or the call; what it said beyond these words, beside it,
that of the inner object under `function`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import Extra, ToolCall
from segue.conversation.context import Context, NativeTool, Tool, ToolDefinition
from segue.conversation.messages import Diagnostic
from segue.errors import Path
from segue.protocols.kit.reading import VERBATIM, expect_objects, left_over, native_definition, verbatim_of
from segue.protocols.kit.retired_format import MISSING, Block, Wire, object_of

_FUNCTION: Final = "function"
_TOOL_KEYS: Final = frozenset({"name", "description", "parameters", "strict"})

# -- tools -------------------------------------------------------------------------------------------------------------


def decode_tools(protocol: str, body: Block, frame: Wire, *, strict_taken: bool) -> tuple[Tool, ...]:
    """Read the tools of a body; what stands in their place where there are none is noted in `frame`.

    Raises:
        DecodeError: they are no list of objects.
    """
    given = body.get("tools")
    if not given:
        if "tools" in body:
            frame["tools"] = given
        return ()
    tools = expect_objects(given, ("tools",))
    return tuple(decode_tool(protocol, tool, strict_taken=strict_taken) for tool in tools)


def encode_tools(protocol: str, context: Context, *, strict_taken: bool) -> Wire:
    """Write the tools of a context, or what stood in their place.

    Raises:
        EncodeError: a tool that another protocol's provider runs.
    """
    if context.tools:
        tools = enumerate(context.tools)
        return {
            "tools": [encode_tool(protocol, tool, ("tools", index), strict_taken=strict_taken) for index, tool in tools]
        }
    frame = verbatim_of(context.extra, protocol)
    return {"tools": frame["tools"]} if "tools" in frame else {}


def decode_tool(protocol: str, tool: Block, *, strict_taken: bool) -> Tool:
    """Read a tool; what is no function is one that the provider runs itself."""
    function = tool.get(_FUNCTION)
    name = object_of(function).get("name")
    if tool.get("type", _FUNCTION) != _FUNCTION or not isinstance(name, str):
        return NativeTool(protocol=protocol, definition=tool)
    inner = object_of(function)
    description, parameters = inner.get("description", MISSING), inner.get("parameters", MISSING)
    strict, verbatim = inner.get("strict", MISSING), Wire()
    known = set(_TOOL_KEYS)
    if "type" not in tool:
        verbatim["type"] = "absent"
    if description is not MISSING and not (isinstance(description, str) and description):
        verbatim["description"] = description
    if not isinstance(parameters, Mapping):
        verbatim["parameters"] = "absent" if parameters is MISSING else "odd"
        if parameters is not MISSING:
            known.discard("parameters")
    if strict is not MISSING and not (isinstance(strict, bool) and strict_taken):
        verbatim["strict"] = strict
    left: Wire = {key: value for key, value in tool.items() if key not in ("type", _FUNCTION)}
    beyond = {key: value for key, value in inner.items() if key not in known}
    if beyond:
        left[_FUNCTION] = beyond
    if verbatim:
        left[VERBATIM] = verbatim
    return ToolDefinition(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=cast("Block", parameters) if isinstance(parameters, Mapping) else {},
        strict=strict if isinstance(strict, bool) else None,
        extra={protocol: left} if left else None,
    )


def encode_tool(protocol: str, tool: Tool, path: Path, *, strict_taken: bool) -> Wire:
    """Write a tool.

    Raises:
        EncodeError: a tool that another protocol's provider runs.
    """
    if tool.kind == "native":
        return _filled(dict(native_definition(protocol, tool, path)), left_over(tool.extra, protocol))
    function: Wire = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None and strict_taken:
        function["strict"] = tool.strict
    wire: Wire = {"type": _FUNCTION, _FUNCTION: function}
    return wire if tool.extra is None else _restored_tool(wire, function, tool, protocol)


def _restored_tool(wire: Wire, function: Wire, tool: ToolDefinition, protocol: str) -> Wire:
    verbatim = verbatim_of(tool.extra, protocol)
    if verbatim.get("type") == "absent":
        del wire["type"]
    if "description" in verbatim and not tool.description:
        function["description"] = verbatim["description"]
    if "parameters" in verbatim and not tool.parameters:
        del function["parameters"]  # odd ones are left over
    if "strict" in verbatim and function.get("strict") is None:
        function["strict"] = verbatim["strict"]
    return _filled_inside(wire, function, tool.extra, protocol)


def _filled(wire: Wire, left: Block) -> Wire:
    for key, value in left.items():
        wire.setdefault(key, value)
    return wire


def _filled_inside(wire: Wire, function: Wire, extra: Extra | None, protocol: str) -> Wire:
    """Put back what was left over, of the object and of the function in it."""
    for key, value in left_over(extra, protocol).items():
        if key == _FUNCTION and wire.get(_FUNCTION) is function and isinstance(value, Mapping):
            _filled(function, cast("Block", value))
        else:
            wire.setdefault(key, value)
    return wire


# -- calls -------------------------------------------------------------------------------------------------------------


def decode_call(
    protocol: str, call: Block, tool_names: Mapping[str, str], notes: list[Diagnostic], *, reply: bool
) -> ToolCall | None:
    """Read a call; None when it names no function.

    How a reply spelt it is its own affair: a request is written our way.
    """
    function = object_of(call.get(_FUNCTION))
    name, call_id, received = function.get("name"), call.get("id"), function.get("arguments", MISSING)
    if not isinstance(name, str):
        return None
    is_default = len(call) == 3 and len(function) == 2 and isinstance(received, str) and received
    verbatim: Wire = {}
    if received == "":
        arguments, original = dict[str, object](), None
        verbatim["arguments"] = "empty"
    elif isinstance(received, str):
        parsed = parse_arguments(received)
        arguments, original = parsed.arguments, parsed.text
        if parsed.diagnostic is not None:
            notes.append(parsed.diagnostic)
    else:
        arguments, original = dict(object_of(received)), None
        verbatim["arguments"] = (
            "object" if isinstance(received, Mapping) else "absent" if received is MISSING else "odd"
        )
    extra: Extra | None = None
    if not reply and not (is_default and isinstance(call_id, str) and call.get("type") == _FUNCTION):
        extra = _odd_call(protocol, call, function, verbatim)
    return ToolCall(
        id=call_id if isinstance(call_id, str) else "",
        name=tool_names.get(name, name),
        arguments=arguments,
        arguments_text=original,
        extra=extra,
    )


def _odd_call(protocol: str, call: Block, function: Block, verbatim: Wire) -> Extra | None:
    """Keep how a call was spelt that is not what we write."""
    known, known_inside = {"id", "type", "index", _FUNCTION}, {"name", "arguments"}
    kind, call_id = call.get("type", MISSING), call.get("id", MISSING)
    if kind is MISSING:
        verbatim["no_type"] = True
    elif kind != _FUNCTION:
        verbatim["type"] = kind
    if not isinstance(call_id, str):
        verbatim["id"] = "absent" if call_id is MISSING else "odd"
        if call_id is not MISSING:
            known.discard("id")
    if "index" in call:
        verbatim["index"] = call["index"]
    if verbatim.get("arguments") == "odd":
        known_inside.discard("arguments")
    left: Wire = {key: value for key, value in call.items() if key not in known}
    beyond = {key: value for key, value in function.items() if key not in known_inside}
    if beyond:
        left[_FUNCTION] = beyond
    if verbatim:
        left[VERBATIM] = verbatim
    return {protocol: left} if left else None


def encode_call(protocol: str, call: ToolCall) -> Wire:
    """Write a call."""
    received = call.arguments_text
    if received is None:
        received = encode_arguments(call.arguments)
    function: Wire = {"name": call.name, "arguments": received}
    wire: Wire = {"id": call.id, "type": _FUNCTION, _FUNCTION: function}
    if call.extra is None:
        return wire
    verbatim = verbatim_of(call.extra, protocol)
    if "no_type" in verbatim:
        del wire["type"]
    elif "type" in verbatim:
        wire["type"] = verbatim["type"]
    if "id" in verbatim and not call.id:
        del wire["id"]  # an odd one is left over
    if "index" in verbatim:
        wire["index"] = verbatim["index"]
    _restore_arguments(function, call, verbatim.get("arguments"))
    return _filled_inside(wire, function, call.extra, protocol)


def _restore_arguments(function: Wire, call: ToolCall, verbatim: object) -> None:
    if verbatim == "object":
        function["arguments"] = call.arguments
    elif verbatim == "empty" and not call.arguments:
        function["arguments"] = ""
    elif verbatim in ("absent", "odd") and not call.arguments:
        del function["arguments"]  # odd ones are left over
