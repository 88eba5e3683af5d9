"""Codex CLI: reasoning of an interrupted turn (docs/decisions/0016-unsent-reasoning-of-codex.md)."""

from __future__ import annotations

import json

from segue import Context, UserMessage, read_history, write_history
from segue.projection.report import ChangeCode


def interrupted() -> list[bytes]:
    """Give the lines of a session that Codex wrote, with a turn that has only reasoning."""
    context = Context().add(UserMessage.of("Think."), UserMessage.of("Go on."))
    (file,) = write_history(context, format="codex", model="openai/gpt-5.4").files
    items = [line for line in file.data.splitlines() if b"response_item" in line]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "RU5D"}
    line = {"timestamp": "2026-11-15T10:00:02.000Z", "type": "response_item", "payload": reasoning}
    meta = next(line for line in file.data.splitlines() if b"session_meta" in line)
    return [meta, items[0], json.dumps(line).encode(), *items[-1:]]


def test_reasoning_without_an_answer_stays_in_the_file_and_is_not_sent():
    history = read_history(b"\n".join(interrupted()), format="codex")
    assert [message.role for message in history.context.messages] == ["user", "assistant", "user"]
    written = write_history(history, format="codex", model="openai/gpt-5.4")
    lines = [json.loads(line) for line in written.files[0].data.splitlines()]
    unsent = [line for line in lines if line["type"] == "segue_item"]
    assert [line["payload"]["encrypted_content"] for line in unsent] == ["RU5D"]
    assert not any(line["payload"].get("type") == "reasoning" for line in lines if line["type"] == "response_item")
    assert [change.path for change in written.report.of(ChangeCode.THINKING_DROPPED)] == [("messages", 1)]
    again = read_history(written.files[0].data, format="codex")
    assert [message.content for message in again.context.messages] == [
        message.content for message in history.context.messages
    ]
