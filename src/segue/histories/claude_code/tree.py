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
from segue.histories.kit.stamps import milliseconds_of

CONVERSATION: Final = frozenset({"user", "assistant", "attachment", "system"})


@final
class Node(msgspec.Struct):
    """One line with a uuid: the fields that place it in the tree, and the rest of it until it is read."""

    type: str
    uuid: str
    parent: str | None
    logical_parent: str | None
    side: bool
    subtype: str | None
    agent: str | None
    message_id: str | None
    """The id of the reply that the line is a part of."""
    results: tuple[bool, ...]
    """For each block of a line of the user, whether it is the result of a tool."""
    number: int
    data: bytes
    start: int
    size: int
    timestamp: str | None
    parsed: dict[str, Any] | None
    children: list[Node] = []

    def fields(self, notes: Notes) -> dict[str, Any]:
        """Give the whole line; it is parsed again behind `forget`."""
        if self.parsed is None:
            line = Line(self.number, self.data[self.start : self.start + self.size])
            self.parsed = decode_object(line, notes) or {}
        return self.parsed

    def forget(self) -> None:
        """Drop what was parsed: the messages of a long session would need the memory twice."""
        self.parsed = None


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
    _stamps: dict[bool, list[tuple[int, int, Node]]] | None = None
    _replies: dict[str, list[Node]] | None = None

    def stamps(self, *, side: bool) -> list[tuple[int, int, Node]]:
        """Give the lines that have a time, sorted by it and then in the order of the file, with time and position."""
        if self._stamps is None:
            self._stamps = {False: [], True: []}
            for node in self.nodes.values():
                if (time := milliseconds_of(node.timestamp)) is not None:
                    self._stamps[node.side].append((time, node.number, node))
            for listed in self._stamps.values():
                listed.sort(key=lambda each: each[:2])
        return self._stamps[side]

    def lines_of(self, reply: str) -> list[Node]:
        """Give the lines of a reply, in the order of the file."""
        if self._replies is None:
            self._replies = {}
            for node in self.nodes.values():
                if node.message_id and node.type == "assistant":
                    self._replies.setdefault(node.message_id, []).append(node)
        return self._replies.get(reply, [])

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
_REPEATED: Final = ("sessionId", "cwd", "version", "gitBranch", "userType")
"""Fields with the same text on most lines: it is kept once."""


def read_tree(data: bytes, notes: Notes) -> LineTree:
    """Read all lines; those without a uuid are noted as records."""
    tree = LineTree({}, {}, {})
    nodes = tree.nodes
    texts: dict[str, str] = {}
    view, last = memoryview(data), content_end(data)  # a line is not copied
    number = start = 0
    while start < len(data):
        number += 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        begin, start = start, end + 1
        if data.startswith(_RECORD_START, begin) and (kind := _find_record(data, begin, end)) is not None:
            notes.record(kind, number, end - begin, _kept(data[begin:end], notes) if notes.keeps else None)
            continue
        try:
            fields = _OBJECTS.decode(view[begin:end])
        except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
            line = data[begin:end]
            if not line or line.isspace():
                continue
            found = decode_object(Line(number, line), notes, last=end >= last)
            if found is None:
                continue
            fields = found
        kind, uuid = fields.get("type"), fields.get("uuid")
        if type(kind) is not str or type(uuid) is not str:
            kind, uuid = text_of(kind) or "", text_of(uuid)
        if not uuid or not kind:
            if kind == "last-prompt":
                _note_checkpoint(tree, fields)
            elif kind in _FACTS:
                tree.facts[kind] = fields
            notes.record(kind or "unknown", number, end - begin, fields if notes.keeps else None)
        elif uuid in nodes and not _is_repeated(nodes[uuid], fields, data[begin:end], notes):
            notes.unreadable(number, "another line with the same uuid")
        elif uuid in nodes:
            notes.record("repeated line", number, end - begin, fields if notes.keeps else None)
        else:
            for name in _REPEATED:
                if type(value := fields.get(name)) is str:
                    fields[name] = texts.setdefault(value, value)
            nodes[uuid] = node = _make_node(kind, uuid, fields, (number, data, begin, end - begin))
            if tree.checkpoint is not None and not node.side:
                _pass_checkpoint(tree, node)
    _link(tree, notes)
    return tree


def _is_repeated(node: Node, fields: dict[str, Any], line: bytes, notes: Notes) -> bool:
    """Whether a line with the uuid of an earlier one repeats it; that one is not parsed again for the same bytes."""
    if node.size == len(line) and node.data.startswith(line, node.start):
        return True
    return _content_of(fields) == _content_of(node.fields(notes))


def _content_of(fields: dict[str, Any]) -> tuple[object, ...]:
    """Give what a line says, for lines with the same uuid."""
    return (object_of(fields.get("message")).get("content"), fields.get("content"), fields.get("attachment"))


def _link(tree: LineTree, notes: Notes) -> None:
    """Give each line the lines under it, and read the compactions."""
    for node in tree.nodes.values():
        if node.parent is not None and (parent := tree.nodes.get(node.parent)) is not None:
            node.parent = parent.uuid  # one text in memory instead of two
            parent.children.append(node)
        if node.subtype == "compact_boundary":
            tree.boundaries[node.uuid] = _read_boundary(node, notes)


def _find_record(data: bytes, begin: int, end: int) -> str | None:
    """Give the kind of a line that repeats the conversation; it is not parsed, because most of a file is such lines."""
    begin += len(_RECORD_START)
    kind = _RECORDS.get(data[begin : data.find(b'"', begin, begin + _LONGEST_KIND)])
    return kind if kind is not None and data.endswith(b"}", begin, end) else None


def _kept(line: bytes, notes: Notes) -> object:
    return decode_object(Line(0, line), Notes()) if notes.keeps else None


def _make_node(kind: str, uuid: str, fields: dict[str, Any], place: tuple[int, bytes, int, int]) -> Node:
    """Make the node of a line. There are many: what most lines do not have is not looked at."""
    parent, message = fields.get("parentUuid"), fields.get("message")
    reply: str | None = None
    results: tuple[bool, ...] = ()
    if type(message) is dict:
        given = cast("dict[str, Any]", message)
        if kind == "assistant":
            reply = text_of(given.get("id"))
        elif type(given.get("content")) is list:
            results = tuple([block.get("type") == "tool_result" for block in objects_of(given["content"])])
    return Node(
        kind,
        uuid,
        (parent or None) if type(parent) is str else None,
        text_of(fields["logicalParentUuid"]) if "logicalParentUuid" in fields else None,
        fields.get("isSidechain") is True,
        text_of(fields["subtype"]) if "subtype" in fields else None,
        text_of(fields["agentId"]) if "agentId" in fields else None,
        reply,
        results if kind == "user" else (),
        *place,
        stamp if type(stamp := fields.get("timestamp")) is str else None,
        fields,
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
