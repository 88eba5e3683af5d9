"""Every field of a dialect is read by some code: a field that nothing reads would be a promise of the documentation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from property_testing import SOURCES
from segue.models.dialect import Dialect


def _reads(tree: ast.AST, *, own: bool) -> Iterator[str]:
    """Give the fields that a module reads of a value that is called a dialect; in its own module also of `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            holder = node.value.func if isinstance(node.value, ast.Call) else node.value
            name = ast.unparse(holder).rpartition(".")[2].strip("_")
            if name.endswith("dialect") or (own and name == "self"):
                yield node.attr


def test_every_field_is_read():
    read = {
        field
        for path in SOURCES.rglob("*.py")
        if b"dialect" in (source := path.read_bytes())
        for field in _reads(ast.parse(source), own=path.name == "dialect.py")
    }
    assert set(Dialect.__struct_fields__) <= read


def test_only_what_is_read_of_a_dialect_counts():
    module = ast.parse("a.dialect.auth; self.path; {'store': 1}; Dialect(effort=False); resolve_dialect(m).call_ids")
    assert set(_reads(module, own=False)) == {"auth", "call_ids"}
