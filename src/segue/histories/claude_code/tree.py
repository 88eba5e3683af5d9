"""The lines of a Claude Code session as a tree.

The path through the tree of a Claude Code session that the program sends.

Plain lines of a Claude Code session: most of a long one, and made into messages without the codec.

The codec compares a turn with its own encoding, to find what has to be kept verbatim. That takes most of the time of
reading a session. What is not plain is left to it.

Facts (Claude Code 2.1.325, seen 2026-11-15):
- A line with a `uuid` hangs under its `parentUuid`.
- Lines without a `uuid` repeat messages and hold settings; they are not part of the conversation.
- An unknown kind of line is passed over; if it has a `uuid`, the path may run through it.
- `system/compact_boundary` has no parent, only `logicalParentUuid`. `compactMetadata.preservedMessages` lists old lines
  that are still sent; before, `preservedSegment` named the first and the last of them.
- `last-prompt` has in `leafUuid` the end of the path. `explicit` says that the user went back to it, with null to the
  beginning; it holds until the next line.

Facts (Claude Code 2.1.325, seen 2026-11-16):
- The newest line is the end of the path, unless a checkpoint (`last-prompt`) names a line that it does not continue.
- The result of the n-th parallel call hangs under the line of that call; the next line hangs under one of the results.
  The next call of the same reply may hang under the result of the call before it, or under a `progress` line (2.1.29
  to 2.1.181). So all lines of the file with the `message.id` of a reply on the path belong to it, with their results.
- The old lines that a compaction keeps are sent after its line `anchorUuid`. What hangs under the anchor or under
  another old line is sent after them. Only the newest compaction counts.
- A line whose parent is missing hangs under the newest line of the five seconds before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from sys import intern
from typing import Any, Final, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, TextContent, ThinkingContent, ToolCall
from segue.conversation.fast_checks import is_plain
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage, UserMessage
from segue.histories.kit.lines import Line, content_end, decode_object, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import LongData
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.wire import TurnCodec
from segue.models.price import find_cost
from segue.protocols.kit.readable_signatures import is_wrapped

CONVERSATION: Final = frozenset({"user", "assistant", "attachment", "system"})

_BITS: Final = 40
_MASK: Final = 2**_BITS - 1


@final
class Node(msgspec.Struct):
    """One line with a uuid: the fields that place it in the tree, and the rest of it until it is read.

    A long session has hundreds of thousands, which are freed while its messages are made. So a node is small, and of
    a size that messages can use again: three integers in one, no list of the lines under it, and no field for what
    only other kinds of lines have.
    """

    type: str
    uuid: str
    parent: str | None
    agent: str | None
    """The sub-agent that a line is of; None in the conversation itself."""
    mark: str | None
    """The id of the reply that a line of the model is a part of; the subtype of any other line."""
    results: tuple[bool, ...]
    """For each block of a line of the user, whether it is the result of a tool."""
    place: int
    """The number of the line, where it starts, and its size."""
    data: LongData
    timestamp: str | None
    parsed: dict[str, Any] | None
    first_child: Node | None = None
    sibling: Node | None = None
    """The next line under the same one."""

    @property
    def side(self) -> bool:
        """Whether the line is of a sub-agent."""
        return self.agent is not None

    @property
    def message_id(self) -> str | None:
        """The id of the reply that the line is a part of."""
        return self.mark if self.type == "assistant" else None

    @property
    def subtype(self) -> str | None:
        """What kind of line of the program it is."""
        return None if self.type == "assistant" else self.mark

    @property
    def number(self) -> int:
        """The number of the line."""
        return self.place >> 2 * _BITS

    @property
    def start(self) -> int:
        """Where the line starts."""
        return self.place >> _BITS & _MASK

    @property
    def size(self) -> int:
        """How many bytes the line has."""
        return self.place & _MASK

    def children(self) -> Iterator[Node]:
        """Yield the lines under this one, in the order of the file."""
        child = self.first_child
        while child is not None:
            yield child
            child = child.sibling

    def fields(self, notes: Notes) -> dict[str, Any]:
        """Return the whole line; it is parsed again after `forget`."""
        if self.parsed is None:
            start = self.start
            line = Line(self.number, self.data[start : start + self.size])
            self.parsed = decode_object(line, notes) or {}
            _share(self.parsed)
        return self.parsed

    def forget(self) -> None:
        """Drop what was parsed: the messages of a long session would need the memory twice."""
        self.parsed = None


def _share(fields: dict[str, Any]) -> None:
    """Keep the texts once that most lines have."""
    for name in _REPEATED:
        if type(value := fields.get(name)) is str:
            fields[name] = intern(value)
    if type(message := fields.get("message")) is dict:
        given = cast("dict[str, Any]", message)
        for name in _REPEATED_INSIDE:
            if type(value := given.get(name)) is str:
                given[name] = intern(value)


_OBJECTS: Final = msgspec.json.Decoder(dict[str, Any])


@final
@dataclass
class Boundary:
    """A compaction: its line, the line after which the old ones are sent, and the old lines that are still sent."""

    node: Node
    above: str | None = None
    """The last line before the compaction."""
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
        """Return the lines that have a time, sorted by it and then in the order of the file, with time and position."""
        if self._stamps is None:
            self._stamps = {False: [], True: []}
            for node in self.nodes.values():
                if (time := milliseconds_of(node.timestamp)) is not None:
                    self._stamps[node.side].append((time, node.number, node))
            for listed in self._stamps.values():
                listed.sort(key=lambda each: each[:2])
        return self._stamps[side]

    def lines_of(self, reply: str) -> list[Node]:
        """Return the lines of a reply, in the order of the file."""
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
_REPEATED_INSIDE: Final = ("id", "type", "role", "model")
"""Fields with the same text on most lines, and of their messages: it is kept once."""


def read_tree(data: LongData, notes: Notes) -> LineTree:
    """Read all lines; those without a uuid are noted as records."""
    tree = LineTree({}, {}, {})
    nodes = tree.nodes
    is_bytes = isinstance(data, bytes)
    view, last = memoryview(data) if is_bytes else data, content_end(data)  # a line in memory is not copied
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
            _share(fields)
            nodes[uuid] = node = _make_node(
                kind, uuid, fields, number << 2 * _BITS | begin << _BITS | end - begin, data
            )
            if not is_bytes:
                node.forget()
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
    """Return the content of a line, for lines with the same uuid."""
    return (object_of(fields.get("message")).get("content"), fields.get("content"), fields.get("attachment"))


def _link(tree: LineTree, notes: Notes) -> None:
    """Link each line to the lines under it, and read the compactions."""
    for node in reversed(tree.nodes.values()):
        if node.parent is not None and (parent := tree.nodes.get(node.parent)) is not None:
            node.parent = parent.uuid  # one text in memory instead of two
            node.sibling, parent.first_child = parent.first_child, node
    for node in tree.nodes.values():
        if node.subtype == "compact_boundary":
            tree.boundaries[node.uuid] = _read_boundary(node, notes)


def _find_record(data: LongData, begin: int, end: int) -> str | None:
    """Return the kind of a line that repeats the conversation, without parsing it: most of a file is such lines."""
    begin += len(_RECORD_START)
    kind = _RECORDS.get(data[begin : data.find(b'"', begin, begin + _LONGEST_KIND)])
    return kind if kind is not None and data.endswith(b"}", begin, end) else None


def _kept(line: bytes, notes: Notes) -> object:
    return decode_object(Line(0, line), Notes()) if notes.keeps else None


def _make_node(kind: str, uuid: str, fields: dict[str, Any], place: int, data: LongData) -> Node:
    """Make the node of a line. There are many: what most lines do not have is not looked at."""
    parent, message = fields.get("parentUuid"), fields.get("message")
    mark = text_of(fields["subtype"]) if "subtype" in fields and kind != "assistant" else None
    results: tuple[bool, ...] = ()
    if type(message) is dict:
        given = cast("dict[str, Any]", message)
        if kind == "assistant":
            mark = text_of(given.get("id"))
        elif type(given.get("content")) is list:
            results = tuple([block.get("type") == "tool_result" for block in objects_of(given["content"])])
    return Node(
        kind,
        uuid,
        (parent or None) if type(parent) is str else None,
        (text_of(fields.get("agentId")) or "sidechain") if fields.get("isSidechain") is True else None,
        mark,
        results if kind == "user" else (),
        place,
        data,
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
    """Note a line after the checkpoint: what the user chose is no longer valid, and a compaction removes it."""
    if tree.is_cleared or node.subtype == "compact_boundary":
        tree.checkpoint = None
    elif tree.checkpoint is not None and tree.checkpoint.explicit:
        tree.checkpoint = Checkpoint(tree.checkpoint.leaf, explicit=False)


def _read_boundary(node: Node, notes: Notes) -> Boundary:
    fields = node.fields(notes)
    above, metadata = text_of(fields.get("logicalParentUuid")), object_of(fields.get("compactMetadata"))
    listed = object_of(metadata.get("preservedMessages"))
    uuids = listed.get("uuids")
    if isinstance(uuids, list):
        given = tuple(str(uuid) for uuid in cast("list[object]", uuids))
        return Boundary(node, above, text_of(listed.get("anchorUuid")), tail=given[-1] if given else None, listed=given)
    segment = object_of(metadata.get("preservedSegment"))
    anchor, head, tail = (text_of(segment.get(name)) for name in ("anchorUuid", "headUuid", "tailUuid"))
    return Boundary(node, above, anchor, head, tail)


def find_leaf(tree: LineTree, *, side: bool) -> Node | None:
    """Find the end of the active path: the newest line of the conversation, or the checkpoint next to it."""
    found = (node for node in reversed(tree.nodes.values()) if node.type in CONVERSATION and node.side == side)
    newest = next(found, None)
    checkpoint = None if tree.checkpoint is None else tree.nodes.get(tree.checkpoint.leaf or "")
    if newest is None or side or tree.checkpoint is None or checkpoint is None or checkpoint.side:
        return newest
    if not tree.checkpoint.explicit and _continues(tree, newest, checkpoint):
        return newest
    return checkpoint


def _continues(tree: LineTree, newest: Node, checkpoint: Node) -> bool:
    """Whether a line hangs somewhere under the checkpoint, or under another result of the same parallel calls."""
    reply: Node | None = checkpoint
    seen: set[str] = set()
    while reply is not None and reply.type in {"attachment", "system"} and reply.uuid not in seen:
        seen.add(reply.uuid)
        reply = tree.nodes.get(reply.parent or "")
    calls = None
    if reply is not None and any(reply.results):
        caller = tree.nodes.get(reply.parent or "")
        calls = None if caller is None or caller.type != "assistant" else caller.message_id
    seen.clear()
    node: Node | None = newest
    while node is not None and node.uuid not in seen:
        if node is checkpoint or (calls is not None and node.type == "assistant" and node.message_id == calls):
            return True
        seen.add(node.uuid)
        node = tree.nodes.get(node.parent or "")
    return False


@final
@dataclass
class ActivePath:
    """The lines from the first to the last, and the compaction that the path begins with, if there is one."""

    nodes: list[Node]
    boundary: Boundary | None
    kept: list[Node]
    """The old lines that are sent after the summary."""


def walk(tree: LineTree, leaf: Node, *, before: int | None = None) -> ActivePath:
    """Walk from the end of a path to its beginning: the first line, or the newest compaction.

    `before` is the number of a line: compactions from there on are not applied.
    """
    boundary = _newest_boundary(tree, before)
    kept = [] if boundary is None else _kept_lines(tree, boundary)
    if boundary is not None and kept and leaf.number < boundary.node.number and leaf not in kept:
        return walk(tree, leaf, before=boundary.node.number)
    links = _Links(tree, boundary, kept)
    nodes: list[Node] = []
    seen: set[str] = set()
    node: Node | None = links.find_end(leaf)
    while node is not None and node.uuid not in seen:
        seen.add(node.uuid)
        nodes.append(node)
        node = links.parent(node, seen)
    nodes.reverse()
    first = next((tree.boundaries[node.uuid] for node in nodes[:1] if node.uuid in tree.boundaries), None)
    return ActivePath(nodes, first, [node for node in kept if node.uuid in seen] if first is boundary else [])


def _newest_boundary(tree: LineTree, before: int | None) -> Boundary | None:
    for boundary in reversed(tree.boundaries.values()):
        if before is None or boundary.node.number < before:
            return boundary
    return None


_GAP: Final = 5000
"""How many milliseconds before a line whose parent is missing the line above it is looked for."""


@final
class _Links:
    """The line above each line, with one compaction applied."""

    def __init__(self, tree: LineTree, boundary: Boundary | None, kept: list[Node]) -> None:
        self._tree = tree
        self._boundary = boundary if kept else None
        self._kept = kept
        self._above = dict(zip([node.uuid for node in kept[1:]], kept, strict=False))
        self._present = {node.uuid for node in kept}
        self._passed: dict[tuple[int, bool], int] = {}
        """Positions among the lines with a time that can no longer be a parent, each with one before it."""

    def find_end(self, leaf: Node) -> Node:
        """Return the last line of a path: the old lines follow a summary that nothing else follows."""
        if self._boundary is not None and leaf.uuid == self._boundary.anchor and leaf.uuid not in self._present:
            return self._kept[-1]
        return leaf

    def parent(self, node: Node, seen: set[str]) -> Node | None:
        """Return the line above a line; None above the first one."""
        if node.uuid in self._above:
            return self._above[node.uuid]
        boundary = self._boundary
        if boundary is not None and node is self._kept[0]:
            return self._tree.nodes.get(boundary.anchor or "")
        if node.parent is None:
            return None
        if boundary is not None and node.parent == boundary.anchor:
            return self._kept[-1]
        parent = self._tree.nodes.get(node.parent)
        if parent is None or parent.uuid in seen:
            return self._newest_before(node, seen)
        if self._is_gone(parent):
            return self._kept[-1] if node.type in {"user", "assistant"} else None
        return parent

    def _is_gone(self, node: Node) -> bool:
        boundary = self._boundary
        return boundary is not None and node.number < boundary.node.number and node.uuid not in self._present

    def _newest_before(self, node: Node, seen: set[str]) -> Node | None:
        """Find the newest line of the seconds before a line that is on no path yet, the last of those of one time.

        Every line is passed over once in a walk: one that is on the path stays there, and so does one that is gone.
        """
        time = milliseconds_of(node.timestamp)
        if time is None:
            return None
        stamps = self._tree.stamps(side=node.side)
        at = self._before(bisect_right(stamps, time, key=_time_of) - 1, side=node.side)
        while at >= 0 and stamps[at][0] >= time - _GAP:
            other = stamps[at][2]
            if other.uuid not in seen and not self._is_gone(other):
                return other
            self._passed[at, node.side] = at - 1
            at = self._before(at, side=node.side)
        return None

    def _before(self, at: int, *, side: bool) -> int:
        """Return the newest position up to this one that was not passed over; the way to it is shortened."""
        passed = self._passed
        way: list[int] = []
        while (at, side) in passed:
            way.append(at)
            at = passed[at, side]
        for each in way:
            passed[each, side] = at
        return at


def _time_of(entry: tuple[int, int, Node]) -> int:
    return entry[0]


def _kept_lines(tree: LineTree, boundary: Boundary) -> list[Node]:
    """Return the old lines that are still sent; none if one of them is missing, or they are not connected."""
    if boundary.listed:
        found = [tree.nodes.get(uuid) for uuid in boundary.listed]
        listed = [node for node in found if node is not None]
        return listed if len(listed) == len(found) == len({node.uuid for node in listed}) else []
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


def with_results(tree: LineTree, path: list[Node]) -> list[Node]:
    """Add what hangs next to the path: blocks of a reply that is on it, and the results of parallel calls.

    Results come after the last line of their turn, in the order of the file.
    """
    present = {node.uuid for node in path}
    done: set[str] = set()
    nodes: list[Node] = []
    waiting: list[Node] = []
    for node in path:
        if node.type == "assistant":
            if waiting and not _same_turn(node, nodes):
                nodes += sorted(waiting, key=_number)
                waiting = []
            nodes.append(node)
            waiting += _beside(node, tree, done, present)
            continue
        if waiting and node.type in CONVERSATION:
            blocks = [each for each in waiting if each.type == "assistant"]
            results = [each for each in waiting if each.type != "assistant"]
            nodes += sorted(blocks, key=_number)
            is_result = any(node.results)
            nodes += sorted([*results, node] if is_result else results, key=_number)
            waiting = []
            if is_result:
                continue
        nodes.append(node)
    blocks = [each for each in waiting if each.type == "assistant"]
    return [
        *nodes,
        *sorted(blocks, key=_number),
        *sorted((each for each in waiting if each.type != "assistant"), key=_number),
    ]


def _beside(node: Node, tree: LineTree, done: set[str], present: set[str]) -> list[Node]:
    """Return the results of a reply, and its other blocks with their results, that are not on the path."""
    reply = node.message_id
    others: list[Node] = []
    if reply and reply not in done:
        done.add(reply)
        others = [each for each in tree.lines_of(reply) if each.uuid not in present and each.side == node.side]
    present.update(each.uuid for each in others)
    found = list(others)
    open_nodes = [node, *others]
    while open_nodes:
        for child in open_nodes.pop().children():
            if child.type not in CONVERSATION:
                open_nodes.append(child)  # the program passes over `progress`
            elif child.uuid not in present and any(child.results):
                present.add(child.uuid)
                found.append(child)
    return found


def _number(node: Node) -> int:
    return node.number


def _same_turn(node: Node, nodes: list[Node]) -> bool:
    """Whether a line is of the same reply as the calls whose results wait."""
    last = next((each for each in reversed(nodes) if each.type == "assistant"), None)
    return last is not None and last.message_id == node.message_id


def find_ends(tree: LineTree, used: set[str], notes: Notes) -> Iterator[list[Node]]:
    """Yield each other branch: its lines that are on no other path, from the first to the last."""
    taken = set(used)
    newest = [node for node in reversed(tree.nodes.values()) if not node.side and node.type in CONVERSATION]
    # Then lines that others hang under, but on another path: a compaction may have moved those.
    ends = [node for node in newest if node.first_child is None]
    for leaf in (*ends, *(node for node in newest if node.first_child is not None)):
        if leaf.uuid in taken:
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
                notes.record(f"{each.type} off the path", each.number, each.size)


WIRE: Final = TurnCodec("anthropic-messages", "messages")
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_TOO_MANY: Final = 2**53
"""Tokens that no price can be computed for: the number is damaged."""
_INTEGERS: Final = [int] * len(_COUNTS)
_PLAIN_STOPS: Final[dict[str | None, StopReason]] = {
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "max_tokens": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_USE,
    None: StopReason.STOP,  # the lines around such a reply show the reason
}


def plain_reply(body: dict[str, Any], blocks: list[object], model: str) -> AssistantMessage | None:
    """Make a message of a plain reply, which is kept with the message as well; None for any other reply."""
    if body.get("stop_sequence", "") is not None:
        return None
    raw, written_by = body.get("stop_reason"), body.get("model")
    stop = _PLAIN_STOPS.get(raw) if raw is None or isinstance(raw, str) else None
    counts = counts_of(object_of(body.get("usage")))
    is_known = stop is not None and text_of(written_by) is not None and text_of(body.get("id")) is not None
    if not is_known or list(map(type, counts.values())) != _INTEGERS:
        return None
    content = [_plain_block(block) for block in blocks]
    kinds = list(map(type, content))
    if type(None) in kinds or (raw is not None and (ToolCall in kinds) != (raw == "tool_use")):
        return None
    fresh, written, cached, output = cast("tuple[int, ...]", tuple(counts.values()))
    if fresh + written + cached + output >= _TOO_MANY:
        return None
    known = WIRE.model(model)
    usage = Usage(
        input=fresh,
        output=output,
        cache_read=cached,
        cache_write=written,
        total_tokens=fresh + written + cached + output,
    )
    return AssistantMessage(
        content=tuple(cast("list[AssistantContent]", content)),
        protocol=WIRE.protocol,
        model=known.id,
        provider=known.provider,
        response_id=body["id"],
        response_model=written_by,
        usage=replace(usage, cost=find_cost(known.cost, usage)),
        stop_reason=stop or StopReason.STOP,
        raw_stop_reason=raw,
    )


def _plain_block(given: object) -> AssistantContent | None:
    """Make content of a block without unusual fields; None for any other block."""
    block, size = object_of(given), len(object_of(given))
    match block.get("type"):
        case "text" if size == 2 and type(text := block.get("text")) is str:
            return TextContent(text=text)
        case "thinking" if size == 3 and type(text := block.get("thinking")) is str:
            signature = text_of(block.get("signature"))
            if signature is not None and not is_wrapped(signature):
                return ThinkingContent(thinking=text, thinking_signature=signature)
        case "tool_use" if size == 4 or (size == 5 and block.get("caller") == _DIRECT):
            call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
            if type(call_id) is str and type(name) is str and type(arguments) is dict and is_plain([arguments]):
                extra = _kept_of_calls() if size == 5 else None
                return ToolCall(id=call_id, name=name, arguments=cast("dict[str, object]", arguments), extra=extra)
        case _:
            pass
    return None


def plain_turn(turn: dict[str, Any]) -> tuple[Message, ...]:
    """Make the message of a turn of the user that is one text or one result with a text; nothing for any other."""
    content = turn.get("content")
    if len(turn) != 2 or turn.get("role") != "user" or content == "text":  # the codec keeps that text in another way
        return ()
    if type(content) is str:
        return (UserMessage(content=(TextContent(text=content),), extra=_kept_of_users()),)
    blocks = cast("list[object]", content) if type(content) is list else []
    block = object_of(blocks[0]) if len(blocks) == 1 else {}
    call_id, text, failed = block.get("tool_use_id"), block.get("content"), block.get("is_error")
    if block.get("type") != "tool_result" or type(call_id) is not str or type(text) is not str or text == "text":
        return ()
    if len(block) != (3 if failed is None else 4) or type(failed) not in _FLAGS:
        return ()
    texts, extra, failed = (TextContent(text=text),), _kept_of_results(failed), failed is True
    return (ToolResultMessage(tool_call_id=call_id, tool_name="", content=texts, is_error=failed, extra=extra),)


_DIRECT: Final = {"type": "direct"}
_FLAGS: Final = frozenset({bool, type(None)})
# What the codec keeps of plain turns is the same for all of them.


@cache
def _kept_of_users() -> Extra | None:
    return WIRE.decode([{"role": "user", "content": "x"}])[0].extra


@cache
def _kept_of_results(failed: bool | None) -> Extra | None:
    block = {"type": "tool_result", "tool_use_id": "x", "content": "x"}
    block |= {} if failed is None else {"is_error": failed}
    return WIRE.decode([{"role": "user", "content": [block]}])[0].extra


@cache
def _kept_of_calls() -> Extra | None:
    block = {"type": "tool_use", "id": "x", "name": "x", "input": {}, "caller": _DIRECT}
    return WIRE.decode([{"role": "assistant", "content": [block]}])[0].content[0].extra


def counts_of(usage: dict[str, Any]) -> dict[str, object]:
    """Return the token counts of a reply in the form in which the codec writes them."""
    counts: dict[str, object] = {name: usage.get(name) or 0 for name in _COUNTS}
    if thinking := object_of(usage.get("output_tokens_details")).get("thinking_tokens"):
        counts["output_tokens_details"] = {"thinking_tokens": thinking}
    if object_of(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"):
        counts["cache_creation"] = usage["cache_creation"]
    return counts
