"""Reads a Claude Code session.

Facts (Claude Code 2.1.325, seen 2026-11-15):
- A long output is moved to a file, and `toolUseResult.persistedOutputPath` names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.context import Context, Origin, Summary
from segue.conversation.messages import Message
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.claude_code.tree import ActivePath, Boundary, LineTree, Node, find_ends, find_leaf, read_tree, walk
from segue.histories.claude_code.tree import with_results as add_results
from segue.histories.claude_code.turns import NAME, SYNTHETIC, LineReader, text_of_line
from segue.histories.kit.envelope import find_envelope, find_title, plain_text
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin
from segue.histories.kit.lines import first_objects, text_of, title_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.projection.report import ChangeCode, Loss

KNOWN_RECORDS: Final = frozenset({
    "agent-name", "ai-title", "api-request", "api-request-blob", "api-request-shape", "assistant/api-error",
    "atis-latch", "attachment/prompt_snapshot", "attachment/session_context", "bridge-session", "content-replacement",
    "cost-state", "custom-title", "file-history-snapshot", "frame-link", "history-suppression", "last-prompt", "mode",
    "permission-mode", "pr-link", "queue-operation", "relocated", "repeated line", "resume-head-vouch", "summary",
    "system", "system/compact_boundary", "system/informational", "system/local_command", "system/turn_duration",
    "tag", "tools-used", "worktree-state",
})  # fmt: skip
"""Kinds of lines that hold settings and statistics, or repeat the conversation (facts of 2.1.325, seen or in the
program's texts)."""


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no conversation.
    """
    return _read(source, view, side=False)


def _read(source: Source, view: View, *, side: bool) -> History:
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    tree = read_tree((source.data or b"") if source.long is None else source.long, notes)
    leaf = _find_end(tree, view, side=side)
    reader = LineReader(notes)
    cleared = tree.is_cleared and view.branch is None and not side
    path = ActivePath([], None, []) if cleared else walk(tree, leaf)
    used = {node.uuid for node in path.nodes}
    compactions, older = _read_compactions(reader, tree, path, used)
    nodes = add_results(tree, path.nodes)
    used.update(node.uuid for node in nodes)
    begin = nodes[0] if nodes else leaf
    first, last = begin.fields(notes), leaf.fields(notes)
    times = [time for each in (first, last) if (time := milliseconds_of(each.get("timestamp")))]
    cwd = text_of(first.get("cwd")) or text_of(last.get("cwd"))
    session, version = text_of(last.get("sessionId")) or _stem(source.name), text_of(last.get("version"))
    # All that the tree is needed for comes before the messages: of a long session, only one of both fits the memory.
    late = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    branches = _read_branches(tree, used, late)
    children = () if side else _read_children(source, tree, view, late)
    for node in tree.nodes.values():
        if node.type not in {"user", "assistant", "attachment", "system"}:
            late.record(node.type, node.number, node.size)
    facts = tree.facts
    summaries: tuple[Summary, ...] = ()
    is_full = view.name == "full" and bool(older)
    if is_full:
        kept = {node.uuid for node in path.kept}
        summary = path.boundary and _summary_node(path.boundary, nodes, notes)
        nodes = [node for node in nodes if node.uuid not in kept and node is not summary]
        summaries = tuple(compaction.summary for compaction in compactions if compaction.summary.covers)
    del tree, leaf, path, begin, first, last, used
    messages = [*(older if is_full else ()), *reader.take_messages(nodes)]
    if not is_full:
        for at, compaction in enumerate(compactions):
            detail = counted(len(compaction.messages), "message")
            notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", at), Loss.CONTENT, detail)
    notes.join(late)
    return History(
        context=Context(messages=tuple(messages), summaries=summaries),
        origin=HistoryOrigin(format=NAME, id=session, version=version),
        title=_find_title(facts, [*older, *messages]),
        cwd=cwd,
        created=min((*times, *(time for each in older[:1] if (time := time_of(each)))), default=None),
        updated=max(times, default=None),
        children=children,
        branches=branches,
        compactions=compactions,
        records=notes.records,
        report=notes.report(),
    )


def _stem(name: str) -> str | None:
    return name.rpartition("/")[2].removesuffix(".jsonl") or None


def _find_end(tree: LineTree, view: View, *, side: bool) -> Node:
    if view.branch is not None:
        if view.branch not in tree.nodes:
            raise LoadError(f"the session has no branch {view.branch!r}; History.branches lists them")
        return tree.nodes[view.branch]
    leaf = find_leaf(tree, side=side) or find_leaf(tree, side=not side)
    if leaf is None:
        raise LoadError("no conversation found: the file has no line with a type and a uuid of Claude Code")
    return leaf


def _summary_node(boundary: Boundary, nodes: Sequence[Node], notes: Notes) -> Node | None:
    for node in nodes:
        if node.type == "user" and node.fields(notes).get("isCompactSummary") is True:
            return node
        if boundary.anchor is not None and node.uuid == boundary.anchor:
            return node
    return None


def _read_compactions(
    reader: LineReader, tree: LineTree, path: ActivePath, used: set[str]
) -> tuple[tuple[Compaction, ...], list[Message]]:
    """Read what compactions replaced, the oldest first; also all messages before the active path, without summaries."""
    notes = reader.notes
    steps: list[tuple[ActivePath, Boundary, ActivePath | None]] = []
    done: set[str] = set()
    current: ActivePath | None = path
    while current is not None and current.boundary is not None and current.boundary.node.uuid not in done:
        done.add(current.boundary.node.uuid)
        before = _older_path(tree, current.boundary)
        steps.append((current, current.boundary, before))
        current = before
    older: list[Message] = []
    compactions: list[Compaction] = []
    for newer, boundary, before in reversed(steps):
        kept_count = 0
        if before is not None:
            nodes = add_results(tree, before.nodes)
            used.update(node.uuid for node in nodes)
            skipped = {node.uuid for node in before.kept}
            if before.boundary is not None and (node := _summary_node(before.boundary, nodes, notes)) is not None:
                skipped.add(node.uuid)
            older += reader.messages([node for node in nodes if node.uuid not in skipped])
            kept = {node.uuid for node in newer.kept}
            kept_count = len(reader.messages([node for node in nodes if node.uuid in kept]))
        summary = _summary_node(boundary, newer.nodes, notes)
        covers = max(0, len(older) - kept_count)
        first = compactions[-1].summary.covers if compactions else 0
        compactions.append(
            Compaction(
                summary=Summary(
                    covers=covers,
                    text="" if summary is None else text_of_line(summary.fields(notes)),
                    origin=_last_origin(older),
                    timestamp=milliseconds_of(boundary.node.fields(notes).get("timestamp")),
                ),
                messages=tuple(older[first:covers]),
                id=boundary.node.uuid,
            )
        )
    return tuple(compactions), older


def _older_path(tree: LineTree, boundary: Boundary) -> ActivePath | None:
    """Return the path that a compaction replaced; None if its lines are not in this file, as in a fork."""
    start = tree.nodes.get(boundary.above or "") or tree.nodes.get(boundary.tail or "")
    return None if start is None else walk(tree, start, before=boundary.node.number)


def _last_origin(messages: Sequence[Message]) -> Origin | None:
    for message in reversed(messages):
        if message.role == "assistant" and message.model and message.model != SYNTHETIC:
            return Origin(protocol=message.protocol, provider=message.provider, model=message.model)
    return None


def _find_title(facts: Mapping[str, dict[str, Any]], messages: Sequence[Message]) -> str | None:
    for kind, field in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")):
        if title := text_of(facts.get(kind, {}).get(field)):
            return title
    text = find_title(each for each in messages if is_title(each))
    return None if text is None else title_of(text)


def is_title(message: Message) -> bool:
    """Whether a message can be the title of a session: no command, no summary, no line that the screen hides."""
    envelope = find_envelope(message, NAME) or {}
    hidden = envelope.get("isCompactSummary") is True or envelope.get("isMeta") is True
    return not hidden and not plain_text(message).startswith("<")


def _read_branches(tree: LineTree, used: set[str], notes: Notes) -> tuple[Branch, ...]:
    branches: list[Branch] = []
    for lines in find_ends(tree, used, notes):
        last = lines[-1].fields(notes)
        texts = (text_of_line(node.fields(notes)) for node in lines if node.type == "user")
        count = sum(node.type in {"user", "assistant"} for node in lines)
        branch = Branch(
            id=lines[-1].uuid,
            messages=count,
            updated=milliseconds_of(last.get("timestamp")),
            text=title_of(next((text for text in texts if text), "")),
        )
        notes.add(
            ChangeCode.BRANCH_LEFT_OUT,
            ("branches", len(branches)),
            Loss.CONTENT,
            f"{branch.id}: {counted(count, 'line')}",
        )
        branches.append(branch)
    return tuple(branches)


def _read_children(source: Source, tree: LineTree, view: View, notes: Notes) -> tuple[Child, ...]:
    """Read the sub-agents: files next to the session, or lines with `isSidechain` in it (older versions)."""
    children: list[Child] = []
    folder = source.name.removesuffix(".jsonl")
    for name in source.neighbours.find(f"{folder}/subagents/agent-*.jsonl") if folder else ():
        meta = _read_meta(source, name)
        data = source.neighbours.read(name)
        history: History | None = None
        if data is not None:
            try:
                history = _read(replace_source(source, data, name), View(keep_records=view.keep_records), side=True)
            except LoadError as error:
                notes.add(ChangeCode.FILE_MISSING, ("children", len(children)), Loss.CONTENT, f"{name}: {error}")
        child_id = name.rpartition("/agent-")[2].removesuffix(".jsonl")
        children.append(
            Child(
                id=child_id,
                call_id=text_of(meta.get("toolUseId")),
                title=text_of(meta.get("description")),
                path=name,
                history=history,
            )
        )
    known = {child.id for child in children}
    sides: dict[str, int] = {}
    for node in tree.nodes.values():
        if node.agent is not None:
            sides[node.agent] = sides.get(node.agent, 0) + 1
            notes.record("sidechain", node.number, node.size)
    children += (Child(id=key) for key in sides if key not in known)
    for at, child in enumerate(children):
        notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", at), Loss.CONTENT, child.id)
    return tuple(children)


def _read_meta(source: Source, name: str) -> dict[str, Any]:
    data = source.neighbours.read(f"{name.removesuffix('.jsonl')}.meta.json")
    if data is None:
        return {}
    found = first_objects(data.replace(b"\n", b" "), 1)
    return found[0] if found else {}


def replace_source(source: Source, data: bytes, name: str) -> Source:
    """Return the source of a file next to another one."""
    return Source(data=data, name=name, neighbours=source.neighbours)
