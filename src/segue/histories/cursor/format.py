"""The record of Cursor.

Reads a conversation of Cursor: out of its database, from a transcript, or from an export in Markdown.

Facts (specstoryai/getspecstory; nine public exports; read 2026-11-16):
- `cursorDiskKV` of `state.vscdb` has `composerData:ID`, whose `fullConversationHeadersOnly` lists the bubbles in order,
  and `bubbleId:ID:BUBBLE` for each of them; older versions have the bubbles in `conversation`. Type 1 is the user, 2
  the model; an answer is several bubbles in a row. Bubbles that are not listed are not part of the conversation.
- `toolFormerData` is a call with its result: `rawArgs`, `result` and `error` are JSON texts with keys of each tool.
- A transcript has one message on each line, without ids and without results. `<user_query>` is around the user's words.
- An export has texts alone; a turn begins at `---` and `**User**` or `**Cursor**` on a separate line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, parse_object, parse_text, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, set_origin
from segue.histories.kit.pieces import make_call, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase, Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "cursor"
TABLE: Final = "cursorDiskKV"
KNOWN_RECORDS: Final = frozenset({"turn_ended", "empty bubble"})
_CHAT: Final = "composerData:"
_QUERY: Final = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_EXPORTED: Final = re.compile(r"_Exported on .*from Cursor \((.*)\)_")
_TURN: Final = re.compile(r"^---\n\n\*\*(User|Cursor)\*\*\n", re.MULTILINE)
_RESULTS: Final = ("contents", "output", "result", "modelVisibleErrorMessage", "clientVisibleErrorMessage")
_REPEATED: Final = ("params", "additionalData")
"""Fields of a call that repeat its arguments for the screen."""


def read(source: Source, view: View) -> History:
    """Read one conversation.

    Raises:
        LoadError: the source has none of Cursor.
    """
    refuse_branch(view, "Cursor")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    if source.database is not None:
        return _read_database(source.database, source.session, notes)
    if _EXPORTED.search((source.data or b"")[:400].decode("utf-8", "replace")):
        return _read_export(source, notes)
    return _read_transcript(source, notes)


# -- the database ------------------------------------------------------------------------------------------------------


def _value_at(database: AgentDatabase, key: str) -> dict[str, Any]:
    for row in database.rows(TABLE, key=key):
        return parse_object(row.get("value"))
    return {}


def _chats(database: AgentDatabase) -> list[dict[str, Any]]:
    keys = [key for key in database.column(TABLE, "key") if isinstance(key, str) and key.startswith(_CHAT)]
    found = ({**_value_at(database, key), "composerId": key.removeprefix(_CHAT)} for key in keys)
    return [chat for chat in found if len(chat) > 1]


def _time_of(chat: Mapping[str, Any]) -> int:
    return milliseconds_of(chat.get("lastUpdatedAt")) or milliseconds_of(chat.get("createdAt")) or 0


def _read_database(database: AgentDatabase, session: str | None, notes: Notes) -> History:
    chats = _chats(database) if TABLE in database.tables() else []
    chosen = [chat for chat in chats if session is None or chat["composerId"] == session]
    if not chosen:
        raise LoadError(
            f"no conversation has the id {session!r}" if session else "no conversation found in this database of Cursor"
        )
    chat = max(chosen, key=_time_of)
    for number, other in enumerate(chats, 1):
        if other is not chat:
            notes.record("other conversation", number, 0, other["composerId"])
    name = str(chat["composerId"])
    bubbles = objects_of(chat.get("conversation")) or [
        _value_at(database, f"bubbleId:{name}:{header.get('bubbleId')}")
        for header in objects_of(chat.get("fullConversationHeadersOnly"))
    ]
    model = text_of(object_of(chat.get("modelConfig")).get("modelName")) or ""
    messages: list[Message] = []
    for number, bubble in enumerate(bubbles, 1):
        since = notes.left_out
        model = text_of(object_of(bubble.get("modelInfo")).get("modelName")) or model
        made = list(_read_bubble(bubble, model))
        call = object_of(bubble.get("toolFormerData"))
        shown = without(bubble, ("richText", "toolFormerData"))
        shown["call"] = without(call, _REPEATED) if call else bubble.get("toolFormerData")
        note_unread(shown, made, number, notes, since=since)
        if not bubble:
            notes.unreadable(number, "a bubble that is listed, but not stored as an object")
        elif not made:
            notes.record("empty bubble", number, 0, bubble if notes.keeps else None)
        _add(messages, made)
    listed = {f"bubbleId:{name}:{bubble.get('bubbleId')}" for bubble in bubbles}
    stored = [key for key in database.column(TABLE, "key") if str(key).startswith(f"bubbleId:{name}:")]
    for number, key in enumerate(stored, 1):
        if key not in listed:
            notes.record("bubble that is not listed", number, 0, key)
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=name,
        title=text_of(chat.get("name")),
        cwd=_folder(chat),
        created=milliseconds_of(chat.get("createdAt")),
        updated=milliseconds_of(chat.get("lastUpdatedAt")),
    )


def _folder(chat: Mapping[str, Any]) -> str | None:
    return text_of(object_of(object_of(chat.get("workspaceIdentifier")).get("uri")).get("fsPath"))


def _read_bubble(bubble: Mapping[str, Any], model: str) -> Iterator[Message]:
    time = milliseconds_of(bubble.get("createdAt"))
    text = text_of(bubble.get("text"))
    fields = {"bubbleId": bubble.get("bubbleId")}
    if bubble.get("type") == 1:
        if text is not None:
            yield with_envelope(UserMessage.of(text, timestamp=time), NAME, fields)
        return
    thinking = object_of(bubble.get("thinking"))
    pieces: list[AssistantContent] = []
    if words := text_of(thinking.get("text")):
        pieces.append(ThinkingContent(thinking=words, thinking_signature=text_of(thinking.get("signature"))))
    if text is not None:
        pieces.append(TextContent(text=text))
    call = object_of(bubble.get("toolFormerData"))
    if call:
        arguments = call.get("rawArgs") or call.get("params")
        pieces.append(make_call(call.get("toolCallId") or bubble.get("bubbleId"), call.get("name"), arguments))
    if pieces:
        message = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces), timestamp=time)
        yield with_envelope(set_origin(message, find_origin(model)), NAME, fields)
    if call and (call.get("result") or call.get("error") or call.get("status") in ("completed", "error")):
        is_error = call.get("status") == "error" or bool(call.get("error"))
        result = _result_text(call.get("error") or call.get("result"))
        yield ToolResultMessage(
            tool_call_id=str(call.get("toolCallId") or bubble.get("bubbleId") or ""),
            tool_name=text_of(call.get("name")) or "",
            content=(TextContent(text=result),) if result else (),
            is_error=is_error,
            timestamp=time,
        )


def _result_text(value: object) -> str:
    """Return the text of a result: one of its fields, or all of it as JSON."""
    parsed = parse_text(value) if isinstance(value, str) else value
    fields = object_of(parsed)
    found = next((text for name in _RESULTS if (text := text_of(fields.get(name)))), None)
    is_all = all(isinstance(each, int | float | None) for each in without(fields, _RESULTS).values())
    if found is not None and is_all:
        return found
    return json_text(value) if value else ""


def _add(messages: list[Message], made: Sequence[Message]) -> None:
    """Add the messages of a bubble; a call joins the answer whose other calls have their results already."""
    for message in made:
        last = len(messages) - 1
        if isinstance(message, AssistantMessage) and message.tool_calls():
            while last >= 0 and isinstance(messages[last], ToolResultMessage):
                last -= 1
        before = messages[last] if last >= 0 else None
        if isinstance(message, AssistantMessage) and isinstance(before, AssistantMessage):
            content = (*before.content, *message.content)
            messages[last] = replace(before, content=content, stop_reason=stop_of(None, content))
        else:
            messages.append(message)


# -- transcripts and exports -------------------------------------------------------------------------------------------


def _read_transcript(source: Source, notes: Notes) -> History:
    messages: list[Message] = []
    calls = 0
    for line, fields in decode_objects(source.data or b"", notes):
        since, message = notes.left_out, object_of(fields.get("message"))
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects_of(content)
        made: Message | None = None
        if fields.get("role") == "user":
            texts = [_QUERY.sub(r"\1", text) for block in blocks if (text := text_of(block.get("text")))]
            made = UserMessage(content=tuple(TextContent(text=text) for text in texts)) if texts else None
        elif fields.get("role") == "assistant":
            pieces: list[AssistantContent] = []
            for block in blocks:
                if block.get("type") == "tool_use":
                    pieces.append(make_call(f"call_{calls}", block.get("name"), block.get("input")))
                    calls += 1
                elif text := text_of(block.get("text")):
                    pieces.append(TextContent(text=text))
                elif text := text_of(block.get("thinking")):
                    pieces.append(ThinkingContent(thinking=text))
            made = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces)) if pieces else None
        note_unread(fields, made, line.number, notes, since=since)
        if made is None:
            notes.record(text_of(fields.get("type")) or "unknown", line.number, len(line.data))
        else:
            messages.append(with_envelope(made, NAME, {"line": line.number}))
    if not messages:
        raise LoadError("no conversation found: the file has no message of Cursor")
    if calls:
        detail = f"the results of {calls} calls are not in a transcript"
        notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", "result"), Loss.CONTENT, detail)
    name = source.name.rpartition("/")[2].removesuffix(".jsonl")
    return finish_history(NAME, notes, messages, session_id=name or None)


def _read_export(source: Source, notes: Notes) -> History:
    text = (source.data or b"").decode("utf-8", "replace").replace("\r\n", "\n").strip()
    starts = list(_TURN.finditer(text))
    head = text[: starts[0].start()] if starts else text
    title = head.split("\n", 1)[0].removeprefix("# ").strip() if head.startswith("# ") else None
    version = _EXPORTED.search(head)
    for number, line in enumerate(head.split("\n"), 1):
        if number == 1 and title is not None:
            continue
        if line.strip() and _EXPORTED.fullmatch(line.strip()) is None:
            notes.unreadable(number, "a text before the first turn")
    messages: list[Message] = []
    for at, found in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        words = text[found.end() : end].strip()
        if found[1] == "User":
            message: Message = UserMessage.of(words)
        else:
            message = AssistantMessage(content=(TextContent(text=words),), stop_reason=stop_of(None, ()))
        if words:
            messages.append(with_envelope(message, NAME, {"export": found[1]}))
    if not messages:
        raise LoadError("no conversation found: the file has no turn of an export of Cursor")
    return finish_history(NAME, notes, messages, title=title or None, version=version[1] if version else None)


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the conversations of a database."""
    database = source.database
    if database is None or TABLE not in database.tables():
        return ()
    return tuple(
        Session(
            format=NAME,
            id=str(chat["composerId"]),
            path=source.path or source.name,
            title=text_of(chat.get("name")),
            cwd=_folder(chat),
            created=milliseconds_of(chat.get("createdAt")),
            updated=_time_of(chat) or None,
            models=tuple(filter(None, (text_of(object_of(chat.get("modelConfig")).get("modelName")),))),
        )
        for chat in _chats(database)
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Cursor",
    place=Place(
        folder=".config/Cursor/User",
        system_folders={
            "darwin": "Library/Application Support/Cursor/User",
            "win32": "AppData/Roaming/Cursor/User",
        },
        databases=("globalStorage/state.vscdb",),
    ),
    reads_lines=False,
    source="specstoryai/getspecstory; public exports",
    read_on="2026-11-16",
)
