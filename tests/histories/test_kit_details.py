"""Details of what all formats share: what one branch or one bound decides."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    FileContent,
    ImageContent,
    Message,
    Policy,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    append_message,
    read_history,
    read_session,
    session_file,
    write_history,
)
from segue.conversation.content import AssistantContent
from segue.conversation.messages import Sent
from segue.foundation.redaction import Redactor
from segue.histories import places
from segue.histories.kit.bound_state import state_of, with_bound_state
from segue.histories.kit.broken_media import replace_broken_media
from segue.histories.kit.chat_messages import take_call
from segue.histories.kit.documents import json_text
from segue.histories.kit.entries import Reading
from segue.histories.kit.evidence import Form, Sight, find_evidence
from segue.histories.kit.history import Child, HistoryOrigin
from segue.histories.kit.logged_calls import Logged, read_traces
from segue.histories.kit.notes import Notes
from segue.histories.kit.originals import _starts  # pyright: ignore[reportPrivateUsage]
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import file_time_of, iso_of
from segue.histories.redacting import redact
from segue.projection.report import Change, ChangeCode, Loss

ASKED = UserMessage.of("What is in the file?")
PROTOCOL, PROVIDER, MODEL = "anthropic-messages", "anthropic", "claude-sonnet-4-5"


def reply(*content: AssistantContent, **fields: Any) -> AssistantMessage:
    return AssistantMessage(content=content, protocol=PROTOCOL, provider=PROVIDER, model=MODEL, **fields)


def call(name: str, **fields: Any) -> ToolCall:
    return ToolCall(id=name, name="look", arguments={"at": 1}, **fields)


def result(name: str) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=name, content=(TextContent(text="found"),))


# -- times and texts ---------------------------------------------------------------------------------------------------


def test_a_time_in_the_name_of_a_file_ends_with_its_seconds():
    assert iso_of(1_794_746_644_202) == "2026-11-15T12:44:04.202Z"
    assert file_time_of(1_794_746_644_202) == "2026-11-15T12-44-04"


@pytest.mark.parametrize(
    ("value", "text"),
    [("as it is", "as it is"), ({"a": [1, None]}, '{"a":[1,null]}'), ({"a": "\ud800"}, "{'a': '\\ud800'}")],
    ids=["a text", "a value", "a value that is no JSON"],
)
def test_any_value_is_a_text_for_a_model(value, text):
    assert json_text(value) == text


# -- calls without ids -------------------------------------------------------------------------------------------------


def test_a_result_without_an_id_answers_the_next_open_call_of_its_name():
    def taken(*names: str) -> list[str]:
        reading = Reading(Notes())
        reading.open_calls = [("c1", "look"), ("c2", "write"), ("c3", "look")]
        return [take_call(reading, name) for name in names]

    assert taken("", "", "", "") == ["c1", "c2", "c3", ""]
    assert taken("write", "look", "look") == ["c2", "c1", "c3"]
    assert taken("other", "") == ["", "c1"]


def test_the_reasoning_of_a_reply_of_chat_is_written_with_its_details():
    details = [{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1"}]
    turns = [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "So.", "provider_specific_fields": {"reasoning_details": details}},
    ]
    history = read_history(json.dumps(turns).encode(), format="litellm")
    said = history.context.messages[1]
    assert [piece.kind for piece in said.content] == ["thinking", "text"]
    (file, *_) = write_history(Context(messages=history.context.messages), format="litellm").files
    entry = json.loads(file.data)[1]
    assert entry["provider_specific_fields"]["reasoning_details"] == details
    anew = replace(said, content=(*said.content, TextContent(text="And so.")), extra=None)
    (file, *_) = write_history(Context(messages=(ASKED, anew)), format="litellm").files
    entry = json.loads(file.data)[1]
    assert entry["reasoning_content"] == "Hm."
    assert entry["provider_specific_fields"]["reasoning_details"] == details
    assert "thinking_blocks" not in entry


# -- media that nobody can read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "detail"),
    [
        (ImageContent(url="file:///home/a.png"), "file:///home/a.png"),
        (ImageContent(data="not base64", url="file:///home/a.png"), "its data is not base64"),
        (FileContent(url="data:application/pdf;base64,not base64"), "its data is not base64"),
        (FileContent(data="not base64", mime_type="application/pdf"), "its data is not base64"),
    ],
    ids=["a path", "data next to a path", "an address with data", "data"],
)
def test_media_that_are_replaced_are_named_by_their_address_or_their_data(piece, detail):
    message, changes = replace_broken_media(UserMessage(content=(TextContent(text="See."), piece)), 3, None)
    assert [each.kind for each in message.content] == ["text", "text"]
    assert [(change.path, change.detail) for change in changes] == [(("messages", 3, "content", 1), detail)]


def test_media_that_can_be_read_stay_as_they_are():
    good = UserMessage(content=(ImageContent(data="iVBORw0KGgo=", mime_type="image/png"),))
    assert replace_broken_media(good, 0, None) == (good, ())
    named = UserMessage(content=(ImageContent(url="file:///a.png"),))
    media = {"file:///a.png": ImageContent(data="iVBORw0KGgo=", mime_type="image/png")}
    assert replace_broken_media(named, 0, Policy(media=media)) == (named, ())


# -- the state of replies ----------------------------------------------------------------------------------------------


def misfits(message: AssistantMessage, state: object) -> list[str]:
    notes = Notes()
    with_bound_state(message, state, notes, ("messages", 0))
    return [change.detail for change in notes.report().changes]


def test_the_state_of_a_reply_names_its_calls_in_their_order():
    given = reply(call("c1", thought_signature="s1"), call("c2", thought_signature="s2"))
    state = state_of(given)
    assert state is not None
    assert (state["protocol"], state["provider"], state["model"]) == (PROTOCOL, PROVIDER, MODEL)
    bare = reply(call("c1"), call("c2"))
    assert with_bound_state(bare, state, Notes(), ("messages", 0)) == given
    assert misfits(bare, state) == []
    for content in ((call("c1"),), (call("c2"), call("c1")), (), (call("c1"), call("c2"), call("c3"))):
        (detail,) = misfits(reply(*content), state)
        assert detail.startswith("bound state: call: ")


@pytest.mark.parametrize(
    "message",
    [
        reply(TextContent(text="One."), TextContent(text="Two.")),
        reply(TextContent(text="One."), ThinkingContent(thinking="Two.")),
        reply(ThinkingContent(thinking="One.", thinking_signature="s")),
        reply(TextContent(text="One."), sent=Sent(account="a")),
        reply(TextContent(text="One."), extra={PROTOCOL: {"tier": "fast"}}),
    ],
    ids=["two texts", "thinking behind a text", "a signature", "what was sent", "fields of the provider"],
)
def test_a_reply_with_more_than_plain_fields_has_a_state(message):
    state = state_of(message)
    assert state is not None
    assert with_bound_state(message, state, Notes(), ("messages", 0)) == message


# -- recognising -------------------------------------------------------------------------------------------------------


def test_a_form_of_items_needs_an_item():
    form = Form(where="items", needs=("author",))
    assert find_evidence([form], Sight(value=[])) is None
    assert find_evidence([form], Sight(value=[], cut=True)) is None
    assert find_evidence([form], Sight(value=[{"author": "a"}])) is not None
    assert find_evidence([form], Sight(value=[{"author": "a"}, {"auth": "b"}])) is None
    assert find_evidence([form], Sight(value=[{"author": "a"}, {"auth": "b"}], cut=True)) is not None
    assert find_evidence([form], Sight(value=[{"auth": "b"}], cut=True)) is None


# -- traces ------------------------------------------------------------------------------------------------------------


def test_instructions_before_the_first_turn_of_a_trace_are_its_system_prompt():
    def read(*roles: str, prompt: str | None = None) -> tuple[str | None, list[str]]:
        sent = [{"role": role, "content": f"{role} {at}"} for at, role in enumerate(roles)]
        item = Logged(1, {}, "request", "t", 1, sent, ({"role": "assistant", "content": "Yes."},), prompt)
        context = read_traces("helicone", [item], Source(), View(), Notes()).context
        return context.system_prompt, [message.role for message in context.messages]  # type: ignore[return-value]

    assert read("user") == (None, ["user", "assistant"])
    assert read("system", "system", "user") == ("system 0\n\nsystem 1", ["user", "assistant"])
    assert read("system", "user", prompt="Be kind.") == ("Be kind.\n\nsystem 0", ["user", "assistant"])
    assert read("user", "system") == (None, ["user", "system", "assistant"])
    assert read("system") == ("system 0", ["assistant"])


# -- originals ---------------------------------------------------------------------------------------------------------


def test_a_part_of_the_originals_begins_with_words_of_the_user_alone():
    said = reply(TextContent(text="Yes."))
    called = reply(call("c1"))
    turns: list[Message] = [ASKED, ASKED, called, result("c1"), said, ASKED, called, result("c1"), ASKED, said]
    assert _starts(turns) == [0, 5]
    assert _starts([said, ASKED, said, ASKED]) == [0, 1, 3]
    assert _starts([]) == []


def test_originals_are_stored_once_under_the_id_of_their_session(tmp_path):
    places.save_originals("s1", b"{}\n", tmp_path)
    places.save_originals("s1", b"{1}\n", tmp_path)
    (path,) = places.find_originals(["s1"], tmp_path)
    assert (path.name, path.read_bytes()) == ("s1.jsonl", b"{}\n")


# -- what leaves the machine -------------------------------------------------------------------------------------------

RANDOM = "7f3kQ9zLx2VbN8mRt5WcY1pH6sJd4GgA"


def test_a_random_word_of_a_field_with_ids_stays_and_one_of_a_text_does_not():
    found = ToolResultMessage(tool_call_id="c", content=(), details=RANDOM)
    assert redact(found, Redactor()) == found
    place = HistoryOrigin(format="codex", path=RANDOM)
    assert redact(place, Redactor()) == place
    change = Change(code=ChangeCode.FILE_MISSING, path=("files", RANDOM), loss=Loss.CONTENT, detail="It is away.")
    assert redact(change, Redactor()) == change
    assert redact(TextContent(text=RANDOM), Redactor()).text == "[redacted: random]"
    assert redact(Child(id="c", title=RANDOM), Redactor()).title == "[redacted: random]"


# -- segue's own files -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="of locks (Windows has none)")
def test_a_session_file_is_free_after_the_block(tmp_path, monkeypatch):
    opened, closed = list[int](), list[int]()
    real_open, real_close = os.open, os.close

    def open_it(*given: Any, **named: Any) -> int:
        opened.append(real_open(*given, **named))
        return opened[-1]

    def close_it(handle: int) -> None:
        closed.append(handle)
        real_close(handle)

    path = tmp_path / "chat.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_it)
        patched.setattr(os, "close", close_it)
        with session_file(path) as file:
            file.append("Hello.")
    assert opened[0] in closed, "the lock is held until the file is closed"
    append_message(path, ASKED)
    assert len(read_session(path).messages) == 2
