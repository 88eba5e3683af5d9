"""The record of Goose.

Reads a session of Goose: from its database, the JSON of `goose session export`, or an older JSON Lines file.

Facts (block/goose 1.30.0, read 2026-11-15):
- The database has `sessions` and `messages` (role, content_json, metadata_json); the export has `conversation`. The
  older file has a header line without a role, then one message on each line.
- `toolRequest` and `toolResponse` hold `{status: success, value}` or `{status: error, error}`.
- A message with `agentVisible: false` is not sent: a compaction marks all messages before it so, and adds the summary
  as a message that the user does not see.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, load_value, parse_object, parse_text, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import Compaction, History, Session
from segue.histories.kit.lines import decode_objects, first_objects, integer_of, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin
from segue.histories.kit.pieces import make_call, media_of, string_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "goose"
KNOWN_RECORDS: Final = frozenset(
    {"systemNotification", "toolConfirmationRequest", "actionRequired", "conversationCompacted"}
)
_TABLES: Final = frozenset({"sessions", "messages"})
_REQUESTS: Final = frozenset({"toolRequest", "frontendToolRequest"})
_CALL_FIELDS: Final = frozenset({"name", "arguments", "meta", "_meta", "task"})
_INVALID: Final = "invalid_tool_call"
"""The name of a call whose own name the model wrote so that Goose could not read it."""


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the source is not a session of Goose.
    """
    refuse_branch(view, "Goose")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    info, entries = _load(source, notes)
    if not info and not entries:
        raise LoadError("no conversation found: the file has no messages of Goose")
    origin = _origin(info)
    reader = _Reader(origin, notes)
    older: list[Message] = []
    active: list[Message] = []
    everything: list[Message] = []
    for number, entry in enumerate(entries, 1):
        since = notes.left_out
        made = reader.message(entry, number)
        note_unread(entry, made, number, notes, since=since)
        metadata = object_of(entry.get("metadata"))
        (older if metadata.get("agentVisible") is False else active).extend(made)
        if metadata.get("userVisible") is not False or metadata.get("agentVisible") is False:
            everything += made
    compaction = _compaction(older, active)
    full = view.name == "full" and compaction is not None
    return finish_history(
        NAME,
        notes,
        everything if full else active,
        session_id=text_of(info.get("id")),
        title=text_of(info.get("name")) or text_of(info.get("description")),
        cwd=text_of(info.get("working_dir")),
        created=milliseconds_of(info.get("created_at")),
        updated=milliseconds_of(info.get("updated_at")),
        compaction=compaction,
        shows_compacted=full,
        extra={"session": without(info, ("conversation",))},
    )


def _origin(info: Mapping[str, Any]) -> Origin:
    config = object_of(info.get("model_config")) or parse_object(info.get("model_config_json"))
    model = text_of(config.get("model_name")) or ""
    return find_origin(model, text_of(info.get("provider_name")) or "")


