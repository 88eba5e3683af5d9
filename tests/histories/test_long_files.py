"""Long sessions stay on the disk while they are read: the same reading, without the file in memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from segue import LoadError, read_history
from segue.histories import places, regular_files
from segue.histories.registry import FORMATS
from segue.histories.regular_files import WATCH, LongFile, open_regular

LONG = {
    f"{name}, {sample.name}": sample.source.data
    for name, record in FORMATS.items()
    if record.reads_long
    for sample in record.samples()
    if sample.source.data
}


def reading_of(path: Path, view: str) -> object:
    try:
        return read_history(path, view=view, keep_records=True)
    except LoadError as error:
        return str(error)


@pytest.mark.parametrize("window", [7, 64, 2**20])
def test_a_long_file_is_read_like_one_in_memory(window, tmp_path, monkeypatch):
    monkeypatch.setattr(regular_files, "_WINDOW", window)
    for at, (name, data) in enumerate(LONG.items()):
        path = tmp_path / f"{at}.jsonl"
        for given in (data, data.rstrip(), data + b"\n \n", data[: len(data) * 2 // 3], data * 2):
            path.write_bytes(given)
            readings = []
            for size in (0, 2**24):
                monkeypatch.setattr(places, "_LONG", size)
                readings.append([reading_of(path, view) for view in ("active", "full")])
            assert readings[0] == readings[1], name


def test_a_long_file_has_the_methods_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(regular_files, "_WINDOW", 4)
    data = b"one\ntwo and three\n\nfour"
    (path := tmp_path / "file").write_bytes(data)
    with open_regular(path) as file:
        long = LongFile(file)
    assert len(long) == len(data)
    for start in range(len(data)):
        assert long.find(b"\n", start) == data.find(b"\n", start)
        assert long.find(b"\n", start, start + 3) == data.find(b"\n", start, start + 3)
        for end in range(start, len(data)):
            assert long[start:end] == data[start:end]
            assert long.endswith(b"e", start, end) == data.endswith(b"e", start, end)
        assert long.startswith(b"two", start) == data.startswith(b"two", start)
    path.write_bytes(b"one\n")
    assert long[4:20] == b""
    assert long.find(b"\n", 10) == -1


def session_of(count: int, path: Path) -> int:
    parent = None
    with path.open("wb") as file:
        for at in range(count):
            uuid = f"{at:08d}-0000-4000-8000-000000000000"
            line = {"parentUuid": parent, "uuid": uuid, "sessionId": "s", "version": "2.1.325", "cwd": "/p"}
            line |= {"timestamp": f"2026-11-18T10:{at // 60 % 60:02d}:{at % 60:02d}.000Z"}
            words = f"words {at} " * 1000
            if at % 2:
                reply = {"id": f"m{at}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
                reply |= {"stop_reason": "end_turn", "stop_sequence": None, "usage": {}}
                line |= {"type": "assistant", "message": {**reply, "content": [{"type": "text", "text": words}]}}
            else:
                line |= {"type": "user", "message": {"role": "user", "content": words}}
            file.write(json.dumps(line).encode() + b"\n")
            parent = uuid
    return path.stat().st_size


def test_a_long_file_is_never_in_memory_as_a_whole(tmp_path, monkeypatch):
    size = session_of(400, path := tmp_path / "long.jsonl")
    monkeypatch.setattr(places, "_LONG", 2**20)
    monkeypatch.setattr(regular_files, "_WINDOW", 2**16)
    read_history(path)  # what is imported and cached
    tracemalloc.start()
    try:
        history = read_history(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(history.context.messages) == 400
    assert size < peak < 1.5 * size


def test_who_shows_the_progress_is_told_the_position(tmp_path, monkeypatch):
    size = session_of(40, path := tmp_path / "long.jsonl")
    monkeypatch.setattr(places, "_LONG", 0)
    monkeypatch.setattr(regular_files, "_WINDOW", 2**15)
    seen: list[tuple[int, int]] = []
    token = WATCH.set(lambda position, whole: seen.append((position, whole)))
    try:
        read_history(path)
    finally:
        WATCH.reset(token)
    assert {whole for _, whole in seen} == {size}
    assert len({position for position, _ in seen}) > 5


def test_lines_that_are_looked_at_again_do_not_move_the_window(tmp_path, monkeypatch):
    monkeypatch.setattr(places, "_LONG", 0)
    monkeypatch.setattr(regular_files, "_WINDOW", 2**15)
    begin = {"sessionId": "s", "version": "2.1.325", "cwd": "/p", "timestamp": "2026-11-18T10:00:00.000Z"}
    reply = {"type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
    lines = [
        {**begin, "parentUuid": None, "uuid": "first", "type": "user", "message": {"role": "user", "content": "go"}}
    ]
    for at in range(300):
        message = {"id": f"m{at}", **reply, "usage": {}, "content": [{"type": "text", "text": f"answer {at} " * 100}]}
        lines.append({**begin, "parentUuid": "first", "uuid": f"u{at}", "type": "assistant", "message": message})
    (path := tmp_path / "wide.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    read: list[int] = []
    pread = regular_files.os.pread
    monkeypatch.setattr(
        regular_files.os, "pread", lambda handle, size, at: read.append(size) or pread(handle, size, at)
    )
    history = read_history(path)
    assert len(history.branches) == 299
    assert sum(read) < 8 * path.stat().st_size
