"""Files that nobody's agent wrote: one clear error, or a reading that reports what it left out. Never a traceback."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

import pytest

from segue import LoadError, SegueError, find_sessions, read_history
from segue.histories import places
from segue.histories.api import list_source
from segue.histories.kit.source import MemoryFiles, Source
from segue.histories.kit.tables import MemoryDatabase
from segue.histories.registry import FORMATS, formats_with_sessions, get_format
from segue.projection.report import ChangeCode, Loss

DEEP = 100_000
CONTENTS = {
    "nothing": b"",
    "blank": b" \n\n\t\n",
    "zeros": b"\x00" * 5000,
    "a picture": b"\x89PNG\r\n\x1a\n" + b"\x00" * 500,
    "UTF-16": '{"type": "user"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"type": "user"}\n',
    "deep lists": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"message":' * DEEP + b"1" + b"}" * DEEP,
    "a deep value in a line": b'{"type":"user","uuid":"a","message":' + b"[" * DEEP + b"]" * DEEP + b"}\n",
    "a list of numbers": b"[1, 2, 3]",
    "a number": b"12345678901234567890123456789",
    "a huge number": b'{"ts": 1e400, "role": "user", "content": "x"}',
    "a text": b'"hello"',
    "lines of numbers": b"1\n2\n3\n",
    "the header of a database": b"SQLite format 3\x00" + b"\x00" * 100,
    "the header of an archive": b"PK\x03\x04" + b"\x00" * 100,
    "the header of a compressed file": b"\x28\xb5\x2f\xfd" + b"\xff" * 100,
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_any_file_gives_a_history_or_one_error(content, tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    for name in FORMATS:
        for source in (content, path):
            with suppress(SegueError):
                read_history(source, format=name)
        with suppress(SegueError):
            list_source(path, format=name)


def databases() -> dict[str, str]:
    """Give tables with the names that formats look for, and other columns."""
    tables = ("session message part", "sessions messages", "threads turns messages parts", "conversations responses")
    made = {}
    for names in tables:
        for columns in ("x", "id", "id, data, session_id, content_json, hash, parent_hash, tip_message_hash"):
            script = "".join(
                f"CREATE TABLE {table} ({columns}); INSERT INTO {table} DEFAULT VALUES;" for table in names.split()
            )
            made[f"{names} ({columns})"] = script
    return made


@pytest.mark.parametrize("script", databases().values(), ids=databases().keys())
def test_any_database_gives_a_history_or_one_error(script, tmp_path):
    path = tmp_path / "some.db"
    with sqlite3.connect(path) as database:
        database.executescript(script)
    for name in (None, *FORMATS):
        for use in (read_history, list_source):
            with suppress(SegueError):
                use(path, format=name)


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "LARGEST", 100)
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"x" * 101)
    with pytest.raises(LoadError, match="more than 100 bytes"):
        read_history(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "session.jsonl"
    os.mkfifo(path)
    with pytest.raises(LoadError, match="not a regular file"):
        read_history(path)


def test_a_file_that_must_not_be_read_is_one_error(tmp_path):
    path = tmp_path / "loop.jsonl"
    path.symlink_to(path)
    with pytest.raises(LoadError, match="cannot read the file"):
        read_history(path)


def bind(path: Path) -> None:
    """Make a socket; its path has to be short, so that it is made in the folder itself."""
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


PLANTED = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": bind,
    "a loop": lambda path: path.symlink_to(path),
    "a folder": lambda path: path.mkdir(),
    "a link to another file": lambda path: path.symlink_to("/etc/passwd"),
}


def planted_names(pattern: str) -> str:
    return pattern.replace("**/", "").replace("*", "planted")


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("name", [record.name for record in formats_with_sessions()])
def test_what_is_not_a_file_of_a_session_is_neither_waited_for_nor_read(name, planted, tmp_path, monkeypatch):
    place = get_format(name).place
    assert place is not None
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for variable in place.variables:
        monkeypatch.delenv(variable.partition("/")[0], raising=False)
    (home / place.folder).mkdir(parents=True)
    patterns = dict.fromkeys((*place.patterns, *place.databases))
    paths = [home / place.folder / planted_names(pattern) for pattern in patterns]
    paths += [project / planted_names(pattern) for pattern in place.projects]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        PLANTED[planted](path)
    assert list(find_sessions(formats=[name])) == []
    assert list_source(project, format=name) == list_source(home / place.folder, format=name) == []
    for path in paths:
        assert places.DiskFiles(path.parent).read(path.name) is None
        if planted not in ("a link to another file", "a folder"):
            with pytest.raises(LoadError):
                read_history(path, format=name)


def test_a_large_file_without_data_is_refused(tmp_path):
    path = tmp_path / "sparse.jsonl"
    with path.open("wb") as file:
        file.truncate(2**30)
    if path.stat().st_blocks:
        pytest.skip("this file system has no holes")
    with pytest.raises(LoadError, match="parts of it have no data"):
        read_history(path)
    assert not places.may_contain(str(path), [])


@pytest.mark.parametrize("folder", ["/" + "x" * 5000, "/a\0b", "relative", "../..", "~", "/dev/zero", "\ud800", "//"])
def test_any_text_can_be_the_folder_of_a_session(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "projects" / "-p" / "good.jsonl"
    path.parent.mkdir(parents=True)
    line = {"type": "user", "uuid": "a", "sessionId": "s", "cwd": folder, "message": {"role": "user", "content": "Hi"}}
    path.write_text(json.dumps(line) + "\n")
    assert [session.id for session in find_sessions()] == ["good"]
    assert {session.id for session in find_sessions(cwd=folder)} <= {"good"}


def test_damaged_sessions_do_not_hide_the_others_in_a_list(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    source = get_format("claude-code").samples()[0].source
    folder = tmp_path / "projects" / "-p"
    folder.mkdir(parents=True)
    for at, content in enumerate(CONTENTS.values()):
        (folder / f"bad-{at}.jsonl").write_bytes(content)
    (folder / "folder.jsonl").mkdir()
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (folder / "good.jsonl").write_bytes(source.data or b"")
    assert "Read both files." in [session.title for session in find_sessions(formats=["claude-code"])]


def compressed(data: bytes) -> bytes:
    return pytest.importorskip("zstandard", reason="of compressed sessions (no zstandard)").compress(data)


def test_a_compressed_session_of_codex_is_read(tmp_path):
    data = get_format("codex").samples()[0].source.data or b""
    wanted = read_history(data, format="codex").context.messages
    path = tmp_path / "rollout-2026-11-15T12-00-00-01a1df3f.jsonl.zst"
    path.write_bytes(compressed(data))
    assert read_history(path).context.messages == wanted
    half = data.index(b"\n", len(data) // 2) + 1
    path.write_bytes(compressed(data[:half]) + compressed(data[half:]))
    assert read_history(path).context.messages == wanted


def test_without_a_library_a_compressed_session_says_what_to_install(tmp_path, monkeypatch):
    from segue.histories.codex import read as rollout

    def nothing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(rollout, "import_module", nothing)
    path = tmp_path / "rollout-2026-11-15T12-00-00-01a1df3f.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\x00" * 50)
    with pytest.raises(LoadError, match="pip install zstandard"):
        read_history(path)


def test_a_compressed_session_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    from segue.histories.codex import read as rollout

    monkeypatch.setattr(rollout, "_LARGEST", 10_000)
    path = tmp_path / "rollout-2026-11-15T12-00-00-01a1df3f.jsonl.zst"
    path.write_bytes(compressed(b"x" * 1_000_000))
    with pytest.raises(LoadError, match="more than 10000 bytes"):
        read_history(path)


def test_a_line_that_is_cut_off_is_reported(tmp_path):
    data = get_format("claude-code").samples()[0].source.data or b""
    history = read_history(data.rstrip()[:-20], format="claude-code")
    (change,) = history.report.of(ChangeCode.LINE_UNREADABLE)
    assert change.detail == "the last line is cut off"


def lines(*entries: object) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def claude_code(uuid: str, parent: str | None, kind: str = "user", text: str = "") -> dict[str, object]:
    message = {"role": "user", "content": text or f"the text of {uuid}"}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, "rendered": [message]}


def pi(own: str, parent: str | None) -> dict[str, object]:
    message = {"role": "user", "content": f"the text of {own}"}
    return {"type": "message", "id": own, "parentId": parent, "message": message}


def droid(own: str, text: str) -> dict[str, object]:
    return {"type": "message", "id": own, "message": {"role": "user", "content": text}}


def qwen(own: str, parent: str | None, kind: str = "user") -> dict[str, object]:
    parts = [{"text": f"the {kind} text of {own}"}]
    return {"type": kind, "uuid": own, "parentUuid": parent, "message": {"role": "user", "parts": parts}}


def gemini(own: str, text: str) -> dict[str, object]:
    return {"id": own, "type": "user", "content": [{"text": text}]}


def chatgpt(**parents: str) -> bytes:
    def node(name: str, parent: str) -> dict[str, object]:
        content = {"content_type": "text", "parts": [f"the text of {name}"]}
        return {"id": name, "parent": parent, "message": {"author": {"role": "user"}, "content": content}}

    mapping = {name: node(name, parent) for name, parent in parents.items()}
    return json.dumps([{"id": "c", "current_node": "a", "mapping": mapping}]).encode()


NAMES = {
    "claude-code: a line with the uuid of another one": (
        "claude-code",
        lines(claude_code("a", None), claude_code("b", "a"), claude_code("a", "b", text="another text")),
    ),
    "claude-code: lines that hang under each other": (
        "claude-code",
        lines(
            claude_code("a", "b", "attachment"),
            claude_code("b", "a", "attachment"),
            claude_code("c", None),
            {"type": "last-prompt", "leafUuid": "b"},
        ),
    ),
    "pi: entries that hang under each other": ("pi", lines(pi("a", "b"), pi("b", "a"), pi("c", None))),
    "droid: a message with the id of another one": ("droid", lines(droid("a", "one text"), droid("a", "another one"))),
    "qwen-code: lines that hang under each other": (
        "qwen-code",
        lines(qwen("a", "b"), qwen("b", "a"), qwen("c", None)),
    ),
    "qwen-code: a line with the uuid of another kind": (
        "qwen-code",
        lines({**qwen("a", None, "system"), "subtype": "slash_command"}, qwen("a", None), qwen("b", "a")),
    ),
    "gemini-cli: a message with the id of another one": (
        "gemini-cli",
        lines({"sessionId": "s"}, gemini("a", "one text"), gemini("a", "another one")),
    ),
    "gemini-cli: messages that are no list": (
        "gemini-cli",
        lines({"sessionId": "s"}, {"$set": {"messages": gemini("a", "one text")}}, gemini("b", "another one")),
    ),
    "vscode-copilot-chat: a change before the beginning of a list": (
        "vscode-copilot-chat",
        lines(
            {"kind": 0, "v": {"requests": [{"message": {"text": "one text"}}, {"message": {"text": "another one"}}]}},
            {"kind": 2, "k": ["requests"], "i": -1},
        ),
    ),
    "chatgpt: nodes that hang under each other": ("chatgpt", chatgpt(a="", b="c", c="b")),
}


@pytest.mark.parametrize("which", NAMES)
def test_what_names_in_a_loop_or_twice_cannot_reach_is_reported(which):
    name, data = NAMES[which]
    assert any(change.loss is not Loss.NONE for change in read_history(data, format=name).report.changes)


LISTS = {
    "claude-code": (0, (2, "rendered")),
    "qwen-code": (1, (2, "systemPayload", "compressedHistory")),
    "opencode": (0, ("messages",)),
    "roo-code": (0, ()),
    "goose": (0, ("conversation", 4, "content")),
    "openhands": (1, ()),
    "chatgpt": (0, ()),
    "claude-ai": (0, (1, "chat_messages", 2, "content")),
    "open-webui": (0, ()),
}
"""A list of objects in a sample of each format: the number of the sample, and the path."""


@pytest.mark.parametrize("name", LISTS)
def test_a_text_in_a_list_of_objects_is_reported(name):
    at, path = LISTS[name]
    data = get_format(name).samples()[at].source.data or b""
    is_lines = get_format(name).reads_lines and data.count(b"\n") > 1
    documents = [json.loads(line) for line in (data.splitlines() if is_lines else [data])]
    found = documents if is_lines else documents[0]
    for step in path:
        found = found[step]
    found.insert(0, "a text that stands alone")

    def unreadable(data: bytes) -> int:
        return len(read_history(data, format=name).report.of(ChangeCode.LINE_UNREADABLE))

    assert unreadable(lines(*documents)) == unreadable(data) + 1


def test_a_folder_of_vscode_that_is_no_address_is_given_as_it_is():
    files = {"w/workspace.json": json.dumps({"folder": "file://[project"}).encode()}
    data = json.dumps({"requests": [{"message": {"text": "a text"}}]}).encode()
    source = Source(data=data, name="w/chatSessions/c.json", neighbours=MemoryFiles(files))
    assert read_history(source, format="vscode-copilot-chat").cwd == "file://[project"


def codex_session(own: str, *agents: str) -> bytes:
    call = {"type": "function_call", "name": "spawn_agent", "arguments": "{}"}
    made = [({**call, "call_id": f"c{at}"}, json.dumps({"agent_id": agent})) for at, agent in enumerate(agents)]
    items = [
        item
        for called, output in made
        for item in (called, {"type": "function_call_output", "call_id": called["call_id"], "output": output})
    ]
    payloads = [{"type": "response_item", "payload": item} for item in items]
    return lines({"type": "session_meta", "payload": {"id": own}}, *payloads)


def test_sessions_of_codex_that_name_each_other_are_read_once():
    files = {f"rollout-x-{own}.jsonl": codex_session(own, other, other) for own, other in (("a1", "b2"), ("b2", "a1"))}
    name = "rollout-x-a1.jsonl"
    source = Source(data=files[name], name=name, neighbours=MemoryFiles(files))
    first, second = read_history(source, format="codex").children
    assert first.history is not None
    assert first.history is second.history
    assert [child.history for child in first.history.children] == [None, None]


def test_a_session_of_opencode_that_names_itself_is_read():
    state = {"status": "completed", "input": {}, "output": "done", "metadata": {"sessionId": "S"}}
    data = json.dumps({"type": "tool", "callID": "c", "tool": "task", "state": state})
    parts = [{"id": own, "message_id": "m", "session_id": "S", "data": data} for own in ("p1", "p2")]
    message = {"id": "m", "session_id": "S", "data": json.dumps({"role": "assistant"})}
    database = MemoryDatabase({"session": [{"id": "S"}], "message": [message], "part": parts})
    history = read_history(Source(database=database), format="opencode")
    assert [child.history for child in history.children] == [None, None]


def test_a_fence_of_specstory_keeps_a_text_beside_it():
    shown = "<details>\n<summary>Tool use: **Read**</summary>\n\n```text first line\nsecond line\n```\n</details>"
    block = f'<tool-use data-tool-name="Read">{shown}</tool-use>'
    data = f"_**User (2026-11-15 10:00:00Z)**_\n\nRead it.\n\n_**Agent (m 2026-11-15 10:00:02Z)**_\n\n{block}\n"
    (result,) = (each for each in read_history(data.encode(), format="specstory").context.messages[2:])
    assert "first line" in str(result.content)


def test_a_bubble_of_cursor_that_is_not_stored_is_reported():
    chat = {"composerId": "other", "fullConversationHeadersOnly": [{"bubbleId": "1"}, {"bubbleId": "2"}]}
    values = {"composerData:c": chat, "bubbleId:c:1": {"type": 1, "text": "a text", "bubbleId": "1"}}
    rows = [{"key": key, "value": json.dumps(value)} for key, value in values.items()]
    history = read_history(Source(database=MemoryDatabase({"cursorDiskKV": rows})), format="cursor")
    assert [message.role for message in history.context.messages] == ["user"]
    assert [change.path for change in history.report.of(ChangeCode.LINE_UNREADABLE)] == [("lines", 2)]


# -- files that grow ---------------------------------------------------------------------------------------------------

SPECSTORY = (
    "<!-- Generated by SpecStory, Markdown v2 -->\n\n{head}\n\n_**User (2026-01-01 00:00:00Z)**_\n\nhi\n\n---\n\n"
    "_**Agent (m 2026-01-01 00:00:00Z)**_\n\n{body}"
)
GROWING = {
    "blank lines": ("# t", "\n \n", "x"),
    "blank lines in a call": ("# t", "\n \n", "x</tool-use>"),
    "thinking without an end": ("# t", "<think><details><summary></summary>", ""),
    "calls without an end": ("# t", "<tool-use ", ""),
    "calls": ("# t", '<tool-use data-tool-name="a">\nx\n</tool-use>\n', ""),
    "broken fences": ("# t", '<tool-use data-tool-name="a">\n```\n</tool-use>\n', "```"),
    "headers": ("# t", "\n_**Agent (m 2026-01-01 00:00:00Z)**_\n\nx\n", ""),
}


def cost_of_reading(head: str, body: str) -> float:
    """Measure the CPU seconds of reading a file of SpecStory: the least of three."""
    data = SPECSTORY.format(head=head, body=body).encode()

    def once() -> float:
        began = time.process_time()
        read_history(data, format="specstory")
        return time.process_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize("name", GROWING)
def test_reading_specstory_costs_as_much_for_each_line_of_a_long_file(name: str) -> None:
    head, piece, end = GROWING[name]
    start = '<tool-use data-tool-name="a"><details><summary>s</summary>' if "in a call" in name else ""
    small, large = (cost_of_reading(head, start + piece * count + end) for count in (1_000, 16_000))
    assert large < 64 * max(small, 0.002)  # 16 times the work; quadratic would be 256 times


@pytest.mark.parametrize(
    "head", ["# " + " " * 80_000 + "x", "# t (" + "1:11" * 20_000, "<!-- " + " Session a (" * 8_000]
)
def test_a_long_heading_of_specstory_is_no_title(head: str) -> None:
    assert cost_of_reading(head, "x") < 0.5
