"""Validate a whole request with a JSON schema of segue's own format."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role", "content"],
                "properties": {
                    "role": {"enum": ["system", "user", "assistant"]},
                    "content": {"type": "string", "pattern": r"\S"},
                },
                "additionalProperties": False,
            },
        }
    },
    "additionalProperties": False,
}
_VALIDATOR = Draft202012Validator(SCHEMA)


def complaints(body: Any, endpoint: object = None) -> list[str]:  # the same in every folder
    """Say what the description of the form has against a request."""
    return [f"{error.json_path}: {error.message}" for error in _VALIDATOR.iter_errors(body)]
