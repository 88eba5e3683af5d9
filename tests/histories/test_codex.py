"""Codex CLI: turns that were taken back, older files, and reasoning of an interrupted turn.

The cases of turns that were taken back were compared with what the program sent for such files; for the reasoning see
docs/decisions/0016-unsent-reasoning-of-codex.md.
"""

# pyright: reportOptionalSubscript=false

from __future__ import annotations

import json
from typing import Any

import pytest

from segue import Context, UserMessage, read_history, write_history
from segue.histories.kit.envelope import plain_text
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


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-11-15T10:00:00.000Z", "type": kind, "payload": payload}


def said(role: str, text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": f"{'in' if role == 'user' else 'out'}put_text", "text": text}],
    }


def turn(name: str, *inside: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a question, what happened then, and its answer."""
    question, answer = said("user", name), said("assistant", name.lower())
    return [line("response_item", **question), *inside, line("response_item", **answer)]


def back(turns: int) -> dict[str, Any]:
    return line("event_msg", type="thread_rolled_back", num_turns=turns)


SUMMARY = line("compacted", message="s", replacement_history=[said("user", "A"), said("user", "S")])
TAKEN_BACK = {
    "one turn": ([*turn("A"), *turn("B"), back(1), *turn("C")], "A a C c"),
    "two turns, one after another": ([*turn("A"), *turn("B"), back(1), *turn("C"), back(2), *turn("D")], "D d"),
    "more turns than there are": ([*turn("A"), *turn("B"), back(9), *turn("C")], "C c"),
    "a turn behind a compaction": ([*turn("A"), SUMMARY, *turn("B"), *turn("C"), back(1), *turn("D")], "A S B b D d"),
    "all turns behind a compaction": ([*turn("A"), SUMMARY, *turn("B"), back(1), *turn("C")], "A S C c"),
    "a compaction": ([*turn("A"), *turn("B"), SUMMARY, *turn("C"), back(2), *turn("D")], "A a D d"),
    "a turn with a compaction in it": ([*turn("A"), *turn("B", SUMMARY), *turn("C"), back(2), *turn("D")], "A a D d"),
    "a compaction that leaves nothing": (
        [*turn("A"), line("compacted", message="", replacement_history=[]), *turn("B")], "B b",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "wanted"), TAKEN_BACK.values(), ids=TAKEN_BACK.keys())
def test_turns_that_were_taken_back(lines, wanted):
    data = b"".join(json.dumps(each).encode() + b"\n" for each in (line("session_meta", id="x"), *lines))
    history = read_history(data, format="codex")
    assert " ".join(plain_text(message) for message in history.context.messages) == wanted
    for branch, change in zip(history.branches, history.report.of(ChangeCode.BRANCH_LEFT_OUT), strict=True):
        found = read_history(data, format="codex", view=f"branch={branch.id}").context.messages
        assert len(found) >= branch.messages
        assert change.detail.startswith(f"{branch.messages} items")
    assert len(history.branches) == len(history.report.of(ChangeCode.BRANCH_LEFT_OUT))
    assert len(history.branches) == sum(each["payload"].get("type") == "thread_rolled_back" for each in lines)


def test_each_summary_covers_all_messages_before_it():
    later = line("compacted", message="t", replacement_history=[said("user", "T")])
    lines = [line("session_meta", id="x"), *turn("A"), SUMMARY, *turn("B"), later, *turn("C")]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    full = read_history(data, format="codex", view="full").context
    covered = [" ".join(map(plain_text, full.messages[: summary.covers])) for summary in full.summaries]
    assert covered == ["A a", "A a B b"]


def test_a_file_of_2025_without_envelopes_is_read():
    lines = [
        {"id": "01a1df3f", "timestamp": "2025-06-15T12:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        said("user", "Question"),
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        said("assistant", "Answer"),
    ]
    history = read_history(b"".join(json.dumps(each).encode() + b"\n" for each in lines))
    assert history.origin.format == "codex"
    assert history.origin.id == "01a1df3f"
    assert [message.role for message in history.context.messages] == ["user", "assistant", "toolResult", "assistant"]
    assert [change for change in history.report.changes if change.loss != "none"] == []


def test_instructions_before_the_first_turn_have_the_role_that_its_model_has():
    message = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
    lines = [
        line("session_meta", id="a", model_provider="gateway"),
        line("response_item", **message),
        line("turn_context", model="gpt-5.4"),
        line("response_item", **said("user", "Why?")),
    ]
    later = [lines[0], lines[2], lines[1], lines[3]]
    first, second = (
        read_history(b"\n".join(json.dumps(each).encode() for each in given), format="codex").context
        for given in (lines, later)
    )
    assert [message.content for message in first.messages] == [message.content for message in second.messages]
    assert first.messages[0].extra["openai-responses"] == second.messages[0].extra["openai-responses"]
