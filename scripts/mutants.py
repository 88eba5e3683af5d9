"""Plant faults in the source and see which the tests notice: `python scripts/mutants.py [--count N] [--seed N]`.

A seeded sample of small faults (a comparison that includes its bound, a condition that is never met, another number) is
planted in one copy of the package, each behind a switch. A process imports the copy and collects the tests once. For a
file of tests it forks twice: one child runs it without a fault and tells which tests reach which faults, then one child
for each fault runs those tests until one fails. The files nearest to a fault come first, then those of its room, then
all others, so most faults end after a few tests. A fault that no test notices is listed; if fewer than `MUST` per cent
were noticed, the run ends with 1. What was judged is kept in `.mutants`, for the same commit and sample; the test that
noticed a fault is the first for it at any later commit. A change elsewhere leaves the sample as it is.

    --changed COMMIT   only lines that were changed since the commit
    --only PATTERN     only files whose path matches, such as 'src/segue/histories/*'
    --part 2/5         only the second fifth of the sample, for a run in pieces
    --minutes 30       stop after that time; what was not judged by then counts as missed, and the next run goes on

A fault that changes nothing anyone could notice is listed by hand in `tests/equivalent_mutants.txt`, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, cast

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = "src/segue"
KEPT: Final = ROOT / ".mutants"
EQUIVALENT: Final = ROOT / "tests" / "equivalent_mutants.txt"
PYTEST: Final = ("-q", "--merge-cases", "-p", "no:cacheprovider")
MUST: Final = 90
"""Per cent of the faults that the tests have to notice."""
MOST: Final = 400
"""Tests that are run at all for one fault."""
SECONDS: Final = 20
TIMES: Final = 10
"""A fault made tests endless if they take more CPU than these seconds and so many times what they take without it."""


COMPARISONS: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
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
            if _is_valid(new):
                yield Mutant(path, replaced.lineno, function, start, end, old, new, isinstance(replaced, ast.stmt))


def _is_valid(code: str) -> bool:
    """Whether Python reads a fault: `ast.unparse` leaves out parentheses that some expressions need."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


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
        yield node, ast.unparse(ast.Compare(node.left, [operator()], node.comparators))
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
        other_sign = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield node, f"({ast.unparse(ast.BinOp(node.left, other_sign, node.right))})"


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

_active, _file = int(os.environ.get("MUTANT", "-1")), os.environ.get("MUTANTS_REACHED", "")
_seen = set()
_names = os.environ._data


def switch(active, file):
    global _active, _file
    _active, _file = active, file
    os.environ["MUTANT"], os.environ["MUTANTS_REACHED"] = str(active), file


def hit(number):
    if _file and (place := (number, _names.get(b"PYTEST_CURRENT_TEST"))) not in _seen:
        _seen.add(place)
        if place[1] is not None:
            file = os.open(_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, b"%d %s\\n" % place)
            os.close(file)
    return number == _active
"""
"""The module that the places of faults ask whether theirs is planted, also in processes of a test.

