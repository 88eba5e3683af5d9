"""Small samples for the conformance kit, written by hand after the dumps of langchain-core 1.7.2."""

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


def _message(kind: str, content: object, **fields: object) -> dict[str, Any]:
    data: dict[str, Any] = {
        "content": content,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": None,
        "id": None,
    }
    return {"type": kind, "data": {**data, **fields}}


def _reply(content: object, calls: list[dict[str, Any]], stop: str, **fields: object) -> dict[str, Any]:
    meta = {"id": "msg_1", "model": MODEL, "model_name": MODEL, "model_provider": "anthropic", "stop_reason": stop}
    usage = {"input_tokens": 20, "output_tokens": 7, "total_tokens": 27, "input_token_details": {"cache_read": 5}}
    data = {"response_metadata": {**meta, "container": None}, "tool_calls": calls, "invalid_tool_calls": []}
    return _message("ai", content, **data, usage_metadata=usage, **fields)


def _result(call_id: str, content: object, status: str) -> dict[str, Any]:
    return _message("tool", content, name="read", tool_call_id=call_id, artifact=None, status=status)


_IMAGE = {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}
_USES = [
    {"type": "tool_use", "id": f"toolu_{at}", "name": "read", "input": {"path": path}, "caller": {"type": "direct"}}
    for at, path in enumerate(PATHS, 1)
]
_CALLS = [
    {"type": "tool_call", "id": f"toolu_{at}", "name": "read", "args": {"path": path}}
    for at, path in enumerate(PATHS, 1)
]
_THINKING = {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE, "index": 0}
_MESSAGES: list[dict[str, Any]] = [
    _message("system", "Be brief."),
    _message("human", [{"type": "text", "text": ASKED}, _IMAGE], id="h1"),
    _reply([_THINKING, {"type": "text", "text": REMARK}, *_USES], _CALLS, "tool_use", id="run-1"),
    _result("toolu_1", [{"type": "text", "text": FOUND}, _IMAGE], "success"),
    _result("toolu_2", MISSING, "error"),
    _reply(ANSWER, [], "end_turn", id="run-2"),
]


def _constructor(entry: dict[str, Any]) -> dict[str, Any]:
    names = {"system": "SystemMessage", "human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    kept = {key: value for key, value in entry["data"].items() if value not in (None, {})}
    path = ["langchain", "schema", "messages", names[entry["type"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": kept}


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation as `messages_to_dict` writes it, and as the state of a graph."""
    state = {"messages": [_constructor(entry) for entry in _MESSAGES], "step": 3}
    return (
        FormatSample("messages", Source(data=json_line(_MESSAGES)), sent_turns(), wire=WIRE),
        FormatSample("state", Source(data=json_line(state)), sent_turns(), wire=WIRE),
    )
