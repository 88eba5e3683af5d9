"""The record of Crush, and of the opencode written in Go, whose databases are alike.

Reads a session of Crush, or of the opencode written in Go that it comes from, out of their database.
`segue.histories.crush.write` writes one.

Facts (sources of both programs; seven databases of public projects; read 2026-11-16):
- `sessions` and `messages`; `parts` of a message is a JSON list of `{type, data}`. Crush has a column `provider`.
- Times are Unix seconds. Rows of the same second are in the order in which they were inserted.
- One `tool` row has all results of an answer; the name of a result is often empty. `input` of a call is JSON text, or
  an empty text. Keys of `binary` begin with capital letters.
- `finish` ends every row; it says something only on an answer. Answers without anything else were cancelled or failed.
- The conversation continues from the row `summary_message_id`, which is then sent as a text of the user.
- A session with `parent_session_id` is a sub-agent; its id is that of the call, or `message$$call`. A session
  `title-...` holds the request for a title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Summary
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.crush.write import NAME, write
from segue.histories.kit.documents import finish_history, json_text, parse_text, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import Child, Compaction, History, Session
from segue.histories.kit.lines import integer_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, marked_origin, set_origin
from segue.histories.kit.pieces import make_call, media_of, stop_of, string_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

KNOWN_RECORDS: Final = frozenset({"unfinished answer"})
_KINDS: Final = frozenset({
    "binary", "finish", "image_url", "reasoning", "shell_command", "text", "tool_call", "tool_result",
})  # fmt: skip
_TABLES: Final = frozenset({"sessions", "messages"})
_TITLE: Final = "title-"
_STOPS: Final = {"max_tokens": "max_tokens", "canceled": "cancelled", "error": "error"}


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the source is not a database of Crush.
    """
    refuse_branch(view, "Crush")
    database = _database(source)
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    session = _choose(database, source.session)
    rows = list(database.rows("messages", session_id=session.get("id")))
    rows.sort(key=lambda row: milliseconds_of(row.get("created_at")) or 0)
    summary_id = text_of(session.get("summary_message_id"))
    summary_at = next((at for at, row in enumerate(rows) if summary_id and row.get("id") == summary_id), 0)
    read_rows = [list(_read_row(row, at, notes)) for at, row in enumerate(rows, 1)]
    if not read_rows[summary_at : summary_at + 1] or not read_rows[summary_at]:
        summary_at = 0  # there is no summary to read
    older = [message for made in read_rows[:summary_at] for message in made]
    active = [message for made in read_rows[summary_at:] for message in made]
    everything = [*older, *(message for made in read_rows[summary_at + bool(older) :] for message in made)]
    compaction: Compaction | None = None
    if older and active:
        first = active[0]
        compaction = Compaction(summary=Summary(covers=len(older), text=plain_text(first)), messages=tuple(older))
        texts = tuple(piece for piece in first.content if isinstance(piece, TextContent))
        time = milliseconds_of(rows[summary_at].get("created_at"))
        active[0] = with_envelope(UserMessage(content=texts, timestamp=time), NAME, {"id": summary_id})
    children = [
        Child(id=str(row.get("id")), call_id=str(row.get("id")).rpartition("$$")[2], title=text_of(row.get("title")))
        for row in database.rows("sessions", parent_session_id=session.get("id"))
        if not str(row.get("id")).startswith(_TITLE)
    ]
    if source.session is None:
        _note_others(database, {session.get("id"), *(child.id for child in children)}, notes)
    for at, child in enumerate(children):
        notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", at), Loss.CONTENT, child.id)
    full = view.name == "full" and compaction is not None
    return finish_history(
        NAME,
        notes,
        everything if full else active,
        session_id=text_of(session.get("id")),
        title=text_of(session.get("title")),
        created=milliseconds_of(session.get("created_at")),
        updated=milliseconds_of(session.get("updated_at")),
        children=children,
        compaction=compaction,
        shows_compacted=full,
    )


def _database(source: Source) -> AgentDatabase:
    if source.database is None or not source.database.tables() >= _TABLES:
        raise LoadError("no conversation found: the source is not a database with the tables sessions and messages")
    return source.database


def _choose(database: AgentDatabase, wanted: str | None) -> Mapping[str, object]:
    rows = list(database.rows("sessions", **({"id": wanted} if wanted else {})))
    mains = [row for row in rows if not row.get("parent_session_id") and not str(row.get("id")).startswith(_TITLE)]
    if not rows:
        raise LoadError(f"the database has no session {wanted!r}" if wanted else "the database has no session")
    return max(mains or rows, key=lambda row: milliseconds_of(row.get("updated_at")) or 0)


