"""Every kind of fault, planted into a session of every program that can be repaired."""

from __future__ import annotations

import base64
import fcntl
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from segue import read_history, write_history
from segue.conversation.content import ImageContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, UserMessage
from segue.errors import LoadError, SessionChanged, SettingsError
from segue.histories.kit.repairing import find_faults, find_picture_fault, salvage
from segue.histories.kit.source import Source
from segue.histories.registry import FORMATS
from segue.histories.repair_files import find_repairable, store_copy, store_in_place
from segue.histories.repairs import FAULT_KINDS, Repaired, repair
from segue.projection.report import ChangeCode

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
SIGNATURE = base64.b64encode(b"a signature of the model").decode()
BLOB = json.dumps({"type": "blob", "data": PICTURE, "mimeType": "image/png"}, separators=(",", ":"))
OPAQUE = f'"reasoningText":"Look at it.","reasoningOpaque":"{SIGNATURE}"'
BROKEN_PICTURE = base64.b64encode(b"<html>not a picture at all, but a page</html>").decode()
NAMES = [name for name, record in FORMATS.items() if record.anatomy is not None]
LINED = [name for name in NAMES if name != "opencode"]
CODES = {
    "line": ChangeCode.LINE_UNREADABLE,
    "call": ChangeCode.RESULT_MISSING,
    "result": ChangeCode.RESULT_ORPHANED,
    "signature": ChangeCode.SIGNATURE_REMOVED,
    "size": ChangeCode.RESULT_SHORTENED,
    "image": ChangeCode.MEDIA_OMITTED,
}


def answer(name: str, *content: Any, stop: StopReason = StopReason.STOP) -> AssistantMessage:
    """Make a reply of the model that the program is used with."""
    model = FORMATS[name].example
    assert model is not None
    return AssistantMessage(
        content=content, protocol=model.protocol, provider=model.provider, model=model.id, stop_reason=stop
    )


