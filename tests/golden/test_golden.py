"""Files that earlier versions stored are read with the content that they had; files of later ones are refused.

A folder beside this file has what one version stored; its name is that of the release, or of the commit before the
first one. `make.py` wrote it, running that version. The rules are in docs/stability.md.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import httpx2
import msgspec
import pytest

from cli.running import run
from gateway.databases import states_of
from gateway.running import running
from segue import (
    AssistantMessage,
    Conversation,
    CorpusError,
    LoadError,
    NewerFormat,
    SettingsError,
    UserMessage,
    append_message,
    decode_request,
    dump,
    dump_events,
    load,
    load_events,
    message_events,
    read_session,
)
from segue.corpus import read_notes
from segue.corpus.resumable import ResumableOutput
from segue.envelope.conversation import find_states, restore
from segue.envelope.envelopes import Envelopes
from segue.envelope.state import State, dump_state, endpoint_label, load_state
from segue.gateway.records import RequestRow
from segue.gateway.store.opening import open_store
from segue.gateway.store.schema import MIGRATIONS
from segue.histories.sessions import read_session_models
from segue.testing.emulator import Step

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/conversation.json"))
ADDRESS = "http://127.0.0.1:8765"
"""Of the emulator that answered when the files were made."""
ORIGIN = ("anthropic-messages", "anthropic", "claude-opus-4-8")
SIGNATURE = "ZW11"
"""The first characters of the emulator's signatures."""

pytestmark = pytest.mark.parametrize("golden", FOLDERS, ids=lambda path: path.name)


def _replies(context) -> list[AssistantMessage]:
    return [message for message in context.messages if message.role == "assistant"]


# -- conversations, sessions, events -----------------------------------------------------------------------------------


def test_a_stored_conversation_has_its_content_and_is_written_as_it_was(golden):
    data = (golden / "conversation.json").read_bytes().rstrip()
    context = load(data)
    user, reply, *rest = context.messages
    assert [piece.kind for piece in user.content] == ["text", "image", "file"]
    assert reply.role == "assistant"
    assert [piece.kind for piece in reply.content] == ["thinking", "text", "toolCall", "native"]
    assert (reply.protocol, reply.provider, reply.model) == ORIGIN
    assert reply.text() == "hello"
    assert reply.tool_calls()[0].arguments == {"city": "Tokyo", "days": [1, 2.0, None, {"deep": True}]}
    assert [message.role for message in rest] == ["toolResult", "system"]
    assert dump(context) == data


def test_a_session_has_its_messages_summaries_and_models(golden):
    context, models = read_session_models(golden / "session.jsonl")
    assert [message.role for message in context.messages] == [
        *("user", "assistant", "toolResult", "assistant", "user", "assistant")
    ]
    assert [reply.text() for reply in _replies(context)] == ["", "Yes: 9 °C and rain in Bergen.", "The same in Oslo."]
    thinking = [piece for reply in _replies(context) for piece in reply.content if piece.kind == "thinking"]
    assert [piece.thinking for piece in thinking] == ["I have a tool for that.", "It rains."]
    assert all((piece.thinking_signature or "").startswith(SIGNATURE) for piece in thinking)
    assert context.system_prompt == "Answer in two sentences."
    assert [(summary.covers, summary.text) for summary in context.summaries] == [(4, "It rains in Bergen.")]
    assert [(model.full_name(), model.base_url) for model in models] == [("mine/my-model", f"{ADDRESS}/v1")]
    assert json.loads(dump(context)) == json.loads((golden / "session.read.json").read_bytes())


def test_a_session_is_continued(golden, tmp_path):
    path = tmp_path / "session.jsonl"
    before = (golden / "session.jsonl").read_bytes()
    path.write_bytes(before)
    append_message(path, UserMessage.of("And tomorrow?"))
    assert path.read_bytes().startswith(before)
    with Conversation("anthropic/claude-opus-4-8", path=path) as conversation:
        assert conversation.context.messages[-1] == UserMessage.of("And tomorrow?")
        assert conversation.context.messages[:-1] == read_session(golden / "session.jsonl").messages


def test_events_are_those_of_the_message(golden):
    data = (golden / "events.jsonl").read_bytes()
    events = load_events(data)
    context = load((golden / "conversation.json").read_bytes())
    assert events == [event for message in _replies(context) for event in message_events(message)]
    assert dump_events(events) == data


# -- envelopes and the gateway's database ------------------------------------------------------------------------------


