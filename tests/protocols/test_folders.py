"""Folders of protocols have the same modules, import no other protocol, and are imported only when needed."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import segue.protocols
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.storable import PlainChecks, PlainErrors, StorableRequests, StorableResponses
from segue.protocols.registry import _FOLDERS, PROTOCOLS

ROOT = Path(segue.protocols.__file__).parent
SHARED = {"kit", "families"}
BELOW = {"conversation", "errors", "foundation", "framing", "models"}

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


def _inner(function: object) -> object:
    """Give the function that the record has wrapped."""
    if isinstance(function, PlainChecks):
        return function.check
    return function.decode if isinstance(function, StorableRequests | StorableResponses | PlainErrors) else function


@of_every_folder
def test_a_record_names_each_of_its_fields(name):
    text = (ROOT / _FOLDERS[name].rpartition(".")[2] / "protocol.py").read_text("utf-8")
    calls = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)]
    (made,) = (call for call in calls if ast.unparse(call.func) == "Protocol")
    assert all(keyword.arg in Protocol.__struct_fields__ for keyword in made.keywords)


@of_every_folder
def test_the_values_of_a_record_have_the_types_that_it_declares(name):
    for field, declared in get_type_hints(Protocol).items():
        value = _inner(getattr(PROTOCOLS[name], field))
        options = [one for one in get_args(declared) or () if get_origin(one) is Callable] or [declared]
        if get_origin(options[0]) is Callable and inspect.isfunction(value):
            *taken, returned = get_type_hints(value).values()
            assert (taken, returned) == get_args(options[0]), field
        elif value is not None and get_origin(declared) not in (UnionType, Callable, Literal):
            assert isinstance(value, get_origin(declared) or declared), field


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
