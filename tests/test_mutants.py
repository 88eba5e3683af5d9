"""Faults are planted in the code of functions; a fault counts as noticed if a test fails that passes without it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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


def test_the_places_of_faults_tell_which_test_reached_them(mutants, tmp_path, monkeypatch):
    places = list(enumerate(mutants.find_mutants("src/segue/a.py", SOURCE)))
    module = {}
    exec(mutants.PROBE.format(path=str(tmp_path / "reached")), module)
    monkeypatch.setitem(sys.modules, "mutants_probe", SimpleNamespace(hit=module["hit"]))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "test_a.py::test_small (call)")
    probed = {}
    exec(mutants.add_probes(SOURCE.encode(), places).decode(), probed)
    assert probed["count"]([5]) == 0
    reached = {int(line.split()[0]) for line in (tmp_path / "reached").read_text().splitlines()}
    assert {mutant.new for number, mutant in places if number not in reached} == {
        "bool(value == 2)",
        "value != 2",
        "pass",
        "2",
    } | {mutant.new for number, mutant in places if mutant.old == "2"}
    assert probed["count"]([1, 2, 5]) == 1
    lines = (tmp_path / "reached").read_text().splitlines()
    assert {int(line.split()[0]) for line in lines} == {number for number, _ in places}
    assert {line.partition(" ")[2] for line in lines} == {"test_a.py::test_small (call)"}
    assert len(lines) == len(places), "each place tells once for a test"


def test_a_fault_is_noticed_only_by_a_test_that_passes_without_it(mutants, tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "src" / "segue").mkdir(parents=True)
    (root / "src" / "segue" / "__init__.py").write_text("")
    (root / "src" / "segue" / "a.py").write_text("def double(number):\n    return number + number\n")
    (root / "test_a.py").write_text(
        "from segue.a import double\n\n"
        "def test_small():\n    assert double(0) == 0\n\n"
        "def test_large():\n    assert double(2) == 4\n\n"
        "def test_always_fails():\n    assert double(2) == 5\n"
    )
    monkeypatch.setattr(mutants, "ROOT", root)
    monkeypatch.setattr(
        mutants, "PYTEST", (sys.executable, "-m", "pytest", "-q", "--disable-plugin-autoload", "-p", "xdist.plugin")
    )
    (mutant,) = (
        mutant
        for mutant in mutants.find_mutants("src/segue/a.py", (root / "src" / "segue" / "a.py").read_text())
        if mutant.new == "(number - number)"
    )
    planter = mutants.Planter(tmp_path / "copies", 1)
    assert not planter.is_noticed(mutant, ["test_a.py::test_small"])
    assert not planter.is_noticed(mutant, ["test_a.py::test_always_fails", "test_a.py::test_small"])
    assert planter.is_noticed(mutant, ["test_a.py::test_always_fails", "test_a.py::test_large"])


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
