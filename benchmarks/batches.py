"""The speed of `segue convert` with a file of conversations (JSON Lines).

Each line is a chat request of DeepSeek with some fifty messages; it is converted to a request for Claude. The time is
that of the whole program, including its start, with its bytecode already written. For one process it is CPU time. The
gain of a second process shows only in wall-clock time, so that row is meaningful only on a machine with two idle cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cases import DEEPSEEK
from figures import Figure
from replies import make_history

from segue import prepare

_TARGET: Final = "anthropic/claude-sonnet-4-5"
_LENGTHS: Final = range(40, 61)
_TURNS: Final = 3


class _Run(NamedTuple):
    """The times of one run of the program, in seconds."""

    cpu: float
    wall: float


def measure_batches(messages: int) -> list[Figure]:
    """Convert a file of about `messages` messages, with one process and with two, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [prepare(make_history(length, DEEPSEEK), DEEPSEEK).content + b"\n" for length in _LENGTHS]
        few, many = Path(folder) / "few.jsonl", Path(folder) / "many.jsonl"
        repeats = max(1, round(messages / sum(_LENGTHS)))
        few.write_bytes(lines[0] + lines[1])
        many.write_bytes(b"".join(lines) * repeats)
        runs: dict[int, list[_Run]] = {1: [], 2: []}
        starts: dict[int, list[_Run]] = {1: [], 2: []}
        for _ in range(_TURNS):
            for jobs, taken in runs.items():
                starts[jobs].append(_convert(few, jobs))
                taken.append(_convert(many, jobs))
        size = many.stat().st_size / 1e6
    return list(_figures(runs, starts, repeats * sum(_LENGTHS), size))


def _figures(
    runs: dict[int, list[_Run]], starts: dict[int, list[_Run]], messages: int, size: float
) -> Iterator[Figure]:
    cpu = min(run.cpu for run in runs[1])
    start = min(run.cpu for run in starts[1])
    walls = {jobs: min(run.wall for run in taken) for jobs, taken in runs.items()}
    rates = sorted(messages / run.cpu for run in runs[1])
    spread = f"{rates[0]:,.0f} to {rates[-1]:,.0f}"
    what = f"segue convert, {messages:,} messages ({size:.0f} MB), one core"
    yield Figure("convert.rate", what, "a second", messages / cpu, spread, note="messages; the least and the most")
    what = "the same without the start of the program"
    yield Figure("", what, "a second", messages / max(cpu - start, 1e-9), note=f"it starts in {start * 1e3:.0f} ms")
    speedups = sorted(one.wall / two.wall for one, two in zip(runs[1], runs[2], strict=True))
    what = "--jobs 2: times as fast as --jobs 1, wall-clock time"
    spread = f"{speedups[0]:.2f} to {speedups[-1]:.2f}"
    note = f"with {os.cpu_count()} cores and a load of {os.getloadavg()[0]:.1f}, these runs in it"
    yield Figure("convert.jobs", what, "times", walls[1] / walls[2], spread, note)
    begun = min(run.wall for run in starts[2])
    note = f"messages; two processes start in {begun * 1e3:.0f} ms"
    yield Figure("", "--jobs 2, wall-clock time", "a second", messages / walls[2], note=note)


def _convert(source: Path, jobs: int) -> _Run:
    output = source.with_suffix(".out")
    output.unlink(missing_ok=True)
    options = ["--to", _TARGET, "--report", "none", "--jobs", str(jobs), "--output", str(output)]
    command = [sys.executable, "-m", "segue", "convert", str(source), *options]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - before
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    return _Run(usage.ru_utime + usage.ru_stime, wall)
