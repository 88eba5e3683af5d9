"""A call whose arguments come piece by piece.

Facts this file rests on:
- At Vertex, where it is asked for, a call begins with its name and `willContinue`, goes on with `partialArgs` (each the
  place of a value and the value, of texts as much as there is) and ends with a piece that does not continue.
                        (google-genai 3.1.0: FunctionCall, PartialArg, read 2026-11-15; code-assistant #148)
- The place is a JSON path, `$.foo.bar[0].data`.                                         (the same; RFC 9535)

Texts are kept in pieces and joined once. A place that cannot be read is taken for the name of an argument.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias, cast

from segue.protocols.google_genai.verbatim import Block, Wire, object_of, open_object
from segue.protocols.kit.assembly import Part, join_chunks

Step: TypeAlias = str | int

_STEP: Final = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")


class _Growing:
    """A text that is still being written."""

    __slots__ = ("chunks",)

    def __init__(self, text: str) -> None:
        self.chunks = [text]


class PartialCall:
    """One call under construction."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._tree: Wire = {}
        self._open: dict[str, _Growing] = {}

    def add(self, piece: object) -> None:
        """Take in one piece of the arguments."""
        wire, _ = open_object(object_of(piece))
        path = wire.get("jsonPath")
        if not isinstance(path, str):
            return
        key = next((key for key in _VALUES if key in wire), None)
        value: object = wire[key] if key is not None else None
        growing = self._open.get(path)
        if isinstance(value, str):
            if growing is None:
                growing = self._open[path] = _Growing(value)
                self._put(_steps(path), growing)
            else:
                growing.chunks.append(value)
        elif growing is None:
            self._put(_steps(path), value)
        if wire.get("willContinue") is not True:
            self._open.pop(path, None)

    def merge(self, arguments: Block) -> None:
        """Take in arguments that came whole."""
        self._tree.update(arguments)

    def finish(self) -> None:
        """Give the part what has arrived."""
        self.part.arguments = cast("Wire", _settled(self._tree))

    def _put(self, steps: list[Step], value: object) -> None:
        node: object = self._tree
        for at, step in enumerate(steps):
            is_last = at == len(steps) - 1
            below: object = value if is_last else [] if isinstance(steps[at + 1], int) else {}
            node = _set(node, step, below, replaces=is_last)


def _set(node: object, step: Step, value: object, *, replaces: bool) -> object:
    """Set what stands at one step, or keep what is there already; gives what stands there then."""
    if isinstance(node, dict):
        held = cast("dict[Step, object]", node)
        if replaces or not isinstance(held.get(step), (dict, list)):
            held[step] = value
        return held[step]
    if isinstance(node, list) and isinstance(step, int):
        items = cast("list[object]", node)
        if step >= len(items):
            items.extend([None] * (step - len(items) + 1))
        if replaces or not isinstance(items[step], (dict, list)):
            items[step] = value
        return items[step]
    return value  # a name inside of a list: nowhere to put it


def _steps(path: str) -> list[Step]:
    rest = path.removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            return [path]
        name, number, single, double = found.groups()
        steps.append(int(number) if number is not None else name or single or double or "")
        at = found.end()
    return steps if steps and isinstance(steps[0], str) else [path]


def _settled(node: object) -> object:
    if isinstance(node, _Growing):
        return join_chunks(node.chunks)
    if isinstance(node, dict):
        return {key: _settled(value) for key, value in cast("Wire", node).items()}
    if isinstance(node, list):
        return [_settled(value) for value in cast("list[object]", node)]
    return node
