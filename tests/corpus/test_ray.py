"""`--engine ray`, with Ray really started: the bytes of one process, also if workers, the driver or rows are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from corpus.building import (
    TO,
    command_of,
    environment,
    folder_of,
    hidden,
    joined,
    lines,
    poison,
    segue,
    start_segue,
    write,
)
from corpus.environments import python_with
from corpus.test_poison import check_isolated

pytestmark = pytest.mark.proof
SMALL = """
import ray
start = ray.init
def init(*arguments, **settings):
    for attempt in range(5):
        try:
            return start(*arguments, **settings, num_cpus=2, object_store_memory=100_000_000)
        except Exception as error:
            if "timed out during startup" not in str(error) or attempt == 4:
                raise
            ray.shutdown()
ray.init = init
"""
"""Ray with two processors and little memory, also on a machine that has more. On a busy one it may not start within the
30 seconds that it allows itself."""
SLOW = """
import sys, time
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "segue.corpus.conversion":
            return None
        sys.meta_path.remove(self)
        from importlib.util import find_spec
        spec = find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            convert_piece = module.convert_piece
            def slowly(*arguments):
                time.sleep(1.5)
                return convert_piece(*arguments)
            module.convert_piece = slowly
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def source(tmp_path):
    return folder_of(tmp_path / "in", files=6)


@pytest.fixture
def whole(source, tmp_path):
    assert segue("convert", source, *TO, "-o", tmp_path / "whole").status == 0
    return joined(tmp_path / "whole")


def slowly(folder: Path) -> dict[str, str]:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SLOW)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def python():
    return python_with("ray")


def start(python: str, env: dict[str, str], *arguments: object) -> subprocess.Popen[bytes]:
    command = command_of(*arguments, before=SMALL, python=python)
    return subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(env), start_new_session=True)


def workers(pid: int) -> list[int]:
    """Find the processes of a driver that run a task of a shard, by the name that Ray gives them."""
    found, waiting = list[int](), [pid]
    while waiting:
        current = waiting.pop()
        try:
            if Path(f"/proc/{current}/cmdline").read_bytes().startswith(b"ray::_task"):
                found.append(current)
            for task in Path(f"/proc/{current}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def wait_until(is_so, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 400
    while not is_so():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


def finished(out: Path) -> set[str]:
    return {path.name for path in out.glob("*.done.json")}


def test_ray_gives_the_bytes_of_one_process(source, whole, tmp_path, python):
    out = tmp_path / "out"
    made = start_segue("convert", source, *TO, "--engine", "ray", "-o", out, before=SMALL, python=python)
    assert made.status == 0, made.err
    assert joined(out) == whole
    assert hidden(out) == []
    assert segue("report", out).out == segue("report", tmp_path / "whole").out


def test_a_killed_worker_is_replaced(source, whole, tmp_path, python):
    out = tmp_path / "out"
    process = start(python, slowly(tmp_path / "site"), "convert", source, *TO, "--engine", "ray", "-o", out)
    wait_until(lambda: len(finished(out)) >= 1 and workers(process.pid), process)
    os.kill(workers(process.pid)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    assert joined(out) == whole
    assert hidden(out) == []


def test_a_killed_driver_is_continued(source, whole, tmp_path, python):
    out = tmp_path / "out"
    process = start(python, slowly(tmp_path / "site"), "convert", source, *TO, "--engine", "ray", "-o", out)
    wait_until(lambda: len(finished(out)) >= 2, process)
    running = workers(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    # The workers of the killed driver end by themselves; what they finish until then counts.
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in running) and time.monotonic() < end:
        time.sleep(0.1)
    before = {name: (out / name).stat().st_mtime_ns for name in finished(out)}
    made = start_segue("convert", source, *TO, "--engine", "ray", "--resume", "-o", out, before=SMALL, python=python)
    assert made.status == 0, made.err
    assert joined(out) == whole
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert hidden(out) == []


def test_a_row_that_ends_its_process_goes_to_quarantine(tmp_path, python):
    write(tmp_path / "in" / "a.jsonl", lines(50))
    write(tmp_path / "in" / "b.jsonl", lines(5, 5000))
    env = poison(tmp_path / "site", "Question 33:", tmp_path / "log")
    made = start_segue(
        "convert", tmp_path / "in", *TO, "--engine", "ray", "-o", tmp_path / "out", before=SMALL, env=env, python=python
    )
    assert made.status == 1, made.err
    check_isolated(tmp_path / "out", "a.jsonl", 50, 33, tmp_path / "log")
    assert (tmp_path / "out" / "b.jsonl").read_bytes().count(b"\n") == 5


def test_a_damaged_file_is_named_and_the_others_are_converted(tmp_path, python):
    write(tmp_path / "in" / "a.jsonl", lines(5))
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(b"\x1f\x8b no")
    made = start_segue(
        "convert", tmp_path / "in", *TO, "--engine", "ray", "-o", tmp_path / "out", before=SMALL, python=python
    )
    assert made.status == 2
    assert "b.jsonl.gz" in made.err
    assert (tmp_path / "out" / "a.jsonl").read_bytes().count(b"\n") == 5
