"""The lines of a Claude Code session as a tree, and the path that the program sends.

Facts this file rests on (Claude Code 2.1.325, seen 2026-11-15):
- A line with a `uuid` hangs under its `parentUuid`; the newest line is the end of the active path.
- The result of the n-th parallel call hangs under the line of that call; the next line hangs under the last result. So
  results beside the path belong to it.
- `system/compact_boundary` has no parent, only `logicalParentUuid`. The messages of
  `compactMetadata.preservedSegment` (head to tail) are sent behind the summary, although they are old lines; a later
  line may hang under the old tail.
- Lines without a `uuid` repeat messages and hold settings; they are no part of the conversation.
- An unknown kind of line is passed over; if it has a `uuid`, the path may run through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec

from segue.histories.kit.lines import Line, decode_object, last_number, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes

CONVERSATION: Final = frozenset({"user", "assistant", "attachment", "system"})


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a line that place it in the tree; the rest of a line is parsed only if it is on the path."""

    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    is_sidechain: bool = False
    subtype: str | None = None
    agent_id: str | None = None


_HEADS: Final = msgspec.json.Decoder(_Head)


@final
class Node:
    """One line with a uuid. Of the bytes of the line only its place in the file is kept."""

    __slots__ = (
        "_data", "_fields", "_place", "agent", "children", "logical_parent", "number", "parent", "side", "size",
        "subtype", "type", "uuid",
    )  # fmt: skip

    def __init__(self, head: _Head, uuid: str, number: int, data: bytes, place: slice) -> None:
        self.type: str = head.type
        self.uuid: str = uuid
        self.parent: str | None = head.parent_uuid
        self.logical_parent: str | None = head.logical_parent_uuid
        self.side: bool = head.is_sidechain
        self.subtype: str | None = head.subtype
        self.agent: str | None = head.agent_id
        self.number: int = number
        self.size: int = place.stop - place.start
        self.children: list[Node] = []
        self._data: bytes = data
        self._place: slice = place
        self._fields: dict[str, Any] | None = None

    def fields(self, notes: Notes) -> dict[str, Any]:
        """Parse the whole line, once."""
        if self._fields is None:
            line = Line(self.number, self._data[self._place])
            self._fields = decode_object(line, notes) or {}
        return self._fields


@final
@dataclass
class Boundary:
    """A compaction: its line, the summary, and the first and last old line that are still sent."""

    node: Node
    anchor: str | None = None
    head: str | None = None
    tail: str | None = None


@final
@dataclass
class Tree:
    """All lines with a uuid, in the order of the file, and titles and other facts from the lines without one."""

    nodes: dict[str, Node]
    facts: dict[str, dict[str, Any]]
    boundaries: dict[str, Boundary]


_FACTS: Final = frozenset({"custom-title", "ai-title", "summary", "agent-name", "cost-state", "last-prompt"})
"""Kinds of lines without a uuid whose last occurrence is parsed: titles, cost, the last prompt."""


def read_tree(data: bytes, notes: Notes) -> Tree:
    """Read all lines; those without a uuid are noted as records."""
    tree = Tree({}, {}, {})
    nodes = tree.nodes
    last = last_number(data)
    number = start = 0
    while start < len(data):
        number += 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line, begin, start = data[start:end], start, end + 1
        try:
            head = _HEADS.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            if not line or line.isspace():
                continue
            head = _read_head(Line(number, line), notes, last=number == last)
            if head is None:
                continue
        uuid = head.uuid
        if not uuid or head.type == "":
            if head.type in _FACTS:
                tree.facts[head.type] = decode_object(Line(number, line), notes) or {}
            notes.record(head.type or "unknown", number, len(line), _kept(line, notes) if notes.keeps else None)
        elif uuid in nodes:
            notes.record("repeated line", number, len(line), _kept(line, notes) if notes.keeps else None)
        else:
            nodes[uuid] = Node(head, uuid, number, data, slice(begin, end))
    for node in nodes.values():
        if node.parent is not None and (parent := nodes.get(node.parent)) is not None:
            parent.children.append(node)
        if node.subtype == "compact_boundary":
            tree.boundaries[node.uuid] = _read_boundary(node, notes)
    return tree


def _kept(line: bytes, notes: Notes) -> object:
    return decode_object(Line(0, line), Notes()) if notes.keeps else None


def _read_head(line: Line, notes: Notes, *, last: bool) -> _Head | None:
    """Read the head of a line whose fields have other types than they should."""
    fields = decode_object(line, notes, last=last)
    if fields is None:
        return None
    side = fields.get("isSidechain")
    return _Head(
        type=text_of(fields.get("type")) or "",
        uuid=text_of(fields.get("uuid")),
        parent_uuid=text_of(fields.get("parentUuid")),
        logical_parent_uuid=text_of(fields.get("logicalParentUuid")),
        is_sidechain=side is True,
        subtype=text_of(fields.get("subtype")),
        agent_id=text_of(fields.get("agentId")),
    )


def _read_boundary(node: Node, notes: Notes) -> Boundary:
    segment = object_of(object_of(node.fields(notes).get("compactMetadata")).get("preservedSegment"))
    return Boundary(
        node, text_of(segment.get("anchorUuid")), text_of(segment.get("headUuid")), text_of(segment.get("tailUuid"))
    )


