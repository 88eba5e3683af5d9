"""A small sample for the conformance kit, written by hand after a dump of pydantic-ai 2.66.0."""

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
    REMARK,
    SIGNATURE,
    THOUGHT,
    WIRE,
    sent_turns,
)
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_TIME = "2026-11-15T10:00:00.123456Z"
_IDS = {"run_id": "run-1", "conversation_id": "conversation-1", "metadata": None, "state": "complete"}


def _request(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"parts": list(parts), "timestamp": _TIME, "instructions": None, "kind": "request", **_IDS}


def _response(finish: str, *parts: dict[str, Any]) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "input_tokens": 20,
        "cache_read_tokens": 5,
        "output_tokens": 7,
        "details": {},
        "cost": "0.0009885",
    }
    fields = {"model_name": MODEL, "timestamp": _TIME, "kind": "response", "provider_name": "anthropic"}
    fields |= {"provider_response_id": "msg_1", "finish_reason": finish}
    return {"parts": list(parts), "usage": usage, **fields, **_IDS}


def _result(call_id: str, content: object, outcome: str) -> dict[str, Any]:
    part = {"tool_name": "read", "content": content, "tool_call_id": call_id, "metadata": None, "timestamp": _TIME}
    return {**part, "outcome": outcome, "retry": None, "part_kind": "tool-return"}


_IMAGE = {"data": PNG, "media_type": "image/png", "vendor_metadata": None, "kind": "binary", "identifier": "abc123"}
_CALLS = [
    {"tool_name": "read", "args": {"path": path}, "tool_call_id": f"toolu_{at}", "part_kind": "tool-call"}
    for at, path in enumerate(PATHS, 1)
]
_THINKING = {"content": THOUGHT, "signature": SIGNATURE, "provider_name": "anthropic", "part_kind": "thinking"}
_MESSAGES = [
    _request(
        {"content": "Be brief.", "timestamp": _TIME, "part_kind": "system-prompt"},
        {"content": [ASKED, _IMAGE], "timestamp": _TIME, "part_kind": "user-prompt"},
    ),
    _response("tool_call", _THINKING, {"content": REMARK, "part_kind": "text"}, *_CALLS),
    _request(_result("toolu_1", [FOUND, _IMAGE], "success"), _result("toolu_2", MISSING, "retried")),
    _response("stop", {"content": ANSWER, "id": None, "part_kind": "text"}),
]


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation."""
    return (FormatSample("messages", Source(data=json_line(_MESSAGES)), sent_turns(), wire=WIRE),)
