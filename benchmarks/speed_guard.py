"""A regression check: no function that applications wait for may become 10 % slower. Part of `make check`.

The paths of `hot_paths.py` run in three processes in turn: the sources of this checkout, those of the base commit, and
those of the base commit once more. The third is the control: it differs from the second only by chance, so a path is
compared with the slower of the two. A suspect is measured again in new processes, and the best result counts, so that
a load spike or the layout of one process raises no alarm.

A time is compared twice, as CPU time and as a multiple of orjson's in the same process: a path that really became
slower is slower in both.

The base commit is in `speed_base.json`. A slowdown that is worth it is listed there under `accepted`, by the path's
name, with its factor and the reason. Set `commit` to the newest landed commit and empty the list from time to time.

    python scripts/check_speed.py                    fails if a path became slower
    python scripts/check_speed.py --base HEAD~3      compares with another commit
    python scripts/check_speed.py --only body        only paths whose name contains a text; prints every figure
    python scripts/check_speed.py --plant            plants a slowdown into each path, and fails if one is not found
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
BASE: Final = HERE / "speed_base.json"
LIMIT: Final = 1.10
"""A path fails if it takes this many times as long as at the base commit."""
_ROUNDS: Final = 12
_TRIES: Final = 4
_PLANT_ROUNDS: Final = 4
PLANTED: Final = "SEGUE_PLANTED"
"""The variable that tells a process to have planted slowdowns, and a new interpreter which one."""


class Base(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The commit to compare with, and the slowdowns since then that were accepted."""

    commit: str
    accepted: dict[str, Accepted]


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slowdown that was accepted: how many times as long the path may take, and why."""

    factor: float
    reason: str


@dataclass
class Best:
    """The best cost of a path in one process, and the best of its reference."""

    path: float = float("inf")
    yardstick: float = float("inf")

    def add(self, sample: Sequence[float]) -> None:
        """Keep the smaller costs."""
        self.path = min(self.path, sample[0])
        self.yardstick = min(self.yardstick, sample[1])

    def over(self, other: Best) -> float:
        """Give how many times the cost of another process this is: the smaller of the two comparisons."""
        costs = self.path / other.path
        return min(costs, costs * other.yardstick / self.yardstick)


@dataclass(frozen=True)
class Verdict:
    """How many times as long a path takes as at the base commit, and how far the two runs of that commit differ."""

    change: float
    control: float

    def is_slow(self, accepted: float = 1.0) -> bool:
        """Whether the path became slower than its limit."""
        return self.change > LIMIT * accepted


class Sampler(Protocol):
    """Measures a path once: its cost and that of its reference; None if there is no such path."""

    def __call__(self, name: str) -> Sequence[float] | None:
        """Measure the path of this name."""
        ...


def compare(name: str, samplers: Sequence[Sampler], rounds: int = _ROUNDS) -> Verdict | None:
    """Measure a path in turn in the processes of this checkout, the base commit and the control.

    None: the base commit does not have the path.
    """
    best = [Best(), Best(), Best()]
    for turn in range(rounds):
        for place in range(3):
            index = (turn + place) % 3
            sample = samplers[index](name)
            if sample is None:
                return None
            best[index].add(sample)
    tried, kept, again = best
    return Verdict(min(tried.over(kept), tried.over(again)), max(again.over(kept), kept.over(again)))


@contextmanager
def start_worker(source: Path, *, planted: bool = False) -> Generator[Sampler]:
    """Start a process that measures the paths with the sources in a folder, with their planted slowdowns if asked."""
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{HERE}", "PYTHONHASHSEED": "0"}
    environment[PLANTED] = "1" if planted else ""
    # New interpreters read bytecode, as they do where segue is installed, and never what an earlier run left behind.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, str(HERE / "speed_worker.py")]
    with (
        tempfile.TemporaryDirectory() as bytecode,
        subprocess.Popen(
            command,
            env=environment | {"PYTHONPYCACHEPREFIX": bytecode},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        incoming, outgoing = process.stdin, process.stdout
        assert incoming is not None
        assert outgoing is not None

        def sample(name: str) -> Sequence[float] | None:
            incoming.write(name.encode() + b"\n")
            incoming.flush()
            line = outgoing.readline()
            if not line:
                raise SystemExit(f"the process that measures {source} ended while it measured {name!r}")
            return msgspec.json.decode(line, type=tuple[float, float] | None)

        try:
            yield sample
        finally:
            incoming.close()
            outgoing.close()


def find_slow(
    names: Sequence[str],
    head: Path,
    base: Path,
    accepted: Mapping[str, float],
    *,
    tries: int = _TRIES,
    rounds: int = _ROUNDS,
    planted: bool = False,
    is_verbose: bool = False,
) -> dict[str, Verdict]:
    """Return the paths that are slower in every try, each try in new processes."""
    found: dict[str, Verdict] = {}
    suspects = list(names)
    for _ in range(tries):
        with ExitStack() as stack:
            workers = [stack.enter_context(start_worker(source, planted=planted)) for source in (head, base, base)]
            found = {}
            for name in suspects:
                verdict = compare(name, workers, rounds)
                if verdict is None:
                    print(f"{name}: not compared, the base commit has no such path")
                elif verdict.is_slow(accepted.get(name, 1.0)):
                    found[name] = verdict
                if is_verbose and verdict is not None:
                    print(f"{name}: {verdict.change:.2f} times the base commit, control {verdict.control:.2f}")
        suspects = list(found)
        if not suspects:
            break
    return found


def extract(commit: str, folder: Path) -> Path | None:
    """Write the sources of a commit into a folder; None if this checkout has no such commit."""
    done = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=False, capture_output=True)  # noqa: S607
    if done.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def plant(source: Path, through: str) -> None:
    """Insert a slowdown at the beginning of a function, or at the end of a module where no function is named.

    It does nothing until it is asked for: see `speed_worker.py`. So one process has the slowdowns of all paths, and
    each path is measured with its own.

    Raises:
        LookupError: the module has no such function.
    """
    module, _, function = through.partition(":")
    path = source.joinpath(*module.split(".")).with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    if not function:
        asked = f'__import__("os").environ.get({PLANTED!r}) == {through!r}'
        path.write_text(f"{text}\nfor _ in range(2_000_000 if {asked} else 0): pass\n", encoding="utf-8")
        return
    lines = text.splitlines(keepends=True)
    places = [
        (node.body[0].lineno - 1, node.body[0].col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.rpartition(".")[2]
    ]
    if not places:
        raise LookupError(f"{path} has no function {function!r}")
    for line, indent in sorted(places, reverse=True):
        lines.insert(line, " " * indent + f'getattr(__import__("builtins"), "planted", str)({through!r})\n')
    path.write_text("".join(lines), encoding="utf-8")


def check_plants(paths: Mapping[str, str]) -> None:
    """Plant a slowdown into the function of each path, and see that it is found.

    Raises:
        SystemExit: a slowdown is not found, so a path does not measure what it names.
    """
    with tempfile.TemporaryDirectory() as folder:
        base = extract("HEAD", Path(folder) / "base")
        head = extract("HEAD", Path(folder) / "head")
        assert base is not None
        assert head is not None
        for through in set(paths.values()):
            plant(head, through)
        found = find_slow(list(paths), head, base, {}, tries=1, rounds=_PLANT_ROUNDS, planted=True, is_verbose=True)
    missed = sorted(paths.keys() - found.keys())
    if missed:
        raise SystemExit(f"planted slowdowns that were not found: {', '.join(missed)}")
    print(f"{len(paths)} hot paths notice a planted slowdown")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare every path with the base commit."""
    parser = argparse.ArgumentParser(description="Check that no hot path became slower than at the base commit.")
    parser.add_argument("--base", help="the commit to compare with; the default is in speed_base.json")
    parser.add_argument("--only", default="", help="only paths whose name contains this; prints every figure")
    parser.add_argument("--plant", action="store_true", help="check that a planted slowdown of each path is found")
    given = parser.parse_args(arguments)
    from hot_paths import open_paths  # its imports take a second, which --help does not need

    with open_paths(20) as listed:
        paths = {path.name: path.through for path in listed if given.only in path.name}
    if given.plant:
        check_plants(paths)
        return
    recorded = msgspec.json.decode(BASE.read_bytes(), type=Base)
    commit = given.base or recorded.commit
    accepted = {name: it.factor for name, it in recorded.accepted.items()}
    with tempfile.TemporaryDirectory() as folder:
        base = extract(commit, Path(folder))
        if base is None:
            print(f"speed is not compared: this checkout does not have the commit {commit}")
            return
        slow = find_slow(list(paths), ROOT / "src", base, accepted, is_verbose=bool(given.only))
    for name, verdict in slow.items():
        print(f"{name}: {verdict.change:.2f} times {commit}, control {verdict.control:.2f}", file=sys.stderr)
    if slow:
        raise SystemExit(
            f"{len(slow)} of {len(paths)} hot paths became slower; make them faster, or accept the slowdown with its"
            f" reason in {BASE.name}"
        )
    print(f"{len(paths)} hot paths are as fast as at {commit}")


if __name__ == "__main__":
    main()
