"""The log of Gemini CLI as its program reads it: each case was compared with what the program sent for such a file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from segue import History, read_history
from segue.histories.kit.envelope import plain_text
from segue.projection.report import ChangeCode

Line = dict[str, Any]
HEADER: Line = {"sessionId": "8738d397", "projectHash": "0", "startTime": "2026-11-15T12:00:00.000Z", "kind": "main"}


def said(kind: str, name: str, text: str | None = None) -> Line:
    return {"id": name, "type": kind, "timestamp": "2026-11-15T12:00:00.000Z", "content": [{"text": text or name}]}


def turn(name: str) -> list[Line]:
    return [said("user", name), {**said("gemini", name.lower()), "model": "gemini-2.5-pro"}]


def compressed(name: str, *kept: Line) -> Line:
    answer = said("gemini", f"{name}2", "Got it. Thanks for the additional context!")
    return {"$set": {"messages": [said("user", name), answer, *kept]}}


def read(lines: list[Line], view: str = "active") -> History:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in (HEADER, *lines))
    return read_history(data, format="gemini-cli", view=view)


def words(history: History) -> str:
    return " ".join(plain_text(message).split(".")[0] for message in history.context.messages)


TAKEN_BACK = {
    "a turn": ([*turn("A"), *turn("B"), {"$rewindTo": "B"}, *turn("C")], "A a C c", "A a B b"),
    "an answer": ([*turn("A"), *turn("B"), {"$rewindTo": "b"}, *turn("C")], "A a B C c", "A a B b"),
    "to a message that is not there": ([*turn("A"), {"$rewindTo": "gone"}, *turn("B")], "B b", "A a"),
}


@pytest.mark.parametrize(("lines", "wanted", "branch"), TAKEN_BACK.values(), ids=TAKEN_BACK.keys())
def test_messages_that_were_taken_back(lines, wanted, branch):
    history = read(lines)
    assert words(history) == wanted
    assert len(history.report.of(ChangeCode.BRANCH_LEFT_OUT)) == len(history.branches) == 1
    assert words(read(lines, f"branch={history.branches[0].id}")) == branch


def test_each_compression_is_a_summary_of_its_own():
    first, second, third, fourth = turn("A"), turn("B"), turn("C"), turn("D")
    lines = [*first, *second, compressed("S", *second), *third, compressed("T", *third), *fourth]
    history = read(lines)
    assert words(history) == "T Got it C c D d"
    assert [compaction.summary.text for compaction in history.compactions] == ["S", "T"]
    assert [[plain_text(each) for each in compaction.messages] for compaction in history.compactions] == [
        ["A", "a"],
        ["B", "b"],
    ]
    full = read(lines, "full")
    assert words(full) == "A a B b C c D d"
    assert [summary.covers for summary in full.context.summaries] == [2, 4]
