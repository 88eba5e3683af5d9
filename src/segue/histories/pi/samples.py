"""A small session for the conformance kit, written by hand after the format of pi 0.87.1."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source
from segue.histories.kit.writing import json_line

_ID = "55555555-5555-4555-8555-555555555555"
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_USAGE = {"input": 10, "output": 7, "cacheRead": 5, "cacheWrite": 0, "totalTokens": 22,
          "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.3}}  # fmt: skip


def _entry(name: str, parent: str | None, second: int, **fields: object) -> dict[str, Any]:
    time = f"2026-11-15T10:00:{second:02d}.000Z"
    return {"type": "message", "id": name, "parentId": parent, "timestamp": time, **fields}


def _message(
    name: str, parent: str | None, second: int, role: str, content: object, **fields: object
) -> dict[str, Any]:
    message = {"role": role, "content": content, "timestamp": 1794736800000 + 1000 * second, **fields}
    return _entry(name, parent, second, message=message)


def _reply(name: str, parent: str, second: int, *content: dict[str, Any], stop: str = "stop") -> dict[str, Any]:
    origin = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5"}
    return _message(name, parent, second, "assistant", list(content), **origin, usage=_USAGE, stopReason=stop)


_THINKING = {"type": "thinking", "thinking": "Both at once.", "thinkingSignature": "c2lnbmF0dXJl"}
_CALL = {"type": "toolCall", "id": "toolu_1", "name": "read", "arguments": {"path": "a.png"}}
_IMAGE = {"type": "image", "data": _PNG, "mimeType": "image/png"}
_LINES = [
    {"type": "session", "version": 3, "id": _ID, "timestamp": "2026-11-15T10:00:00.000Z", "cwd": "/home/user/project"},
    {"type": "model_change", "id": "c1", "parentId": None, "timestamp": "2026-11-15T10:00:00.000Z",
     "provider": "anthropic", "modelId": "claude-sonnet-4-5"},
    _message("u1", "c1", 1, "user", [{"type": "text", "text": "An old question."}]),
    _reply("a1", "u1", 2, {"type": "text", "text": "An old answer."}),
    _message("u2", "a1", 3, "user", "Look at a.png."),
    _reply("a2", "u2", 4, _THINKING, _CALL, stop="toolUse"),
    _message("r2", "a2", 5, "toolResult", [{"type": "text", "text": "An image."}, _IMAGE], toolCallId="toolu_1",
             toolName="read", isError=False, details={"size": 1}),
    _reply("a3", "r2", 6, {"type": "text", "text": "A dot."}),
    _entry("k1", "a3", 7, type="compaction", summary="Old things.", firstKeptEntryId="u2", tokensBefore=9),
    _message("u3", "k1", 8, "user", [{"type": "text", "text": "Taken back."}]),
    _entry("b1", "k1", 9, message={"role": "bashExecution", "command": "ls", "output": "a.png", "exitCode": 0,
                                   "cancelled": False, "truncated": False, "timestamp": 1794736809000}),
    _reply("a4", "b1", 10, {"type": "text", "text": "The last answer."}),
]  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: a compaction that keeps messages, a call with an image, a branch, a command of the user."""
    data = b"".join(json_line(line) for line in _LINES)
    prefix = "The conversation history before this point was compacted into the following summary:\n\n"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [{"type": "text", "text": "An image."}, image],
    }
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.png"}}
    thinking = {"type": "thinking", "thinking": "Both at once.", "signature": "c2lnbmF0dXJl"}
    return (
        FormatSample(
            "compacted",
            Source(data=data, name=f"sessions/--home-user-project--/2026-11-15T10-00-00-000Z_{_ID}.jsonl"),
            [
                {"role": "user", "content": f"{prefix}<summary>\nOld things.\n</summary>"},
                {"role": "user", "content": "Look at a.png."},
                {"role": "assistant", "content": [thinking, call]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": "A dot."},
                {"role": "user", "content": "Ran `ls`\n```\na.png\n```"},
                {"role": "assistant", "content": "The last answer."},
            ],
            wire="anthropic-messages",
        ),
    )
