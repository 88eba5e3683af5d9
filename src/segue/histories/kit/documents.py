"""What formats use that store a session as one JSON value, or several in a list: exports and agents' documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from segue.conversation.context import Context, Summary
from segue.conversation.limits import parse_json
from segue.conversation.messages import Message
from segue.errors import LoadError, SegueError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import find_title, name_results
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin, Parent, Session
from segue.histories.kit.lines import object_of, title_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import time_of
from segue.histories.kit.unread import note_unexplained
from segue.projection.report import ChangeCode, Loss

LINES: Final = "\x00lines"
"""The key under which `load_value` returns the values of JSON Lines, which no document has."""
OTHER: Final = "other conversation"
"""The kind of the record of a conversation of the same file that was not chosen."""


def load_value(source: Source, *, lines: bool = False) -> object:
    """Parse the JSON of a source; `lines` says that it can also be JSON Lines, which are given under `LINES`.

    Raises:
        LoadError: it is not valid JSON.
    """
    if source.data is None or source.value is not None:
        return source.value
    try:
        return cast("object", msgspec.json.decode(source.data))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        if lines and b"\n" in source.data:
            return {LINES: [parse_json(line) for line in source.data.split(b"\n") if line.strip()]}
        return parse_json(source.data)


def conversations_of(value: object) -> list[dict[str, Any]]:
    """Return the conversations of an export, or a single one; an empty object for what is not a conversation."""
    listed = cast("list[object]", value) if isinstance(value, list) else [value] if value else []
    return [object_of(each) for each in listed]


def parse_object(text: object) -> dict[str, Any]:
    """Parse a text of JSON, such as a column of a database; an empty object if it is not JSON."""
    return object_of(parse_text(text))


def parse_text(text: object) -> object:
    """Parse a text of JSON; None if it is not valid."""
    if not isinstance(text, (str, bytes)):
        return None
    try:
        return cast("object", msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        try:
            return parse_json(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        except LoadError:
            return None


def json_text(value: object) -> str:
    """Write a JSON value as a text that a model reads."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeError, RecursionError, ValueError, TypeError):
        return str(value)


def choose(
    conversations: Sequence[dict[str, Any]],
    session: str | None,
    notes: Notes,
    id_of: Callable[[dict[str, Any]], str | None],
    updated_of: Callable[[dict[str, Any]], int | None],
) -> dict[str, Any]:
    """Choose one of several conversations: the one with this id, or the newest. The others are noted.

    Raises:
        LoadError: there is none.
    """
    if not conversations:
        raise LoadError("no conversation found in this file")
    if session is None:
        chosen = max(range(len(conversations)), key=lambda at: updated_of(conversations[at]) or 0)
    else:
        matching = (at for at, each in enumerate(conversations) if id_of(each) == session)
        chosen = next(matching, -1)
        if chosen < 0:
            raise LoadError(f"no conversation has the id {session!r}; `segue sessions FILE` lists the ids")
    for at, each in enumerate(conversations):
        if at != chosen:
            notes.record(OTHER, at + 1, 0, id_of(each))
    return conversations[chosen]


def refuse_branch(view: View, title: str) -> None:
    """Refuse a branch of a format that has none.

    Raises:
        LoadError: the view asks for a branch.
    """
    if view.branch is not None:
        raise LoadError(f"the session has no branch {view.branch!r}; a session of {title} has no branches")


def finish_history(
    format_name: str,
    notes: Notes,
    messages: Sequence[Message],
    *,
    session_id: str | None = None,
    version: str | None = None,
    title: str | None = None,
    cwd: str | None = None,
    created: int | None = None,
    updated: int | None = None,
    system_prompt: str | None = None,
    parent: Parent | None = None,
    children: Sequence[Child] = (),
    branches: Sequence[Branch] = (),
    compaction: Compaction | None = None,
    shows_compacted: bool = False,
    extra: dict[str, Any] | None = None,
    given: Iterable[tuple[int, object]] = (),
) -> History:
    """Make the history of messages: results get the names of their tools, times and title come from the messages.

    `shows_compacted` says that the messages have what the compaction replaced, and not its summary. `given` are the
    items of the file with their numbers: one with a text that nothing here has is reported.
    """
    contents = [message.content for message in (*messages, *(() if compaction is None else compaction.messages))]
    summary = None if compaction is None else compaction.summary.text
    note_unexplained(given, [contents, summary, system_prompt, title, cwd], notes)
    named = name_results(messages)
    times = [time for message in named if (time := time_of(message)) is not None]
    older = compaction.messages if compaction is not None and not shows_compacted else ()
    found = title or find_title([*older, *named])
    unknown = sum(message.role == "assistant" and not message.model for message in named)
    if unknown:
        notes.add(ChangeCode.MODEL_UNKNOWN, ("messages",), Loss.OPAQUE, f"{unknown} turns")
    summaries: tuple[Summary, ...] = ()
    if compaction is not None and shows_compacted:
        summaries = (compaction.summary,)
    elif compaction is not None:
        detail = counted(len(compaction.messages), "message")
        notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", 0), Loss.CONTENT, detail)
    context = Context(system_prompt=system_prompt, messages=tuple(named), summaries=summaries)
    return History(
        context=context if extra is None else msgspec.structs.replace(context, extra={format_name: extra}),
        origin=HistoryOrigin(format=format_name, id=session_id, version=version),
        title=None if found is None else title_of(found),
        cwd=cwd,
        created=created if created is not None else min(times, default=None),
        updated=updated if updated is not None else max(times, default=None),
        parent=parent,
        children=tuple(children),
        branches=tuple(branches),
        compactions=() if compaction is None else (compaction,),
        records=notes.records,
        report=notes.report(),
    )


def describe_history(history: History, path: str, size: int, *, session_id: str = "", modified: int = 0) -> Session:
    """Describe a history for a list of sessions."""
    turns = [message for message in history.context.messages if message.role == "assistant"]
    usages = [turn.usage for turn in turns if turn.usage is not None]
    costs = [usage.cost.total for usage in usages if usage.cost is not None]
    return Session(
        format=history.origin.format,
        id=history.origin.id or session_id,
        path=path,
        title=history.title,
        cwd=history.cwd,
        created=history.created,
        updated=history.updated or modified or None,
        models=tuple(dict.fromkeys(turn.model for turn in turns if turn.model)),
        messages=len(history.context.messages),
        tokens=sum(usage.total_tokens for usage in usages) if usages else None,
        cost=sum(costs) if costs else None,
        size=size,
    )


def describe_document(
    excerpt: Excerpt, format_name: str, read: Callable[[Source, View], History], session_id: str
) -> Session | None:
    """Describe the session of a file that is one JSON value; a long one is described without its counts."""
    if not excerpt.whole:
        return Session(
            format=format_name, id=session_id, path=excerpt.path, updated=excerpt.modified, size=excerpt.size
        )
    try:
        history = read(Source(data=excerpt.head, name=excerpt.name), View())
    except SegueError:
        return None
    return describe_history(history, excerpt.path, excerpt.size, session_id=session_id, modified=excerpt.modified)