def session(name: str) -> bytes:
    """Write a session with two calls, reasoning and a picture in the format of a program."""
    calls = [ToolCall(id=f"call_{at}", name="read", arguments={"path": f"{at}.txt"}) for at in (1, 2)]
    thought = ThinkingContent(thinking="Look at it.", thinking_signature=SIGNATURE)
    if FORMATS[name].wire == "google-genai":
        calls = [
            ToolCall(id=f"call_{at}", name="read", arguments={"at": at}, thought_signature=SIGNATURE) for at in (1, 2)
        ]
    messages = (
        UserMessage.of("Read both files."),
        answer(name, thought, calls[0], stop=StopReason.TOOL_USE),
        ToolResultMessage(tool_call_id="call_1", tool_name="read", content=(TextContent(text="the first result"),)),
        answer(name, TextContent(text="One is read.")),
        UserMessage(content=(TextContent(text="What is this?"), ImageContent(data=PICTURE, mime_type="image/png"))),
        answer(name, TextContent(text="A dot.")),
        UserMessage.of("And the other one."),
        answer(name, TextContent(text="I read it."), calls[1], stop=StopReason.TOOL_USE),
        ToolResultMessage(tool_call_id="call_2", tool_name="read", content=(TextContent(text="the second result"),)),
        answer(name, TextContent(text="Both are read.")),
    )
    written = write_history(
        Context(messages=messages), format=name, model=FORMATS[name].example, cwd="/home/user/p", now=1_794_736_800_000
    )
    data = written.files[0].data
    if name == "copilot-cli":  # written without pictures and reasoning, which the program itself stores
        lines = data.splitlines(keepends=True)
        old, new = b'"attachments":[]', f'"attachments":[{BLOB}]'.encode()
        data = b"".join(line.replace(old, new) if b"What is this?" in line else line for line in lines)
        data = data.replace(b'"content":"One is read."', f'"content":"One is read.",{OPAQUE}'.encode())
    return data


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Walk all objects of a JSON value, the inner ones first."""
    if isinstance(value, dict):
        for each in value.values():
            yield from nodes(each)
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from nodes(each)


def without_node(value: Any, is_gone: Callable[[dict[str, Any]], bool]) -> Any:
    """Take objects out of lists."""
    if isinstance(value, dict):
        return {key: without_node(each, is_gone) for key, each in value.items()}
    if isinstance(value, list):
        return [without_node(each, is_gone) for each in value if not (isinstance(each, dict) and is_gone(each))]
    return value


def plant(name: str, fault: str) -> bytes:
    """Make a session with one fault."""
    data = session(name)
    anatomy = FORMATS[name].anatomy
    assert anatomy is not None
    if fault == "signature":
        assert SIGNATURE.encode() in data
        return data.replace(SIGNATURE.encode(), b"it is not base64!")
    if fault == "image":
        assert PICTURE.encode() in data
        return data.replace(PICTURE.encode(), BROKEN_PICTURE.encode())
    if fault == "size":
        return data.replace(b"the first result", b"a long result " * 450_000)
    if name == "opencode":
        document = json.loads(data)
        for part in [each for each in nodes(document) if each.get("callID") == "call_2"]:
            part["state"] = {"status": "running", "input": part["state"]["input"], "time": {"start": 1}}
        return json.dumps(document).encode()
    lines = data.splitlines(keepends=True)
    if fault == "line":
        at = next(at for at, line in enumerate(lines) if b"What is this?" in line)
        return b"".join((*lines[:at], lines[at][: len(lines[at]) // 3] + b"\n", *lines[at + 1 :]))
    find = anatomy.result_id if fault == "call" else anatomy.call_id
    kept: list[Any] = []
    moved: dict[object, object] = {}
    for line in lines:
        fields = json.loads(line)
        found = [each for each in nodes(fields) if find(each) == "call_2"]
        if found and (len(fields) < 3 or fault == "call" or anatomy.carrier == "payload"):
            if anatomy.id_key is not None:
                moved[fields[anatomy.id_key]] = fields[anatomy.parent_key]
            if not any(anatomy.call_id(each) for each in nodes(fields)):
                continue
        if found:
            fields = without_node(fields, lambda each: find(each) == "call_2")
            if fault == "result" and anatomy.carrier == "payload":
                continue
        if anatomy.parent_key is not None and fields.get(anatomy.parent_key) in moved:
            fields[anatomy.parent_key] = moved[fields[anatomy.parent_key]]
        kept.append(fields)
    return b"".join(json.dumps(fields, separators=(",", ":")).encode() + b"\n" for fields in kept)


def store(folder: Path, name: str, data: bytes) -> Path:
    """Store a session under a name that its program would give it."""
    path = folder / "11111111-1111-4111-8111-111111111111.jsonl"
    path.write_bytes(data)
    return path


def repaired_file(path: Path, name: str, **options: Any) -> Repaired:
    """Repair a file."""
    source, record = find_repairable(str(path), name=name)
    return repair(source, record, **options)


FAULTS = [
    (name, fault)
    for name in NAMES
    for fault in CODES
    if name != "opencode" or fault not in {"line", "result"}  # a part has both, and a document no lines
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_is_repaired_and_all_other_lines_stay(name, fault, tmp_path):
    if (name, fault) == ("codex", "signature") or (name, fault) == ("copilot-cli", "signature"):
        options: dict[str, Any] = {"kinds": ["signature"]}  # nothing shows that it is wrong
    else:
        options = {}
    planted = plant(name, fault)
    path = store(tmp_path, name, planted)
    repaired = repaired_file(path, name, **options)
    assert CODES[fault] in {change.code for change in repaired.report.changes}, repaired.report.summary()
    assert {change.code for change in repaired.report.changes} == {CODES[fault]}
    backup = store_in_place(repaired)
    assert backup.read_bytes() == planted
    after = path.read_bytes()
    if name != "opencode":
        old = planted.splitlines()
        changed = [line for line in after.splitlines() if line not in old]
        assert len(changed) <= {"call": 3, "result": 3, "signature": 4, "line": 1}.get(fault, 1)
    context = read_history(path, format=name).context
    anatomy = FORMATS[name].anatomy
    assert anatomy is not None
    assert not find_faults(context, anatomy, FAULT_KINDS, ())
    texts = str([message.content for message in context.messages])
    expected = {"Read both files.", "One is read.", "A dot.", "I read it.", "Both are read."}
    expected -= {"I read it."} if fault == "result" else set()
    assert [text for text in sorted(expected) if text not in texts] == []
    if fault == "call":
        assert "the session ended before this call was answered" in texts
    if fault == "size":
        assert "characters of this result were taken out" in texts
        assert len(after) < 1_000_000
    again = repaired_file(path, name)
    assert not again.is_changed, again.report.summary()


@pytest.mark.parametrize("name", NAMES)
def test_a_session_without_a_fault_stays_as_it_is(name, tmp_path):
    path = store(tmp_path, name, session(name))
    repaired = repaired_file(path, name)
    assert not repaired.is_changed, repaired.report.summary()
    assert repaired.report.changes == ()
    assert repaired.advice == ()


@pytest.mark.parametrize("name", NAMES)
def test_the_samples_of_a_program_are_repaired_to_what_is_repaired(name):
    for sample in FORMATS[name].samples():
        if sample.source.data is None:
            continue
        first = repair(sample.source, FORMATS[name])
        assert first.data is not None
        second = repair(
            Source(data=first.data, name=sample.source.name, neighbours=sample.source.neighbours), FORMATS[name]
        )
        assert second.data == first.data


@pytest.mark.parametrize("name", NAMES)
def test_a_named_fault_takes_out_all_that_could_be_meant(name, tmp_path):
    path = store(tmp_path, name, session(name))
    repaired = repaired_file(path, name, kinds=["signature", "image"])
    data = repaired.data or b""
    assert SIGNATURE.encode() not in data
    assert PICTURE.encode() not in data
    assert {change.code for change in repaired.report.changes} == {
        ChangeCode.SIGNATURE_REMOVED,
        ChangeCode.MEDIA_OMITTED,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("API Error: 400 messages.1.content.0: Invalid `signature` in `thinking` block", ChangeCode.SIGNATURE_REMOVED),
        (
            "API Error: 400 messages.5.content.1.image.source.base64.data: Could not process image",
            ChangeCode.MEDIA_OMITTED,
        ),
    ],
)
def test_the_error_that_ended_a_session_says_what_is_wrong(error, code, tmp_path):
    lines = session("claude-code").splitlines(keepends=True)
    last = json.loads(lines[-1])
    message = {"id": "e", "type": "message", "role": "assistant", "model": "<synthetic>"}
    message |= {"content": [{"type": "text", "text": error}]}
    line = {**last, "uuid": "e" * 8, "parentUuid": last.get("uuid"), "isApiErrorMessage": True, "message": message}
    path = store(tmp_path, "claude-code", b"".join(lines) + json.dumps(line).encode() + b"\n")
    assert {change.code for change in repaired_file(path, "claude-code").report.changes} == {code}


def test_reasoning_of_another_provider_is_taken_out_of_a_session_of_claude_code(tmp_path):
    model = FORMATS["claude-code"].example
    assert model is not None
    data = session("claude-code").replace(f'"model":"{model.id}"'.encode(), b'"model":"glm-5"')
    path = store(tmp_path, "claude-code", data)
    assert not repaired_file(path, "claude-code").is_changed  # that provider goes on
    repaired = repaired_file(path, "claude-code", model="anthropic/claude-opus-4-8")
    assert {change.code for change in repaired.report.changes} == {ChangeCode.SIGNATURE_REMOVED}
    assert SIGNATURE.encode() not in (repaired.data or b"")


@pytest.mark.parametrize("name", LINED)
def test_records_in_a_joined_line_are_kept(name, tmp_path):
    lines = session(name).splitlines()
    at = next(at for at, line in enumerate(lines) if b"What is this?" in line)
    torn = lines[at - 1][:40] + lines[at]
    joined = b"\n".join((*lines[:at], torn, *lines[at + 1 :])) + b"\n"
    repaired = repaired_file(store(tmp_path, name, joined), name)
    assert repaired.data == session(name)
    assert [change.code for change in repaired.report.changes] == [ChangeCode.LINE_UNREADABLE]


@pytest.mark.parametrize(
    ("raw", "count"),
    [
        (b'{"a":1}{"a":2}', 2),
        (b'\0\0\0{"a":1}', 1),
        (b'{"a":{"b":', 0),
        (b'{"x{"a":1}', 1),
        (b"", 0),
        (b'{"' * 3000, 0),
    ],
)
def test_whole_records_are_found_in_a_broken_line(raw, count):
    assert len(salvage(raw, lambda fields: "a" in fields)) == count


@pytest.mark.parametrize("name", ["pi", "copilot-cli", "opencode"])
def test_another_model_goes_on(name, tmp_path):
    path = store(tmp_path, name, session(name))
    repaired = repaired_file(path, name, model="anthropic/claude-opus-4-8")
    assert repaired.is_changed
    assert b"claude-opus-4-8" in (repaired.data or b"")
    assert {change.code for change in repaired.report.changes} == {ChangeCode.MODEL_UNKNOWN}


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini-cli", "qwen-code"])
def test_a_program_that_takes_the_model_from_its_settings_is_named(name, tmp_path):
    repaired = repaired_file(store(tmp_path, name, session(name)), name, model="anthropic/claude-opus-4-8")
    assert not repaired.is_changed
    assert "takes the model from its settings" in repaired.advice[0]


def test_a_session_that_changed_is_not_touched(tmp_path):
    path = store(tmp_path, "pi", plant("pi", "call"))
    repaired = repaired_file(path, "pi")
    with path.open("ab") as file:
        file.write(b"{}\n")
    before = path.read_bytes()
    with pytest.raises(SessionChanged, match="changed since it was read"):
        store_in_place(repaired)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_session_that_a_program_has_locked_is_not_touched(tmp_path):
    path = store(tmp_path, "pi", plant("pi", "call"))
    repaired = repaired_file(path, "pi")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(SessionChanged, match="locked by a program"):
            store_in_place(repaired)
    assert list(tmp_path.iterdir()) == [path]


def test_backups_are_never_replaced(tmp_path):
    path = store(tmp_path, "pi", plant("pi", "call"))
    names = []
    for fault in ("call", "image"):
        path.write_bytes(plant("pi", fault))
        names.append(store_in_place(repaired_file(path, "pi")).name)
    assert names == [f"{path.name}.before-repair", f"{path.name}.before-repair-2"]
    assert path.stat().st_mode & 0o777 == 0o644 or path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", LINED)
def test_a_copy_is_a_session_of_its_own(name, tmp_path):
    path = store(tmp_path, name, plant(name, "image"))
    before = path.read_bytes()
    repaired = repaired_file(path, name)
    new = "22222222-2222-4222-8222-222222222222"
    copy = store_copy(repaired, None, new=new)
    assert path.read_bytes() == before
    assert copy != path
    assert read_history(copy, format=name).origin.id == new
    plain = store_copy(repaired, tmp_path / "plain.jsonl", new=new)
    assert plain.read_bytes() == repaired.data


def test_a_format_that_cannot_be_repaired_is_named(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"role": "user", "content": "hello"}]))
    with pytest.raises(SettingsError, match="claude-code"):
        find_repairable(str(path), name="hf-messages")


def make_database(path: Path, document: dict[str, Any]) -> None:
    """Store a document as opencode would."""
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE session (id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER)"
        )
        database.execute("CREATE TABLE message (id TEXT, session_id TEXT, data TEXT)")
        database.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
        info = document["info"]
        database.execute("INSERT INTO session VALUES (?, '/p', 'T', 1, 2)", (info["id"],))
        for message in document["messages"]:
            of = message["info"]
            fields = {key: value for key, value in of.items() if key not in {"id", "sessionID"}}
            database.execute("INSERT INTO message VALUES (?, ?, ?)", (of["id"], info["id"], json.dumps(fields)))
            for part in message["parts"]:
                fields = {key: value for key, value in part.items() if key not in {"id", "sessionID", "messageID"}}
                database.execute(
                    "INSERT INTO part VALUES (?, ?, ?, ?)", (part["id"], of["id"], info["id"], json.dumps(fields))
                )
    database.close()


@pytest.mark.parametrize("fault", ["call", "signature", "size", "image"])
def test_rows_of_a_database_are_repaired_in_one_transaction(fault, tmp_path):
    path = tmp_path / "opencode.db"
    make_database(path, json.loads(plant("opencode", fault)))
    with sqlite3.connect(path) as database:
        before = dict(database.execute("SELECT id, data FROM part").fetchall())
    repaired = repaired_file(path, "opencode")
    assert {change.code for change in repaired.report.changes} == {CODES[fault]}
    backup = store_in_place(repaired)
    kept = {row["id"]: row["data"] for row in json.loads(backup.read_bytes())["rows"]}
    with sqlite3.connect(path) as database:
        after = dict(database.execute("SELECT id, data FROM part").fetchall())
    changed = {name for name in before if before[name] != after.get(name)}
    assert changed == kept.keys()
    assert all(before[name] == data for name, data in kept.items())
    assert not repaired_file(path, "opencode").is_changed


def test_rows_that_changed_are_not_touched(tmp_path):
    path = tmp_path / "opencode.db"
    make_database(path, json.loads(plant("opencode", "call")))
    repaired = repaired_file(path, "opencode")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE part SET data = data || ' '")
    before = path.read_bytes()
    with pytest.raises(SessionChanged):
        store_in_place(repaired)
    assert path.read_bytes() == before
    with pytest.raises(LoadError, match="database"):
        store_copy(repaired, None, new="x")


@pytest.mark.parametrize(
    ("data", "claimed", "fault"),
    [
        (PICTURE, "image/png", None),
        (PICTURE, None, None),
        (PICTURE, "image/jpeg", "is named"),
        ("not base64!", "image/png", "not base64"),
        (BROKEN_PICTURE, "image/png", "not a picture"),
        (base64.b64encode(base64.b64decode(PICTURE) + b"\0" * 5_000_000).decode(), "image/png", "larger"),
    ],
)
def test_pictures_that_providers_refuse(data, claimed, fault):
    found = find_picture_fault(data, claimed)
    assert found is None if fault is None else fault in (found or "")