def test_an_envelope_that_a_client_still_returns_has_its_state(golden):
    written = json.loads((golden / "envelopes.json").read_text())
    for text, repeated in zip(written["texts"], (1, 400), strict=True):
        state = Envelopes([written["key"].encode()]).read(text, written["tenant"])
        assert state is not None
        assert (state.protocol, state.provider, state.model) == ORIGIN
        assert state.endpoint == endpoint_label(ADDRESS)
        assert state.is_whole
        assert [piece.content.kind for piece in state.pieces] == ["thinking", "text", "toolCall", "native"]
        first = state.pieces[0].content
        assert first.kind == "thinking"
        assert first.thinking_signature == "c2lnbmF0dXJl" * repeated
        assert Envelopes([written["key"].encode()]).read(text, "another") is None


@pytest.fixture
def database(golden, tmp_path) -> Path:
    path = tmp_path / "gateway.db"
    path.write_bytes(gzip.decompress((golden / "gateway.db.gz").read_bytes()))
    path.chmod(0o600)
    return path


def test_a_database_gives_the_state_of_a_turn_that_a_client_returns(golden, database):
    body = json.loads((golden / "gateway.json").read_text())["chat"]
    context = decode_request(body, protocol="openai-chat").context
    store = open_store(f"sqlite:{database}")
    assert store is not None
    found = find_states(context, Envelopes([store.envelope_key()]))
    stored = states_of(store, [key for turn in found.turns for key in turn.keys], 1_800_000_000_000, "")
    restored = restore(context, found, stored, base_urls=lambda _: ADDRESS)
    store.close()
    assert restored.restored == 1
    [reply] = _replies(restored.context)
    assert (reply.protocol, reply.provider, reply.model) == ORIGIN
    thinking, text, call = reply.content
    assert thinking.kind == "thinking"
    assert thinking.thinking == "A tool of chat."
    assert (thinking.thinking_signature or "").startswith(SIGNATURE)
    assert (text.kind, call.kind) == ("text", "toolCall")
    assert reply.text() == "Looking."
    assert reply.tool_calls()[0].arguments == {"city": "Bergen"}


def test_a_gateway_continues_a_conversation_of_the_database(golden, database):
    body = json.loads((golden / "gateway.json").read_text())["responses"]
    with running(Step(text="No: 4 °C and dry."), store=f"sqlite:{database}") as gateway:
        reply = httpx2.post(f"{gateway.url}/v1/responses", json=body, timeout=60)
        assert reply.status_code == 200, reply.text
        sent = json.dumps(gateway.upstream.emulator.requests[-1].body, ensure_ascii=False)
    assert all(text in sent for text in ("And in Oslo?", "Looking too.", "4 °C, dry"))


def test_a_database_keeps_its_rows_of_requests(golden, database):
    store = open_store(f"sqlite:{database}")
    assert store is not None
    rows = [msgspec.json.decode(data, type=RequestRow) for _, _, data in store.list_requests("", 10)]
    store.close()
    assert [(row.asked, row.outcome, row.status) for row in rows] == [("m-anthropic", "done", 200)] * 2
    assert {row.protocol for row in rows} == {"openai-chat", "openai-responses"}


# -- notes of conversions ----------------------------------------------------------------------------------------------


def test_notes_of_a_conversion_have_their_counts(golden):
    first, second = read_notes(str(golden / "corpus" / "out"))
    assert (first.file, first.summary.lines, first.summary.conversations, first.summary.bad) == ("a.jsonl", 3, 3, 0)
    assert (second.file, second.summary.lines, second.summary.conversations, second.summary.bad) == ("b.jsonl", 2, 1, 1)
    assert first.job.target == second.job.target == "anthropic/claude-sonnet-4-5"
    # An option that only the other provider has counted as a change at first.
    assert [each.times for each in first.summary.changes.values()] in ([3], [])


def test_the_report_of_a_conversion_can_be_shown(golden):
    shown = run("report", str(golden / "corpus" / "out"))
    assert shown.status == 0, shown.err
    assert "2 files for anthropic/claude-sonnet-4-5" in shown.out


def test_a_conversion_that_another_version_began_is_refused_and_not_mixed(golden, tmp_path):
    part = golden / "corpus" / "one"
    for file in part.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    job = next(iter(read_notes(str(golden / "corpus" / "out")))).job
    later = msgspec.structs.replace(job, fingerprint="another", version="99.0")
    with pytest.raises(CorpusError, match=rf"another run .*version 99.0 in place of {job.version}"):
        ResumableOutput(str(tmp_path / "b.jsonl"), later, file="b.jsonl", stamp="", resume=True)


# -- files of later versions -------------------------------------------------------------------------------------------


