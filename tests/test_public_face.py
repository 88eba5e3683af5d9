"""`import segue`: every public name is there, explained and seen by type checkers; nothing is loaded before time."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import segue

FACE = Path(segue.__file__)
NAMES = [name for name in segue.__all__ if name != "__version__"]


def _type_checker_view() -> dict[str, tuple[str, ...]]:
    """What the imports under TYPE_CHECKING say: module -> names, in the order of the file."""
    for node in ast.parse(FACE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            imports = [statement for statement in node.body if isinstance(statement, ast.ImportFrom)]
            return {statement.module or "": tuple(alias.name for alias in statement.names) for statement in imports}
    raise AssertionError("the public face has no imports for type checkers")


def _loaded_after(statement: str) -> set[str]:
    """Run a statement in a new interpreter and list the modules it loaded."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_type_checkers_see_exactly_what_is_found_at_run_time():
    assert _type_checker_view() == segue._MODULES


def test_all_lists_exactly_what_is_found_at_run_time():
    assert sorted(segue.__all__) == sorted(name for names in segue._MODULES.values() for name in names)


def test_all_is_sorted_and_without_doubles():
    assert segue.__all__ == sorted(set(segue.__all__))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_the_one_its_module_defines(name):
    assert getattr(segue, name) is getattr(importlib.import_module(segue._HOMES[name]), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_class_or_function_says_what_it_is(name):
    value = inspect.unwrap(getattr(segue, name))
    if inspect.isclass(value) or inspect.isfunction(value):
        assert (value.__doc__ or "").strip().endswith(".")
        assert value.__module__ == segue._HOMES[name]


def test_no_public_name_hides_a_module():
    """Importing `segue.x` sets the attribute `x` of the package, and it would win over a lazy name."""
    modules = {module.name for module in pkgutil.iter_modules(segue.__path__)}
    assert modules.isdisjoint(segue.__all__)


def test_dir_lists_the_public_names():
    assert dir(segue) == sorted(segue.__all__)


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'segue' has no attribute 'Contxt'"):
        segue.Contxt  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_import_star_gives_the_public_names():
    namespace: dict[str, object] = {}
    exec("from segue import *", namespace)
    assert set(segue.__all__) <= set(namespace)


def test_import_loads_nothing_but_itself():
    assert {name for name in _loaded_after("import segue") if not name.startswith("importlib")} == {"segue"}


# What would make a light use heavy: I/O libraries, the extras, and the two places with data.
HEAVY = {"asyncio", "botocore", "click", "httpx2", "rich", "socket", "ssl", "starlette", "uvicorn"}
CATALOGUE = {"segue.models.catalogue"}

PURE = [name for module, names in segue._MODULES.items() if ".client." not in module for name in names]

USES = {
    "the types": ("from segue import Context, Model, UserMessage, SegueError", HEAVY | CATALOGUE),
    "stored files": ("from segue import load, dump, read_session, append_message", HEAVY | CATALOGUE),
    "the catalogue": ("from segue import get_model; get_model", HEAVY),
    "all but the client": (f"from segue import {', '.join(PURE)}", HEAVY),
    "everything": ("from segue import *", HEAVY - {"asyncio", "socket", "ssl"}),  # the client's; its library is not
}


@pytest.mark.parametrize(("statement", "unwanted"), USES.values(), ids=USES.keys())
def test_a_use_loads_no_more_than_it_needs(statement, unwanted):
    assert _loaded_after(statement).isdisjoint(unwanted)
