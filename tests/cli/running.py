"""Runs the installed program, as people do: another process, pipes, and its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "examples" / "session.jsonl"


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def run(
    *arguments: object, stdin: bytes | str = b"", env: dict[str, str] | None = None, cwd: Path | None = None
) -> Ran:
    """Run `segue` with these arguments; a traceback is never an answer."""
    command = [sys.executable, "-m", "segue", *map(str, arguments)]
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        command, input=data, capture_output=True, timeout=120, env={**os.environ, **(env or {})}, cwd=cwd, check=False
    )
    err = done.stderr.decode()
    assert "Traceback" not in err, err
    return Ran(done.returncode, done.stdout.decode(), err)
