"""Processes that are killed in the middle of a run: the output is whole, and finished files are not made again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from corpus.building import TO, command_of, environment, folder_of, hidden, joined, segue, start_segue

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="of child processes (no /proc)")
SLOW = """
import time
from segue.corpus import conversion, pieces
pieces.SIZE = 2000
convert_piece = conversion.convert_piece
def slowly(*arguments):
    time.sleep(0.02)
    return convert_piece(*arguments)
conversion.convert_piece = slowly
"""
"""Small pieces that take a while, so that a run can be interrupted in the middle of a file."""


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command_of(*arguments, before=SLOW), stderr=subprocess.PIPE, env=environment())


def wait_until(is_so, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def finished(out: Path) -> set[str]:
    return {path.name for path in out.glob("*.done.json")}


@pytest.fixture
def source(tmp_path):
    return folder_of(tmp_path / "in", files=6)


@pytest.fixture
def whole(source, tmp_path):
    assert segue("convert", source, *TO, "-o", tmp_path / "whole").status == 0
    return joined(tmp_path / "whole")


@needs_proc
def test_a_run_ends_whole_after_a_worker_was_killed(source, whole, tmp_path):
    out = tmp_path / "out"
    process = start("convert", source, *TO, "--jobs", 2, "-o", out)
    wait_until(lambda: len(finished(out)) >= 2 and children(process.pid), process)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")
    assert joined(out) == whole
    assert hidden(out) == []


@needs_proc
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_killed_is_continued(source, whole, tmp_path, jobs):
    out = tmp_path / "out"
    process = start("convert", source, *TO, "--jobs", jobs, "-o", out)
    wait_until(lambda: len(finished(out)) >= 2, process)
    process.kill()
    process.communicate()
    before = {name: (out / name).stat().st_mtime_ns for name in finished(out)}
    assert 2 <= len(before) < 6
    made = start_segue("convert", source, *TO, "--jobs", jobs, "--resume", "-o", out)
    assert (made.status, made.err) == (0, "")
    assert joined(out) == whole
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert hidden(out) == []


@needs_proc
def test_one_file_that_was_killed_is_continued_behind_its_last_position(source, whole, tmp_path):
    one, out = tmp_path / "one.jsonl", tmp_path / "out.jsonl"
    one.write_bytes(joined(source) * 20)
    progress = tmp_path / ".out.jsonl.progress"
    process = start("convert", one, *TO, "--jobs", 2, "-o", out)

    def is_recorded() -> bool:
        return progress.exists() and json.loads(progress.read_bytes())["summary"]["lines"] >= 1000

    wait_until(is_recorded, process)
    process.kill()
    process.communicate()
    assert not out.exists()
    made = start_segue("convert", one, *TO, "--resume", "-o", out)
    assert (made.status, made.err) == (0, "")
    assert out.read_bytes() == whole * 20
    assert json.loads((tmp_path / "out.jsonl.done.json").read_text())["summary"]["lines"] == 2400


@needs_proc
def test_a_part_file_that_was_shortened_is_not_continued(source, tmp_path):
    one, out = tmp_path / "one.jsonl", tmp_path / "out.jsonl"
    one.write_bytes(joined(source) * 20)
    progress = tmp_path / ".out.jsonl.progress"
    process = start("convert", one, *TO, "--jobs", 2, "-o", out)

    def is_recorded() -> bool:
        return progress.exists() and json.loads(progress.read_bytes())["written"] > 1

    wait_until(is_recorded, process)
    process.kill()
    process.communicate()
    written = json.loads(progress.read_bytes())["written"]
    (part,) = (path for path in tmp_path.glob(".out.jsonl*") if path.name.endswith("part"))
    with part.open("r+b") as file:
        file.truncate(written - 1)
    made = start_segue("convert", one, *TO, "--resume", "-o", out)
    assert made.status != 0
    assert "it is shorter than .out.jsonl.progress records; run without --resume" in made.err
    assert not out.exists()
