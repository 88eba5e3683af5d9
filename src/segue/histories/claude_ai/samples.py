"""A small export for the conformance kit, written by hand after descriptions of the format."""

from __future__ import annotations

import json
from typing import Any

from segue.histories.kit.format import FormatSample
from segue.histories.kit.source import Source

_ROOT = "00000000-0000-4000-8000-000000000000"


def _message(at: int, sender: str, parent: str, *content: dict[str, Any], **fields: object) -> dict[str, Any]:
    time = f"2026-09-01T10:00:{at:02d}.000000Z"
    message = {"uuid": f"m{at}", "text": "", "content": list(content), "sender": sender, "created_at": time}
    return {**message, "attachments": [], "files": [], "parent_message_uuid": parent, **fields}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": []}


_PASTE = {"file_name": "", "file_type": "txt", "extracted_content": "A long paste."}
_CALL = {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "alpha"}}
_RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "name": "web_search", "is_error": False,
           "content": [{"type": "text", "text": "A letter."}]}  # fmt: skip
_EXPORT: list[dict[str, Any]] = [
    {"uuid": "conv-old", "name": "Old", "updated_at": "2026-08-01T10:00:00Z", "chat_messages": []},
    {
        "uuid": "conv-1", "name": "Notes", "created_at": "2026-09-01T10:00:00Z", "updated_at": "2026-09-01T10:00:09Z",
        "chat_messages": [
            _message(1, "human", _ROOT, _text("Search."), attachments=[_PASTE], files=[{"file_name": "dot.png"}]),
            _message(2, "assistant", "m1", _text("An abandoned answer.")),
            _message(3, "assistant", "m1", {"type": "thinking", "thinking": "I search."}, _CALL, _RESULT,
                     {"type": "token_budget"}, _text("It is a letter.")),
            _message(4, "human", "m3", text="And now?"),
        ],
    },
]  # fmt: skip


def samples() -> tuple[FormatSample, ...]:
    """Give the sample: a search, an abandoned answer, a paste, and a file that is not in the export."""
    return (
        FormatSample(
            "search",
            Source(data=json.dumps(_EXPORT).encode(), name="conversations.json"),
            [
                {"role": "user", "content": [{"type": "text", "text": "A long paste."},
                                             {"type": "text", "text": "Search."}]},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "I search."}, _CALL]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "A letter."}]},
                {"role": "assistant", "content": "It is a letter."},
                {"role": "user", "content": "And now?"},
            ],
            wire="anthropic-messages",
        ),
    )  # fmt: skip
