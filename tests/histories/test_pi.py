"""Entries of pi as its program reads them: each case was compared with what the program sent for such a file."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from typing import Any

import pytest

from segue import History, Loss, read_history, write_history
from segue.conversation.content import FileContent
from segue.conversation.context import Context
from segue.conversation.messages import UserMessage
from segue.histories.kit.envelope import plain_text

Entry = dict[str, Any]
TIME = "2026-11-15T12:00:00.000Z"
MODEL = "anthropic/claude-sonnet-4-5"


def said(name: str) -> Entry:
    """Give a question in upper case, or an answer in lower case."""
    message: Entry = {"role": "user", "content": name, "timestamp": 1794736800000}
    if name.islower():
        message |= {"role": "assistant", "content": [{"type": "text", "text": name}], "stopReason": "stop"}
        message |= {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": {}}
    return {"type": "message", "id": name, "message": message}


def session(*entries: Entry | str, version: int = 3) -> bytes:
    lines: list[Entry] = [{"type": "session", "version": version, "id": "c0000000", "timestamp": TIME, "cwd": "/p"}]
    last: str | None = None
    for entry in entries:
        fields = said(entry) if isinstance(entry, str) else entry
        linked = {"parentId": last, "timestamp": TIME, **fields}
        last = linked["id"]
        lines.append({key: value for key, value in linked.items() if version > 1 or key not in {"id", "parentId"}})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def words(history: History) -> list[str]:
    return [
        plain_text(message).partition("<summary>\n")[2] or plain_text(message) for message in history.context.messages
    ]


def compaction(name: str, **fields: Any) -> Entry:
    return {"type": "compaction", "id": name, "summary": name, "tokensBefore": 1, **fields}


def test_each_compaction_is_a_summary_of_its_own():
    data = session(
        "A", "a", "B", "b", compaction("S", firstKeptEntryId="B"), "C", "c", compaction("T", firstKeptEntryId="C"), "D"
    )  # fmt: skip
    history = read_history(data, format="pi")
    assert words(history) == ["T\n</summary>", "C", "c", "D"]
    assert [compaction.summary.text for compaction in history.compactions] == ["S", "T"]
    assert [[plain_text(each) for each in compaction.messages] for compaction in history.compactions] == [
        ["A", "a"],
        ["B", "b"],
    ]
    full = read_history(data, format="pi", view="full")
    assert words(full) == ["A", "a", "B", "b", "C", "c", "D"]
    assert [summary.covers for summary in full.context.summaries] == [2, 4]


def test_a_compaction_of_version_1_counts_lines():
    data = session("A", "a", "B", "b", compaction("S", firstKeptEntryIndex=3), "C", version=1)
    assert words(read_history(data, format="pi")) == ["S\n</summary>", "B", "b", "C"]


def test_the_summary_of_a_branch_is_written_back():
    summary = {"type": "branch_summary", "id": "S", "parentId": "a", "fromId": "b", "summary": "what was tried"}
    history = read_history(session("A", "a", "B", "b", summary, "C", "c"), format="pi")
    assert words(history) == ["A", "a", "what was tried</summary>", "C", "c"]
    (file,) = write_history(history, format="pi", model=MODEL).files
    again = read_history(file.data, format="pi")
    assert again.context.messages[2] == history.context.messages[2]
    assert words(again) == words(history)


def test_a_command_that_is_not_sent_is_counted():
    message = {"role": "bashExecution", "command": "x", "output": "y", "excludeFromContext": True}
    history = read_history(session("A", "a", {"type": "message", "id": "X", "message": message}, "B"), format="pi")
    assert words(history) == ["A", "a", "B"]
    assert "command that is not sent" in {record.kind for record in history.records}


@pytest.mark.parametrize("role", ["custom", "hookMessage"])
def test_a_message_of_an_extension_is_one_of_the_user(role: str):
    added = {"type": "message", "id": "x", "message": {"role": role, "content": "X", "customType": "note"}}
    history = read_history(session("A", "a", added, "B"), format="pi")
    assert [(each.role, plain_text(each)) for each in history.context.messages] == [
        ("user", "A"), ("assistant", "a"), ("user", "X"), ("user", "B"),
    ]  # fmt: skip


def test_a_copy_that_openclaw_delivered_is_no_answer():
    copy = said("b")
    copy["message"] = {**copy["message"], "role": "assistant", "provider": "openclaw", "model": "delivery-mirror"}
    history = read_history(session("A", "a", {**copy, "id": "copy"}, "B"))
    assert history.origin.format == "pi"
    assert words(history) == ["A", "a", "B"]
    assert [record.kind for record in history.records] == ["session", "copy of an answer"]


def test_the_output_of_the_program_is_read_once():
    asked = {"role": "user", "content": [{"type": "text", "text": "Look at the file."}], "timestamp": 1_762_000_000_001}
    call = {"type": "toolCall", "id": "p1", "name": "read", "arguments": {"path": "a.txt"}}
    thought = {"type": "thinking", "thinking": "One file, then.", "thinkingSignature": "c2lnbmVk"}
    reply = {"role": "assistant", "content": [thought, call], "api": "anthropic-messages", "provider": "anthropic"}
    reply |= {"model": "claude-sonnet-4-5", "stopReason": "toolUse", "timestamp": 1_762_000_000_002}
    result = {"role": "toolResult", "toolCallId": "p1", "toolName": "read", "isError": False}
    result |= {"content": [{"type": "text", "text": "one line"}], "timestamp": 1_762_000_000_003}
    lines = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-11-01T12:26:40.000Z", "cwd": "/p"},
        {"type": "agent_start"},
        *({"type": kind, "message": asked} for kind in ("message_start", "message_end")),
        {"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "delta": "One file, t"}},
        {"type": "message_end", "message": reply},
        {"type": "message_end", "message": result},
        {"type": "turn_end", "message": reply, "toolResults": [result]},
    ]
    history = read_history(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert (history.origin.format, history.origin.id, history.cwd) == ("pi", "s1", "/p")
    assert [message.role for message in history.context.messages] == ["user", "assistant", "toolResult"]
    assert history.context.messages[1].content[0].thinking_signature == "c2lnbmVk"
    assert all(change.loss == Loss.NONE for change in history.report.changes)


def test_a_message_of_which_nothing_can_be_stored_is_not_written():
    file = FileContent(data="JVBERi0=", mime_type="application/pdf")
    context = Context(messages=(UserMessage(content=(file,)), UserMessage.of("And now?")))
    written = write_history(context, format="pi", model=MODEL)
    assert [message for message in read_history(written.files[0].data).context.messages if not message.content] == []
    assert any(change.loss is Loss.CONTENT for change in written.report.changes)
