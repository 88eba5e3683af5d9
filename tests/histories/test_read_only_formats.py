"""Formats that are only read: databases, archives, and the samples beside the repository."""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
import random
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from histories.truth import SHARED, beside_the_project, needs_samples
from segue import History, LoadError, Loss, StopReason, read_history
from segue.histories.api import list_source
from segue.histories.kit.envelope import is_own_text, plain_text
from segue.histories.kit.tables import MemoryDatabase
from segue.histories.places import ArchiveFiles
from segue.histories.registry import get_format
from segue.projection.report import ChangeCode

FILES = {
    "cline": "cline/sessions/1794746219025_fmv1e/1794746219025_fmv1e.messages.json",
    "roo-code": "roo-code/tasks/0a1b/api_conversation_history.json",
    "continue": "continue/sessions/27fb5f4a-1f9e-4a7e-9a9a-7e4ab9931732.json",
    "aider": "aider/aider.chat.history.md",
    "goose": "goose/session-export.json",
    "chatgpt": "chatgpt-export/conversations.json",
    "claude-ai": "claude-ai-export/conversations.json",
    "open-webui": "open-webui/chat-export.json",
}
ROLES = {
    "cline": "user assistant toolResult toolResult toolResult assistant",
    "roo-code": "user assistant user assistant",
    "continue": "user assistant toolResult toolResult toolResult assistant user assistant toolResult assistant",
    "aider": "user assistant user assistant",
    "goose": "user assistant toolResult toolResult assistant",
    "chatgpt": "user assistant toolResult assistant user assistant",
    "claude-ai": "user assistant toolResult assistant user assistant",
    "open-webui": "user assistant toolResult assistant user assistant",
}


def roles(history: History) -> str:
    return " ".join(message.role for message in history.context.messages)


@pytest.mark.parametrize("name", beside_the_project(FILES))
def test_samples_are_recognised_and_read(name):
    history = read_history(SHARED / FILES[name])
    assert history.origin.format == name
    assert roles(history) == ROLES[name]
    assert not history.report.of(ChangeCode.LINE_UNREADABLE)


@needs_samples
def test_what_the_samples_hold_besides_messages():
    cline = read_history(SHARED / FILES["cline"])
    assert (cline.cwd, cline.title) == ("/home/user/proj", "What is in notes.txt and missing.txt? do:parallel")
    assert [each.is_error for each in cline.context.messages if each.role == "toolResult"] == [False, True, False]
    roo = read_history(SHARED / FILES["roo-code"])
    assert roo.compactions[0].summary.text.startswith("## Conversation Summary")
    assert (
        roles(read_history(SHARED / FILES["roo-code"], view="full")) == "user assistant toolResult assistant assistant"
    )
    chatgpt = read_history(SHARED / FILES["chatgpt"])
    assert [branch.text for branch in chatgpt.branches] == ["An abandoned answer."]
    last = chatgpt.context.messages[-1]
    assert (last.role == "assistant" and last.stop_reason) == StopReason.ABORTED
    other = read_history(SHARED / FILES["chatgpt"], view=f"branch={chatgpt.branches[0].id}")
    assert roles(other) == "user assistant"
    claude = read_history(SHARED / FILES["claude-ai"])
    assert [change.detail for change in claude.report.of(ChangeCode.FILE_MISSING)] == [
        "dot.png: the export has no files"
    ]
    webui = read_history(SHARED / FILES["open-webui"])
    assert webui.context.system_prompt == "Be brief."
    assert webui.branches[0].messages == 1


def test_a_database_of_hermes_says_that_it_has_further_conversations():
    source = get_format("hermes").samples()[0].source
    assert isinstance(source.database, MemoryDatabase)
    content = source.database.content
    other = {**content["sessions"][0], "id": "other", "started_at": 1.0, "title": "Before"}
    both = replace(source, database=MemoryDatabase({**content, "sessions": [*content["sessions"], other]}))
    left = [each.detail for each in read_history(both).report.of(ChangeCode.RECORD_LEFT_OUT)]
    assert "1 further conversation; `session` selects one" in left
    assert not [each for each in read_history(source).report.changes if "further conversation" in each.detail]


