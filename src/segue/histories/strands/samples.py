"""Small samples for the conformance kit, written by hand after a session of strands-agents 1.62.0."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    PATHS,
    PNG,
    REMARK,
    SIGNATURE,
    THOUGHT,
    WIRE,
    sent_turns,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_IMAGE = {"image": {"format": "png", "source": {"bytes": {"__bytes_encoded__": True, "data": PNG}}}}


def _result(call_id: str, status: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"toolResult": {"status": status, "content": list(content), "toolUseId": call_id}}


_MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"text": ASKED}, _IMAGE], "tracking_id": "t0"},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": SIGNATURE}}},
            {"text": REMARK},
            *(
                {"toolUse": {"toolUseId": f"toolu_{at}", "name": "read", "input": {"path": path}}}
                for at, path in enumerate(PATHS, 1)
            ),
        ],
        "metadata": {
            "usage": {"inputTokens": 15, "outputTokens": 7, "totalTokens": 27, "cacheReadInputTokens": 5},
            "metrics": {"latencyMs": 0},
        },
        "tracking_id": "t1",
    },
    {
        "role": "user",
        "content": [
            _result("toolu_1", "success", {"text": FOUND}, _IMAGE),
            _result("toolu_2", "error", {"text": MISSING}),
        ],
        "tracking_id": "t2",
    },
    {"role": "assistant", "content": [{"text": ANSWER}], "tracking_id": "t3"},
]


def samples() -> tuple[FormatSample, ...]:
    """Give the messages of one agent."""
    return (FormatSample("messages", Source(data=json_line(_MESSAGES)), sent_turns(), wire=WIRE),)
