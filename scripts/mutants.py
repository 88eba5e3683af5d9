"""Plant faults in the source and see which the tests notice: `python scripts/mutants.py [--count N] [--seed N]`.

A seeded sample of small faults (a comparison that includes its bound, a condition that is never met, another number) is
planted, one at a time, in a copy of the package. The tests that run the faulty line are run against the copy. A fault
that none of them notices is listed; if fewer than `MUST` per cent were noticed, the run ends with 1. Which tests reach
the place of a fault is recorded first: all tests run once against a copy in which these places tell that they were
reached. That takes as long as the tests; what was recorded is kept in `.mutants`, for the same commit and sample.

    --changed COMMIT   only lines that were changed since the commit
    --only PATTERN     only files whose path matches, such as 'src/segue/histories/*'
    --part 2/5         only the second fifth of the sample, for a run in pieces

A fault that changes nothing anyone could notice is listed by hand in `tests/equivalent_mutants.txt`, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = "src/segue"
KEPT: Final = ROOT / ".mutants"
EQUIVALENT: Final = ROOT / "tests" / "equivalent_mutants.txt"
PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "--merge-cases")
MUST: Final = 90
"""Per cent of the faults that the tests have to notice."""
NEAREST: Final = 40
"""Tests that are run first: those of the room of the file. Most faults end here."""
MOST: Final = 400
"""Tests that are run at all for one fault."""
NOTHING_RAN: Final = 5
"""The exit status of pytest if it found none of the tests."""
SECONDS: Final = 300
"""A run that takes longer was noticed: the fault made it endless."""

COMPARISONS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


NO_FAULTS: Final = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Raise,
    ast.Assert,
    ast.JoinedStr,  # Python 3.11 does not tell where its parts are
    ast.MatchValue,  # a pattern is no expression
)
"""What is passed over: functions come by themselves, and messages are for people."""


class Mutant(NamedTuple):
    """One fault: the file, its line, and what is replaced by what."""

    path: str
    line: int
    function: str
    start: int
    end: int
    old: str
    new: str
    is_statement: bool = False

    @property
    def name(self) -> str:
        """The fault without its line, as the list of equivalent faults has it."""
        return f"{self.path} {self.function}: {one_line(self.old)} -> {one_line(self.new)}"


def one_line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


def find_mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yield every fault that can be planted in a file, in the order of the file."""
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def place(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1] + (
            node.end_col_offset or 0
        )

    data = source.encode()
    for function, node in _nodes(ast.parse(source)):
        for replaced, new in _faults(node):
            start, end = place(replaced)
            old = data[start:end].decode()
            yield Mutant(path, replaced.lineno, function, start, end, old, new, isinstance(replaced, ast.stmt))


def _nodes(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield what is inside functions, with the name of the function; annotations and docstrings have no faults."""
    for owner in ast.walk(tree):
        if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting: list[ast.AST] = list(reversed(owner.body))
            while waiting:
                node = waiting.pop()
                if isinstance(node, NO_FAULTS):
                    continue
                yield owner.name, node
                waiting += [child for child in ast.iter_child_nodes(node) if not _is_annotation(node, child)]


def _is_annotation(node: ast.AST, child: ast.AST) -> bool:
    return isinstance(node, ast.AnnAssign) and child is node.annotation


def _faults(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield the faults of a node: what is replaced, and the new text."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator = COMPARISONS[type(node.ops[0])]
        yield node, f"{ast.unparse(node.left)} {operator} {ast.unparse(node.comparators[0])}"
    elif isinstance(node, ast.BoolOp):
        other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        yield node, f"({ast.unparse(ast.BoolOp(other, node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"bool({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield node, str(not node.value)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, str(node.value + 1)
    elif isinstance(node, (ast.If, ast.IfExp)) and not _is_type_checking(node.test):
        yield node.test, "False"
    elif isinstance(node, ast.Continue):
        yield node, "break"
    elif isinstance(node, ast.Break):
        yield node, "continue"
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield node, "return None"
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)):
        yield node, "pass"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        other_sign = "-" if isinstance(node.op, ast.Add) else "+"
        yield node, f"({ast.unparse(node.left)} {other_sign} {ast.unparse(node.right)})"


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def read_changed(commit: str) -> dict[str, set[int]]:
    """Return the lines of each file that were changed since a commit."""
    lines: dict[str, set[int]] = {}
    path = ""
    for line in _git("diff", "--unified=0", commit, "--", SOURCE).splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(found[1]), int(found[2] or 1)
            lines.setdefault(path, set()).update(range(first, first + count))
    return lines


def _git(*arguments: str) -> str:
    return subprocess.run(
        [shutil.which("git") or "git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


PROBE: Final = """
import os

_seen = set()
_names = os.environ._data


def hit(number):
    place = (number, _names.get(b"PYTEST_CURRENT_TEST"))
    if place not in _seen:
        _seen.add(place)
        if place[1] is not None:
            file = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, b"%d %s\\n" % place)
            os.close(file)
