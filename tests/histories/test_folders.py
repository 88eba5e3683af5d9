"""The folder of a format imports no other format, and is imported only when needed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

import segue.histories
from segue.histories import registry
from segue.histories.kit.format import Excerpt
from segue.histories.registry import _FOLDERS, all_formats, formats_with_sessions, get_format

ROOT = Path(segue.histories.__file__).parent
BELOW = {"conversation", "errors", "failures", "foundation", "framing", "models", "projection", "protocols", "requests"}
WORLD = {"os", "pathlib", "sqlite3", "socket", "time", "random", "uuid", "subprocess"}

of_every_folder = pytest.mark.parametrize("name", _FOLDERS)


def _imports(path: Path) -> list[str]:
    modules: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return modules


def test_every_folder_is_registered():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"kit"}
    assert {folder.rpartition(".")[2] for folder in _FOLDERS.values()} == folders


@of_every_folder
def test_a_folder_imports_only_lower_layers_the_kit_and_itself(name):
    folder = _FOLDERS[name].rpartition(".")[2]
    for path in (ROOT / folder).rglob("*.py"):
        for module in _imports(path):
            top, *rest = module.split(".")
            if top == "segue" and rest[:1] != ["histories"]:
                assert rest[0] in BELOW, f"{path.name} imports {module}"
            elif top == "segue":
                assert rest[1] in {"kit", folder}, f"{path.name} imports {module}"


FILES = {"places.py", "regular_files.py", "databases.py", "opening.py", "api.py", "sessions.py", "repair_files.py"}
"""Modules that read and write files."""


def test_only_places_reads_and_writes_files():
    for path in ROOT.rglob("*.py"):
        if path.name not in {"places.py", "regular_files.py", "databases.py", "opening.py", "api.py", "sessions.py"} | {
            "repair_files.py",
            "tables.py",  # a database in memory
        }:
            assert WORLD.isdisjoint(module.partition(".")[0] for module in _imports(path)), path


def test_the_registry_imports_no_folder():
    program = "import segue.histories.registry as r, json, sys; list(r.FORMATS); print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    for folder in _FOLDERS.values():
        assert folder not in loaded


def test_a_list_of_sessions_loads_no_format_without_a_place():
    listed = {record.name for record in registry.formats_with_sessions()}
    assert listed == {name for name, record in registry.FORMATS.items() if record.place is not None}


def _files_of_others(name: str) -> list[tuple[str, Excerpt]]:
    """Give the samples of other formats whose names the patterns of a format find."""
    place = get_format(name).place
    found: list[tuple[str, Excerpt]] = []
    for other in all_formats():
        for sample in other.samples() if other.name != name and place is not None else ():
            data, file = sample.source.data, sample.source.name
            if data is not None and place is not None and any(PurePath(file).match(each) for each in place.patterns):
                found.append((other.name, Excerpt(file, file, len(data), data, data, whole=True, modified=0)))
    return found


@pytest.mark.parametrize("name", [record.name for record in formats_with_sessions() if record.describe is not None])
def test_a_file_of_another_program_is_not_listed(name):
    """Two agents may store their files below folders of the same name, and a list of a folder asks both."""
    describe = get_format(name).describe
    assert describe is not None
    assert [other for other, excerpt in _files_of_others(name) if describe(excerpt) is not None] == []


def test_some_files_are_found_by_the_patterns_of_two_programs():
    assert "pi" in {other for other, _ in _files_of_others("droid")}
