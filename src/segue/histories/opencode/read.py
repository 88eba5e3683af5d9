"""Reads an opencode session: from its database, or from the JSON of `opencode export`.

Facts this file rests on (opencode 1.18.33, seen 2026-11-15; 1.18.18, seen 2026-11-16):
- A message has `info` and `parts`; a tool part holds the call and its result. Messages are sorted by time, then id.
- A compaction is a message of the user with a `compaction` part, and the summary of the model (`summary: true`) with
  that message as its `parentID`. Nothing before it is sent, and the part is sent as the question "What did we do so
  far?". With `tail_start_id` the messages from there to the compaction are sent behind the summary.
- `revert` of the session names a message, and a part of it, from where on everything is removed with the next prompt.
- A sub-agent is a session of its own; `state.metadata.sessionId` of the call names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, final

from segue.conversation.context import Context, Summary
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import find_title
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin, Parent
from segue.histories.kit.lines import object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import last_origin
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.histories.opencode.store import load
from segue.histories.opencode.turns import NAME, MessageReader, time_of_info
from segue.projection.report import ChangeCode, Loss

KNOWN_RECORDS: Final = frozenset(
    {"step-start", "step-finish", "snapshot", "patch", "retry", "agent", "ignored text", "file that is sent as text"}
)
_REVERTED: Final = "reverted"
"""The id of the branch with the messages that the user took back."""

_Entry = dict[str, Any]


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the source is no session of opencode.
    """
    return _read(source, view, {})


def _read(source: Source, view: View, known: dict[str, History | None]) -> History:
    """Read one session; `known` are those that were read so far, with None for one that is not read to its end."""
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    document = load(source)
    info, entries = object_of(document.get("info")), objects_of(document.get("messages"))
    if not text_of(info.get("id")) and not entries:
        raise LoadError("no conversation found: the file has no info and no messages of opencode")
    if entries != (document.get("messages") or []):
        notes.unreadable(1, "`messages` needs to be a list of objects")
    known[str(info.get("id"))] = None
    entries.sort(key=lambda entry: (time_of_info(_info(entry)) or 0, str(_info(entry).get("id"))))
    for number, entry in enumerate(entries, 1):
        if objects_of(entry.get("parts")) != entry.get("parts"):
            notes.unreadable(number, "a message needs a list of `parts`, which are objects")
    entries, branches = _take_back(entries, object_of(info.get("revert")), view, notes)
    info = without(info, ("revert",))
    compacted = _find_compactions(entries)
    full = view.name == "full"
    reader = MessageReader(notes, whole=full)
    compactions = _read_compactions(reader, entries, compacted)
    if full:
        summaries = tuple(compaction.summary for compaction in compactions)
        messages = reader.messages(_without_summaries(entries, compacted, len(entries)))
    else:
        summaries = ()
        messages = reader.messages(_active(entries, compacted))
        for at, compaction in enumerate(compactions):
            detail = counted(len(compaction.messages), "message")
            notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", at), Loss.CONTENT, detail)
        for at, message in enumerate(messages):
            if message.role == "toolResult" and message.tool_call_id in reader.cleared:
                detail = "the output of a tool, which the program no longer sends"
                notes.add(ChangeCode.COMPACTED_AWAY, ("messages", at), Loss.CONTENT, detail)
    older = [message for compaction in compactions for message in compaction.messages]
    times = [time for message in messages if (time := time_of(message)) is not None]
    title = text_of(info.get("title")) or find_title([*older, *messages])
    session_times = object_of(info.get("time"))
    parent = text_of(info.get("parentID"))
    return History(
        context=Context(messages=tuple(messages), summaries=summaries, extra={NAME: {"info": info}}),
        origin=HistoryOrigin(format=NAME, id=text_of(info.get("id")), version=text_of(info.get("version"))),
        title=None if title is None else title_of(title),
        cwd=text_of(info.get("directory")),
        created=milliseconds_of(session_times.get("created")) or min(times, default=None),
        updated=milliseconds_of(session_times.get("updated")) or max(times, default=None),
        parent=None if parent is None else Parent(id=parent, kind="subagent"),
        children=_read_children(source, entries, notes, known),
        branches=branches,
        compactions=compactions,
        records=notes.records,
        report=notes.report(),
    )


def _info(entry: _Entry) -> dict[str, Any]:
    return object_of(entry.get("info"))