def _note_others(database: AgentDatabase, read: set[object], notes: Notes) -> None:
    """Report what else the database has: other ones, and messages without a session."""
    sessions = [row.get("id") for row in database.rows("sessions")]
    others = [name for name in sessions if name not in read and not str(name).startswith(_TITLE)]
    if others:
        detail = f"{counted(len(others), 'further conversation')}; `session` selects one"
        notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", "conversation"), Loss.CONTENT, detail)
    for number, row in enumerate(database.rows("messages"), 1):
        if row.get("session_id") not in sessions:
            notes.unreadable(number, "the message is of a session that the database does not have")


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the sessions of a database, without those of sub-agents.

    Raises:
        LoadError: it cannot be read.
    """
    database = _database(source)
    return tuple(
        Session(
            format=NAME,
            id=str(row.get("id")),
            path=source.path or source.name,
            title=text_of(row.get("title")),
            created=milliseconds_of(row.get("created_at")),
            updated=milliseconds_of(row.get("updated_at")),
            messages=integer_of(row.get("message_count")),
            tokens=integer_of(row.get("prompt_tokens")) + integer_of(row.get("completion_tokens")) or None,
        )
        for row in database.rows("sessions")
        if not row.get("parent_session_id") and not str(row.get("id")).startswith(_TITLE)
    )


def _read_row(row: Mapping[str, object], number: int, notes: Notes) -> Iterator[Message]:
    given = parse_text(row.get("parts"))
    parts = objects_of(given)
    time = milliseconds_of(row.get("created_at"))
    since = notes.left_out
    if not isinstance(given, list):
        notes.unreadable(number, "`parts` of a message is a JSON list")
        return
    for part in parts:
        kind, data = text_of(part.get("type")), object_of(part.get("data"))
        if kind not in _KINDS or not data or (kind == "tool_call" and not isinstance(data.get("input"), str)):
            notes.record(f"part {kind}", number, len(json_text(part)), part)
    made = list(_messages(text_of(row.get("role")) or "", parts, row, time))
    if not made and parts == given and all(part.get("type") == "finish" for part in parts):
        notes.record("unfinished answer", number, len(str(row.get("parts"))), parts if notes.keeps else None)
        return
    contents = [message.content for message in made]
    shown = [_without_display(part) for part in cast("list[object]", given)]
    note_unread({"parts": shown}, contents, number, notes, since=since)
    names = ("id", "model", "provider", "is_summary_message")
    for message in made:
        yield with_envelope(message, NAME, {name: row[name] for name in names if row.get(name)})


def _without_display(part: object) -> object:
    """Return a part without what only the program uses."""
    fields = object_of(part)
    if fields.get("type") == "finish":
        return {}
    data = object_of(fields.get("data"))
    return {**fields, "data": without(data, ("metadata", "responses_data"))} if data else part


def _messages(
    role: str, parts: Sequence[dict[str, Any]], row: Mapping[str, object], time: int | None
) -> Iterator[Message]:
    if role == "assistant":
        pieces = [piece for part in parts for piece in _reply_pieces(part)]
        if pieces:
            yield _answer(pieces, parts, row, time)
        return
    for part in parts:
        data = object_of(part.get("data"))
        if part.get("type") == "tool_result":
            media = media_of(data.get("mime_type"), data=text_of(data.get("data")))
            yield ToolResultMessage(
                tool_call_id=text_of(data.get("tool_call_id")) or "",
                tool_name=text_of(data.get("name")) or "",
                content=(*_texts(data.get("content")), *(() if media is None else (media,))),
                is_error=data.get("is_error") is True,
                timestamp=time,
            )
    content = tuple(piece for part in parts for piece in _user_pieces(part))
    if content and role == "system":
        yield SystemMessage(content=tuple(piece for piece in content if isinstance(piece, TextContent)))
    elif content:
        yield UserMessage(content=content, timestamp=time)


def _answer(
    pieces: Sequence[AssistantContent], parts: Sequence[dict[str, Any]], row: Mapping[str, object], time: int | None
) -> AssistantMessage:
    reasons = (object_of(part.get("data")).get("reason") for part in parts if part.get("type") == "finish")
    word = next((reason for reason in reasons if isinstance(reason, str)), "")
    message = AssistantMessage(
        content=tuple(pieces), stop_reason=stop_of(_STOPS.get(word, word), pieces), raw_stop_reason=word, timestamp=time
    )
    found = find_origin(text_of(row.get("model")) or "", text_of(row.get("provider")) or "")
    marks = (part for part in parts if part.get("type") == "finish")
    return set_origin(message, marked_origin(found, next(marks, dict[str, Any]())))


def _texts(content: object) -> list[TextContent]:
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    return [] if content is None else [TextContent(text=json_text(content))]


def _reply_pieces(part: dict[str, Any]) -> Iterator[AssistantContent]:
    data = object_of(part.get("data"))
    if part.get("type") == "text":
        yield from _texts(data.get("text"))
    elif part.get("type") == "reasoning" and isinstance(data.get("thinking"), str):
        signature = text_of(data.get("signature")) or text_of(data.get("thought_signature"))
        yield ThinkingContent(thinking=data["thinking"], thinking_signature=signature)
    elif part.get("type") == "tool_call":
        yield make_call(data.get("id"), data.get("name"), string_of(data.get("input")) or {})


def _user_pieces(part: dict[str, Any]) -> Iterator[UserContent]:
    data, kind = object_of(part.get("data")), text_of(part.get("type"))
    if kind == "text":
        yield from _texts(data.get("text"))
    elif kind == "shell_command":
        yield TextContent(text=f"$ {data.get('command')}\n{data.get('output')}")
    elif kind in {"image_url", "binary"}:
        found = media_of(
            data.get("MIMEType"), data=text_of(data.get("Data")), url=text_of(data.get("url")), name=data.get("Path")
        )
        if found is not None:
            yield found


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Crush and opencode (Go)",
    write=write,
    # Written sessions get a folder each: the databases of projects may be in use.
    place=Place(
        folder=".local/share/segue/crush",
        variables=("XDG_DATA_HOME/segue/crush",),
        patterns=("*/crush.db",),
        databases=("*/crush.db",),
        projects=(".crush/crush.db", ".opencode/opencode.db"),
    ),
    closes_calls=False,
    reads_lines=False,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="charmbracelet/crush and opencode-ai/opencode; databases of public projects",
    read_on="2026-11-18",
)
