"""Small samples for the conformance kit, written by hand after dumps of google-adk 2.13.0."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.sample_turns import ANSWER, ASKED, FOUND, MISSING, PATHS, PNG, REMARK, SIGNATURE, THOUGHT
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_ACTIONS: dict[str, Any] = {
    "stateDelta": {}, "artifactDelta": {}, "requestedAuthConfigs": {}, "requestedToolConfirmations": {},
}  # fmt: skip


def _event(second: int, author: str, *parts: dict[str, Any], **fields: object) -> dict[str, Any]:
    role = "user" if author == "user" or "functionResponse" in parts[0] else "model"
    event: dict[str, Any] = {"content": {"parts": list(parts), "role": role}, "invocationId": "e-1", "author": author}
    event |= {"actions": _ACTIONS, "nodeInfo": {"path": ""}, "id": f"event-{second}"}
    return {**event, "timestamp": 1794736800 + second + 0.25, **fields}


_REPLY: dict[str, Any] = {
    "modelVersion": "gemini-2.5-pro",
    "finishReason": "STOP",
    "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 7, "totalTokenCount": 27},
}
_CALLS: list[dict[str, Any]] = [
    {"functionCall": {"id": f"fc{at}", "name": "read", "args": {"path": path}}} for at, path in enumerate(PATHS, 1)
]


def _result(call_id: str, response: dict[str, str]) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": "read", "response": response}}


_EVENTS = [
    _event(1, "user", {"text": ASKED}, {"inlineData": {"data": PNG, "mimeType": "image/png"}}),
    _event(
        2, "helper", {"text": THOUGHT, "thought": True}, {"text": REMARK},
        {**_CALLS[0], "thoughtSignature": SIGNATURE}, _CALLS[1], **_REPLY,
    ),
    _event(3, "helper", _result("fc1", {"output": FOUND}), _result("fc2", {"error": MISSING})),
    _event(4, "helper", {"text": ANSWER, "thoughtSignature": SIGNATURE}, **_REPLY),
]  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give one conversation as a session, and its events alone."""
    session = {"id": "s1", "appName": "app", "userId": "u", "state": {"a_b": 1}, "lastUpdateTime": 1794736810.0}
    sent: list[object] = [event["content"] for event in _EVENTS]
    return (
        FormatSample("session", Source(data=json_line({**session, "events": _EVENTS})), sent),
        FormatSample("events", Source(data=json_line(_EVENTS)), sent),
    )
