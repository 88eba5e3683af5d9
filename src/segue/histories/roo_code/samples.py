"""A small task for the conformance kit, written by hand after the files of Roo Code 3.52.1."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_START = 1794736800000


def _message(at: int, role: str, content: object, **fields: object) -> dict[str, Any]:
    return {"role": role, "content": content, "ts": _START + 1000 * at, **fields}


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


_CALL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "alpha"}
_REASONING = {"type": "reasoning", "role": "assistant", "content": [], "ts": _START, "id": "rs_1",
              "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "RU5D"}  # fmt: skip
_ITEMS = [
    _message(1, "user", _text("An old question."), condenseParent="cond-1"),
    _REASONING,
    _message(2, "assistant", _text("An old answer."), condenseParent="cond-1"),
    _message(
        3, "user", _text("## Conversation Summary\nA question was answered."), isSummary=True, condenseId="cond-1"
    ),
    _message(4, "user", _text("Read a.")),
    _message(5, "assistant", [*_text("I read."), _CALL]),
    _message(6, "user", [_RESULT]),
    _message(7, "assistant", _text("It holds alpha."), condenseParent="a summary that was taken back"),
]


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: a summary, then a call."""
    return (
        FormatSample(
            "condensed",
            Source(data=json_line_of(_ITEMS), name="tasks/0a1b/api_conversation_history.json"),
            [
                {"role": "user", "content": "## Conversation Summary\nA question was answered."},
                {"role": "user", "content": "Read a."},
                {"role": "assistant", "content": [*_text("I read."), _CALL]},
                {"role": "user", "content": [_RESULT]},
                {"role": "assistant", "content": "It holds alpha."},
            ],
            wire="anthropic-messages",
        ),
    )


def json_line_of(items: list[dict[str, Any]]) -> bytes:
    """Write a list as a line of JSON."""
    return b"[" + b",".join(json_line(item).rstrip() for item in items) + b"]"
