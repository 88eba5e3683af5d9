"""Items, bodies and streams of this protocol, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "openai-responses"

THINKER = Model("gpt-5.4", "openai", "openai-responses", reasoning=True, input=("text", "image", "document"))
PLAIN = Model("gpt-4o", "openai", "openai-responses")
VENDOR = Model("some-model", "somebody", "openai-responses", reasoning=True)


def endpoint(model: Model = THINKER) -> Endpoint:
    return resolve_endpoint(model)


def fixture(case: str, name: str) -> Any:
    return json.loads((FIXTURES / case / f"{name}.json").read_text("utf-8"))


def cases() -> list[str]:
    return sorted(folder.name for folder in FIXTURES.iterdir())


def reasoning(**fields: object) -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", **fields}


def text_item(text: str = "Hello.", **fields: object) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    whole = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {**whole, **fields}


def call(**fields: object) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}', **fields}


def output(text: object = "done", **fields: object) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": "call_1", "output": text, **fields}


def user(content: object = "Hi.", **fields: object) -> dict[str, Any]:
    return {"role": "user", "content": content, **fields}


def reply(*items: dict[str, object], **fields: object) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5.4-2026-03-05",
        "output": list(items),
        "usage": usage,
        **fields,
    }
