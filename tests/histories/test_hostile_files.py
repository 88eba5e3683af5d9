"""Files that nobody's agent wrote: one clear error, or a reading that reports what it left out. Never a traceback."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

import pytest

from segue import LoadError, SegueError, find_sessions, read_history
from segue.histories import places
from segue.histories.api import list_source
from segue.histories.registry import FORMATS, get_format
from segue.projection.report import ChangeCode

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
    with pytest.raises(LoadError, match="no regular file"):
        read_history(path)


def test_a_file_that_must_not_be_read_is_one_error(tmp_path):
    path = tmp_path / "loop.jsonl"
    path.symlink_to(path)
    with pytest.raises(LoadError, match="cannot read the file"):
        read_history(path)


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
    from segue.histories.codex import rollout

    def nothing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(rollout, "import_module", nothing)
    path = tmp_path / "rollout-2026-11-15T12-00-00-01a1df3f.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\x00" * 50)
    with pytest.raises(LoadError, match="pip install zstandard"):
        read_history(path)


def test_a_compressed_session_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    from segue.histories.codex import rollout

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
