"""The record of Hermes, the agent of Nous Research.

Reads a session of Hermes: from its database `state.db`, or from the JSON and JSON Lines files of older versions.

Facts (sources of the program; a public database; 2026-11-18; not run):
- `messages` of the database are chat messages in columns, with `tool_calls` as JSON text and times in seconds. The
  files have the same fields; JSON Lines begin with a line of the role `session_meta`.
- Rows with `active` 0 were taken back or compacted away: they are no longer sent.
- A compression ends a session (`end_reason`), and it goes on in a child, whose first message is the summary.
- Thinking is `reasoning` or `reasoning_content`; both hold the same words. There is no error flag.
- `model_config` of a child has `_branched_from` for a fork, and `_delegate_from` for a sub-agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.chat_messages import read_content
from segue.histories.kit.documents import describe_document, finish_history, load_value, parse_text, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import Child, History, Parent, Session
from segue.histories.kit.lines import decode_objects, first_objects, integer_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, set_origin
from segue.histories.kit.pieces import make_call, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread, read_list
from segue.projection.report import ChangeCode, Loss

NAME: Final = "hermes"
TITLE: Final = "Hermes"
_META: Final = "session_meta"
KNOWN_RECORDS: Final = frozenset({_META})
_SETTINGS: Final = ("messages", "tools", "model_config", "title")
"""Fields of a session that are not part of its conversation, or are read elsewhere."""
_TABLES: Final = frozenset({"sessions", "messages"})
_READ: Final = frozenset({"content", "role", "tool_calls", "reasoning", "reasoning_content", "session_id"})
_SIGNS: Final = ((b'"session_meta"',), (b'"session_start"', b'"platform"'))
"""What the beginning of its files has: of lines, or of a document."""
_JSON: Final = ("tool_calls", "reasoning_details", "codex_reasoning_items", "codex_message_items")
"""Columns that hold JSON as a text."""


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the source is not a session of Hermes.
    """
    refuse_branch(view, TITLE)
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    children: list[Child] = []
    if source.database is not None:
        about, entries, children = _rows(source.database, source.session, notes)
    else:
        about, entries = _file(source, notes)
    origin = find_origin(text_of(about.get("model")) or "")
    messages: list[Message] = []
    for number, fields in entries:
        since = notes.left_out
        made = _read(fields, origin)
        if made is None:
            role = text_of(fields.get("role")) or "unknown"
            notes.record(role, number, 0, fields if notes.keeps else None)
            continue
        read_list(fields.get("tool_calls"), "tool_calls", number, notes)
        note_unread(_shown(fields), [made.content], number, notes, since=since)
        messages.append(
            with_envelope(made, NAME, {key: value for key, value in without(fields, _READ).items() if value})
        )
    if not messages and not notes.records and not about:
        raise LoadError("no conversation found: the source has no message of Hermes")
    for at, child in enumerate(children):
        notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", at), Loss.CONTENT, child.id)
    parent = text_of(about.get("parent_session_id"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(about.get("id")) or text_of(about.get("session_id")),
        title=text_of(about.get("title")),
        cwd=text_of(about.get("cwd")),
        created=milliseconds_of(about.get("started_at")) or milliseconds_of(about.get("session_start")),
        updated=milliseconds_of(about.get("ended_at")) or milliseconds_of(about.get("last_updated")),
        system_prompt=text_of(about.get("system_prompt")),
        parent=None if parent is None else Parent(id=parent, kind=_kind(about)),
        children=children,
        given=[(0, without(about, _SETTINGS))],
    )


def _shown(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without what repeats it: what was sent of it, and the thoughts in the form of the provider."""
    return without(dict(fields), ("reasoning_details", "codex_reasoning_items", "codex_message_items", "api_content"))


def _kind(session: Mapping[str, object]) -> Any:  # noqa: ANN401 - one of the kinds of `Parent`
    config = object_of(parse_text(session.get("model_config")))
    if "_delegate_from" in config:
        return "subagent"
    return "fork"


_Entry = tuple[int, dict[str, Any]]


def _rows(
    database: AgentDatabase, wanted: str | None, notes: Notes
) -> tuple[Mapping[str, object], list[_Entry], list[Child]]:
    if not database.tables() >= _TABLES:
        raise LoadError("no conversation found: the database has no tables sessions and messages of Hermes")
    sessions = list(database.rows("sessions"))
    found = [row for row in sessions if wanted in (None, row.get("id"))]
    if not found:
        raise LoadError(f"the database has no session {wanted!r}" if wanted else "the database has no session")
    mains = [row for row in found if not row.get("parent_session_id") or _goes_on(row, sessions)]
    session = max(mains or found, key=_time_of)
    children = [
        Child(id=str(row.get("id")), title=text_of(row.get("title")))
        for row in sessions
        if row.get("parent_session_id") == session.get("id") and not _goes_on(row, sessions)
    ]
    others = len(sessions) - 1 - len(children)
    if wanted is None and others:
        detail = f"{counted(others, 'further conversation')}; `session` selects one"
        notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", "conversation"), Loss.CONTENT, detail)
    entries: list[_Entry] = []
    gone = 0
    for number, row in enumerate(database.rows("messages"), 1):
        if row.get("session_id") != session.get("id"):
            if wanted is None and not any(row.get("session_id") == each.get("id") for each in sessions):
                notes.unreadable(number, "the message is of a session that the database does not have")
            continue
        if row.get("active") == 0:
            gone += 1
            continue
        fields = dict(row)
        for name in _JSON:
            if text := text_of(fields.get(name)):
                fields[name] = _parsed(text, name, number, notes)
        entries.append((number, fields))
    if gone:
        detail = f"{counted(gone, 'message')} that the program no longer sends"
        notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", "inactive message"), Loss.CONTENT, detail)
    return session, entries, children


def _parsed(text: str, name: str, number: int, notes: Notes) -> object:
    value = parse_text(text)
    if value is None:
        notes.unreadable(number, f"`{name}` of a message is not JSON")
    return value


def _goes_on(row: Mapping[str, object], sessions: Sequence[Mapping[str, object]]) -> bool:
    """Whether a session continues another one that was compressed."""
    before = next((each for each in sessions if each.get("id") == row.get("parent_session_id")), None)
    return before is not None and before.get("end_reason") == "compression"


def _time_of(row: Mapping[str, object]) -> int:
    return milliseconds_of(row.get("ended_at")) or milliseconds_of(row.get("started_at")) or 0


def _file(source: Source, notes: Notes) -> tuple[Mapping[str, Any], list[_Entry]]:
    lines = first_objects((source.data or b"")[:200_000], 1)
    if source.data is not None and lines and "messages" not in lines[0] and "session_start" not in lines[0]:
        entries = [(line.number, fields) for line, fields in decode_objects(source.data, notes)]
        about = next((fields for _, fields in entries if fields.get("role") == _META), dict[str, Any]())
        return about, entries
    document = object_of(load_value(source))
    return without(document, ("messages",)), list(
        enumerate(read_list(document.get("messages"), "messages", 1, notes), 1)
    )


def _read(fields: Mapping[str, Any], origin: Origin) -> Message | None:
    content, time = fields.get("content"), milliseconds_of(fields.get("timestamp"))
    match text_of(fields.get("role")):
        case "user":
            return UserMessage(content=read_content(content), timestamp=time)
        case "system":
            texts = (piece for piece in read_content(content) if isinstance(piece, TextContent))
            return SystemMessage(content=tuple(texts))
        case "tool":
            return ToolResultMessage(
                tool_call_id=text_of(fields.get("tool_call_id")) or "",
                tool_name=text_of(fields.get("tool_name")) or text_of(fields.get("name")) or "",
                content=read_content(content),
                timestamp=time,
            )
        case "assistant":
            return set_origin(_answer(fields, time), origin)
        case _:
            return None


def _answer(fields: Mapping[str, Any], time: int | None) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    words = dict.fromkeys(text for key in ("reasoning", "reasoning_content") if (text := text_of(fields.get(key))))
    pieces += (ThinkingContent(thinking=text) for text in words)
    pieces += (piece for piece in read_content(fields.get("content")) if isinstance(piece, TextContent))
    for call in objects_of(fields.get("tool_calls")):
        function = object_of(call.get("function"))
        name = text_of(call.get("call_id")) or call.get("id")
        # Arguments at an unknown place stay with the call.
        pieces.append(make_call(name, function.get("name"), function.get("arguments", call)))
    stop = text_of(fields.get("finish_reason"))
    return AssistantMessage(
        content=tuple(pieces), stop_reason=stop_of(stop, pieces), raw_stop_reason=stop, timestamp=time
    )


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the sessions of a database, without those of sub-agents.

    Raises:
        LoadError: it cannot be read.
    """
    if source.database is None or not source.database.tables() >= _TABLES:
        return ()
    return tuple(
        Session(
            format=NAME,
            id=str(row.get("id")),
            path=source.path or source.name,
            title=text_of(row.get("title")),
            cwd=text_of(row.get("cwd")),
            created=milliseconds_of(row.get("started_at")),
            updated=milliseconds_of(row.get("ended_at")) or milliseconds_of(row.get("started_at")),
            models=tuple(model for model in (text_of(row.get("model")),) if model),
            messages=integer_of(row.get("message_count")) or None,
            tokens=integer_of(row.get("input_tokens")) + integer_of(row.get("output_tokens")) or None,
        )
        for row in source.database.rows("sessions")
        if not (row.get("parent_session_id") and _kind(row) == "subagent")
    )


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session of a file; None for that of another program, whose files are in a folder of the same name."""
    if not any(all(sign in excerpt.head for sign in signs) for signs in _SIGNS):
        return None
    return describe_document(excerpt, NAME, read, excerpt.name.rpartition("/")[2].partition(".")[0])


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    describe=describe,
    samples=read_samples(__package__),
    title=TITLE,
    place=Place(
        folder=".hermes",
        variables=("HERMES_HOME",),
        patterns=("sessions/session_*.json", "sessions/*.jsonl"),
        databases=("state.db",),
    ),
    reads_lines=False,
    source="NousResearch/hermes-agent",
    read_on="2026-11-18",
)