def _with_format(data: bytes, old: str, new: str) -> bytes:
    assert old.encode() in data
    return data.replace(old.encode(), new.encode(), 1)


@pytest.mark.parametrize("newer", ["segue/2", "segue/1.1", "segue/99"])
def test_a_newer_conversation_is_refused_and_a_newer_session_is_not_written_to(golden, newer, tmp_path):
    with pytest.raises(NewerFormat, match="upgrade segue"):
        load(_with_format((golden / "conversation.json").read_bytes(), "segue/1", newer))
    path = tmp_path / "session.jsonl"
    path.write_bytes(data := _with_format((golden / "session.jsonl").read_bytes(), "segue/1", newer))
    with pytest.raises(NewerFormat, match="upgrade segue"):
        read_session(path)
    with pytest.raises(NewerFormat, match="upgrade segue"):
        append_message(path, UserMessage.of("hi"))
    assert path.read_bytes() == data


def test_newer_events_are_refused(golden):
    data = (golden / "events.jsonl").read_bytes()
    with pytest.raises(NewerFormat, match="segue-events/2"):
        load_events(_with_format(data, "segue-events/1", "segue-events/2"))


def test_a_field_that_a_later_version_added_is_kept(golden):
    document = json.loads((golden / "conversation.json").read_bytes())
    document["messages"][0]["mood"] = "calm"
    context = load(json.dumps(document).encode())
    assert context.messages[0].extra == {"stored": {"mood": "calm"}}
    assert load(dump(context)) == context


@pytest.mark.parametrize(
    ("place", "value"), [(("messages", 0, "role"), "narrator"), (("messages", 0, "content", 0, "type"), "hologram")]
)
def test_a_role_or_a_type_of_content_that_is_not_known_is_an_error(golden, place, value):
    document = json.loads((golden / "conversation.json").read_bytes())
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    with pytest.raises(LoadError, match=f"unknown .* '{value}'") as raised:
        load(json.dumps(document).encode())
    assert raised.value.path == place


def test_a_newer_database_is_not_opened_and_stays_as_it_is(golden, database):
    connection = sqlite3.connect(database)
    connection.execute("update meta set value = ? where name = 'schema'", (str(len(MIGRATIONS) + 1),))
    connection.commit()
    before = list(connection.iterdump())
    with pytest.raises(SettingsError, match=f"schema {len(MIGRATIONS) + 1}, of a later version") as raised:
        open_store(f"sqlite:{database}")
    assert raised.value.key == "state.store"
    assert list(connection.iterdump()) == before
    connection.close()


def test_a_newer_envelope_counts_as_none(golden):
    written = json.loads((golden / "envelopes.json").read_text())
    text = written["texts"][0]
    newer = text[:8] + "BA" + text[10:]  # the byte of the format is 4
    assert Envelopes([written["key"].encode()]).read(newer, written["tenant"]) is None


def test_a_state_with_more_fields_than_this_version_knows_is_read_without_them(golden):
    written = json.loads((golden / "envelopes.json").read_text())
    state = Envelopes([written["key"].encode()]).read(written["texts"][0], written["tenant"])
    assert isinstance(state, State)
    fields = msgspec.msgpack.decode(dump_state(state))
    missing = len(State.__struct_fields__) - len(fields)
    defaults = State.__struct_defaults__[len(State.__struct_defaults__) - missing :]
    fields += [*defaults, "of a later version"]
    assert load_state(msgspec.msgpack.encode(fields)) == state


def test_a_note_that_cannot_be_read_names_the_version_that_wrote_it(golden, tmp_path):
    note = json.loads((golden / "corpus" / "out" / "a.jsonl.done.json").read_text())
    note["job"]["version"], note["summary"] = "99.0", []
    (tmp_path / "a.jsonl.done.json").write_text(json.dumps(note))
    with pytest.raises(CorpusError, match=r"segue 99\.0 wrote it, and this is segue"):
        list(read_notes(str(tmp_path)))
    note["job"].pop("version")
    (tmp_path / "a.jsonl.done.json").write_text(json.dumps(note))
    with pytest.raises(CorpusError, match="not a note of segue"):
        list(read_notes(str(tmp_path)))


def test_a_note_of_a_later_version_with_more_fields_is_read(golden, tmp_path):
    note = json.loads((golden / "corpus" / "out" / "a.jsonl.done.json").read_text())
    note["mood"] = note["job"]["mood"] = "calm"
    (tmp_path / "a.jsonl.done.json").write_text(json.dumps(note))
    assert [read.summary.lines for read in read_notes(str(tmp_path))] == [3]
