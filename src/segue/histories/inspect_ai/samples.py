"""Small samples for the conformance kit, written by hand after a log of inspect-ai 0.3.285."""

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
    PNG_URL,
    REMARK,
    SIGNATURE,
    THOUGHT,
    WIRE,
    sent_turns,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line


def _messages(image: str) -> list[dict[str, Any]]:
    picture = {"type": "image", "image": image, "detail": "auto"}
    return [
        {"id": "m1", "content": "Be brief.", "role": "system"},
        {"id": "m2", "content": [{"type": "text", "text": ASKED}, picture], "role": "user", "source": "input"},
        {
            "id": "m3",
            "content": [
                {"type": "reasoning", "reasoning": SIGNATURE, "summary": THOUGHT, "redacted": True},
                {"type": "text", "text": REMARK},
            ],
            "source": "generate",
            "role": "assistant",
            "tool_calls": [
                {"id": f"toolu_{at}", "function": "read", "arguments": {"path": path}, "type": "function"}
                for at, path in enumerate(PATHS, 1)
            ],
            "model": MODEL,
        },
        {
            "id": "m4",
            "content": [{"type": "text", "text": FOUND}, picture],
            "role": "tool",
            "tool_call_id": "toolu_1",
            "function": "read",
        },
        {
            "id": "m5",
            "content": "",
            "role": "tool",
            "tool_call_id": "toolu_2",
            "function": "read",
            "error": {"type": "file_not_found", "message": MISSING},
        },
        {"id": "m6", "content": ANSWER, "source": "generate", "role": "assistant", "model": MODEL},
    ]


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation alone, and in a log whose images are attachments."""
    log: dict[str, Any] = {
        "version": 2,
        "status": "success",
        "eval": {"task": "demo", "model": f"anthropic/{MODEL}"},
        "samples": [
            {
                "id": 1,
                "epoch": 1,
                "input": "x",
                "target": "",
                "messages": _messages("attachment://0a1b"),
                "attachments": {"0a1b": PNG_URL},
                "started_at": "2026-11-15T10:00:00+00:00",
            }
        ],
    }
    return (
        FormatSample("messages", Source(data=json_line(_messages(PNG_URL))), sent_turns(), wire=WIRE),
        FormatSample("log", Source(data=json_line(log)), sent_turns(), wire=WIRE),
    )
