"""A small session for the conformance kit, written by hand after the files of Cline 3.0.65."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.writing import json_line

_START = 1794736800000
_MODEL = {"id": "claude-sonnet-4-5", "provider": "anthropic", "family": "claude-sonnet"}
_METRICS = {"inputTokens": 10, "outputTokens": 7, "cacheReadTokens": 5, "cacheWriteTokens": 0, "cost": 0.5}


def _message(at: int, role: str, *content: dict[str, Any], **fields: object) -> dict[str, Any]:
    return {"id": f"msg_{at}", "role": role, "content": list(content), "ts": _START + 1000 * at, **fields}


def _result(call_id: str, **outcome: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "name": "read_files", "content": [outcome]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


_CALLS = [{"type": "tool_use", "id": f"toolu_{at}", "name": "read_files", "input": {"n": at}} for at in (1, 2)]
_DOCUMENT = {
    "version": 1, "updated_at": "2026-11-15T11:00:09.000Z", "agent": "lead", "sessionId": "179_ab",
    "origin": {"source": "cli", "version": "3.0.65"}, "system_prompt": "You are an agent.",
    "messages": [
        _message(1, "user", _text("Read both.")),
        _message(2, "assistant", {"type": "thinking", "thinking": "Both at once."}, _text("I read."), *_CALLS,
                 modelInfo=_MODEL, metrics=_METRICS),
        _message(3, "user", _result("toolu_1", query="a", result="alpha", success=True)),
        _message(4, "user", _result("toolu_2", query="b", result="", error="no such file", success=False)),
        _message(5, "assistant", _text("One is there."), modelInfo=_MODEL, metrics=_METRICS),
    ],
}  # fmt: skip
_MANIFEST = {
    "version": 1, "session_id": "179_ab", "started_at": "2026-11-15T10:00:00.000Z", "cwd": "/home/user/project",
    "metadata": {"title": "Two files"},
}  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: two calls, one of which failed."""
    name = "sessions/179_ab/179_ab.messages.json"
    files = MemoryFiles({"sessions/179_ab/179_ab.json": json_line(_MANIFEST)})
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "alpha"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
    ]
    return (
        FormatSample(
            "calls",
            Source(data=json_line(_DOCUMENT), name=name, neighbours=files),
            [
                {"role": "user", "content": "Read both."},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "Both at once."},
                                                  _text("I read."), *_CALLS]},
                {"role": "user", "content": results},
                {"role": "assistant", "content": "One is there."},
            ],
            wire="anthropic-messages",
        ),
    )  # fmt: skip
