"""The folder of a protocol imports no other protocol, and is imported only when needed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import segue.protocols
from segue.protocols.registry import _FOLDERS, PROTOCOLS

ROOT = Path(segue.protocols.__file__).parent
SHARED = {"kit", "chat_family"}
BELOW = {"errors", "plurals", "quoting", "conversation", "models", "framing"}

of_every_folder = pytest.mark.parametrize("name", _FOLDERS)


def test_every_folder_is_registered():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")} - SHARED
    assert {folder.rpartition(".")[2] for folder in _FOLDERS.values()} == folders


@of_every_folder
def test_a_folder_imports_only_lower_layers_shared_code_and_itself(name):
    folder = _FOLDERS[name].rpartition(".")[2]
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                top, *rest = module.split(".")
                if top == "segue" and rest[:1] != ["protocols"]:
                    assert rest[0] in BELOW, f"{path.name} imports {module}"
                elif top == "segue":
                    assert rest[1] in {*SHARED, folder}, f"{path.name} imports {module}"


@of_every_folder
def test_the_record_has_the_clues_that_detection_reads(name):
    assert PROTOCOLS[name].clues is import_module(f"{_FOLDERS[name]}.clues").CLUES


@of_every_folder
def test_the_record_has_the_routes_that_requests_are_matched_with(name):
    folder = ROOT / _FOLDERS[name].rpartition(".")[2]
    routes = import_module(f"{_FOLDERS[name]}.routes").ROUTES if (folder / "routes.py").exists() else ()
    assert PROTOCOLS[name].routes == routes


def _loaded_by(program: str) -> list[str]:
    program = f"{program}; import json, sys; print(json.dumps([m for m in sys.modules if m.startswith('segue')]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


USES = {
    "the registry": ("import segue.protocols.registry", set()),
    "the names of protocols": ("from segue.protocols import PROTOCOLS; list(PROTOCOLS)", set()),
    "the rules of one model": (
        "from segue import Model, resolve_rules; resolve_rules(Model('m', 'mistral', 'mistral-chat'))",
        {"mistral_chat"},
    ),
}


@pytest.mark.parametrize(("program", "folders"), USES.values(), ids=USES.keys())
def test_a_folder_is_imported_when_its_record_is_needed(program, folders):
    loaded = {module.split(".")[2] for module in _loaded_by(program) if module.count(".") >= 2}
    names = {folder.rpartition(".")[2] for folder in _FOLDERS.values()}
    assert loaded & names == folders


def test_detection_imports_only_the_clues_of_each_protocol():
    loaded = _loaded_by("from segue import detect_protocol; detect_protocol({'contents': []})")
    for folder in _FOLDERS.values():
        assert {module for module in loaded if module.startswith(f"{folder}.")} == {f"{folder}.clues"}
