"""Faults are planted in the code of functions; a fault counts as noticed if a test fails that passes without it."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"

SOURCE = '''
"""A text with 1 < 2 in it."""

LIMIT: int = 3


def count(values: list[int]) -> int:
    """Return how many are small."""
    found = 0
    for value in values:
        if value < 3 and not value == 2:
            found += 1
    return found
'''


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("mutants")


def test_faults_are_in_the_code_of_functions_and_leave_it_valid(mutants):
    found = list(mutants.find_mutants("src/segue/a.py", SOURCE))
    assert {(mutant.old, mutant.new) for mutant in found} == {
        ("0", "1"),
        ("value < 3 and not value == 2", "False"),
        ("value < 3 and not value == 2", "(value < 3 or not value == 2)"),
        ("value < 3", "value <= 3"),
        ("3", "4"),
        ("not value == 2", "bool(value == 2)"),
        ("value == 2", "value != 2"),
        ("2", "3"),
        ("found += 1", "pass"),
        ("1", "2"),
        ("return found", "return None"),
    }
    data = SOURCE.encode()
    for mutant in found:
        ast.parse(data[: mutant.start] + mutant.new.encode() + data[mutant.end :])
        assert mutant.function == "count"


def test_one_fault_at_a_time_is_switched_on_and_the_places_of_all_tell_which_test_reached_them(
    mutants, tmp_path, monkeypatch
):
    places = list(enumerate(mutants.find_mutants("src/segue/a.py", SOURCE)))
    for name in ("MUTANT", "MUTANTS_REACHED"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    probe = ModuleType("mutants_probe")
    exec(mutants.PROBE, vars(probe))
    monkeypatch.setitem(sys.modules, "mutants_probe", probe)
    switched = {}
    exec(mutants.add_switches(SOURCE.encode(), places).decode(), switched)
    count, reached = switched["count"], tmp_path / "reached"
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "test_a.py::test_small (call)")
    probe.switch(-1, str(reached))
    assert count([5]) == 0
    numbers = {int(line.split()[0]) for line in reached.read_text().splitlines()}
    later = {"not value == 2", "value == 2", "2", "found += 1", "1"}
    assert {mutant.old for number, mutant in places if number not in numbers} == later
    assert count([1, 2, 5]) == 1
    lines = reached.read_text().splitlines()
    assert {line.partition(" ")[2] for line in lines} == {"test_a.py::test_small (call)"}
    assert sorted(int(line.split()[0]) for line in lines) == [number for number, _ in places], "once for a test"
    for number, mutant in places:
        planted = {}
        data = SOURCE.encode()
        exec((data[: mutant.start] + mutant.new.encode() + data[mutant.end :]).decode(), planted)
        probe.switch(number, "")
        assert [count(list(range(size))) for size in range(6)] == [
            planted["count"](list(range(size))) for size in range(6)
        ], mutant


def test_statements_have_switches(mutants, monkeypatch):
    source = (
        "def f(n):\n    for i in range(n):\n        if i == 2:\n            break\n        g(i)\n"
        "    return (\n        n\n    )\n"
    )
    places = list(enumerate(mutants.find_mutants("src/segue/a.py", source)))
    statements = {mutant.old.split()[0]: number for number, mutant in places if mutant.is_statement}
    assert statements.keys() == {"break", "g(i)", "return"}
    active = []
    monkeypatch.setitem(sys.modules, "mutants_probe", SimpleNamespace(hit=lambda number: number in active))
    seen = []
    switched = {"g": seen.append}
    exec(mutants.add_switches(source.encode(), places).decode(), switched)
    for name, result, calls in (
        ("", 4, [0, 1]),
        ("break", 4, [0, 1, 3]),
        ("g(i)", 4, []),
        ("return", None, [0, 1]),
    ):
        active[:], seen[:] = [statements[name]] if name else [], []
        assert (switched["f"](4), seen) == (result, calls), name


def test_a_fault_is_noticed_only_by_a_test_that_passes_without_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # segue's own belongs to another package here
    root = tmp_path / "project"
    for folder in ("src/segue", "tests", "scripts"):
        (root / folder).mkdir(parents=True)
    shutil.copy(SCRIPTS / "mutants.py", root / "scripts")
    (root / "src" / "segue" / "__init__.py").write_text("")
    (root / "src" / "segue" / "a.py").write_text(
        "def double(number):\n    return number + number\n\n\ndef count(number):\n    while number > 0:\n"
        "        number -= 3\n    return None\n\n\ndef unused(number):\n    return number + 7\n"
    )
    (root / "tests" / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--merge-cases', action='store_true')\n"
    )
    (root / "tests" / "test_a.py").write_text(
        "from segue.a import count, double\n\n"
        "def test_always_fails():\n    assert double(2) == 5\n\n"
        "def test_small():\n    assert double(0) == 0\n\n"
        "def test_large():\n    assert double(2) == 4\n\n"
        "def test_it_ends():\n    count(2)\n"
    )
    for command in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(root), *command, *(["--allow-empty"] if "-qm" in command else [])], check=True)
    script = (root / "scripts" / "mutants.py").read_text().replace("SECONDS: Final = 20", "SECONDS: Final = 1")
    (root / "scripts" / "mutants.py").write_text(script)
    run = [sys.executable, "scripts/mutants.py", "--jobs", "1"]
    done = subprocess.run(run, cwd=root, capture_output=True, text=True, check=False)
    missed = [line for line in done.stdout.splitlines() if line.startswith("missed: ")]
    assert {line.partition(": ")[2] for line in missed} == {
        "src/segue/a.py:6 count: number > 0 -> number >= 0 (1 tests pass)",
        "src/segue/a.py:6 count: 0 -> 1 (1 tests pass)",
        "src/segue/a.py:7 count: 3 -> 4 (1 tests pass)",
        "src/segue/a.py:12 unused: return number + 7 -> return None (0 tests pass)",
        "src/segue/a.py:12 unused: number + 7 -> (number - 7) (0 tests pass)",
        "src/segue/a.py:12 unused: 7 -> 8 (0 tests pass)",
    }, done.stdout + done.stderr
    assert done.returncode == 1
    again = subprocess.run(run, cwd=root, capture_output=True, text=True, check=False)
    assert again.stdout == done.stdout, "what was judged is kept"
    (judged,) = (root / ".mutants").glob("*.judged")
    by = {"", "it does not end", "tests/test_a.py::test_small", "tests/test_a.py::test_large"}
    assert {json.loads(line)[1] for line in judged.read_text().splitlines()} == by
    judged.unlink()
    later = subprocess.run(run, cwd=root, capture_output=True, text=True, check=False)
    assert later.stdout == done.stdout
    (judged,) = (root / ".mutants").glob("*.judged")
    rows = [json.loads(line) for line in judged.read_text().splitlines()]
    assert {tried for _, test, tried in rows if test.startswith("tests/")} == {0}, "the test that noticed it is first"


def test_a_change_elsewhere_leaves_the_sample_as_it_is(mutants, tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "EQUIVALENT", tmp_path / "equivalent.txt")
    package = tmp_path / "src" / "segue"
    package.mkdir(parents=True)
    for name in "bc":
        lines = (f"def f{n}(a):\n    return a + {n} > 3 or a + {n} > 4\n" for n in range(9))
        (package / f"{name}.py").write_text("".join(lines))

    def sample(seed: int) -> dict[str, str]:
        options = SimpleNamespace(changed=None, only="*", seed=seed, count=20)
        return {name: mutant.name for name, mutant in mutants.choose(options).items()}

    first = sample(1)
    assert len(first) == 20
    assert first != sample(2)
    (package / "a.py").write_text("# no function\n")
    (package / "b.py").write_text(f"# a line before\n{(package / 'b.py').read_text()}")
    assert sample(1) == first
    (package / "a.py").write_text("".join(f"def f{n}(a):\n    return a + {n}\n" for n in range(9)))
    assert len(first.keys() & sample(1).keys()) > 10, "only those that the new faults displace"


def test_lines_that_were_changed_are_read_from_the_difference(mutants, tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    source = tmp_path / "src" / "segue" / "a.py"
    source.parent.mkdir(parents=True)
    source.write_text("a = 1\nb = 2\nc = 3\n")
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a")
    source.write_text("a = 1\nb = 20\nc = 3\nd = 4\n")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    assert mutants.read_changed("HEAD") == {"src/segue/a.py": {2, 4}}