Where a file is named, they tell that they were reached: one line for each place and test.
"""


def add_switches(source: bytes, places: Iterable[tuple[int, Mutant]]) -> bytes:
    """Return a file that has every fault behind a switch."""
    inserted: list[tuple[int, int, bytes]] = []  # where; the order at one place: ends first, the inner end first
    for number, mutant in places:
        hit = b"__import__('mutants_probe').hit(%d)" % number
        length, new = mutant.end - mutant.start, mutant.new.encode()
        if not mutant.is_statement:
            inserted.append((mutant.start, -length, b"((" + new + b") if " + hit + b" else ("))
            inserted.append((mutant.end, -(1 << 40) + length, b"))"))
        elif new == b"pass":
            inserted.append((mutant.start, -length, b"if not " + hit + b": "))
        elif new == b"return None":
            start = mutant.start + len(b"return ")
            inserted.append((start, -length, b"None if " + hit + b" else ("))
            inserted.append((mutant.end, -(1 << 40) + length, b")"))
        else:  # `break` and `continue`, one for the other
            indent = source[source.rfind(b"\n", 0, mutant.start) + 1 : mutant.start]
            inserted.append((mutant.start, -length, b"if " + hit + b": " + new + b"\n" + indent))
    for place, _, text in sorted(inserted, reverse=True):
        source = source[:place] + text + source[place:]
    return source


def copy_package(folder: Path, mutants: Mapping[int, Mutant]) -> Path:
    """Copy the package into a folder, with all faults behind switches, and return the folder."""
    shutil.copytree(ROOT / SOURCE, folder / "segue", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "mutants_probe.py").write_text(PROBE, encoding="utf-8")
    for path in {mutant.path for mutant in mutants.values()}:
        file = folder / Path(path).relative_to("src")
        places = [(number, mutant) for number, mutant in mutants.items() if mutant.path == path]
        file.write_bytes(add_switches(file.read_bytes(), places))
    return folder


def words_of(path: str) -> frozenset[str]:
    """Return the words of a path by which tests are near to a file."""
    return frozenset(re.split(r"[/_.]", path)) - {"src", "segue", "py", "tests", "test"}


def distance(mutant: Mutant, module: str, most: int) -> int:
    """Return how far a file of tests is from a fault: 0 the nearest, 1 those of its room, 2 all others."""
    if len(words_of(mutant.path) & words_of(module)) == most > 0:
        return 0
    return 1 if Path(mutant.path).parts[2:3] == Path(module).parts[1:2] else 2


class Run(NamedTuple):
    """What a file of tests does without a fault: which tests pass, what they reach, and the seconds of CPU it takes."""

    passed: frozenset[str]
    reached: Mapping[int, Sequence[str]]
    seconds: float


class Judge:
    """Runs tests in children of the process that collected them; one that is planted is switched on in its child."""

    def __init__(
        self, mutants: Mapping[int, Mutant], results: Path, until: float, known: Mapping[int, str] | None = None
    ) -> None:
        """`known` are tests that noticed a fault at another commit."""
        self._waiting = dict(mutants)
        self._known = dict(known or {})
        self._results = results
        self._until = until
        self._tried = dict.fromkeys(mutants, 0)
        self._runs: dict[str, Run] = {}
        self._failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed."""
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge all faults, the nearest tests first."""
        cast("Any", session.config)._tmp_path_factory.getbasetemp()  # noqa: SLF001 - once for all children
        modules: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
        self._try_known(session.items)
        most = {
            number: max(len(words_of(mutant.path) & words_of(module)) for module in modules)
            for number, mutant in self._waiting.items()
        }
        for far in range(3):
            near = {
                module: [n for n, one in self._waiting.items() if distance(one, module, most[n]) == far]
                for module in reversed(modules)  # the tests of the gateway last: they wait
            }
            for module, numbers in sorted(near.items(), key=lambda one: -len(one[1])):
                left = [number for number in numbers if number in self._waiting]
                if left:
                    self._judge(module, modules[module], left)
        for number in self._waiting:
            self._keep(number, "")
        return True

    def _try_known(self, items: Sequence[pytest.Item]) -> None:
        """Run the tests that noticed faults before."""
        tests = {item.nodeid: item for item in items if item.nodeid in self._known.values()}
        if not tests:
            return
        run = self._run_without([*tests.values()])
        for number, name in self._known.items():
            if name in run.passed and (failed := self._run_with(number, [tests[name]], run.seconds)):
                del self._waiting[number]
                self._keep(number, failed)

    def _judge(self, module: str, items: Sequence[pytest.Item], numbers: Iterable[int]) -> None:
        """Run the tests of one file that reach some faults."""
        if module not in self._runs and time.monotonic() < self._until:
            self._runs[module] = self._run_without(items)
        run = self._runs.get(module, Run(frozenset(), {}, 0))
        for number in numbers:
            names = {name for name in run.reached.get(number, ()) if name in run.passed}
            tests = [item for item in items if item.nodeid in names][: max(0, MOST - self._tried[number])]
            if tests and time.monotonic() < self._until:
                self._tried[number] += len(tests)
                if failed := self._run_with(number, tests, run.seconds):
                    del self._waiting[number]
                    self._keep(number, failed)

    def _run_without(self, items: Sequence[pytest.Item]) -> Run:
        with tempfile.TemporaryDirectory() as folder:
            reached, written = Path(folder, "reached"), Path(folder, "written")
            reached.touch()
            self._fork(-1, str(reached), items, written, limit=3600)
            failed, seconds = (
                json.loads(written.read_text()) if written.exists() else ([one.nodeid for one in items], 0.0)
            )
            by_fault: dict[int, list[str]] = {}
            for line in dict.fromkeys(reached.read_text(encoding="utf-8").splitlines()):
                number, _, name = line.partition(" ")
                by_fault.setdefault(int(number), []).append(name.rpartition(" (")[0])
            return Run(frozenset(item.nodeid for item in items) - frozenset(failed), by_fault, seconds)

    def _run_with(self, number: int, tests: Sequence[pytest.Item], seconds: float) -> str:
        """Run tests with a fault; return the first one that fails, or why none could tell."""
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder, "written")
            self._fork(number, "", tests, written, limit=int(SECONDS + TIMES * seconds))
            failed: list[str] = json.loads(written.read_text())[0] if written.exists() else ["it does not end"]
            return failed[0] if failed else ""

    def _fork(self, number: int, reached: str, items: Sequence[pytest.Item], written: Path, *, limit: int) -> None:
        """Run tests in a child, until one fails if a fault is planted; the child tells what failed."""
        child = os.fork()
        if child == 0:
            try:
                os.setsid()  # so that all processes of its tests can be ended with it
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
                probe().switch(number, reached)
                for item, following in zip(items, [*items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if self._failed and number >= 0:
                        break
                written.write_text(json.dumps([self._failed, time.process_time()]))
            finally:
                os._exit(0)
        end = time.monotonic() + 15 * limit  # the machine may be busy
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.005)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)

    def _keep(self, number: int, failed: str) -> None:
        if failed or time.monotonic() < self._until:
            with self._results.open("a", encoding="utf-8") as file:
                file.write(json.dumps([number, failed, self._tried[number]]) + "\n")


def probe() -> ModuleType:
    """Return the module of the copy that has the switches."""
    import mutants_probe  # pyright: ignore[reportMissingImports]

    return mutants_probe


def judge(sample: Mapping[int, Mutant], results: Path, minutes: float, jobs: int, known: Mapping[int, str]) -> None:
    """Judge faults in some processes, each with its share of the files; `known` are the tests to begin with."""
    numbers = sorted(sample, key=lambda number: sample[number])
    share = -(-len(numbers) // jobs)
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_package(Path(folder, "copy"), sample)
        path = f"{copy}{os.pathsep}{os.environ.get('PYTHONPATH', '')}".rstrip(os.pathsep)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        running: list[subprocess.Popen[bytes]] = []
        for job in range(jobs):
            given = Path(folder, f"{job}.json")
            mine = {number: sample[number] for number in numbers[job * share : (job + 1) * share]}
            tests = {number: known[number] for number in mine.keys() & known.keys()}
            given.write_text(json.dumps([mine, str(results), minutes, tests]))
            command = [sys.executable, __file__, "--judge", str(given)]
            log = (KEPT / f"{job}.log").open("wb")
            running.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log))
        for process in running:
            process.wait()


def serve(given: Path) -> int:
    """Judge the faults of a file: what a process of `judge` runs."""
    listed: tuple[dict[str, list[Any]], str, float, dict[str, str]] = json.loads(given.read_text())
    faults = {int(number): Mutant(*fields) for number, fields in listed[0].items()}
    until = time.monotonic() + 60 * listed[2]
    known = {int(number): name for number, name in listed[3].items()}
    return int(pytest.main([*PYTEST, str(ROOT / "tests")], plugins=[Judge(faults, Path(listed[1]), until, known)]))


def read_equivalent() -> dict[str, str]:
    """Return the faults that nobody could notice, each with its reason."""
    lines = EQUIVALENT.read_text(encoding="utf-8").splitlines() if EQUIVALENT.exists() else []
    rows = (line.partition("  # ") for line in lines if line and not line.startswith("#"))
    return {name.strip(): reason for name, _, reason in rows}


def choose(options: argparse.Namespace) -> dict[str, Mutant]:
    """Return the sample: faults in all lines that were asked for, without those that are known as equivalent.

    Each has its name, with a number where a function has several alike. The seed and the name decide whether it is in
    the sample, so that a change elsewhere in the source leaves the sample as it is.
    """
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
    alike = Counter[str]()
    named: dict[str, Mutant] = {}
    for mutant in found:
        alike[mutant.name] += 1
        named[f"{mutant.name} #{alike[mutant.name]}"] = mutant

    def lot(name: str) -> bytes:
        return hashlib.sha256(f"{options.seed} {name}".encode()).digest()

    return {name: named[name] for name in sorted(named, key=lot)[: options.count]}


def main() -> int:
    """Plant the sample, print what was not noticed; the exit status says whether too much was missed."""
    parser = argparse.ArgumentParser(description="Plant faults, and see which the tests notice.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changed", metavar="COMMIT")
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--part", default="1/1", metavar="K/N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=24 * 60)
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.judge is not None:
        return serve(options.judge)
    sample = choose(options)
    part, parts = map(int, options.part.split("/"))
    names = dict([*enumerate(sample)][part - 1 :: parts])
    mutants = {number: sample[name] for number, name in names.items()}
    name = hashlib.sha256("\n".join(map(str, sample.values())).encode()).hexdigest()[:12]
    results = KEPT / f"{_git('rev-parse', 'HEAD').strip()[:12]}-{name}.judged"
    KEPT.mkdir(exist_ok=True)
    left = {number: mutant for number, mutant in mutants.items() if number not in read_judged(results)}
    file = KEPT / "noticed.json"
    known: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if left:
        tests = {number: known[names[number]] for number in left if names[number] in known}
        judge(left, results, options.minutes, max(1, min(options.jobs, len(left))), tests)
    judged = read_judged(results)
    known |= {names[number]: failed for number, (failed, _) in judged.items() if number in names and failed}
    file.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    missed = [number for number in mutants if not judged.get(number, ("", 0))[0]]
    for number in missed:
        mutant, tests = mutants[number], f"{judged[number][1]} tests pass" if number in judged else "not judged"
        print(f"missed: {mutant.path}:{mutant.line} {mutant.name.partition(' ')[2]} ({tests})")
    noticed = len(mutants) - len(missed)
    share = 100 * noticed / max(1, len(mutants))
    print(f"seed {options.seed}: {noticed} of {len(mutants)} faults noticed ({share:.0f} %, must {MUST})")
    return 0 if share >= MUST else 1


def read_judged(results: Path) -> dict[int, tuple[str, int]]:
    """Return what is known of faults: the test that noticed each, empty if none did, and how many tests were run."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {number: (failed, tests) for number, failed, tests in map(json.loads, lines)}


if __name__ == "__main__":
    sys.exit(main())
