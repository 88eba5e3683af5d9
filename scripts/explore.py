"""Look for examples that break a property test: `python scripts/explore.py [--minutes N] [--seed N]`.

Runs every property test in rounds, each with a new random seed, until the time is over or a round has found something.
A find is printed with its failing example, the seed and the command that repeats it, and ends the run with 1. The seed
decides every example; the profile `explore` in `tests/property_testing.py` sets how many a round draws.

This file is also a plugin of the pytest that runs a round: it writes down what failed, and stops when the time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent

FINDS: Final = "EXPLORE_FINDS"
"""The environment variable with the path of the file for what failed."""

UNTIL: Final = "EXPLORE_UNTIL"
"""The environment variable with the time at which to stop, in Unix seconds."""

EXAMPLE: Final = "Failing test case"
"""How Hypothesis begins the failing example in its report."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what failed, once for all workers."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[FINDS]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"test": report.nodeid, "report": report.longreprtext}) + "\n")


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Stop after this test when the time is over."""
    if time.time() > float(os.environ[UNTIL]):
        item.session.shouldstop = "the time is over"


def property_tests() -> list[str]:
    """List the files that hold property tests; all others need not be collected."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path.relative_to(ROOT)) for path in files if "@given" in path.read_text(encoding="utf-8")]


def command_for(seed: int, *arguments: str) -> list[str]:
    """Give the command that draws the examples of a seed."""
    python = Path(sys.executable)
    shown = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    profile = ["--hypothesis-profile=explore", f"--hypothesis-seed={seed}"]
    return [str(shown), "-m", "pytest", *profile, "-m", "hypothesis", *arguments]


def run_round(seed: int, tests: Sequence[str], finds: Path, until: float) -> int:
    """Run all property tests once, as far as the time allows, and give pytest's exit status."""
    command = command_for(seed, "-n", "auto", "-q", "--tb=short", "-p", "explore", *tests)
    paths = [str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), FINDS: str(finds), UNTIL: str(until)}
    return subprocess.run(command, check=False, cwd=ROOT, env=environment).returncode


def show_finds(seed: int, finds: Path) -> None:
    """Print each failing test with its example, the seed, and the command that repeats it."""
    for line in finds.read_text(encoding="utf-8").splitlines():
        find = json.loads(line)
        _, mark, example = find["report"].partition(EXAMPLE)
        print(f"\nfound: {find['test']}\n{mark}{example}")
        print(f"seed: {seed}\nrepeat: {shlex.join(command_for(seed, find['test']))}")


def explore(minutes: float, first_seed: int | None, tests: Sequence[str]) -> int:
    """Run rounds until the time is over; gives the exit status."""
    until, rounds = time.time() + 60 * minutes, 0
    with tempfile.TemporaryDirectory() as folder:
        finds = Path(folder) / "finds.jsonl"
        while time.time() < until:
            seed = first_seed if rounds == 0 and first_seed is not None else secrets.randbelow(2**32)
            rounds += 1
            print(f"round {rounds}: seed {seed}, {len(tests)} files", flush=True)
            status = run_round(seed, tests, finds, until)
            if finds.exists():
                show_finds(seed, finds)
                return 1
            if status != pytest.ExitCode.OK and not (status == pytest.ExitCode.INTERRUPTED and time.time() > until):
                return status
    print(f"nothing found in {minutes:g} minutes, rounds: {rounds}")
    return 0


def main() -> None:
    """Read the arguments and explore."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="how long to look (default: 10)")
    parser.add_argument("--seed", type=int, help="the seed of the first round (default: a random one)")
    options = parser.parse_args()
    raise SystemExit(explore(options.minutes, options.seed, property_tests()))


if __name__ == "__main__":
    main()
