"""A small session for the conformance kit, written by hand after the files of Continue CLI 1.5.47."""

from __future__ import annotations

from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.writing import json_line

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
_URL = f"data:image/png;base64,{_PNG}"
_USAGE = {"completion_tokens": 7, "prompt_tokens": 15, "total_tokens": 22, "model": "claude-sonnet-4-5",
          "prompt_tokens_details": {"cached_tokens": 5}, "cost_cents": 50}  # fmt: skip


def _entry(role: str, content: object, **fields: object) -> dict[str, Any]:
    return {"message": {"role": role, "content": content}, "contextItems": [], **fields}


def _call(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "Read", "arguments": '{"filepath":"a"}'}}


def _state(call_id: str, status: str, text: str) -> dict[str, Any]:
    return {"toolCallId": call_id, "toolCall": _call(call_id), "status": status, "output": [{"content": text}]}


_DOCUMENT = {
    "sessionId": "27fb", "title": "Two files", "workspaceDirectory": "file:///home/user/a%20project",
    "history": [
        _entry("user", "An old question."),
        _entry("assistant", "An old answer.", conversationSummary="A question was answered."),
        _entry("user", [{"type": "text", "text": "Read both."}, {"type": "imageUrl", "imageUrl": {"url": _URL}}],
               contextItems=[{"name": "a.txt", "description": "a file", "content": "the file"}]),
        {"message": {"role": "thinking", "content": "Both at once.", "signature": "c2lnbmF0dXJl"}},
        {"message": {"role": "assistant", "content": "I read.", "toolCalls": [_call("toolu_1"), _call("toolu_2")],
                     "usage": _USAGE},
         "toolCallStates": [_state("toolu_1", "done", "alpha"), _state("toolu_2", "errored", "no such file")]},
        {"message": {"role": "assistant", "content": "One is there.", "usage": _USAGE}},
    ],
}  # fmt: skip
_INDEX = b'[{"sessionId":"27fb","title":"Two files","dateCreated":"1794736800000"}]'


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: a summary, then attached context, an image and two calls."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    thinking = {"type": "thinking", "thinking": "Both at once.", "signature": "c2lnbmF0dXJl"}
    calls = [{"type": "tool_use", "id": f"toolu_{at}", "name": "Read", "input": {"filepath": "a"}} for at in (1, 2)]
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "alpha"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no such file", "is_error": True},
    ]
    texts = [{"type": "text", "text": "the file"}, {"type": "text", "text": "Read both."}]
    return (
        FormatSample(
            "summary",
            Source(
                data=json_line(_DOCUMENT),
                name="sessions/27fb.json",
                neighbours=MemoryFiles({"sessions/sessions.json": _INDEX}),
            ),
            [
                {"role": "user", "content": "Summary of the conversation so far:\nA question was answered."},
                {"role": "user", "content": [*texts, image]},
                {"role": "assistant", "content": [thinking, {"type": "text", "text": "I read."}, *calls]},
                {"role": "user", "content": results},
                {"role": "assistant", "content": "One is there."},
            ],
            wire="anthropic-messages",
        ),
    )
