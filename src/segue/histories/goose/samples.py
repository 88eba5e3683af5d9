"""A small session for the conformance kit, written by hand after the export of Goose 1.30.0."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_IMAGE = {"type": "image", "data": _PNG, "mimeType": "image/png"}


def _message(at: int, role: str, *content: dict[str, Any], user: bool = True, agent: bool = True) -> dict[str, Any]:
    metadata = {"userVisible": user, "agentVisible": agent}
    return {"id": f"m{at}", "role": role, "created": 1794736800 + at, "content": list(content), "metadata": metadata}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


_CALL = {"status": "success", "value": {"name": "shell", "arguments": {"command": "cat a"}}}
_RESULT = {"status": "success", "value": {"content": [_text("alpha"), _IMAGE], "isError": False}}
_MESSAGES = [
    _message(1, "user", _text("An old question."), agent=False),
    _message(2, "assistant", _text("An old answer."), agent=False),
    _message(3, "user", _text("A question was answered."), user=False),
    _message(4, "user", _text("Look."), _IMAGE),
    _message(5, "assistant", {"type": "thinking", "thinking": "Both.", "signature": "c2ln"},
             {"type": "redactedThinking", "data": "UkVE"}, _text("I look."),
             {"type": "toolRequest", "id": "toolu_1", "toolCall": _CALL},
             {"type": "toolRequest", "id": "toolu_2", "toolCall": {"status": "error", "error": "no name"}}),
    _message(6, "user", {"type": "toolResponse", "id": "toolu_1", "toolResult": _RESULT},
             {"type": "toolResponse", "id": "toolu_2", "toolResult": {"status": "error", "error": "bad call"}}),
    _message(7, "assistant", _text("Done.")),
]  # fmt: skip
_HEADER = {
    "id": "20261115_1", "name": "A session", "working_dir": "/home/user/project", "provider_name": "anthropic",
    "model_config": {"model_name": "claude-sonnet-4-5"},
}  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the samples: an export with a compaction, and a file of an older version."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    sent: list[object] = [
        {"role": "user", "content": "A question was answered."},
        {"role": "user", "content": [_text("Look."), image]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Both.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "UkVE"},
                _text("I look."),
                {"type": "tool_use", "id": "toolu_1", "name": "shell", "input": {"command": "cat a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "invalid_tool_call", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [_text("alpha"), image]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "bad call", "is_error": True},
            ],
        },
        {"role": "assistant", "content": "Done."},
    ]
    export = json_line({**_HEADER, "conversation": _MESSAGES})
    lines = b"".join(json_line(line) for line in ({"working_dir": "/p", "description": "Old"}, *_MESSAGES[3:]))
    return (
        FormatSample("export", Source(data=export, name="session.json"), sent, wire="anthropic-messages"),
        FormatSample("lines", Source(data=lines, name="old.jsonl"), sent[1:], wire="anthropic-messages"),
    )
