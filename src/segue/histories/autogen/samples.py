"""Small samples for the conformance kit, written by hand after dumps of autogen-agentchat 0.7.5."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, PATHS, PNG, REMARK, WIRE, sent_turns
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_CALLS = [
    {"id": f"toolu_{at}", "arguments": f'{{"path":"{path}"}}', "name": "read"} for at, path in enumerate(PATHS, 1)
]
_RESULTS = [
    {"content": FOUND, "name": "read", "call_id": "toolu_1", "is_error": False},
    {"content": MISSING, "name": "read", "call_id": "toolu_2", "is_error": True},
]
_STATE = {
    "type": "AssistantAgentState",
    "version": "1.0.0",
    "llm_context": {
        "messages": [
            {"content": [ASKED, {"data": PNG}], "source": "user", "type": "UserMessage"},
            {"content": _CALLS, "thought": REMARK, "source": "assistant", "type": "AssistantMessage"},
            {"content": _RESULTS, "type": "FunctionExecutionResultMessage"},
            {"content": ANSWER, "thought": None, "source": "assistant", "type": "AssistantMessage"},
        ]
    },
}


def _event(kind: str, source: str, content: object, at: int, usage: object = None) -> dict[str, Any]:
    stamp: dict[str, Any] = {"id": f"event-{at}", "created_at": f"2026-11-15T12:00:0{at}Z", "metadata": {}}
    return {**stamp, "source": source, "models_usage": usage, "content": content, "type": kind}


_RUN = [
    _event("MultiModalMessage", "user", [ASKED, {"data": PNG}], 1),
    _event("ThoughtEvent", "helper", REMARK, 2),
    _event("ToolCallRequestEvent", "helper", _CALLS, 3, {"prompt_tokens": 20, "completion_tokens": 7}),
    _event("ToolCallExecutionEvent", "helper", _RESULTS, 4),
    _event("TextMessage", "helper", ANSWER, 5, {"prompt_tokens": 30, "completion_tokens": 9}),
]


def samples() -> tuple[FormatSample, ...]:
    """Give the state of an agent, and the messages of a run."""
    sent = sent_turns(thinking=False, result_image=False)
    documents = {"state": _STATE, "run": _RUN}
    return tuple(
        FormatSample(name=name, source=Source(data=json_line(document)), wire=WIRE, sent=sent)
        for name, document in documents.items()
    )