def _load(source: Source, notes: Notes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if source.database is not None:
        return _load_rows(source.database, source.session)
    if source.data is not None and _is_lines(source.data):
        lines = [fields for _, fields in decode_objects(source.data, notes)]
        header = lines[0] if lines and "role" not in lines[0] else {}
        return header, lines[1:] if header else lines
    document = object_of(load_value(source))
    entries = document.get("conversation", document.get("messages"))
    if not isinstance(entries, list):
        note_unread(document, (), 1, notes, since=notes.left_out)
        return document if "working_dir" in document else {}, []
    return document, [object_of(entry) for entry in cast("list[object]", entries)]


def _is_lines(data: bytes) -> bool:
    lines = first_objects(data[:200_000], 2)
    return bool(lines) and "conversation" not in lines[0] and ("working_dir" in lines[0] or "role" in lines[0])


def _load_rows(database: AgentDatabase, session: str | None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if not database.tables() >= _TABLES:
        raise LoadError("the database has no tables sessions and messages; it is not one of Goose")
    rows = list(database.rows("sessions", **({"id": session} if session else {})))
    if not rows:
        raise LoadError(f"the database has no session {session!r}" if session else "the database has no session")
    row = max(rows, key=lambda each: milliseconds_of(each.get("updated_at")) or 0)
    entries = [
        {
            "id": each.get("message_id") or each.get("id"),
            "role": each.get("role"),
            "created": each.get("created_timestamp"),
            "content": parse_text(each.get("content_json")),
            "metadata": parse_object(each.get("metadata_json")),
        }
        for each in database.rows("messages", session_id=row.get("id"))
    ]
    return dict(row), entries


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the sessions of a database.

    Raises:
        LoadError: it cannot be read.
    """
    if source.database is None or not source.database.tables() >= _TABLES:
        return ()
    counts: dict[object, int] = {}
    for row in source.database.rows("messages"):
        counts[row.get("session_id")] = counts.get(row.get("session_id"), 0) + 1
    found: list[Session] = []
    for row in source.database.rows("sessions"):
        model = _origin(dict(row)).model
        found.append(
            Session(
                format=NAME,
                id=str(row.get("id")),
                path=source.path or source.name,
                title=text_of(row.get("name")) or text_of(row.get("description")),
                cwd=text_of(row.get("working_dir")),
                created=milliseconds_of(row.get("created_at")),
                updated=milliseconds_of(row.get("updated_at")),
                models=(model,) if model else (),
                messages=counts.get(row.get("id"), 0),
                tokens=integer_of(row.get("accumulated_total_tokens") or row.get("total_tokens")) or None,
            )
        )
    return tuple(found)


def _compaction(older: Sequence[Message], active: Sequence[Message]) -> Compaction | None:
    if not older:
        return None
    unseen = (
        message
        for message in active
        if object_of((message.extra or {}).get(NAME, {}).get("metadata")).get("userVisible") is False
    )
    text = next((text for message in unseen if (text := plain_text(message))), "")
    return Compaction(summary=Summary(covers=len(older), text=text), messages=tuple(older))


class _Reader:
    """Makes messages of Goose's messages."""

    def __init__(self, origin: Origin, notes: Notes) -> None:
        self._origin = origin
        self._notes = notes

    def message(self, entry: dict[str, Any], number: int) -> list[Message]:
        """Return the messages of one entry: a message of the user holds results as well."""
        time = milliseconds_of(entry.get("created"))
        pieces = objects_of(entry.get("content"))
        role = text_of(entry.get("role"))
        envelope = without(entry, ("content", "role"))
        is_whole = pieces == entry.get("content")
        if role not in {"user", "assistant"} or not is_whole:
            self._notes.unreadable(number, "a message needs the role user or assistant, and a list of objects")
        if role not in {"user", "assistant"}:
            return []
        made: list[Message] = []
        if role == "assistant":
            content = tuple(each for piece in pieces for each in self._reply_piece(piece, number))
            if content:
                made.append(self._assistant(content, time))
        else:
            made += self._results(pieces, time)
            given = tuple(each for piece in pieces for each in self._user_piece(piece, number))
            if given:
                made.append(UserMessage(content=given, timestamp=time))
        return [with_envelope(message, NAME, envelope) for message in made]

    def _assistant(self, content: tuple[AssistantContent, ...], time: int | None) -> AssistantMessage:
        calls = any(each.kind == "toolCall" for each in content)
        return AssistantMessage(
            content=content,
            protocol=self._origin.protocol,
            provider=self._origin.provider,
            model=self._origin.model,
            stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
            timestamp=time,
        )

    def _reply_piece(self, piece: dict[str, Any], number: int) -> Iterator[AssistantContent]:
        kind = text_of(piece.get("type")) or ""
        if kind == "text" and isinstance(piece.get("text"), str):
            yield TextContent(text=piece["text"])
        elif kind == "thinking" and isinstance(piece.get("thinking"), str):
            yield ThinkingContent(thinking=piece["thinking"], thinking_signature=text_of(piece.get("signature")))
        elif kind == "reasoning" and isinstance(piece.get("text"), str):
            yield ThinkingContent(thinking=piece["text"])
        elif kind == "redactedThinking" and text_of(piece.get("data")):
            yield ThinkingContent(thinking="", thinking_signature=piece["data"], redacted=True)
        elif kind in _REQUESTS and text_of(piece.get("id")):
            call = _call(piece)
            yield call
            value = object_of(object_of(piece.get("toolCall")).get("value"))
            if call.name == _INVALID or value.keys() - _CALL_FIELDS:
                self._record(piece, "call", number)
        else:
            self._record(piece, kind, number)

    def _user_piece(self, piece: dict[str, Any], number: int) -> Iterator[UserContent]:
        kind = text_of(piece.get("type")) or ""
        if kind == "toolResponse":
            return
        if kind in {"text", "image", "resource"}:
            yield from _shared_pieces([piece])
        else:
            self._record(piece, kind, number)

    def _record(self, piece: dict[str, Any], kind: str, number: int) -> None:
        size = len(json_text(piece).encode("utf-8", "replace"))
        self._notes.record(kind or "content without a type", number, size, piece if self._notes.keeps else None)

    def _results(self, pieces: Sequence[dict[str, Any]], time: int | None) -> Iterator[Message]:
        for piece in pieces:
            if piece.get("type") != "toolResponse":
                continue
            result = object_of(piece.get("toolResult"))
            value = result.get("value")
            failed = result.get("status") != "success" or "value" not in result
            if failed:
                reason = result.get("error") or result or without(piece, ("type", "id"))
                content: tuple[UserContent, ...] = (TextContent(text=json_text(reason)),)
            else:
                listed = objects_of(value) or objects_of(object_of(value).get("content"))
                content = tuple(_shared_pieces(listed)) or _other_value(value)
                failed = object_of(value).get("isError") is True
            yield ToolResultMessage(
                tool_call_id=text_of(piece.get("id")) or "",
                tool_name="",
                content=content,
                is_error=failed,
                timestamp=time,
            )


def _other_value(value: object) -> tuple[TextContent, ...]:
    """Return a result that is not a list of content as text; an empty one is empty."""
    is_empty = value is None or object_of(value).get("content") == []
    return () if is_empty or value in ([], {}, "") else (TextContent(text=json_text(value)),)


def _shared_pieces(pieces: Sequence[dict[str, Any]]) -> Iterator[UserContent]:
    """Yield content that a user and a tool may send."""
    for piece in pieces:
        resource = object_of(piece.get("resource"))
        if isinstance(piece.get("text"), str):
            yield TextContent(text=piece["text"])
        elif isinstance(piece.get("data"), str):
            yield media_of(piece.get("mimeType"), data=piece["data"]) or TextContent(text=json_text(piece))
        elif isinstance(resource.get("text"), str):
            yield TextContent(text=resource["text"])
        elif isinstance(resource.get("blob"), str):
            media = media_of(resource.get("mimeType"), data=resource["blob"], name=resource.get("uri"))
            yield media or TextContent(text=json_text(piece))
        else:
            yield TextContent(text=json_text(piece))


def _call(piece: dict[str, Any]) -> ToolCall:
    value = object_of(object_of(piece.get("toolCall")).get("value"))
    metadata = object_of(piece.get("metadata"))
    signature = string_of(metadata.get("thoughtSignature"))
    return make_call(piece["id"], value.get("name") or _INVALID, value.get("arguments"), signature=signature)


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Goose",
    place=Place(
        folder=".local/share/goose",
        variables=("GOOSE_PATH_ROOT/data", "XDG_DATA_HOME/goose"),
        databases=("sessions/sessions.db",),
        system_folders={"win32": "AppData/Roaming/Block/goose/data"},
    ),
    reads_lines=False,
    source="block/goose 1.30.0",
    read_on="2026-11-15",
)