def find_leaf(tree: Tree, *, side: bool) -> Node | None:
    """Give the newest line of the conversation: the end of the active path."""
    found = (node for node in reversed(tree.nodes.values()) if node.type in CONVERSATION and node.side == side)
    return next(found, None)


@final
@dataclass
class ActivePath:
    """The lines from the first to the last, and the compaction that the path begins with, if there is one."""

    nodes: list[Node]
    boundary: Boundary | None
    kept: list[Node]
    """The old lines that are sent behind the summary."""


def walk(tree: Tree, leaf: Node) -> ActivePath:
    """Walk from the end of a path to its beginning: the first line, or the newest compaction."""
    by_tail = {boundary.tail: boundary for boundary in tree.boundaries.values() if boundary.tail is not None}
    nodes: list[Node] = []
    seen: set[str] = set()
    node: Node | None = leaf
    below: Node | None = None
    while node is not None and node.uuid not in seen:
        boundary = by_tail.get(node.uuid)
        if boundary is not None and below is not None and below.number > boundary.node.number:
            # The path goes on under the old tail: the summary and what is kept stand before this line.
            kept = _segment(tree, boundary)
            above = _above(tree, boundary)
            return ActivePath([*above, *kept, *reversed(nodes)], boundary, kept)
        seen.add(node.uuid)
        nodes.append(node)
        if node.uuid in tree.boundaries:
            return _after_boundary(tree, tree.boundaries[node.uuid], nodes[::-1])
        below, node = node, tree.nodes.get(node.parent) if node.parent is not None else None
    return ActivePath(nodes[::-1], None, [])


def _above(tree: Tree, boundary: Boundary) -> list[Node]:
    """Give the boundary and the lines up to the summary."""
    nodes: list[Node] = []
    seen: set[str] = set()
    node = tree.nodes.get(boundary.anchor) if boundary.anchor is not None else None
    while node is not None and node.uuid not in seen and node.uuid != boundary.node.uuid:
        seen.add(node.uuid)
        nodes.append(node)
        node = tree.nodes.get(node.parent) if node.parent is not None else None
    return [boundary.node, *reversed(nodes)]


def _after_boundary(tree: Tree, boundary: Boundary, nodes: list[Node]) -> ActivePath:
    kept = _segment(tree, boundary)
    present = {node.uuid for node in nodes}
    if not kept or any(node.uuid in present for node in kept):
        return ActivePath(nodes, boundary, [node for node in kept if node.uuid in present])
    at = next((at for at, node in enumerate(nodes) if node.uuid == boundary.anchor), 0)
    return ActivePath([*nodes[: at + 1], *kept, *nodes[at + 1 :]], boundary, kept)


def _segment(tree: Tree, boundary: Boundary) -> list[Node]:
    """Give the old lines from head to tail; none if they are not connected."""
    nodes: list[Node] = []
    seen: set[str] = set()
    node = tree.nodes.get(boundary.tail) if boundary.tail is not None else None
    while node is not None and node.uuid not in seen:
        seen.add(node.uuid)
        nodes.append(node)
        if node.uuid == boundary.head:
            return nodes[::-1]
        node = tree.nodes.get(node.parent) if node.parent is not None else None
    return []


def with_results(path: list[Node], notes: Notes) -> list[Node]:
    """Add the results of parallel calls that hang beside the path, behind the last line of their turn."""
    present = {node.uuid for node in path}
    nodes: list[Node] = []
    waiting: list[Node] = []
    for node in path:
        if node.type == "assistant":
            if waiting and not _same_turn(waiting[0], node, nodes, notes):
                nodes += waiting
                waiting = []
            nodes.append(node)
            waiting += (child for child in node.children if child.uuid not in present and _is_result(child, notes))
            continue
        if waiting:
            batch = [*waiting, node] if _is_result(node, notes) else waiting
            nodes += sorted(batch, key=lambda each: each.number)
            waiting = []
            if node in batch:
                continue
        nodes.append(node)
    return [*nodes, *sorted(waiting, key=lambda each: each.number)]


def _same_turn(waiting: Node, node: Node, nodes: list[Node], notes: Notes) -> bool:
    """Whether a line is of the same reply as the calls whose results wait."""
    del waiting
    last = next((each for each in reversed(nodes) if each.type == "assistant"), None)
    return last is not None and _message_id(last, notes) == _message_id(node, notes)


def _message_id(node: Node, notes: Notes) -> object:
    return object_of(node.fields(notes).get("message")).get("id")


def _is_result(node: Node, notes: Notes) -> bool:
    if node.type != "user":
        return False
    content = object_of(node.fields(notes).get("message")).get("content")
    return any(block.get("type") == "tool_result" for block in objects_of(content))


def find_ends(tree: Tree, used: set[str], notes: Notes) -> Iterator[list[Node]]:
    """Give each other branch: its lines that are on no other path, from the first to the last."""
    taken = set(used)
    for leaf in reversed(tree.nodes.values()):
        if leaf.children or leaf.side or leaf.uuid in taken or leaf.type not in CONVERSATION:
            continue
        lines: list[Node] = []
        node: Node | None = leaf
        while node is not None and node.uuid not in taken:
            taken.add(node.uuid)
            lines.append(node)
            node = tree.nodes.get(node.parent) if node.parent is not None else None
        if any(each.type in {"user", "assistant"} for each in lines):
            yield lines[::-1]
        else:
            for each in lines:
                notes.record(f"{each.type} beside the path", each.number, each.size)
