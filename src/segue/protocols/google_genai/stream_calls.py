"""A call whose arguments come piece by piece.

Facts this file rests on:
- At Vertex, if the request enables it, a call begins with its name and `willContinue`, continues with `partialArgs`
  (each the path of a value and the value, of a text as much as there is) and ends with a piece without `willContinue`.
                        (google-genai 3.1.0: FunctionCall, PartialArg, read 2026-11-15; code-assistant #148)
- The path is a JSON path, `$.foo.bar[0].data`.                                          (the same; RFC 9535)

Texts are kept in pieces and joined once. A path that cannot be parsed is used as the name of an argument.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias, cast

from segue.conversation.arguments import MAX_LEVELS
from segue.protocols.google_genai.content import CALL, SIGNATURE
from segue.protocols.google_genai.keys import read_keys
from segue.protocols.kit.assembly import Part, join_chunks
from segue.protocols.kit.json_values import Block, Wire, object_of

Step: TypeAlias = str | int

_STEP: Final = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_VALUES: Final = ("stringValue", "numberValue", "boolValue")


class _Growing:
    """A text that is still being written."""

    __slots__ = ("chunks",)

    def __init__(self, text: str) -> None:
        self.chunks = [text]


class PartialCall:
    """One call under construction; `call` holds its name and id on the wire."""

    def __init__(self, part: Part, call: Wire) -> None:
        self.part = part
        self._call = call
        self._tree: Wire = {}
        self._open: dict[str, _Growing] = {}

    def add(self, piece: object) -> None:
        """Add one piece of the arguments."""
        wire = read_keys(object_of(piece))
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
        """Add arguments that came whole."""
        self._tree.update(arguments)

    def finish(self) -> Wire:
        """Set the arguments of the part; give the call as it would have been sent whole."""
        self.part.arguments = cast("Wire", _joined(self._tree))
        block: Wire = {CALL: {**self._call, "args": self.part.arguments}}
        return block if self.part.signature is None else {**block, SIGNATURE: self.part.signature}

    def _put(self, steps: list[Step], value: object) -> None:
        node: object = self._tree
        for at, step in enumerate(steps):
            is_last = at == len(steps) - 1
            below: object = value if is_last else [] if isinstance(steps[at + 1], int) else {}
            node = _set(node, step, below, replaces=is_last)


def _set(node: object, step: Step, value: object, *, replaces: bool) -> object:
    """Set the value at one step, or keep the one that is there; give the value that is there then."""
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
    return value  # a name inside a list is dropped


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
    return steps if steps and isinstance(steps[0], str) and len(steps) <= MAX_LEVELS else [path]


def _joined(node: object) -> object:
    if isinstance(node, _Growing):
        return join_chunks(node.chunks)
    if isinstance(node, dict):
        return {key: _joined(value) for key, value in cast("Wire", node).items()}
    if isinstance(node, list):
        return [_joined(value) for value in cast("list[object]", node)]
    return node
