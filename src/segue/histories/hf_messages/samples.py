"""Small samples for the conformance kit, written by hand after rows of data sets."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import (
    ANSWER,
    ASKED,
    FOUND,
    MISSING,
    PATHS,
    REMARK,
    THOUGHT,
    WIRE,
    sent_turns,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_TOOLS = [{"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": _SCHEMA}}]


def _row(*, as_text: bool) -> dict[str, Any]:
    calls = [
        {"id": f"toolu_{at}", "type": "function", "function": {"name": "read", "arguments": {"path": path}}}
        for at, path in enumerate(PATHS, 1)
    ]
    if as_text:
        for call in calls:
            call["function"] = {"name": "read", "arguments": f'{{"path":"{PATHS[calls.index(call)]}"}}'}
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": REMARK, "thinking": THOUGHT, "tool_calls": calls},
            {"role": "tool", "name": "read", "content": FOUND, "tool_call_id": "toolu_1"},
            {"role": "tool", "name": "read", "content": MISSING, "tool_call_id": "toolu_2"},
            {"role": "assistant", "content": ANSWER, "weight": 1},
        ],
        "tools": _TOOLS,
        "source": "made up",
    }


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation with objects as arguments, and one with text."""
    sent = sent_turns(signature=False, image=False, result_image=False, errors=False)
    return (
        FormatSample("objects", Source(data=json_line(_row(as_text=False))), sent, wire=WIRE),
        FormatSample("texts", Source(data=json_line(_row(as_text=True))), sent, wire=WIRE),
    )