def test_a_call_in_another_form_of_the_agent_client_protocol_is_kept_as_a_record():
    def log(**fields: object) -> bytes:
        said = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "Look."}}
        called = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "read", "rawInput": {}, **fields}
        lines = [{"method": "session/update", "params": {"sessionId": "s", "update": each}} for each in (said, called)]
        return b"".join(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n" for line in lines)

    def kinds(data: bytes) -> set[str]:
        return {record.kind for record in read_history(data, format="acp-log").records}

    assert "call of another form" in kinds(log(arguments={"path": "a.txt"}))
    assert "call of another form" not in kinds(log(started=5))


@needs_samples
def test_the_log_of_llm_is_a_database_with_several_conversations(tmp_path):
    path = tmp_path / "logs.db"
    with sqlite3.connect(path) as database:
        database.executescript((SHARED / "llm/logs-db.sql").read_text("utf-8"))
    sessions = list_source(path)
    assert [session.messages for session in sessions] == [2, 6]
    newest, older = read_history(path), read_history(path, session=sessions[1].id)
    assert roles(newest) == "user assistant"
    signed = newest.context.messages[1].content[0]
    assert signed.kind == "thinking"
    assert signed.thinking_signature
    assert roles(older) == "user assistant toolResult toolResult toolResult assistant user assistant"
    assert older.context.system_prompt == "Be brief."
    assert len(older.report.of(ChangeCode.FILE_MISSING)) == 1
    assert read_history(sessions[1]).context == older.context
    with pytest.raises(LoadError, match="no conversation 'x'"):
        read_history(path, session="x")


def test_the_database_of_goose(tmp_path):
    export = json.loads(get_format("goose").samples()[0].source.data or b"")
    path = tmp_path / "sessions.db"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE sessions (id, name, working_dir, updated_at, provider_name, model_config_json);"
            "CREATE TABLE messages (session_id, role, content_json, created_timestamp, metadata_json);"
        )
        config = json.dumps(export["model_config"])
        database.execute(
            "INSERT INTO sessions VALUES (?, 'A session', '/home/user/project', '2026-11-15 10:00:00', ?, ?)",
            (export["id"], export["provider_name"], config),
        )
        for each in export["conversation"]:
            row = (
                export["id"],
                each["role"],
                json.dumps(each["content"]),
                each["created"],
                json.dumps(each["metadata"]),
            )
            database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", row)
    history = read_history(path)
    wanted = read_history(get_format("goose").samples()[0].source)
    assert [message.content for message in history.context.messages] == [
        message.content for message in wanted.context.messages
    ]
    assert history.compactions[0].summary.text == "A question was answered."
    assert len(history.compactions[0].messages) == 2
    (session,) = list_source(path)
    assert (session.messages, session.models, session.cwd) == (7, ("claude-sonnet-4-5",), "/home/user/project")


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name.replace("__", "."), data)
    return path


def test_an_export_is_read_in_its_archive_with_its_files(tmp_path):
    sample = get_format("chatgpt").samples()[0].source
    image = sample.neighbours.read("file_00ab-dot.png") or b""
    path = archive(tmp_path / "export.zip", conversations__json=sample.data or b"", **{"file_00ab-dot__png": image})
    history = read_history(path)
    assert history.origin.format == "chatgpt"
    assert history.context.messages[0].content[0].kind == "image"
    assert read_history(path.read_bytes()).context == history.context
    assert [session.title for session in list_source(path)] == ["A picture"]
    claude = get_format("claude-ai").samples()[0].source.data or b""
    assert read_history(archive(tmp_path / "claude.zip", conversations__json=claude)).origin.format == "claude-ai"


def test_the_files_of_a_split_export_are_read_together(tmp_path):
    (conversation,) = json.loads(get_format("chatgpt").samples()[0].source.data or b"")
    older = {**conversation, "id": "older", "title": "Older", "update_time": 1.5}
    names = {"conversations-000__json": [older], "conversations-001__json": [conversation]}
    path = archive(tmp_path / "e.zip", **{name: json.dumps(value).encode() for name, value in names.items()})
    assert [session.title for session in list_source(path)] == ["A picture", "Older"]
    assert read_history(path, session="older").title == "Older"


