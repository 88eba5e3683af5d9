"""Check that calls of functions in a namespace name it.

Facts this file rests on:
- "Missing namespace for function_call 'x'."                 (pi #7709, 2026-08-06; vercel/ai #15193, 2026-05-12)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from segue.protocols.kit.codec import JsonObject, Violation
from segue.protocols.kit.json_values import Block, kind_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import objects_in


def check_namespaces(body: JsonObject, items: Sequence[tuple[int, Block]]) -> Iterator[Violation]:
    """Find calls without a namespace whose function is declared in a namespace alone."""
    tools = objects_in(body.get("tools"))
    spaces = [tool for tool in tools if tool.get("type") == "namespace"]
    if not spaces:
        return
    alone = {text_of(tool.get("name")) for tool in tools if tool.get("type") != "namespace"}
    inside = {text_of(inner.get("name")): text_of(tool.get("name")) for tool in spaces for inner in _inner(tool)}
    for index, item in items:
        name = text_of(item.get("name"))
        if kind_of(item) != "function_call" or item.get("namespace") is not None or name is None:
            continue
        if name in inside and name not in alone:
            message = f"{name!r} is a function of the namespace {inside[name]!r}; add `namespace` to the call"
            yield Violation("missing_namespace", ("input", index, "namespace"), message)


def _inner(tool: Block) -> list[Block]:
    return objects_in(tool.get("tools"))
