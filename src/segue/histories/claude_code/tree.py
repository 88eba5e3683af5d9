"""The lines of a Claude Code session as a tree.

Facts this file rests on (Claude Code 2.1.325, seen 2026-11-15):
- A line with a `uuid` hangs under its `parentUuid`.
- Lines without a `uuid` repeat messages and hold settings; they are no part of the conversation.
- An unknown kind of line is passed over; if it has a `uuid`, the path may run through it.
- `system/compact_boundary` has no parent, only `logicalParentUuid`. `compactMetadata.preservedMessages` lists old lines
  that are still sent; before, `preservedSegment` named the first and the last of them.
- `last-prompt` has in `leafUuid` the end of the path. `explicit` says that the user went back to it, with null to the
  beginning; it holds until the next line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast, final

import msgspec

from segue.histories.kit.lines import Line, content_end, decode_object, object_of, text_of
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
_OBJECTS: Final = msgspec.json.Decoder(dict[str, Any])


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
            data = self._data[self._place]
            try:
                self._fields = _OBJECTS.decode(data)
            except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
                self._fields = decode_object(Line(self.number, data), notes) or {}
        return self._fields


@final
@dataclass
class Boundary:
    """A compaction: its line, the line that the old ones are sent behind, and the old lines that are still sent."""

    node: Node
    anchor: str | None = None
    head: str | None = None
    tail: str | None = None
    listed: tuple[str, ...] = ()


@final
@dataclass
class Checkpoint:
    """The end of the active path that the program noted; `leaf` is None for the beginning of the session."""

    leaf: str | None
    explicit: bool


@final
@dataclass
class LineTree:
    """All lines with a uuid, in the order of the file, and titles and other facts from the lines without one."""

    nodes: dict[str, Node]
    facts: dict[str, dict[str, Any]]
    boundaries: dict[str, Boundary]
    checkpoint: Checkpoint | None = None

    @property
    def is_cleared(self) -> bool:
        """Whether the user went back to the beginning, so that nothing is sent."""
        return self.checkpoint is not None and self.checkpoint.leaf is None


_FACTS: Final = frozenset({"custom-title", "ai-title", "summary", "agent-name", "cost-state"})
"""Kinds of lines without a uuid whose last occurrence is parsed: titles, cost."""


_RECORD_START: Final = b'{"type":"'
_RECORDS: Final = {
    name.encode(): name
    for name in ("api-request", "api-request-blob", "api-request-shape", "queue-operation", "tools-used", "atis-latch")
}
"""Kinds of lines that never have a uuid."""
_LONGEST_KIND: Final = 32


def read_tree(data: bytes, notes: Notes) -> LineTree:
    """Read all lines; those without a uuid are noted as records."""
    tree = LineTree({}, {}, {})
    nodes = tree.nodes
    facts: dict[str, Line] = {}
    last = content_end(data)
    number = start = 0
    while start < len(data):
        number += 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        begin, start = start, end + 1
        if data.startswith(_RECORD_START, begin) and (kind := _find_record(data, begin, end)) is not None:
            notes.record(kind, number, end - begin, _kept(data[begin:end], notes) if notes.keeps else None)
            continue
        line = data[begin:end]
        try:
            head = _HEADS.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            if not line or line.isspace():
                continue
            head = _read_head(Line(number, line), notes, last=end >= last)
            if head is None:
                continue
        uuid = head.uuid
        if not uuid or head.type == "":
            if head.type == "last-prompt":
                _note_checkpoint(tree, decode_object(Line(number, line), notes) or {})
            elif head.type in _FACTS:
                facts[head.type] = Line(number, line)
            notes.record(head.type or "unknown", number, len(line), _kept(line, notes) if notes.keeps else None)
        elif uuid in nodes:
            notes.record("repeated line", number, len(line), _kept(line, notes) if notes.keeps else None)
        else:
            nodes[uuid] = Node(head, uuid, number, data, slice(begin, end))
            if tree.checkpoint is not None and not head.is_sidechain:
                _pass_checkpoint(tree, head)
    tree.facts = {kind: decode_object(line, notes) or {} for kind, line in facts.items()}
    for node in nodes.values():
        if node.parent is not None and (parent := nodes.get(node.parent)) is not None:
            parent.children.append(node)
        if node.subtype == "compact_boundary":
            tree.boundaries[node.uuid] = _read_boundary(node, notes)
    return tree


def _find_record(data: bytes, begin: int, end: int) -> str | None:
    """Give the kind of a line that repeats the conversation; it is not parsed, because most of a file is such lines."""
    begin += len(_RECORD_START)
    kind = _RECORDS.get(data[begin : data.find(b'"', begin, begin + _LONGEST_KIND)])
    return kind if kind is not None and data.endswith(b"}", begin, end) else None


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


def _note_checkpoint(tree: LineTree, fields: dict[str, Any]) -> None:
    leaf, explicit, before = fields.get("leafUuid"), fields.get("explicit") is True, tree.checkpoint
    if text_of(leaf) is not None:
        same = before is not None and before.leaf == leaf and before.explicit
        tree.checkpoint = Checkpoint(text_of(leaf), explicit or same)
    elif explicit and "leafUuid" in fields:
        tree.checkpoint = Checkpoint(None, explicit)


def _pass_checkpoint(tree: LineTree, head: _Head) -> None:
    """Note a line behind the checkpoint: what the user chose holds no longer, and a compaction removes it."""
    if tree.is_cleared or head.subtype == "compact_boundary":
        tree.checkpoint = None
    elif tree.checkpoint is not None and tree.checkpoint.explicit:
        tree.checkpoint = Checkpoint(tree.checkpoint.leaf, explicit=False)


def _read_boundary(node: Node, notes: Notes) -> Boundary:
    metadata = object_of(node.fields(notes).get("compactMetadata"))
    listed = object_of(metadata.get("preservedMessages"))
    uuids = listed.get("uuids")
    if isinstance(uuids, list):
        given = tuple(str(uuid) for uuid in cast("list[object]", uuids))
        return Boundary(node, text_of(listed.get("anchorUuid")), tail=given[-1] if given else None, listed=given)
    segment = object_of(metadata.get("preservedSegment"))
    return Boundary(
        node, text_of(segment.get("anchorUuid")), text_of(segment.get("headUuid")), text_of(segment.get("tailUuid"))
    )
