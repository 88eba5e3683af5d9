"""Sessions of opencode as its program reads them: each case was compared with what the program sent for such a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from segue import History, TextContent, UserMessage, read_history, write_history
from segue.histories.kit.envelope import plain_text
from segue.projection.report import ChangeCode

Entry = dict[str, Any]
MODEL = "anthropic/claude-sonnet-4-5"
SESSION = "ses_1"


class Session:
    """Makes messages with growing ids and times; the name of a message is its id."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._asked = ""

    def add(self, name: str, *parts: Entry | str, **info: Any) -> Session:
        """Add a question in upper case, or an answer in lower case."""
        at = len(self.entries)
        texts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts or (name,)]
        fields: Entry = {
            "id": f"msg_{name}",
            "sessionID": SESSION,
            "role": "user",
            "time": {"created": 1794747340000 + at},
        }
        if name.islower():
            fields |= {"role": "assistant", "parentID": self._asked, "providerID": "anthropic", "finish": "stop"}
            fields["modelID"] = "claude-sonnet-4-5"
        else:
            self._asked = fields["id"]
        stored = [{**part, "id": f"prt_{name}{place}", "messageID": fields["id"]} for place, part in enumerate(texts)]
        self.entries.append({"info": {**fields, **info}, "parts": stored})
        return self

    def turns(self, names: str) -> Session:
        for name in names:
            self.add(name)
        return self

    def compact(self, name: str, tail: str | None = None, **info: Any) -> Session:
        part = {"type": "compaction", "auto": False} | ({"tail_start_id": f"msg_{tail}"} if tail else {})
        return self.add(name, part).add(name.lower(), name, summary=True, **info)

    def data(self, **info: Any) -> bytes:
        return json.dumps({"info": {"id": SESSION, "directory": "/p", **info}, "messages": self.entries}).encode()


def read(session: Session, view: str = "active", **info: Any) -> History:
    return read_history(session.data(**info), format="opencode", view=view)


def words(history: History) -> str:
    texts = [plain_text(message).replace("What did we do so far?", "?") for message in history.context.messages]
    return " ".join(texts)


COMPACTIONS = {
    "two": (Session().turns("AaBb").compact("S").turns("Cc").compact("T").turns("Dd"), "? T D d", [4, 6]),
    "one that keeps messages": (Session().turns("AaBb").compact("S", "B").turns("Cc"), "? S B b C c", [2]),
    "one that keeps an answer": (Session().turns("AaBb").compact("S", "a").turns("Cc"), "? S a B b C c", [1]),
    "two that keep messages": (
        Session().turns("AaBb").compact("S", "B").turns("CcDd").compact("T", "D").turns("Ee"),
        "? T D d E e",
        [2, 6],
    ),
    "one that failed": (Session().turns("Aa").compact("S", error={"name": "APIError"}).turns("Bb"), "A a ? S B b", []),
}


@pytest.mark.parametrize(("session", "wanted", "covers"), COMPACTIONS.values(), ids=COMPACTIONS.keys())
def test_compactions(session, wanted, covers):
    history = read(session)
    assert words(history) == wanted
    assert [compaction.summary.covers for compaction in history.compactions] == covers
    full = read(session, "full")
    assert [summary.covers for summary in full.context.summaries] == covers
    replaced = [message for compaction in history.compactions for message in compaction.messages]
    assert replaced == list(full.context.messages[: covers[-1]] if covers else [])


@pytest.mark.parametrize("session", [session for session, *_ in COMPACTIONS.values()], ids=COMPACTIONS.keys())
def test_a_compaction_is_written_back(session):
    history = read(session)
    (file,) = write_history(history, format="opencode", model=MODEL).files
    again = read_history(file.data, format="opencode")
    assert words(again) == words(history)
    assert [message.content for message in again.context.messages] == [
        message.content for message in history.context.messages
    ]


def tool(call: str, **state: Any) -> Entry:
    stored = {"status": "completed", "input": {}, "output": f"output {call}", "time": {"start": 1, "end": 2}, **state}
    return {"type": "tool", "tool": "read", "callID": call, "state": stored}


def test_an_output_that_is_not_sent_any_more_is_reported_and_in_the_full_view():
    picture = {"type": "file", "mime": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}
    cleared = tool("x", time={"start": 1, "end": 2, "compacted": 3}, attachments=[picture])
    session = Session().turns("A").add("a", cleared, tool("y")).turns("Bb")
    history = read(session)
    assert "[Old tool result content cleared] output y" in words(history)
    (change,) = history.report.of(ChangeCode.COMPACTED_AWAY)
    assert change.path == ("messages", 2)
    full = read(session, "full")
    assert "output x" in words(full)
    for each in (history, full):
        (file,) = write_history(each, format="opencode", model=MODEL).files
        assert b"output x" in file.data
        assert read_history(file.data, format="opencode").context.messages == history.context.messages


def test_a_call_that_was_interrupted_has_the_output_so_far():
    state = {"status": "error", "error": "aborted", "metadata": {"interrupted": True, "output": "half"}}
    history = read(Session().turns("A").add("a", tool("x", **state)).turns("Bb"))
    (result,) = [message for message in history.context.messages if message.role == "toolResult"]
    assert (plain_text(result), result.is_error) == ("half", False)


def test_what_the_user_took_back_is_a_branch():
    session = Session().turns("AaBb")
    history = read(session, revert={"messageID": "msg_B"})
    assert words(history) == "A a"
    assert [branch.messages for branch in history.branches] == [2]
    assert words(read(session, "branch=reverted", revert={"messageID": "msg_B"})) == "A a B b"
    in_parts = Session().turns("A").add("a", "one", "two").turns("B")
    assert words(read(in_parts, revert={"messageID": "msg_a", "partID": "prt_a1"})) == "A one"


def test_a_message_that_a_program_changed_is_written_with_its_new_content():
    history = read(Session().turns("A").add("a", tool("x")).turns("Bb"))
    messages = list(history.context.messages)
    messages[0] = replace(messages[0], content=(TextContent(text="changed"),))
    messages[2] = replace(messages[2], content=(TextContent(text="another output"),))
    changed = replace(history, context=replace(history.context, messages=tuple(messages)))
    (file,) = write_history(changed, format="opencode", model=MODEL).files
    again = read_history(file.data, format="opencode").context.messages
    assert isinstance(again[0], UserMessage)
    assert [plain_text(message) for message in again] == ["changed", "", "another output", "B", "b"]
