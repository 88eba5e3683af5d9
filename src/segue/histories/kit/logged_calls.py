"""Traces: logs of the requests of an application. The last request of a conversation has all of it.

Every request repeats the messages before it. The request with the most messages is therefore the conversation, and
its reply the end of it; an earlier request says which model wrote the reply that the next one repeats. What a trace has
in addition, such as the runs of tools, is a record: of a known kind if the conversation has all of its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, cast, final

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage, Message, Usage
from segue.errors import LoadError
from segue.histories.kit.documents import OTHER, finish_history, parse_text, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.framework import items_of
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, object_of
from segue.histories.kit.logged_messages import read_logged_message
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin
from segue.histories.kit.source import Source, View
from segue.histories.kit.unread import find_unexplained, note_unread

REPEATED: Final = "repeated by the conversation"
KNOWN_RECORDS: Final = frozenset({REPEATED})


@final
class Logged(NamedTuple):
    """One item of a trace: a request of a model with its reply, or something else, which has no messages."""

    number: int
    item: dict[str, Any]
    kind: str
    trace: str
    time: int | None
    sent: Sequence[object] = ()
    reply: Sequence[object] = ()
    prompt: str | None = None
    model: str = ""
    provider: str = ""
    usage: Usage | None = None
    title: str | None = None


def traces_of(items: Sequence[Logged]) -> dict[str, list[Logged]]:
    """Return the items of each trace in the order of their times."""
    found: dict[str, list[Logged]] = {}
    for item in items:
        found.setdefault(item.trace, []).append(item)
    return {trace: sorted(each, key=lambda item: (item.time or 0, item.number)) for trace, each in found.items()}


def read_traces(name: str, items: Sequence[Logged], source: Source, view: View, notes: Notes) -> History:
    """Read the conversation of one trace: the one that was asked for, or the newest that has one.

    Raises:
        LoadError: there is no request with messages, or no trace with this id.
    """
    refuse_branch(view, name)
    traces = traces_of(items)
    having = {trace: each for trace, each in traces.items() if any(item.sent or item.reply for item in each)}
    if not having:
        raise LoadError("no conversation found: no request here has messages")
    trace = source.session
    if trace is None:
        trace = max(having, key=lambda each: having[each][-1].time or 0)
    if trace not in having:
        raise LoadError(f"no conversation has the id {trace!r}; `segue sessions FILE` lists the ids")
    for other, each in traces.items():
        if other != trace:
            notes.record(OTHER, each[0].number, 0, other)
    chosen = traces[trace]
    last = max(chosen, key=lambda item: (len(item.sent) + len(item.reply), item.time or 0, item.number))
    messages, system = _read(name, last, chosen, notes)
    texts = [[message.content for message in messages], system]
    for item in chosen:
        if item is not last:
            is_repeated = find_unexplained(item.item, texts) is None
            notes.record(REPEATED if is_repeated else item.kind, item.number, 0, item.item if notes.keeps else None)
    return finish_history(
        name,
        notes,
        messages,
        session_id=trace or None,
        title=next((item.title for item in chosen if item.title), None),
        created=min((item.time for item in chosen if item.time is not None), default=None),
        updated=max((item.time for item in chosen if item.time is not None), default=None),
        system_prompt=system,
        given=[(last.number, last.item)],
    )


def _read(name: str, last: Logged, items: Sequence[Logged], notes: Notes) -> tuple[list[Message], str | None]:
    sent = list(last.sent)
    wrote = {len(each.sent): each for each in items if each.sent and list(each.sent) == sent[: len(each.sent)]}
    messages: list[Message] = []
    for at, entry in enumerate((*sent, *last.reply)):
        writer = last if at >= len(sent) else wrote.get(at)
        origin = UNKNOWN if writer is None else find_origin(writer.model, writer.provider)
        since = notes.left_out
        made = read_logged_message(entry, origin)
        note_unread({"message": entry}, made, last.number, notes, since=since)
        for message in made:
            if isinstance(message, AssistantMessage) and writer is not None:
                message = replace(message, usage=writer.usage, timestamp=writer.time)  # noqa: PLW2901
            messages.append(with_envelope(message, name, {}))
    system = last.prompt
    while messages and messages[0].role == "system":
        text = plain_text(messages.pop(0))
        system = text if system is None else f"{system}\n\n{text}"
    if not messages:
        raise LoadError("no conversation found: the request has only instructions")
    return messages, system


def list_traces(name: str, items: Sequence[Logged], source: Source) -> tuple[Session, ...]:
    """List the traces that have a conversation."""
    found: list[Session] = []
    for trace, each in traces_of(items).items():
        calls = [item for item in each if item.sent or item.reply]
        if calls:
            found.append(
                Session(
                    format=name,
                    id=trace,
                    path=source.path or source.name,
                    title=next((item.title for item in each if item.title), None),
                    created=each[0].time,
                    updated=each[-1].time,
                    models=tuple(dict.fromkeys(item.model for item in calls if item.model)),
                    messages=max(len(item.sent) + len(item.reply) for item in calls),
                )
            )
    return tuple(found)


def load_rows(
    source: Source, notes: Notes, find: Callable[[dict[str, Any]], object]
) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows of an export with their numbers: JSON Lines, a list, or the list that `find` finds."""
    value = source.value if source.data is None else parse_text(source.data)
    if value is None:
        return [(line.number, fields) for line, fields in decode_objects(source.data or b"", notes)]
    if isinstance(value, dict):
        fields = object_of(cast("object", value))
        found = find(fields)
        value = [fields] if found is None else found
    listed: list[object] = items_of(cast("object", value)) if isinstance(value, list) else [value]
    rows: list[tuple[int, dict[str, Any]]] = []
    for number, row in enumerate(listed, 1):
        if isinstance(row, dict):
            rows.append((number, cast("dict[str, Any]", row)))
        else:
            notes.unreadable(number, f"an object is expected, not {type(row).__name__}")
    return rows
