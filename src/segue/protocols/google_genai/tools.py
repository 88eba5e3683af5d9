"""Tools of a request, both ways.

Facts this file rests on:
- A tool is an object with one kind of tool a key; `functionDeclarations` lists the application's, the others are
  Google's own (`googleSearch`, `codeExecution`, `urlContext`, ...) or a server's.
                                                                                   (google-genai 3.1.0, read 2026-11-15)
- One tool may stand without its list.                                                 (recorded traffic, 2026-11)
- A tool without parameters has no schema.                  (google-genai 3.1.0: FunctionDeclaration, read 2026-11-15)
- `parametersJsonSchema` accepts any JSON schema, also at Vertex and also `$defs` and `additionalProperties`.
                                                                                         (recorded traffic, 2026-11)

By default all functions in a row share one object, and every tool of Google's has its own. Choices (`kit.verbatim`):
`group` ("new" or "same"), whether a tool begins an object; `field`, the key that holds the functions of an object.
"""

from __future__ import annotations

from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import NativeTool, Tool, ToolDefinition
from segue.errors import Path
from segue.protocols.google_genai.keys import keep_format, name_in, read_keys
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.schemas import from_openapi
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of
from segue.protocols.kit.reading import expect_list, expect_object, native_definition
from segue.protocols.kit.verbatim import choose, chosen, restore

_FUNCTIONS: Final = "functionDeclarations"
_JSON_SCHEMA: Final = "parametersJsonSchema"
_OPEN_SCHEMA: Final = "parameters"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_tools(given: object) -> tuple[Tool, ...]:
    """Read the tools of a body.

    Raises:
        DecodeError: they are not a list of objects.
    """
    out: list[Tool] = []
    for index, item in enumerate(expect_list(given, ("tools",))):
        _decode_tool(expect_object(item, ("tools", index)), ("tools", index), out)
    return tuple(out)


def _decode_tool(tool: Block, path: Path, out: list[Tool]) -> None:
    field = name_in(tool, _FUNCTIONS)
    declared = tool.get(field)
    functions = list_of(declared)
    if not functions or not all(_is_readable(function) for function in functions):
        out.append(NativeTool(protocol=PROTOCOL, definition=tool))
        return
    group = "same" if out and out[-1].kind == "function" else "new"
    choices: Block = {**choose("group", group, "new"), **choose("field", _FUNCTIONS, field)}
    for at, function in enumerate(functions):
        declaration = expect_object(function, (*path, field, at))
        out.append(_decode_function(declaration, choices if at == 0 else EMPTY))
    native = {key: value for key, value in tool.items() if key != field}
    if native:
        extra = keep_format(EMPTY, EMPTY, (), choose("group", "new", "same"))
        out.append(NativeTool(protocol=PROTOCOL, definition=native, extra=extra))


def _is_readable(function: object) -> bool:
    return isinstance(function, dict) and isinstance(cast("Wire", function).get("name"), str)


def _decode_function(received: Block, choices: Block) -> ToolDefinition:
    wire = read_keys(received)
    description, schema, other = wire.get("description"), wire.get(_JSON_SCHEMA), wire.get(_OPEN_SCHEMA)
    known: set[str] = {"description"} if isinstance(description, str) else set()
    parameters: Block = {}
    if isinstance(schema, dict):
        parameters = cast("Block", schema)
        # A second schema is no data of the tool, but a form of it, and one that is refused.
        known |= {_JSON_SCHEMA, _OPEN_SCHEMA}
    elif isinstance(other, dict):
        parameters = from_openapi(cast("Block", other))
        known.add(_OPEN_SCHEMA)
    tool = ToolDefinition(
        name=cast("str", wire["name"]),
        description=description if isinstance(description, str) else "",
        parameters=parameters,
    )
    extra = keep_format(received, _encode_function(tool), known, choices)
    return tool if extra is None else replace(tool, extra=extra)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_tools(tools: tuple[Tool, ...]) -> list[Wire]:
    """Write the tools.

    Raises:
        EncodeError: one of them is another protocol's.
    """
    out: list[Wire] = []
    functions: list[Wire] | None = None
    for index, tool in enumerate(tools):
        if tool.kind == "function":
            group = "new" if functions is None else "same"
            if functions is None or chosen(tool.extra, PROTOCOL, "group", group) == "new":
                functions = []
                out.append({cast("str", chosen(tool.extra, PROTOCOL, "field", _FUNCTIONS)): functions})
            functions.append(_encode_function(tool))
            continue
        definition = native_definition(PROTOCOL, tool, ("tools", index))
        if functions is not None and chosen(tool.extra, PROTOCOL, "group", "new") == "same":
            for key, value in definition.items():
                out[-1].setdefault(key, value)
        else:
            out.append(dict(definition))
        functions = None
    return out


def _encode_function(tool: ToolDefinition) -> Wire:
    wire: Wire = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.parameters:
        wire[_JSON_SCHEMA] = tool.parameters
    return wire if tool.extra is None else restore(wire, tool.extra, PROTOCOL)
