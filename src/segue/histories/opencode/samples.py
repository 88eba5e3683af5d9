"""A small session for the conformance kit, written by hand after the export of opencode 1.18.33."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_START = 1794736800000
_TOKENS = {"input": 10, "output": 7, "reasoning": 0, "cache": {"read": 5, "write": 0}, "total": 22}


def _asked(name: str, second: int, *parts: dict[str, Any]) -> dict[str, Any]:
    model = {"providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
    info = {"id": name, "role": "user", "time": {"created": _START + 1000 * second}, "agent": "build", "model": model}
    return {"info": info, "parts": list(parts)}


def _reply(name: str, second: int, *parts: dict[str, Any], **fields: object) -> dict[str, Any]:
    time = {"created": _START + 1000 * second, "completed": _START + 1000 * second + 500}
    info: dict[str, Any] = {"id": name, "role": "assistant", "parentID": "msg_1", "mode": "build", "agent": "build"}
    info |= {"path": {"cwd": "/home/user/project", "root": "/home/user/project"}, "tokens": _TOKENS, "cost": 0.5}
    info |= {"modelID": "claude-sonnet-4-5", "providerID": "anthropic", "time": time, "finish": "stop"}
    info |= fields
    return {"info": info, "parts": [{"type": "step-start"}, *parts]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool(call_id: str, **state: object) -> dict[str, Any]:
    span = {"start": _START, "end": _START + 5000}
    return {"type": "tool", "tool": "read", "callID": call_id, "state": {"input": {"path": "a"}, "time": span, **state}}


_FILE = {"type": "file", "mime": "image/png", "url": f"data:image/png;base64,{_PNG}", "filename": "a.png"}
_THINKING = {"type": "reasoning", "text": "Both at once.", "metadata": {"anthropic": {"signature": "c2lnbmF0dXJl"}}}
_DOCUMENT = {
    "info": {
        "id": "ses_1", "slug": "quiet-lake", "projectID": "global", "directory": "/home/user/project", "path": "",
        "title": "A session", "version": "1.18.33", "cost": 1, "tokens": _TOKENS,
        "time": {"created": _START, "updated": _START + 60000},
    },
    "messages": [
        _asked("msg_01", 1, _text("An old question.")),
        _reply("msg_02", 2, _text("An old answer.")),
        _asked("msg_03", 3, {"type": "compaction", "auto": True}),
        _reply("msg_04", 4, _text("The summary."), summary=True, mode="compaction"),
        _asked("msg_05", 5, _text("Look at both."), _FILE),
        _reply("msg_06", 6, _THINKING, _tool("toolu_1", status="completed", output="seen", title="", metadata={},
               attachments=[_FILE]), _tool("toolu_2", status="error", error="no such file"), finish="tool-calls"),
        _reply("msg_07", 7, _text("The last answer.")),
    ],
}  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: a compaction, then calls with an image and an error."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    thinking = {"type": "thinking", "thinking": "Both at once.", "signature": "c2lnbmF0dXJl"}
    calls = [{"type": "tool_use", "id": f"toolu_{at}", "name": "read", "input": {"path": "a"}} for at in (1, 2)]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "seen"}, image]},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
    ]
    return (
        FormatSample(
            "compacted",
            Source(data=json_line(_DOCUMENT), name="ses_1.json"),
            [
                {"role": "user", "content": "What did we do so far?"},
                {"role": "assistant", "content": "The summary."},
                {"role": "user", "content": [{"type": "text", "text": "Look at both."}, image]},
                {"role": "assistant", "content": [thinking, *calls]},
                {"role": "user", "content": results},
                {"role": "assistant", "content": "The last answer."},
            ],
            wire="anthropic-messages",
        ),
    )