def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path):
    head = b'[{"mapping": {}, "current_node": null, "author": "'
    path = archive(tmp_path / "bomb.zip", conversations__json=head + b"x" * 50_000_000 + b'"}]')
    assert path.stat().st_size < 100_000
    with pytest.raises(LoadError, match="unpack the archive"):
        read_history(path)


@pytest.mark.parametrize(
    ("members", "size"),
    [(1, 3_000_000), (90, 1_000_000)],
    ids=["one file a hundred times its compressed size", "many files that are each within the limits"],
)
def test_an_archive_expands_to_a_bounded_size(tmp_path, members, size):
    line = bytes(random.Random(1).randbytes(size // 200)) * 200
    files = {f"conversations-{number:03}__json": line for number in range(members)}
    path = archive(tmp_path / "large.zip", **files)
    places = ArchiveFiles(path.read_bytes(), str(path))

    def read_all() -> None:
        for name in places.find("*.json"):
            for _ in range(2):
                assert len(places.read(name) or b"") == len(line)

    with pytest.raises(LoadError, match="unpack the archive"):
        read_all()


def test_a_damaged_archive_is_one_error(tmp_path):
    sample = get_format("chatgpt").samples()[0].source.data or b""
    whole = archive(tmp_path / "whole.zip", conversations__json=sample * 20).read_bytes()
    for seed in range(40):
        at = 4 + seed * (len(whole) - 5) // 40
        damaged = whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
        for data in (damaged, whole[:at]):
            with suppress(LoadError):
                read_history(data)
    with pytest.raises(LoadError, match="no file in this archive"):
        read_history(archive(tmp_path / "other.zip", readme__txt=b"hello"))


def test_an_attachment_with_a_path_out_of_the_folder_is_not_read(tmp_path):
    (tmp_path / "secret-file").write_text("secret")
    folder = tmp_path / "export"
    folder.mkdir()
    (conversation,) = json.loads(get_format("chatgpt").samples()[0].source.data or b"")
    parts = conversation["mapping"]["u1"]["message"]["content"]["parts"]
    for pointer in ("sediment://../secret-file", "../secret-file", "/etc/passwd", "sediment://..", "file-service://*"):
        parts[0]["asset_pointer"] = pointer
        (folder / "conversations.json").write_text(json.dumps([conversation]))
        history = read_history(folder / "conversations.json")
        assert history.report.of(ChangeCode.FILE_MISSING), pointer
        assert "secret" not in str(history.context)


def test_older_events_of_openhands_are_read_without_functions_and_without_false_reports():
    events = [
        {"id": 0, "source": "user", "action": "message", "message": "Count it.", "args": {"content": "Count it."}},
        {"id": 1, "source": "user", "action": "recall", "message": "Retrieving it.", "args": {"query": "Count it."}},
        {"id": 2, "observation": "recall", "content": "Added workspace context", "message": "Added it all", "cause": 1},
        {"id": 3, "source": "agent", "action": "run", "message": "Running command: wc a", "args": {
            "command": "wc -l a.txt", "thought": "I count the lines."}},
        {"id": 4, "source": "agent", "observation": "run", "content": "2 a.txt", "cause": 3, "extras": {"x": "wc"}},
        {"id": 5, "source": "agent", "action": "finish", "message": "All done! What is next?", "args": {
            "final_thought": "It has two lines."}},
    ]  # fmt: skip
    history = read_history(json.dumps(events).encode(), format="openhands")
    roles = [message.role for message in history.context.messages]
    assert roles == ["user", "assistant", "toolResult", "assistant"]
    call = history.context.messages[1].content[1]
    assert (call.name, call.arguments) == ("run", {"command": "wc -l a.txt"})
    assert history.context.messages[2].tool_call_id == call.id
    assert history.report.of(ChangeCode.LINE_UNREADABLE) == ()


def test_results_of_cline_that_are_texts_are_paired_with_their_calls():
    def call(name: str, number: int) -> dict[str, object]:
        return {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"path": "a['b'].txt"}, "call_id": "c"}

    def text(words: str) -> dict[str, object]:
        return {"type": "text", "text": words}

    task = [
        {"role": "user", "ts": 1, "content": [text("<task>\nCount.\n</task>"), text("<environment_details>x")]},
        {"role": "assistant", "ts": 2, "content": [call("read_file", 1), call("use_subagents", 2), call("list", 3)]},
        {
            "role": "user",
            "ts": 3,
            "content": [text("[subagents] Result:\ndone"), text("[read_file for 'a['b'].txt'] Result:\ntwo lines")],
        },
    ]
    history = read_history(json.dumps(task).encode())
    assert history.origin.format == "cline"
    results = {each.tool_call_id: plain_text(each) for each in history.context.messages if each.role == "toolResult"}
    assert results == {"t1": "two lines", "t2": "done"}
    assert [plain_text(each) for each in history.context.messages if each.role == "user" and not is_own_text(each)] == [
        "Count."
    ]


def changed(name: str, edit: Callable[[Any], object], sample: int = 0) -> History:
    """Read a sample of a format after a change of one of its lines or of its document."""
    data = get_format(name).samples()[sample].source.data or b""
    documents = [json.loads(line) for line in data.splitlines()] if b"\n{" in data.strip() else [json.loads(data)]
    for document in documents:
        edit(document)
    return read_history(b"\n".join(json.dumps(document).encode() for document in documents), format=name)


def rename(value: Any, old: str, new: str) -> None:
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        rename(inner, old, new)
    if isinstance(value, dict) and old in value:
        value[new] = value.pop(old)


def add_words(document: Any) -> None:
    if isinstance(data := document.get("data"), dict):
        data["remark"] = "a field of a later version"


def move_system(document: Any) -> None:
    if text := document.pop("system_prompt", None) or document.pop("system", None):
        document["system_prompt"] = {"value": text}


def set_role(document: Any) -> None:
    for holder in (document.get("message"), *document.get("messages", ())):
        if isinstance(holder, dict) and holder.get("role") == "assistant":
            holder["role"] = "narrator"


def rename_result(document: Any) -> None:
    for request in document.get("requests", ()):
        results = request.get("result", {}).get("metadata", {}).get("toolCallResults")
        for key in list(results or ()):
            results[f"{key}-2"] = results.pop(key)


CHANGES: dict[str, tuple[str, Callable[[Any], object]]] = {
    "a role that nobody knows is not the user's, Amp": ("amp", set_role),
    "a role that nobody knows is not the user's, Droid": ("droid", set_role),
    "thinking under another key, Droid": ("droid", lambda document: rename(document, "thinking", "thoughts")),
    "arguments under another key, Amp": ("amp", lambda document: rename(document, "input", "given")),
    "a field of a later version, Kiro": ("kiro", add_words),
    "instructions in another form, Hermes": ("hermes", move_system),
    "thoughts under another key, VS Code": (
        "vscode-copilot-chat",
        lambda document: rename(document, "thinking", "musing"),
    ),
    "results of calls that are not there, VS Code": ("vscode-copilot-chat", rename_result),
}


@pytest.mark.parametrize(("name", "edit"), CHANGES.values(), ids=CHANGES.keys())
def test_what_a_later_version_writes_elsewhere_is_reported(name, edit):
    reports = [changed(name, edit, at) for at in range(len(get_format(name).samples())) if readable(name, at)]
    whole = [changed(name, lambda _: None, at) for at in range(len(get_format(name).samples())) if readable(name, at)]
    assert any(losses(one) > losses(other) for one, other in zip(reports, whole, strict=True))


def readable(name: str, at: int) -> bool:
    return get_format(name).samples()[at].source.data is not None


def losses(history: History) -> int:
    return sum(change.loss is Loss.CONTENT for change in history.report.changes)


def test_what_a_tool_returned_is_read_under_any_name_from_model_messages():
    for output in ({"output": {"type": "json", "rows": {"lines": 2}}}, {"answer": {"lines": 2}}):
        result = {"type": "tool-result", "toolCallId": "c", "toolName": "read", **output}
        call = {"type": "tool-call", "toolCallId": "c", "toolName": "read", "input": {}}
        value = [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [result, {"type": "x", "n": 1}]}]
        history = read_history(value, format="vercel-messages")
        assert '"lines":2' in plain_text(history.context.messages[1])
        assert [record.kind for record in history.records] == ["x"]
