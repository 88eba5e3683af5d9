"""Small samples for the conformance kit, written by hand after dumps of openai-agents 0.24.0."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    PATHS,
    PNG_URL,
    REMARK,
    THOUGHT,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_IMAGE = {"type": "input_image", "detail": "auto", "image_url": PNG_URL}


def _text(name: str, text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    return {"id": name, "type": "message", "role": "assistant", "status": "completed", "content": [part]}


_ITEMS: list[Any] = [
    {"role": "user", "content": [{"type": "input_text", "text": ASKED}, _IMAGE]},
    {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": THOUGHT}],
        "encrypted_content": "ZW5jcnlwdGVk",
    },
    _text("msg_1", REMARK),
    *(
        {
            "id": f"fc_{at}",
            "type": "function_call",
            "call_id": f"call_{at}",
            "name": "read",
            "arguments": f'{{"path": "{path}"}}',
            "status": "completed",
            "x_new": 1,
        }
        for at, path in enumerate(PATHS, 1)
    ),
    {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [{"type": "input_text", "text": FOUND}, {"type": "input_image", "image_url": PNG_URL}],
    },
    {"type": "function_call_output", "call_id": "call_2", "output": MISSING},
    _text("msg_2", ANSWER),
    {"role": "system", "content": "Answer in French from now on."},
    {"role": "user", "content": "Thanks."},
]


def _over_chat() -> list[Any]:
    data = {"model": "deepseek-chat", "response_id": "chatcmpl-1"}
    items: list[Any] = []
    for item in _ITEMS[:8]:
        made = {key: value for key, value in item.items() if key not in {"encrypted_content", "status", "x_new"}}
        if "id" in made:
            made = {**made, "id": "__fake_id__", "provider_data": data}
        items.append(made)
    return items


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation over Responses, and one over Chat."""
    return (
        FormatSample("responses", Source(data=json_line(_ITEMS)), _ITEMS),
        FormatSample("chat", Source(data=json_line(_over_chat()))),
    )
