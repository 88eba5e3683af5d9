"""A small sample for the conformance kit, written by hand after dumps of ai 6 and 7."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    MODEL,
    PATHS,
    PNG,
    PNG_URL,
    REMARK,
    SIGNATURE,
    THOUGHT,
    WIRE,
    sent_turns,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_START = {
    "type": "custom",
    "kind": "anthropic.message_start",
    "providerMetadata": {"anthropic": {"id": "msg_1", "model": MODEL}},
}
_OUTPUT = {
    "type": "content",
    "value": [{"type": "text", "text": FOUND}, {"type": "media", "data": PNG, "mediaType": "image/png"}],
}


def _tool(at: int, **fields: object) -> dict[str, Any]:
    return {"type": "tool-read", "toolCallId": f"toolu_{at}", "input": {"path": PATHS[at - 1]}, **fields}


_MESSAGES: list[dict[str, Any]] = [
    {
        "id": "u0",
        "role": "user",
        "parts": [{"type": "text", "text": ASKED}, {"type": "file", "mediaType": "image/png", "url": PNG_URL}],
    },
    {
        "id": "a1",
        "metadata": {"totalUsage": {"inputTokens": 20, "outputTokens": 7, "totalTokens": 27}, "model": "x"},
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            _START,
            {
                "type": "reasoning",
                "id": "0",
                "text": THOUGHT,
                "providerMetadata": {"anthropic": {"signature": SIGNATURE}},
                "state": "done",
            },
            {"type": "text", "text": REMARK, "state": "done"},
            _tool(1, state="output-available", output=_OUTPUT),
            _tool(2, state="output-error", errorText=MISSING),
            {"type": "step-start"},
            _START,
            {"type": "text", "text": ANSWER, "state": "done"},
        ],
    },
]


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation."""
    return (FormatSample("messages", Source(data=json_line(_MESSAGES)), sent_turns(), wire=WIRE),)