"""
"""The module that the places of faults call: one line for each place and test, also from processes of a test."""


def add_probes(source: bytes, places: Iterable[tuple[int, Mutant]]) -> bytes:
    """Return a file in which the places of faults tell that they were reached."""
    inserted: list[tuple[int, int, bytes]] = []  # where; the order at one place: ends first, the inner end first
    for number, mutant in places:
        call = b"__import__('mutants_probe').hit(%d)" % number
        length = mutant.end - mutant.start
        if mutant.is_statement:
            inserted.append((mutant.start, -length, call + b"; "))
        else:
            inserted += [(mutant.start, -length, b"(" + call + b" or ("), (mutant.end, -(1 << 40) + length, b"))")]
    for place, _, text in sorted(inserted, reverse=True):
        source = source[:place] + text + source[place:]
    return source


def record_tests(mutants: Sequence[Mutant], jobs: str) -> dict[int, list[str]]:
    """Return the tests that reach each fault; all tests are run, if that was not done for this commit and sample."""
    sample = hashlib.sha256("\n".join(map(str, mutants)).encode()).hexdigest()[:12]
    recorded = KEPT / f"{_git('rev-parse', 'HEAD').strip()[:12]}-{sample}.reached"
    if not recorded.exists():
        KEPT.mkdir(exist_ok=True)
        partial = recorded.with_suffix(".partial")
        partial.write_bytes(b"")
        print("recording which tests reach the faults; this takes as long as the tests", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            copy = copy_package(Path(folder))
            (copy / "mutants_probe.py").write_text(PROBE.format(path=str(partial)), encoding="utf-8")
            for path in {mutant.path for mutant in mutants}:
                file = copy / Path(path).relative_to("src")
                places = [(number, mutant) for number, mutant in enumerate(mutants) if mutant.path == path]
                file.write_bytes(add_probes(file.read_bytes(), places))
            # A failing test does not matter here: it is taken out of the runs below.
            subprocess.run([*PYTEST, "-n", jobs], cwd=ROOT, env=environment_of(copy), check=False)
        partial.rename(recorded)
    tests: dict[int, list[str]] = {}
    for line in dict.fromkeys(recorded.read_text(encoding="utf-8").splitlines()):
        number, _, name = line.partition(" ")
        tests.setdefault(int(number), []).append(name.rpartition(" (")[0])
    return {number: order_tests(mutants[number], names) for number, names in tests.items()}


def order_tests(mutant: Mutant, tests: Iterable[str]) -> list[str]:
    """Return the tests of a fault, those of its own room first, at most `MOST`."""
    words = set(re.split(r"[/_.]", mutant.path)) - {"src", "segue", "py"}
    return sorted(set(tests), key=lambda test: (-len(words & set(re.split(r"[/_.:]", test))), test))[:MOST]


def copy_package(folder: Path) -> Path:
    """Copy the package into a folder, and return the folder."""
    shutil.copytree(ROOT / SOURCE, folder / "segue", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def environment_of(copy: Path) -> dict[str, str]:
    """Return the environment in which tests import a copy of the package."""
    path = f"{copy}{os.pathsep}{os.environ.get('PYTHONPATH', '')}".rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


class Planter:
    """Runs tests against copies of the package, one for each thread."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            self._copies.put(copy_package(folder / str(number)))

    def is_noticed(self, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Plant a fault, run the tests, and take it out again. A test that fails without the fault notices nothing."""
        copy = self._copies.get()
        file = copy / Path(mutant.path).relative_to("src")
        right = file.read_bytes()
        wrong = right[: mutant.start] + mutant.new.encode() + right[mutant.end :]
        try:
            for part in (tests[:NEAREST], tests[NEAREST:]):
                left = list(part)
                while left:
                    file.write_bytes(wrong)
                    failed = _first_failure(copy, left)
                    file.write_bytes(right)
                    if failed is None:
                        break
                    if _first_failure(copy, [failed] if failed in left else left) is None:
                        return True
                    left = left[left.index(failed) + 1 :] if failed in left else []
            return False
        finally:
            file.write_bytes(right)
            self._copies.put(copy)


def _first_failure(copy: Path, tests: Sequence[str]) -> str | None:
    """Return the first test that fails against a copy, an empty name if that cannot be told; None if all pass."""
    command = [*PYTEST, "-x", "-rfE", "-n", "0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment_of(copy), capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode in (0, NOTHING_RAN):
        return None
    found = re.search(rb"^(?:FAILED|ERROR) (\S+(?:\[.*?\])?)(?: - |$)", done.stdout, re.MULTILINE)
    return found[1].decode(errors="replace") if found else ""


def read_equivalent() -> dict[str, str]:
    """Return the faults that nobody could notice, each with its reason."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    rows = (line.partition("  # ") for line in lines if line and not line.startswith("#"))
    return {name.strip(): reason for name, _, reason in rows}


def choose(options: argparse.Namespace) -> list[Mutant]:
    """Return the sample: faults in all lines that were asked for, without those that are known as equivalent."""
    changed = read_changed(options.changed) if options.changed else None
    equivalent = read_equivalent()
    found: list[Mutant] = []
    for file in sorted((ROOT / SOURCE).rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        if not fnmatch(path, options.only) or (changed is not None and path not in changed):
            continue
        found += (
            mutant
            for mutant in find_mutants(path, file.read_text(encoding="utf-8"))
            if mutant.name not in equivalent and (changed is None or mutant.line in changed[path])
        )
    return random.Random(options.seed).sample(found, min(options.count, len(found)))  # noqa: S311 - it chooses faults


def main() -> int:
    """Plant the sample, print what was not noticed; the exit status says whether too much was missed."""
    parser = argparse.ArgumentParser(description="Plant faults, and see which the tests notice.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changed", metavar="COMMIT")
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--part", default="1/1", metavar="K/N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    sample = choose(options)
    tests = record_tests(sample, str(options.jobs))
    part, parts = map(int, options.part.split("/"))
    mutants = [*enumerate(sample)][part - 1 :: parts]
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        planter = Planter(Path(folder), options.jobs)

        def judge(numbered: tuple[int, Mutant]) -> str | None:
            number, mutant = numbered
            runs = tests.get(number, ())
            if not runs:
                return "no test runs it"
            if planter.is_noticed(mutant, runs):
                return None
            return f"{len(runs)} tests pass"

        with ThreadPoolExecutor(options.jobs) as pool:
            for place, ((_, mutant), reason) in enumerate(zip(mutants, pool.map(judge, mutants), strict=True), 1):
                if reason:
                    missed.append(f"{mutant.path}:{mutant.line} {mutant.name.partition(' ')[2]} ({reason})")
                    print(f"[{place}/{len(mutants)}] missed: {missed[-1]}", flush=True)
    noticed = len(mutants) - len(missed)
    share = 100 * noticed / max(1, len(mutants))
    print(f"seed {options.seed}: {noticed} of {len(mutants)} faults noticed ({share:.0f} %, must {MUST})")
    return 0 if share >= MUST else 1


if __name__ == "__main__":
    sys.exit(main())
