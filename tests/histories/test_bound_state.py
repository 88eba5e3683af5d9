"""The profile *bound state*: its fixtures in ATIF and in Agent Trail, its schema, and what is planted into them."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from cli.running import run
from segue import AssistantMessage, Context, UserMessage, check_bound_state, load, prepare, read_history, write_history
from segue.errors import ModelError
from segue.histories.kit import bound_state
from segue.histories.kit.bound_state import BOUND_STATE, META, BoundState, StatedText, state_of
from segue.models.catalogue import get_model

DOCS = Path(__file__).parent.parent.parent / "docs"
FIXTURES = [json.loads(line) for line in (DOCS / "bound-state.fixtures.jsonl").read_text("utf-8").splitlines()]
SCHEMA = json.loads((DOCS / "bound-state.schema.json").read_text("utf-8"))
FORMATS = ("atif", "agent_trail")
SOUND = [each for each in FIXTURES if not each["faults"]]
of_every_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=[each["name"] for each in FIXTURES])
of_sound_fixtures = pytest.mark.parametrize("fixture", SOUND, ids=[each["name"] for each in SOUND])
of_both_formats = pytest.mark.parametrize("name", FORMATS)


def data_of(fixture: dict[str, Any], name: str) -> bytes:
    lines = fixture[name] if name == "agent_trail" else [fixture[name]]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def conversation_of(fixture: dict[str, Any]) -> Context:
    loaded = load(json.dumps(fixture["conversation"]).encode())
    assert isinstance(loaded, Context)
    return loaded


def states_in(value: object) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [state for item in value for state in states_in(item)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in (BOUND_STATE, META) if key in value]
    return [*own, *(state for item in value.values() for state in states_in(item))]


def difference(wanted: Context, found: Context) -> str:
    """Name the first binding of a conversation that another one does not have."""
    if wanted.system_prompt != found.system_prompt or len(wanted.messages) != len(found.messages):
        return "the system prompt, or the number of messages"
    for at, (one, other) in enumerate(zip(wanted.messages, found.messages, strict=True)):
        if one.content != other.content:
            return f"the content of message {at}"
        if isinstance(one, AssistantMessage) and isinstance(other, AssistantMessage):
            for field in ("protocol", "provider", "model", "sent"):
                if getattr(one, field) != getattr(other, field):
                    return f"{field} of message {at}"
    return ""


def test_there_are_fifty_fixtures_with_their_own_names():
    assert len(FIXTURES) == len({each["name"] for each in FIXTURES}) == 50
    assert {fault for each in FIXTURES for fault in each["faults"]} == {
        "call", "chain", "marks", "model", "schema", "text", "thinking"
    }  # fmt: skip
    models = {each.get("model") for fixture in FIXTURES for each in fixture["conversation"]["messages"]}
    assert len(models - {None}) >= 8


@of_both_formats
@of_every_fixture
def test_the_validator_finds_the_faults_of_a_fixture(fixture, name):
    assert sorted({fault.code for fault in check_bound_state(data_of(fixture, name))}) == fixture["faults"]


@of_both_formats
@of_sound_fixtures
def test_a_conversation_comes_back_with_every_binding(fixture, name):
    wanted, history = conversation_of(fixture), read_history(data_of(fixture, name))
    assert difference(wanted, history.context) == ""
    again = write_history(history, format=history.origin.format, session_id="0f5a3c1e-7b2d-4c8f-9a6e-1d2c3b4a5f60")
    assert difference(wanted, read_history(again.files[0].data).context) == ""


@of_both_formats
@of_sound_fixtures
def test_the_next_request_is_the_same_for_every_model_of_the_conversation(fixture, name):
    wanted = conversation_of(fixture)
    found = read_history(data_of(fixture, name)).context
    last = UserMessage.of("Go on.")
    for message in wanted.messages:
        if isinstance(message, AssistantMessage):
            try:
                model = get_model(f"{message.provider}/{message.model}")
            except ModelError:
                continue
            one, other = (prepare(context.add(last), model) for context in (wanted, found))
            assert one.body == other.body


@pytest.mark.parametrize(
    ("place", "plant"),
    [
        ("_part", lambda part: replace(part, signature=None) if getattr(part, "signature", None) else part),
        ("_part", lambda part: replace(part, redacted=False) if getattr(part, "redacted", False) else part),
        ("_part", lambda part: replace(part, digest="AAAAAAAAAAAA") if isinstance(part, StatedText) else part),
        ("_parts", lambda parts: [*reversed(parts)]),
        ("_state_of_reply", lambda state: state and replace(state, account=None)),
        ("_state_of_reply", lambda state: state and replace(state, prefix=None)),
    ],
    ids=["signatures dropped", "redaction dropped", "words changed", "order changed", "accounts", "prefixes"],
)
@of_both_formats
def test_the_law_fails_on_a_planted_fault(monkeypatch, name, place, plant):
    original = getattr(bound_state, place)
    monkeypatch.setattr(bound_state, place, lambda value: plant(original(value)))
    found = []
    for fixture in SOUND:
        context = conversation_of(fixture)
        written = write_history(context, format=name.replace("_", "-"), now=1763170000000)
        found.append(difference(context, read_history(written.files[0].data).context))
    assert any(found)


@of_every_fixture
def test_the_schema_accepts_what_the_reader_accepts(fixture):
    for name in FORMATS:
        for state in states_in(fixture[name]):
            accepted = jsonschema.Draft202012Validator(SCHEMA).is_valid(state)
            try:
                msgspec.convert(state, BoundState)
            except msgspec.ValidationError:
                assert not accepted
            else:
                assert accepted


@of_sound_fixtures
def test_an_agent_trail_follows_its_specification(fixture):
    head, *events = fixture["agent_trail"]
    assert head["type"] == "session"
    assert head["schema_version"] == "0.1.0"
    assert re.fullmatch(r"x-[a-z0-9-]+/[a-z0-9_-]+", head["agent"]["name"])
    ids = [each["id"] for each in (head, *events)]
    assert len({str(UUID(each)) for each in ids}) == len(ids)
    for before, each in pairwise((head, *events)):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", each["ts"])
        assert before["ts"] <= each["ts"]
    allowed = {"type", "id", "ts", "payload", "semantic", "meta"}
    calls = set()
    for event in events:
        payload = event["payload"]
        assert event.keys() <= allowed
        assert all(re.fullmatch(r"x-[a-z0-9-]+/[a-z0-9][a-z0-9_-]*", key) for key in event.get("meta", {}))
        match event["type"]:
            case "user_message":
                assert payload.keys() <= {"text", "attachments"}
            case "agent_message":
                assert payload.keys() <= {"text", "model", "stop_reason", "usage", "attachments"}
            case "agent_thinking":
                assert payload.keys() <= {"text", "model", "level", "usage"}
            case "tool_call":
                calls.add(event["id"])
                assert payload.keys() <= {"tool", "args", "usage"}
                assert payload["args"].keys() <= {"name", "args"}
            case "tool_result":
                assert payload["for_id"] in calls
                assert isinstance(payload["ok"], bool)
            case "model_change":
                assert payload["to_model"]
            case kind:
                assert kind == "system_event"
                assert payload["kind"].startswith("x-segue/")


def test_a_message_without_bindings_has_no_object():
    plain = AssistantMessage(content=(bound_state.TextContent(text="Yes."),), protocol="openai-chat", model="m")
    assert state_of(plain) is None
    assert state_of(UserMessage.of("Hm?")) is None


def test_unknown_fields_of_an_object_are_ignored_and_another_version_is_not_read():
    fixture = next(each for each in SOUND if each["name"] == "one signed thought")
    text = data_of(fixture, "agent_trail").replace(b'{"version":1,', b'{"version":1,"confidence":0.5,')
    assert check_bound_state(text) == ()
    (fault,) = check_bound_state(text.replace(b'{"version":1,', b'{"version":2,'))
    assert (fault.code, fault.path) == ("schema", ("lines", 4))


def test_the_program_lists_the_faults_of_a_file_with_its_lines(tmp_path):
    sound, edited = (next(each for each in FIXTURES if each["name"] == name) for name in (
        "one signed thought", "a text was edited"
    ))  # fmt: skip
    (tmp_path / "sound.json").write_bytes(data_of(sound, "atif"))
    (tmp_path / "edited.trail.jsonl").write_bytes(data_of(edited, "agent_trail"))
    assert run("check", "--state", str(tmp_path / "sound.json")).status == 0
    done = run("check", "--state", "--format", "json", str(tmp_path / "edited.trail.jsonl"))
    assert done.status == 1
    (row,) = json.loads(done.out)
    assert (row["code"], row["line"]) == ("text", 4)
    assert run("check", str(tmp_path / "sound.json")).status == 2
