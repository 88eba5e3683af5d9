"""Schemas in Google's own dialect, read as JSON schema.

Facts this file rests on:
- `parameters` and `responseSchema` hold a subset of OpenAPI 3.0: types in capitals, `nullable`, counts as strings (64
  bits); `parametersJsonSchema` and `responseJsonSchema` hold JSON schema. Only one of the two.
                                                                         (google-genai 3.1.0, read 2026-11-15)
- Vertex also writes a type as the number of its enum, and the SDKs of that time `type_` and `format_` for the keys.
                                              (google.cloud.aiplatform v1: Type; protobuf's JSON mapping; 2026-11-15)
- Types are read in any case, keys under both names.            (the same: enums without case; protobuf's JSON mapping)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.protocols.google_genai.keys import TO_CAMEL
from segue.protocols.kit.json_values import Block, Wire

_SCHEMAS_BELOW: Final = frozenset({"properties", "$defs", "defs"})
_LISTS_BELOW: Final = frozenset({"anyOf", "allOf", "oneOf", "prefixItems"})
_COUNTS: Final = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


_TYPES: Final = ("TYPE_UNSPECIFIED", "string", "number", "integer", "boolean", "array", "object", "null")
"""The types by their numbers."""
_RENAMED: Final[Mapping[str, str]] = {"type_": "type", "format_": "format"}
"""Names of keys that protobuf's Python classes use, because the plain ones are taken."""


def from_openapi(schema: Block) -> Block:
    """Read a schema of Google's dialect; one that is JSON schema already is given unchanged."""
    read = _read(schema)
    return schema if read == schema else read


def _read(schema: Block) -> Wire:
    out: Wire = {}
    for raw, value in schema.items():
        camel = _RENAMED.get(raw) or TO_CAMEL.get(raw, raw)
        key = raw if camel in schema else camel
        if key == "type" and isinstance(value, int) and 0 <= value < len(_TYPES):
            value = _TYPES[value]  # noqa: PLW2901 - the number of a type stands for its name
        if key == "type" and isinstance(value, str):
            if value.upper() != "TYPE_UNSPECIFIED":
                out[key] = value.lower()
        elif key in _COUNTS and isinstance(value, str) and value.isdecimal():
            out[key] = int(value)
        elif key in _SCHEMAS_BELOW and isinstance(value, Mapping):
            below = cast("Block", value)
            out[key] = {name: _below(inner) for name, inner in below.items()}
        elif key in _LISTS_BELOW and isinstance(value, list):
            out[key] = [_below(inner) for inner in cast("list[object]", value)]
        elif key in ("items", "additionalProperties"):
            out[key] = _below(value)
        else:
            out[key] = value
    if out.get("nullable") is True:
        _allow_null(out)
    return out


def _below(value: object) -> object:
    return _read(cast("Block", value)) if isinstance(value, Mapping) else value


def _allow_null(schema: Wire) -> None:
    """Allow null in the way of JSON schema."""
    kind, choices = schema.get("type"), schema.get("anyOf")
    if isinstance(kind, str):
        del schema["nullable"]
        schema["type"] = [kind, "null"]
    elif isinstance(choices, list):
        del schema["nullable"]
        schema["anyOf"] = [*cast("list[object]", choices), {"type": "null"}]
