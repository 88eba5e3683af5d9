"""Tools: JSON schemas as `parameter_definitions`, and back.

Facts this file rests on:
- A parameter has a description, a Python type and whether it is required; its name has letters, digits and underscores
  and does not begin with a digit.           (cohere 7.3.1: Tool, ToolParameterDefinitionsValue; read 2026-11-15)

Definitions cannot express every schema. A schema that they cannot express is appended to the description as JSON, so
that the model can read it and nothing is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue import EncodeError, NativeTool, Tool, ToolDefinition
from segue.protocols import keep, restore
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import expect_objects, text_of
from segue_cohere_v1.rules import PROTOCOL

_PYTHON_TYPES: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
_JSON_TYPES: Final = {python: kind for kind, python in _PYTHON_TYPES.items()}
_PARAMETER_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEMA: Final = "\n\nParameters (JSON Schema): "
_KEYS: Final = frozenset({"name", "description", "parameter_definitions"})


def encode_tools(tools: tuple[Tool, ...]) -> list[dict[str, object]]:
    """Write the tools of a request.

    Raises:
        EncodeError: a native tool of another protocol.
    """
    return [_encode_tool(tool, index) for index, tool in enumerate(tools)]


def _encode_tool(tool: Tool, index: int) -> dict[str, object]:
    if tool.kind == "native":
        if tool.protocol == PROTOCOL:
            return dict(tool.definition)
        raise EncodeError(f"cohere-v1 does not support a tool of {tool.protocol}; remove it", path=("tools", index))
    definitions = _encode_schema(tool.parameters)
    wire: dict[str, object] = {"name": tool.name, "description": tool.description, "parameter_definitions": definitions}
    if _decode_schema(definitions) != tool.parameters:
        schema = json.dumps(tool.parameters, ensure_ascii=False, separators=(",", ":"))
        wire["description"] = f"{tool.description}{_SCHEMA}{schema}"
    return restore(wire, tool.extra, PROTOCOL)


def _encode_schema(schema: Mapping[str, object]) -> dict[str, object]:
    properties, required = schema.get("properties"), schema.get("required")
    definitions: dict[str, object] = {}
    for name, given in object_of(properties).items():
        parameter = object_of(given)
        kind = parameter.get("type")
        if not _PARAMETER_NAME.fullmatch(name) or not isinstance(kind, str) or kind not in _PYTHON_TYPES:
            continue
        definition: dict[str, object] = {"type": _PYTHON_TYPES[kind]}
        if isinstance(description := parameter.get("description"), str):
            definition["description"] = description
        if isinstance(required, list) and name in cast("list[object]", required):
            definition["required"] = True
        definitions[name] = definition
    return definitions


def _decode_schema(definitions: Mapping[str, object]) -> dict[str, object]:
    properties: dict[str, object] = {}
    required: list[str] = []
    for name, given in definitions.items():
        definition = object_of(given)
        parameter: dict[str, object] = {"type": _JSON_TYPES.get(str(definition.get("type")), "string")}
        if isinstance(description := definition.get("description"), str):
            parameter["description"] = description
        properties[name] = parameter
        if definition.get("required") is True:
            required.append(name)
    schema: dict[str, object] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def decode_tools(given: object) -> tuple[Tool, ...]:
    """Read the tools of a request; an object without a name becomes a `NativeTool`.

    Raises:
        DecodeError: they are not a list of objects.
    """
    tools: list[Tool] = []
    for index, wire in enumerate(expect_objects(given, ("tools",))):
        if not isinstance(name := wire.get("name"), str):
            tools.append(NativeTool(protocol=PROTOCOL, definition=dict(wire)))
            continue
        definitions, text = wire.get("parameter_definitions"), text_of(wire.get("description")) or ""
        description, mark, schema = text.partition(_SCHEMA)
        parameters = _parse(schema) if mark else None
        if parameters is None:
            description, parameters = text, _decode_schema(object_of(definitions))
        tool = ToolDefinition(name=name, description=description, parameters=parameters)
        tools.append(replace(tool, extra=keep(PROTOCOL, wire, _encode_tool(tool, index), _KEYS)))
    return tuple(tools)


def _parse(text: str) -> dict[str, object] | None:
    try:
        schema = cast("object", json.loads(text))
    except ValueError:
        return None
    return cast("dict[str, object]", schema) if isinstance(schema, dict) else None
