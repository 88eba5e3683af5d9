"""`import segue`: every public name is there, has a docstring and is known to type checkers; imports are lazy."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import segue
from segue._lazy import read_stub

SOURCE = Path(segue.__file__).parent
STUBS = sorted(SOURCE.rglob("__init__.pyi"))
MODULES, FIRST = read_stub((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
SUBMODULES = sorted(name for name, module in MODULES.items() if module == "segue")
NAMES = sorted(name for name in MODULES if name not in SUBMODULES and name != "__version__")


def _package(stub: Path) -> str:
    return ".".join(("segue", *stub.parent.relative_to(SOURCE).parts))


def _type_checker_view(stub: Path) -> tuple[dict[str, str], list[str]]:
    """Read a stub as a type checker does: the names that are imported as themselves, and `__all__`."""
    modules: dict[str, str] = {}
    all_names: list[str] = []
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        match node:
            case ast.ImportFrom(module=str(module), level=0):
                modules |= {alias.name: module for alias in node.names if alias.asname == alias.name}
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                all_names = ast.literal_eval(node.value)
            case _:
                pytest.fail(f"{stub}:{node.lineno}: a stub holds imports from modules and `__all__`, nothing else")
    return modules, all_names


def _loaded_after(statement: str, *, path: Path | None = None) -> set[str]:
    """Run a statement in a new interpreter and list the modules it loaded."""
    first = "" if path is None else f"sys.path.insert(0, {str(path)!r}); "
    program = f"import sys; {first}before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("stub", STUBS, ids=_package)
def test_type_checkers_see_exactly_what_is_found_at_run_time(stub):
    assert _type_checker_view(stub) == read_stub(stub.read_text(encoding="utf-8"))


@pytest.mark.parametrize("stub", STUBS, ids=_package)
def test_a_stub_lists_only_names_that_exist(stub):
    package = importlib.import_module(_package(stub))
    modules, all_names = read_stub(stub.read_text(encoding="utf-8"))
    assert set(all_names) <= set(modules)
    assert len(all_names) == len(set(all_names))
    assert package.__all__ == all_names
    for name, module in modules.items():
        if module == package.__name__:
            assert getattr(package, name) is importlib.import_module(f"{module}.{name}")
        else:
            assert getattr(package, name) is getattr(importlib.import_module(module), name)


def test_the_first_list_can_be_read_at_a_glance():
    """A first program needs values, verbs, a client and one error; the rest is in submodules, and in docs/reference."""
    assert len(FIRST) <= 60
    errors = [
        name for name in FIRST if isinstance(getattr(segue, name), type) and issubclass(getattr(segue, name), Exception)
    ]
    assert errors == ["SegueError"]


@pytest.mark.parametrize("module", SUBMODULES)
def test_a_public_submodule_has_a_docstring_and_is_reached_by_attribute(module):
    done = subprocess.run(
        [sys.executable, "-c", f"import segue; print(len(segue.{module}.__doc__))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) > 50


@pytest.mark.parametrize("module", ["events", "framing", "wire"])
def test_a_public_submodule_shares_its_names_with_the_package(module):
    submodule = importlib.import_module(f"segue.{module}")
    for name in submodule.__all__:
        assert getattr(segue, name) is getattr(submodule, name)


def test_every_error_is_importable_from_the_package():
    tree = [value for value in vars(segue.errors).values() if isinstance(value, type)]
    public = [kind for kind in tree if issubclass(kind, (Exception, Warning)) and kind.__name__[0] != "_"]
    assert all(getattr(segue, kind.__name__) is kind for kind in public)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_class_or_function_has_a_docstring(name):
    value = inspect.unwrap(getattr(segue, name))
    if inspect.isclass(value) or inspect.isfunction(value):
        assert (value.__doc__ or "").strip().endswith(".")
        assert value.__module__ == MODULES[name]


def test_no_public_name_hides_a_module():
    """Importing `segue.x` sets the attribute `x` of the package, and it would win over a lazy name."""
    modules = {module.name for module in pkgutil.iter_modules(segue.__path__)}
    assert modules.isdisjoint(NAMES)


def test_dir_lists_the_first_names_and_the_submodules():
    program = "import segue; print(*dir(segue))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted([*FIRST, *SUBMODULES])


def test_a_misspelt_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'segue' has no attribute 'Contxt'"):
        segue.Contxt  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_import_star_gives_the_first_names():
    namespace: dict[str, object] = {}
    exec("from segue import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(FIRST)


def test_import_loads_nothing_but_itself():
    loaded = {name for name in _loaded_after("import segue") if not name.startswith("importlib")}
    assert loaded == {"segue", "segue._lazy"}


def test_names_are_found_in_a_zip_file(tmp_path):
    archive = shutil.make_archive(str(tmp_path / "segue"), "zip", SOURCE.parent, "segue")
    loaded = _loaded_after(
        f"import segue; assert segue.__file__.startswith({archive!r}); segue.dump", path=Path(archive)
    )
    assert "segue.conversation.stored" in loaded


# What would make a light use heavy: I/O libraries, the extras, and the two places with data.
HEAVY = {"asyncio", "botocore", "click", "httpx2", "rich", "socket", "ssl", "starlette", "uvicorn"}
CATALOGUE = {"segue.models.catalogue"}

PURE = [name for name in NAMES if ".client." not in MODULES[name]]

USES = {
    "the types": ("from segue import Context, Model, UserMessage, SegueError", HEAVY | CATALOGUE),
    "stored files": ("from segue import load, dump, read_session, append_message", HEAVY | CATALOGUE),
    "the errors": ("import segue; segue.errors.LoadError", HEAVY | CATALOGUE | {"msgspec"}),
    "the events": ("import segue; segue.events.Event", HEAVY | CATALOGUE),
    "the framing": ("from segue.framing import SseDecoder", HEAVY | CATALOGUE | {"segue.framing.aws_event_stream"}),
    "the catalogue": ("from segue import get_model; get_model", HEAVY),
    "the codecs": ("import segue.wire", HEAVY),
    "all but the client": (f"from segue import {', '.join(PURE)}", HEAVY),
    "everything": ("from segue import *", HEAVY - {"asyncio", "socket", "ssl"}),  # the client's; its library is not
}


@pytest.mark.parametrize(("statement", "unwanted"), USES.values(), ids=USES.keys())
def test_a_use_loads_no_more_than_it_needs(statement, unwanted):
    assert _loaded_after(statement).isdisjoint(unwanted)
