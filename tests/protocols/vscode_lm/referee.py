"""Validate a whole request with a JSON schema of segue's own format.

`test_shim` checks with the compiler that the editor's classes accept the format.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


_STRING = {"type": "string"}
_BASE64 = {"type": "string", "pattern": r"^[A-Za-z0-9+/=]+$"}
_TEXT = _object({"$": {"const": "text"}, "value": {"type": "string", "pattern": r"\S"}})
_DATA = _object({"$": {"const": "data"}, "data": _BASE64, "mimeType": {"type": "string", "pattern": "^[a-z]+/"}})
_CALL = _object({"$": {"const": "toolCall"}, "callId": _STRING, "name": _STRING, "input": {"type": "object"}})
_RESULT = _object(
    {"$": {"const": "toolResult"}, "callId": _STRING, "content": {"type": "array", "items": {"anyOf": [_TEXT, _DATA]}}}
)
_TOOL = _object({"name": _STRING, "description": _STRING}, {"inputSchema": {"type": "object"}})


def _message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "array", "minItems": 1, "items": {"anyOf": list(parts)}}
    return _object({"role": {"const": role}, "content": content}, {"name": _STRING})


SCHEMA = _object(
    {
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {"anyOf": [_message("user", _TEXT, _DATA, _RESULT), _message("assistant", _TEXT, _DATA, _CALL)]},
        }
    },
    {"options": _object({}, {"tools": {"type": "array", "items": _TOOL}, "toolMode": {"enum": [1, 2]}})},
)
_VALIDATOR = Draft202012Validator(SCHEMA)


def complaints(body: Any, endpoint: object = None) -> list[str]:  # the same in every folder
    """List the errors that the schema finds in a request."""
    return [f"{error.json_path}: {error.message}" for error in _VALIDATOR.iter_errors(body)]
