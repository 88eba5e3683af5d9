"""Runs the program: another process, pipes, and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from cli.forking import CAN_FORK, PER_START, fork_server

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "examples" / "session.jsonl"


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def run(
    *arguments: object,
    stdin: bytes | str = b"",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    before: str = "",
) -> Ran:
    """Run `segue` with these arguments in a process of its own; a traceback is never an answer.

    `before` is Python code that runs first and may change the program.
    """
    words = [str(argument) for argument in arguments]
    data = stdin.encode() if isinstance(stdin, str) else stdin
    start = _start if not CAN_FORK or any(name.startswith(PER_START) for name in env or ()) else _fork
    status, out, err = start(words, data, {**os.environ, **(env or {})}, cwd, before)
    assert b"Traceback" not in err, err.decode()
    return Ran(status, out.decode(), err.decode())


def _start(
    words: list[str], data: bytes, env: dict[str, str], cwd: Path | None, before: str
) -> tuple[int, bytes, bytes]:
    command = [sys.executable, "-c", f"{before}\nfrom segue.cli.entry import main\nmain()", *words]
    if not before:
        command[1:3] = ["-m", "segue"]
    done = subprocess.run(command, input=data, capture_output=True, timeout=120, env=env, cwd=cwd, check=False)
    return done.returncode, done.stdout, done.stderr


def _fork(
    words: list[str], data: bytes, env: dict[str, str], cwd: Path | None, before: str
) -> tuple[int, bytes, bytes]:
    read_end, write_end = os.pipe()
    feeder = threading.Thread(target=_feed, args=(write_end, data))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        feeder.start()
        try:
            streams = (read_end, out.fileno(), err.fileno())
            status = fork_server().run(words, streams, env, None if cwd is None else str(cwd), before)
        finally:
            os.close(read_end)  # ends the feeder if the program did not read everything
            feeder.join()
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def _feed(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(descriptor, "wb", buffering=0) as pipe:
        pipe.write(data)
