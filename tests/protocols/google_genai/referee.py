"""The SDK's own models validate our requests: from JSON, strictly; unknown keys and unknown enum values are refused.

From Python values they would accept a text for bytes. For unknown enum values they only warn, so warnings are errors
here. A signature is opaque, so it is validated as bytes whatever it is.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Mapping
from typing import Any

from google.genai import types
from pydantic import BaseModel, ValidationError

from segue.protocols.kit.codec import Endpoint

MODELS: Mapping[str, type[BaseModel]] = {
    "contents": types.Content,
    "tools": types.Tool,
    "safetySettings": types.SafetySetting,
    "systemInstruction": types.Content,
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}
LISTS = frozenset({"contents", "tools", "safetySettings"})
PLAIN: Mapping[str, type] = {"cachedContent": str, "labels": dict, "serviceTier": str, "store": bool, "model": str}
SNAKE = {"system_instruction": "systemInstruction", "generation_config": "generationConfig"}


def complaints(body: Mapping[str, Any], endpoint: Endpoint) -> list[str]:
    """List the errors that the SDK's models find in a body."""
    found: list[str] = []
    if not body.get("contents"):
        found.append("contents: missing")
    for raw, value in body.items():
        key = SNAKE.get(raw, raw)
        if key in PLAIN:
            if not isinstance(value, PLAIN[key]):
                found.append(f"{key}: {value!r}")
            continue
        model = MODELS.get(key)
        if model is None:
            found.append(f"{raw}: unknown")
            continue
        items = value if isinstance(value, list) else [value]
        if isinstance(value, list) is not (key in LISTS) and not (key in LISTS and isinstance(value, dict)):
            found.append(f"{key}: not what it should be")
        for index, item in enumerate(items):
            found += [f"{key}[{index}].{error}" for error in validate(model, item)]
    return found


def validate(model: type[BaseModel], value: object) -> list[str]:
    """List the errors that one model finds in a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model.model_validate_json(json.dumps(with_base64(value)), strict=True)
        except ValidationError as error:
            return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        except UserWarning as warning:
            return [str(warning)]
    return []


def with_base64(value: Any) -> Any:
    """Give every signature as base64, which it need not be."""
    if isinstance(value, dict):
        return {
            key: base64.b64encode(inner.encode()).decode()
            if key in ("thoughtSignature", "thought_signature") and isinstance(inner, str)
            else with_base64(inner)
            for key, inner in value.items()
        }
    return [with_base64(inner) for inner in value] if isinstance(value, list) else value
