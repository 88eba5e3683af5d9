"""The path through the tree of a Claude Code session that the program sends.

Facts this file rests on (Claude Code 2.1.325, seen 2026-11-16):
- The newest line is the end of the path, unless a checkpoint (`last-prompt`) names a line that it does not continue.
- The result of the n-th parallel call hangs under the line of that call; the next line hangs under one of the results.
  The next call of the same reply may hang under the result of the call before it, or under a `progress` line (2.1.29
  to 2.1.181). So all lines of the file with the `message.id` of a reply on the path belong to it, with their results.
- The old lines that a compaction keeps are sent behind its line `anchorUuid`. What hangs under the anchor or under
  another old line is sent behind them. Only the newest compaction counts.
- A line whose parent is missing hangs under the newest line of the five seconds before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from segue.histories.claude_code.tree import CONVERSATION, Boundary, LineTree, Node
from segue.histories.kit.notes import Notes
from segue.histories.kit.stamps import milliseconds_of


def find_leaf(tree: LineTree, *, side: bool) -> Node | None:
    """Give the end of the active path: the newest line of the conversation, or the checkpoint beside it."""
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
    """The old lines that are sent behind the summary."""


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
        """Positions among the lines with a time that cannot be a parent any more, each with one before it."""

    def find_end(self, leaf: Node) -> Node:
        """Give the last line of a path: the old lines stand behind a summary that nothing follows."""
        if self._boundary is not None and leaf.uuid == self._boundary.anchor and leaf.uuid not in self._present:
            return self._kept[-1]
        return leaf

    def parent(self, node: Node, seen: set[str]) -> Node | None:
        """Give the line above a line; None above the first one."""
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
        """Give the newest position up to this one that was not passed over; the way to it is shortened."""
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
    """Give the old lines that are still sent; none if one of them is missing, or they are not connected."""
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
    """Add what hangs beside the path: blocks of a reply that is on it, and the results of parallel calls.

    Results stand behind the last line of their turn, in the order of the file.
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
    """Give the results of a reply, and its other blocks with their results, that are not on the path."""
    reply = node.message_id
    others: list[Node] = []
    if reply and reply not in done:
        done.add(reply)
        others = [each for each in tree.lines_of(reply) if each.uuid not in present and each.side == node.side]
    present.update(each.uuid for each in others)
    found = list(others)
    open_nodes = [node, *others]
    while open_nodes:
        for child in open_nodes.pop().children:
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
    """Give each other branch: its lines that are on no other path, from the first to the last."""
    taken = set(used)
    newest = [node for node in reversed(tree.nodes.values()) if not node.side and node.type in CONVERSATION]
    # Then lines that others hang under, but on another path: a compaction may have moved those.
    for leaf in (*(node for node in newest if not node.children), *(node for node in newest if node.children)):
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
                notes.record(f"{each.type} beside the path", each.number, each.size)
