"""The SDK's own models as judges of our requests: read from JSON, strictly, unknown keys and unknown words refused.

Read from Python values they would take a text for bytes; and words an enum does not know are only warned of, so
warnings are errors here. A signature is opaque to us, so it is judged as bytes whatever it is.
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
    """List what the SDK's models say against a body."""
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
            found += [f"{key}[{index}].{given}" for given in judge(model, item)]
    return found


def judge(model: type[BaseModel], value: object) -> list[str]:
    """List what one model says against a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model.model_validate_json(json.dumps(signed(value)), strict=True)
        except ValidationError as error:
            return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        except UserWarning as warning:
            return [str(warning)]
    return []


def signed(value: Any) -> Any:
    """Give every signature as base64, which it need not be."""
    if isinstance(value, dict):
        return {
            key: base64.b64encode(inner.encode()).decode()
            if key in ("thoughtSignature", "thought_signature") and isinstance(inner, str)
            else signed(inner)
            for key, inner in value.items()
        }
    return [signed(inner) for inner in value] if isinstance(value, list) else value
