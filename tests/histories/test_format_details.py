"""Details of single formats, which the laws over all formats do not see."""

from __future__ import annotations

import json
from typing import Any

from segue import (
    AssistantMessage,
    Context,
    FileContent,
    History,
    TextContent,
    ThinkingContent,
    UserMessage,
    read_history,
    write_history,
)
from segue.histories.kit.envelope import plain_text
from segue.histories.recognition import _parse_beginning  # pyright: ignore[reportPrivateUsage]
from segue.projection.report import ChangeCode

ASKED = UserMessage.of("What is in the file?")


def lines(*entries: object) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def written(context: Context, format: str) -> Any:  # noqa: A002 - as `write_history` calls it
    (file, *_) = write_history(context, format=format).files
    return json.loads(file.data)


def answer(*content: Any, model: str = "gpt-5.4") -> AssistantMessage:
    return AssistantMessage(content=content, protocol="openai-responses", provider="openai", model=model)


def unreadable(history: History) -> int:
    return len(history.report.of(ChangeCode.LINE_UNREADABLE))


def test_an_event_of_agent_trail_without_a_payload_is_noted():
    said = {"type": "user_message", "id": "e1", "payload": {"text": "Hello."}}
    session = {"type": "session", "id": "s", "schema_version": "0.1.0", "session_uid": "u"}
    assert unreadable(read_history(lines(session, said, {**said, "id": "e2"}), format="agent-trail")) == 0
    moved = {"type": "user_message", "id": "e2", "words": "Where is the payload of this event?"}
    assert unreadable(read_history(lines(session, said, moved), format="agent-trail")) == 1


def test_a_trajectory_names_the_model_that_answered_last():
    turns = (
        ASKED,
        answer(TextContent(text="A list."), model="one"),
        ASKED,
        answer(TextContent(text="Yes."), model="two"),
    )
    assert written(Context(messages=turns), "atif")["agent"]["model_name"] == "two"
    assert "model_name" not in written(Context(messages=(ASKED,)), "atif")["agent"]


def test_a_result_of_claude_ai_in_another_form_is_kept_as_a_record():
    def kinds(content: object) -> list[str]:
        block = {"type": "tool_result", "tool_use_id": "t", "name": "f", "content": content}
        used = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
        message = {
            "uuid": "m",
            "sender": "assistant",
            "text": "",
            "content": [used, block],
            "attachments": [],
            "files": [],
        }
        chat = {"uuid": "c", "name": "n", "updated_at": "2026-09-01T10:00:00Z", "chat_messages": [message]}
        return [record.kind for record in read_history(json.dumps([chat]).encode(), format="claude-ai").records]

    assert kinds([{"type": "text", "text": "A letter."}]) == kinds("A letter.") == []
    assert len(kinds({"text": "A letter."})) == 1


def test_a_session_of_gemini_says_once_that_it_names_no_model():
    head = {"sessionId": "s", "projectHash": "0", "startTime": "2026-11-15T10:00:00.000Z", "kind": "main"}
    asked = {"type": "user", "content": [{"text": "Hello."}], "timestamp": "2026-11-15T10:00:01.000Z"}
    said = {"type": "gemini", "content": "Yes.", "timestamp": "2026-11-15T10:00:02.000Z"}
    turns = [{**each, "id": f"m{at}"} for at, each in enumerate((asked, said, asked, said))]
    history = read_history(lines(head, *turns), format="gemini-cli")
    assert len(history.context.messages) == 4
    assert len(history.report.of(ChangeCode.MODEL_UNKNOWN)) == 1


def test_a_document_without_a_type_has_none_in_inspect():
    document = FileContent(data="JVBERi0xLjQKJSVFT0YK", name="a.bin")
    (message,) = written(Context(messages=(UserMessage(content=(TextContent(text="See."), document)),)), "inspect-ai")
    block = next(each for each in message["content"] if each["type"] == "document")
    assert "mime_type" not in block


def test_redacted_thinking_of_others_than_claude_is_marked_for_vercel():
    hidden = ThinkingContent(thinking="", thinking_signature="opaque", redacted=True)
    given = written(Context(messages=(ASKED, answer(hidden, TextContent(text="Yes.")))), "vercel-ui")
    marks = [part["providerMetadata"] for part in given[-1]["parts"] if part["type"] == "reasoning"]
    assert [mark["segue"]["redacted"] for mark in marks] == [True]


def test_a_message_of_droid_follows_its_parent():
    def said(name: str, parent: str | None) -> dict[str, Any]:
        message = {"role": "user", "content": [{"type": "text", "text": name}]}
        return {"type": "message", "id": name, "parentId": parent, "message": message}

    def words(*messages: dict[str, Any]) -> list[str]:
        history = read_history(lines({"type": "session_start", "id": "s"}, *messages), format="droid")
        return [plain_text(message) for message in history.context.messages]

    assert words(said("a", None), said("b", "a"), said("c", "a")) == ["a", "c"]
    assert words(said("a", None), said("b", "a"), said("c", "missing")) == ["a", "b", "c"]


def test_other_conversations_of_a_file_are_records_with_their_place():
    chats = [
        {"uuid": name, "name": name, "updated_at": f"2026-09-0{day}T10:00:00Z", "chat_messages": []}
        for name, day in (("a", 1), ("b", 3), ("c", 2))
    ]
    chats[1]["chat_messages"] = [
        {"uuid": "m", "sender": "human", "text": "Hi.", "content": [{"type": "text", "text": "Hi."}]}
    ]
    history = read_history(json.dumps(chats).encode(), format="claude-ai")
    assert [(record.line, record.kind) for record in history.records] == [
        (1, "other conversation"),
        (3, "other conversation"),
    ]


def test_the_beginning_of_a_document_is_parsed_up_to_its_last_comma():
    text = '{"title": "a, \\"b\\" [c", "messages": [{"role": "user", "content": "one, {two'
    assert _parse_beginning(text.encode()) == {"title": 'a, "b" [c', "messages": [{"role": "user"}]}


def test_the_weight_of_a_turn_goes_to_another_training_format():
    row = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes", "weight": 0}]}
    history = read_history(json.dumps(row).encode(), format="hf-messages")
    assert [turn.get("weight") for turn in written(history.context, "sharegpt")["conversations"]] == [None, 0]
    assert [turn.get("weight") for turn in written(history.context, "hf-messages")["messages"]] == [None, 0]