def _take_back(
    entries: list[_Entry], revert: dict[str, Any], view: View, notes: Notes
) -> tuple[list[_Entry], tuple[Branch, ...]]:
    """Leave out what the user took back; it is the only branch of a session."""
    target, part = text_of(revert.get("messageID")), text_of(revert.get("partID"))
    at = next((at for at, entry in enumerate(entries) if target and _info(entry).get("id") == target), None)
    if view.branch not in {None, _REVERTED} or (view.branch is not None and at is None):
        raise LoadError(f"the session has no branch {view.branch!r}; History.branches lists them")
    if at is None:
        return entries, ()
    kept, lost = entries[:at], entries[at:]
    parts = objects_of(lost[0].get("parts"))
    cut = next((place for place, each in enumerate(parts) if part and each.get("id") == part), 0)
    if cut:
        kept = [*kept, {**lost[0], "parts": parts[:cut]}]
    detail = f"{counted(len(lost), 'message')} that the user took back"
    notes.add(ChangeCode.BRANCH_LEFT_OUT, ("branches", 0), Loss.CONTENT, detail)
    branch = Branch(id=_REVERTED, messages=len(lost), updated=time_of_info(_info(lost[-1])))
    return entries if view.branch is not None else kept, (branch,)


def _read_children(
    source: Source, entries: Sequence[dict[str, Any]], notes: Notes, known: dict[str, History | None]
) -> tuple[Child, ...]:
    children: list[Child] = []
    for entry in entries:
        for part in objects_of(entry.get("parts")):
            state = object_of(part.get("state"))
            child = text_of(object_of(state.get("metadata")).get("sessionId"))
            if part.get("type") != "tool" or child is None:
                continue
            history = None
            if source.database is not None:
                try:
                    if child not in known:  # sessions may name each other
                        child_source = Source(database=source.database, session=child, neighbours=source.neighbours)
                        known[child] = _read(child_source, View(), known)
                    history = known[child]
                except (LoadError, RecursionError) as error:
                    notes.add(ChangeCode.FILE_MISSING, ("children", len(children)), Loss.CONTENT, str(error))
            notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", len(children)), Loss.CONTENT, child)
            title = text_of(object_of(state.get("input")).get("description"))
            children.append(Child(id=child, call_id=text_of(part.get("callID")), title=title, history=history))
    return tuple(children)


# -- compaction -------------------------------------------------------------------------------------------------------


@final
class _Compacted(NamedTuple):
    """A compaction: the places of its question and its summary, and of the first message that is still sent."""

    question: int
    summary: int
    first: int


def _find_compactions(entries: Sequence[_Entry]) -> list[_Compacted]:
    """Give the finished compactions, the oldest first."""
    places = {text_of(_info(entry).get("id")): at for at, entry in enumerate(entries)}
    found: list[_Compacted] = []
    for at, entry in enumerate(entries):
        info = _info(entry)
        if info.get("summary") is not True or not info.get("finish") or info.get("error"):
            continue
        question = places.get(text_of(info.get("parentID")) or "", at - 1)
        parts = objects_of(entries[question].get("parts")) if 0 <= question < at else []
        part = next((part for part in parts if part.get("type") == "compaction"), None)
        tail = text_of((part or {}).get("tail_start_id"))
        first = question if tail is None else places.get(tail)
        if part is not None and first is not None:
            found.append(_Compacted(question, at, min(first, question)))
    return found


def _active(entries: list[_Entry], compacted: Sequence[_Compacted]) -> list[_Entry]:
    """Give the messages in the order in which the program sends them."""
    if not compacted:
        return entries
    question, summary, first = compacted[-1]
    return [*entries[question : summary + 1], *entries[first:question], *entries[summary + 1 :]]


def _without_summaries(entries: Sequence[_Entry], compacted: Sequence[_Compacted], end: int) -> list[_Entry]:
    hidden = {place for each in compacted for place in (each.question, each.summary)}
    return [entry for at, entry in enumerate(entries[:end]) if at not in hidden]


def _read_compactions(
    reader: MessageReader, entries: Sequence[_Entry], compacted: Sequence[_Compacted]
) -> tuple[Compaction, ...]:
    made: list[Compaction] = []
    done = 0
    for each in compacted:
        summary = entries[each.summary]
        older = reader.messages(_without_summaries(entries, compacted, each.first))
        parts = objects_of(summary.get("parts"))
        texts = [text_of(part.get("text")) for part in parts if part.get("type") == "text"]
        value = Summary(
            covers=len(older),
            text="\n".join(text for text in texts if text),
            origin=last_origin(older),
            timestamp=time_of_info(_info(summary)),
        )
        made.append(Compaction(summary=value, messages=tuple(older[done:]), id=text_of(_info(summary).get("id"))))
        done = max(done, len(older))
    return tuple(made)
