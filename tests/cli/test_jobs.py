"""`segue convert --jobs`: several processes give what one gives, and none is left behind.

Pieces are made tiny here, so that a few lines are many pieces, and lines are longer than a piece or end just at one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from cli.running import Ran
from cli.running import run as run_segue

Seen = TypeVar("Seen")
CHAT = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "hello"}]}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
TARGET = ["--to", "deepseek/deepseek-v4-pro"]
SIZES = [1, 200, 1000]
"""Bytes of a piece: a line or two, some lines, many; half as much again is too long for the shared memory."""

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="of child processes (no /proc)")


def line(content: object) -> bytes:
    return json.dumps({**CHAT, "messages": [{"role": "user", "content": content}]}).encode()


def command(*arguments: object, size: int | None = None, before: str = "") -> list[str]:
    """Give the program with pieces of another size, and whatever else is to be different in it."""
    program = f"{changed(size, before)}\nfrom segue.cli.entry import main\nmain()"
    return [sys.executable, "-c", program, "convert", *map(str, arguments)]


def changed(size: int | None, before: str) -> str:
    tiny = f"pieces.SIZE = {size}" if size is not None else ""
    return f"from segue.corpus import pieces\n{tiny}\n{before}"


def run(*arguments: object, stdin: bytes = b"", size: int | None = None, before: str = "") -> Ran:
    return run_segue("convert", *arguments, stdin=stdin, before=changed(size, before))


LINES = [line(f"{number} " + "x" * (number * 37 % 300)) for number in range(60)]
INPUTS: dict[str, bytes] = {
    "lines of many lengths": b"\n".join(LINES) + b"\n",
    "the last line without its end": b"\n".join(LINES),
    "lines longer than a piece": b"\n".join([*LINES[:5], line("y" * 20_000), *LINES[5:9], line("z" * 5_000)]) + b"\n",
    "lines as Windows ends them": b"\r\n".join(LINES) + b"\r\n",
    "blank lines anywhere": b"\n\n \n"
    + b"\n\n\n".join(LINES[:20])
    + b"\n" * 700
    + b"\n".join(LINES[20:])
    + b"\n\r\n\n",
    "a byte order mark in front": b"\xef\xbb\xbf" + b"\n".join(LINES) + b"\n",
    "bad lines": b"\n".join([b"{bad", *LINES[:30], b"[]", b"{bad", *LINES[30:], b'{"messages": 1}']),
    "nothing but bad lines after the first two": b"\n".join([*LINES[:2], *[b"{bad"] * 50]) + b"\n",
    "changes to report": b"\n".join([line([IMAGE]) if number % 7 == 0 else LINES[number] for number in range(60)]),
}


OPTIONS = [*TARGET, "--report", "json"]


def piped(made: Ran, file: Path) -> Ran:
    """The same result of a pipe: messages name the input."""
    return made._replace(err=made.err.replace(f"segue: {file}: ", "segue: <stdin>: "))


@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS.keys())
def test_several_processes_give_the_same_bytes_as_one(data, tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(data)
    alone = run(many, *OPTIONS)
    assert run(many, *OPTIONS, "--jobs", 4, size=200) == alone
    assert run("-", *OPTIONS, "--jobs", 2, size=1, stdin=data) == piped(alone, many)


@pytest.mark.proof
@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS.keys())
@pytest.mark.parametrize("size", [None, *SIZES])
@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_every_number_of_processes_gives_the_same_for_every_size_of_a_piece(data, size, jobs, tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(data)
    alone = run(many, *OPTIONS)
    assert run(many, *OPTIONS, "--jobs", jobs, size=size) == alone
    assert run("-", *OPTIONS, "--jobs", jobs, size=size, stdin=data) == piped(alone, many)


@pytest.mark.parametrize("source", ["file", "pipe"])
@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_the_first_bad_line_stops_the_run_after_the_lines_before_it(jobs, source, tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(b"\n".join([*LINES[:40], b"", b"{bad", *LINES[40:], b"{worse"]))
    stdin = many.read_bytes() if source == "pipe" else b""
    options = [*TARGET, "--bad-lines", "stop", "--jobs", jobs]
    made = run(many if source == "file" else "-", *options, size=200, stdin=stdin)
    assert made.status == 1
    assert contents(made.out) == [json.loads(item)["messages"][0]["content"] for item in LINES[:40]]
    assert "line 42: not valid JSON" in made.err
    assert "line 62" not in made.err


def contents(out: str) -> list[str]:
    return [json.loads(item)["messages"][0]["content"] for item in out.splitlines()]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_resumes_after_the_bad_line_that_stopped_it(jobs, tmp_path):
    many, out = tmp_path / "many.jsonl", tmp_path / "out.jsonl"
    many.write_bytes(b"\n".join([*LINES[:40], b"{bad", *LINES[40:50], b"", b"{worse", *LINES[50:]]))
    arguments = [many, *TARGET, "--bad-lines", "stop", "--jobs", jobs, "-o", out]
    assert "line 41: not valid JSON" in run(*arguments, size=200).err
    assert "line 53: not valid JSON" in run(*arguments, "--resume", size=200).err
    assert not out.exists()
    assert run(*arguments, "--resume", size=200).status == 1
    assert contents(out.read_text()) == [json.loads(item)["messages"][0]["content"] for item in LINES]


def test_spawned_processes_give_the_same_output(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(INPUTS["bad lines"])
    spawned = 'from segue.corpus import workers\nworkers.start_method = lambda: "spawn"'
    alone = run(many, *OPTIONS)
    assert run(many, *OPTIONS, "--jobs", 2, size=200, before=spawned) == alone
    assert run("-", *OPTIONS, "--jobs", 2, size=200, before=spawned, stdin=INPUTS["bad lines"]) == piped(alone, many)


def test_no_process_is_started_for_less_than_two_pieces(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(INPUTS["lines of many lengths"])
    forbidden = "from segue.corpus import workers\nworkers.Workers.__init__ = lambda *_: 1 / 0"
    assert run(many, *TARGET, "--jobs", 2, before=forbidden) == run(many, *TARGET)


def test_a_named_pipe_can_be_the_input(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(INPUTS["lines of many lengths"])
    with many.open("rb") as file:
        program = command("/dev/stdin", *TARGET, "--jobs", 2, "--report", "none", size=200)
        made = subprocess.run(program, stdin=file, capture_output=True, timeout=60, check=True)
    piped = run("/dev/stdin", *TARGET, "--jobs", 2, "--report", "none", size=200, stdin=many.read_bytes())
    assert made.stdout.decode() == piped.out == run(many, *TARGET).out


def test_an_input_file_that_disappears_is_named(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(INPUTS["lines of many lengths"])
    gone = (
        "read = pieces.Span.read\n"
        "def once(span):\n"
        "    if span.start > 1000: span.path.unlink(missing_ok=True)\n"
        "    return read(span)\n"
        "pieces.Span.read = once\n"
    )
    made = run(many, *TARGET, "--jobs", 2, size=200, before=gone)
    assert made.status == 2
    assert f"segue: {many}: No such file or directory" in made.err


# -- how it ends -------------------------------------------------------------------------------------------------------


class Running:
    """The program with two processes that wait for more of their input."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            command("-", *TARGET, "--jobs", 2, "--report", "none", *arguments, size=200),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.feed()
        self.workers = wait_for(lambda: found if len(found := children(self.process.pid)) == 2 else [])

    def feed(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n".join(LINES) + b"\n")

    def feed_until_it_ends(self) -> None:
        with suppress(BrokenPipeError):
            for _ in range(10_000):
                self.feed()
            pytest.fail("it never ended")

    def end(self) -> Ran:
        """Wait for its end, and for that of its processes."""
        out, err = self.process.communicate(timeout=60)
        wait_for(lambda: not any(map(is_running, self.workers)))
        assert b"Traceback" not in err, err.decode()
        return Ran(self.process.returncode, (out or b"").decode(), err.decode())


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(look: Callable[[], Seen]) -> Seen:
    """Look until there is something; a minute is an age, and a failure."""
    end = time.monotonic() + 60
    while not (seen := look()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
    return seen


@needs_proc
def test_a_killed_worker_is_replaced_and_every_line_converted_once(tmp_path):
    out = tmp_path / "out.jsonl"
    running = Running("-o", out)
    os.kill(running.workers[0], signal.SIGKILL)
    for _ in range(20):
        running.feed()
    assert running.process.stdin is not None
    running.process.stdin.close()
    running.process.stdin = None
    made = running.end()
    assert (made.status, made.err) == (0, "")
    assert contents(out.read_text()) == contents(run("-", *TARGET, stdin=b"\n".join(LINES)).out) * 21
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.done.json"]


@needs_proc
@pytest.mark.parametrize("to", ["all of them, as a terminal does", "the program alone"])
def test_ctrl_c_ends_the_run_quietly_and_leaves_no_process(to):
    running = Running()
    send = os.kill if to == "the program alone" else os.killpg
    send(running.process.pid, signal.SIGINT)
    made = running.end()
    assert made.status == 130
    assert re.fullmatch("segue: interrupted(; the same command with --resume goes on where it stopped)?\n", made.err)


@pytest.mark.skipif(sys.platform == "win32", reason="of signals")
def test_ctrl_c_in_a_finalizer_ends_the_run_quietly():
    """Python prints an exception of a `__del__` and goes on; multiprocessing has such methods and callbacks."""
    before = (
        "import signal\n"
        "from segue.corpus import workers\n"
        "class Interrupted:\n"
        "    def __del__(self): signal.raise_signal(signal.SIGINT)\n"
        "enter = workers.Workers.__enter__\n"
        "def interrupted(self):\n"
        "    Interrupted()\n"
        "    return enter(self)\n"
        "workers.Workers.__enter__ = interrupted\n"
    )
    program = command("-", *TARGET, "--jobs", 2, "--report", "none", size=200, before=before)
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"\n".join(LINES) + b"\n")
        process.stdin.flush()
        try:
            status = process.wait(timeout=60)  # its input is still open
        finally:
            process.kill()
        assert (status, process.stderr.read().strip()) == (130, b"segue: interrupted")


@needs_proc
def test_no_process_outlives_a_program_that_was_killed():
    running = Running()
    running.process.kill()
    assert running.end().status == -signal.SIGKILL


@needs_proc
def test_a_closed_pipe_ends_the_program_quietly():
    running = Running()
    assert running.process.stdout is not None
    running.process.stdout.close()
    running.process.stdout = None  # or `communicate` would read it
    running.feed_until_it_ends()
    made = running.end()
    assert (made.status, made.err) == (141, "")
