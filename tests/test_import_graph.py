"""No module imports itself by way of others, not even for types."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"


def imported(body: Sequence[ast.stmt], known: Mapping[str, object]) -> Iterator[str]:
    """Find the modules that a module names when it is imported, and those whose types it needs."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module or "" for name in names)
        elif isinstance(node, ast.If | ast.Try):
            yield from imported([*node.body, *node.orelse], known)


def find_circle(sources: Mapping[str, str]) -> list[str] | None:
    graph = {name: set(imported(ast.parse(text).body, sources)) & sources.keys() for name, text in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_modules_import_each_other_for_values_or_types():
    paths = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.rglob("*.py")}
    found = find_circle({name.removesuffix(".__init__"): path.read_text("utf-8") for path, name in paths.items()})
    assert found is None, " -> ".join(found or ())


def test_a_planted_circle_is_found():
    planted = {
        "a": "from __future__ import annotations\nfrom b import B",
        "b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from c import C",
        "c": "try:\n    import a\nexcept ImportError:\n    pass",
    }
    assert set(find_circle(planted) or ()) == {"a", "b", "c"}
    assert find_circle({**planted, "b": "def f():\n    from c import C"}) is None
