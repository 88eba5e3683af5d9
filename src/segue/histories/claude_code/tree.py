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

from segue.histories.kit.lines import Line, content_end, decode_object, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes

CONVERSATION: Final = frozenset({"user", "assistant", "attachment", "system"})


class _Block(msgspec.Struct, frozen=True, gc=False):
    type: str = ""


class _Message(msgspec.Struct, frozen=True, gc=False):
    id: str | None = None
    content: list[_Block] | str | None = None


@final
class Node(msgspec.Struct, rename="camel"):
    """One line with a uuid: the fields that place it in the tree.

    Of the bytes of the line only its place in the file is kept; the rest of it is parsed only if it is on the path.
    Names with `@` are no fields of a line.
    """

    type: str = ""
    uuid: str = ""
    parent: str | None = msgspec.field(default=None, name="parentUuid")
    logical_parent: str | None = msgspec.field(default=None, name="logicalParentUuid")
    side: bool = msgspec.field(default=False, name="isSidechain")
    subtype: str | None = None
    agent: str | None = msgspec.field(default=None, name="agentId")
    message: _Message | None = None
    number: int = msgspec.field(default=0, name="@number")
    size: int = msgspec.field(default=0, name="@size")
    children: list[Node] = msgspec.field(default_factory=list["Node"], name="@children")
    start: int = msgspec.field(default=0, name="@start")
    data: bytes = msgspec.field(default=b"", name="@data")
    parsed: dict[str, Any] | None = msgspec.field(default=None, name="@parsed")

    @property
    def message_id(self) -> str | None:
        """The id of the reply that the line is a part of."""
        return None if self.message is None else self.message.id

    def results(self) -> list[bool]:
        """Give for each block of a line of the user whether it is the result of a tool."""
        content = self.message.content if self.message is not None and self.type == "user" else None
        return [block.type == "tool_result" for block in content] if isinstance(content, list) else []

    def fields(self, notes: Notes) -> dict[str, Any]:
        """Parse the whole line; again only behind `forget`."""
        if self.parsed is None:
            data = self.data[self.start : self.start + self.size]
            try:
                self.parsed = _OBJECTS.decode(data)
            except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
                self.parsed = decode_object(Line(self.number, data), notes) or {}
        return self.parsed

    def forget(self) -> None:
        """Drop what was parsed: the messages of a long session would need the memory twice."""
        self.parsed = None


_NODES: Final = msgspec.json.Decoder(Node)
_OBJECTS: Final = msgspec.json.Decoder(dict[str, Any])


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
            node = _NODES.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            if not line or line.isspace():
                continue
            node = _read_node(Line(number, line), notes, last=end >= last)
            if node is None:
                continue
        uuid = node.uuid
        if not uuid or node.type == "":
            if node.type == "last-prompt":
                _note_checkpoint(tree, decode_object(Line(number, line), notes) or {})
            elif node.type in _FACTS:
                facts[node.type] = Line(number, line)
            notes.record(node.type or "unknown", number, len(line), _kept(line, notes) if notes.keeps else None)
        elif uuid in nodes:
            notes.record("repeated line", number, len(line), _kept(line, notes) if notes.keeps else None)
        else:
            nodes[uuid] = node
            node.number, node.data, node.start, node.size = number, data, begin, end - begin
            if tree.checkpoint is not None and not node.side:
                _pass_checkpoint(tree, node)
    tree.facts = {kind: decode_object(line, notes) or {} for kind, line in facts.items()}
    for node in nodes.values():
        if node.parent is not None and (parent := nodes.get(node.parent)) is not None:
            node.parent = parent.uuid  # one text in memory instead of two
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


def _read_node(line: Line, notes: Notes, *, last: bool) -> Node | None:
    """Read a line whose fields have other types than they should."""
    fields = decode_object(line, notes, last=last)
    if fields is None:
        return None
    message = object_of(fields.get("message"))
    blocks = [_Block(text_of(block.get("type")) or "") for block in objects_of(message.get("content"))]
    return Node(
        type=text_of(fields.get("type")) or "",
        uuid=text_of(fields.get("uuid")) or "",
        parent=text_of(fields.get("parentUuid")),
        logical_parent=text_of(fields.get("logicalParentUuid")),
        side=fields.get("isSidechain") is True,
        subtype=text_of(fields.get("subtype")),
        agent=text_of(fields.get("agentId")),
        message=_Message(text_of(message.get("id")), blocks),
    )


def _note_checkpoint(tree: LineTree, fields: dict[str, Any]) -> None:
    leaf, explicit, before = fields.get("leafUuid"), fields.get("explicit") is True, tree.checkpoint
    if text_of(leaf) is not None:
        same = before is not None and before.leaf == leaf and before.explicit
        tree.checkpoint = Checkpoint(text_of(leaf), explicit or same)
    elif explicit and "leafUuid" in fields:
        tree.checkpoint = Checkpoint(None, explicit)


def _pass_checkpoint(tree: LineTree, node: Node) -> None:
    """Note a line behind the checkpoint: what the user chose holds no longer, and a compaction removes it."""
    if tree.is_cleared or node.subtype == "compact_boundary":
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
