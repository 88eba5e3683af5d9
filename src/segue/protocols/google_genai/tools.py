"""Tools of a request, both ways.

Facts this file rests on:
- A tool is an object with one kind of tool a key; `functionDeclarations` lists the application's, the others are
  Google's own (`googleSearch`, `codeExecution`, `urlContext`, ...) or a server's.
                                                                                   (google-genai 3.1.0, read 2026-11-15)
- One tool may stand without its list.                                                 (recorded traffic, 2026-11)
- A tool that takes nothing has no schema.                  (google-genai 3.1.0: FunctionDeclaration, read 2026-11-15)
- `parametersJsonSchema` takes JSON schema as it is, also at Vertex and also `$defs` and `additionalProperties`.
                                                                                         (recorded traffic, 2026-11)

By default all functions in a row share one object, and every tool of Google's has its own. Shapes: `apart` (a function
that begins an object of its own), `joined` (a native tool beside functions in one object), `group` (how that object
spells its list), `schema` (where a schema stood, and how it was spelt).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import Path
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.schemas import from_openapi
from segue.protocols.google_genai.verbatim import TO_SNAKE, Block, Wire, keep, object_of, open_object, put_back
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, native_definition, verbatim_of

_FUNCTIONS: Final = "functionDeclarations"
_JSON_SCHEMA: Final = "parametersJsonSchema"
_OPEN_SCHEMA: Final = "parameters"
_KEYS: Final = frozenset({"name", "description"})


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_tools(body: Block, verbatim: Wire) -> tuple[Tool, ...]:
    """Read the tools of a body; how an empty list or a lone tool was spelt goes to the shape.

    Raises:
        DecodeError: they are no list of objects.
    """
    given = body.get("tools")
    if not given:
        if "tools" in body:
            verbatim["tools"] = given
        return ()
    if isinstance(given, Mapping):
        verbatim["tools"] = "single"
        given = [cast("Block", given)]
    out: list[Tool] = []
    for index, item in enumerate(expect_list(given, ("tools",))):
        _decode_tool(expect_object(item, ("tools", index)), ("tools", index), out)
    return tuple(out)


def _decode_tool(tool: Block, path: Path, out: list[Tool]) -> None:
    group = _FUNCTIONS if _FUNCTIONS in tool else TO_SNAKE[_FUNCTIONS]
    declared = tool.get(group)
    functions = cast("list[object]", declared) if isinstance(declared, list) else []
    if not functions or not all(_is_readable(function) for function in functions):
        out.append(NativeTool(protocol=PROTOCOL, definition=tool))
        return
    first_verbatim: Wire = {"group": group} if group != _FUNCTIONS else {}
    if out and out[-1].kind == "function":
        first_verbatim["apart"] = True
    for at, function in enumerate(functions):
        declaration = expect_object(function, (*path, group, at))
        out.append(_decode_function(declaration, first_verbatim if at == 0 else {}))
    native = {key: value for key, value in tool.items() if key != group}
    if native:
        out.append(NativeTool(protocol=PROTOCOL, definition=native, extra={PROTOCOL: {VERBATIM: {"joined": True}}}))


def _is_readable(function: object) -> bool:
    return isinstance(function, dict) and isinstance(cast("Wire", function).get("name"), str)


def _decode_function(raw: Block, verbatim: Wire) -> ToolDefinition:
    wire, wire_format = open_object(raw)
    verbatim = {**verbatim, **wire_format}
    description = wire.get("description", "")
    if "description" in wire and not (isinstance(description, str) and description):
        verbatim["description"] = description
    known = set(_KEYS)
    parameters: Block = {}
    if isinstance(wire.get(_JSON_SCHEMA), dict):
        parameters = cast("Block", wire[_JSON_SCHEMA])
        known.add(_JSON_SCHEMA)
        if not parameters:
            verbatim["schema"] = {"key": _JSON_SCHEMA}
    elif isinstance(wire.get(_OPEN_SCHEMA), dict):
        given = cast("Block", wire[_OPEN_SCHEMA])
        parameters = from_openapi(given)
        known.add(_OPEN_SCHEMA)
        verbatim["schema"] = {"key": _OPEN_SCHEMA} if parameters is given else {"key": _OPEN_SCHEMA, "spelt": given}
    return ToolDefinition(
        name=cast("str", wire["name"]),
        description=description if isinstance(description, str) else "",
        parameters=parameters,
        extra=keep(wire, known, verbatim),
    )


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_tools(tools: tuple[Tool, ...], verbatim: Block) -> object:
    """Write the tools.

    Raises:
        EncodeError: one of them is another wire's.
    """
    out: list[Wire] = []
    open_list: list[Wire] | None = None
    for index, tool in enumerate(tools):
        original = verbatim_of(tool.extra, PROTOCOL)
        if tool.kind == "function":
            if open_list is None or "apart" in original:
                open_list = []
                group = original.get("group")
                out.append({group if isinstance(group, str) else _FUNCTIONS: open_list})
            open_list.append(_encode_function(tool, original))
            continue
        definition = native_definition(PROTOCOL, tool, ("tools", index))
        if "joined" in original and open_list is not None:
            for key, value in definition.items():
                out[-1].setdefault(key, value)
        else:
            out.append(dict(definition))
        open_list = None
    return out[0] if verbatim.get("tools") == "single" and len(out) == 1 else out


def _encode_function(tool: ToolDefinition, verbatim: Block) -> Wire:
    wire: Wire = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    elif "description" in verbatim:
        wire["description"] = verbatim["description"]
    placed = object_of(verbatim.get("schema"))
    if placed.get("key") == _OPEN_SCHEMA:
        original = placed.get("spelt")
        if not isinstance(original, Mapping):
            wire[_OPEN_SCHEMA] = tool.parameters
        elif from_openapi(cast("Block", original)) == tool.parameters:
            wire[_OPEN_SCHEMA] = original
        else:
            wire[_JSON_SCHEMA] = tool.parameters
    elif tool.parameters or placed.get("key") == _JSON_SCHEMA:
        wire[_JSON_SCHEMA] = tool.parameters
    return wire if tool.extra is None else put_back(wire, tool.extra)
