"""The record of the files that `copilot sessions import` takes.

Facts (Copilot CLI 1.0.102, run: its validator was asked, and it resumed what it had imported; 2026-11-18):
- The first line is the session; then lines `message`, `tool-call` and `tool-result`. Calls follow their message, or
  stand alone. There is no thinking, and the content of a result is a text.
"""

from __future__ import annotations

from typing import Any, Final

from segue.conversation.content import TextContent, UserContent
from segue.conversation.context import Origin
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin
from segue.histories.kit.pieces import make_call
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog, text_and_media
from segue.histories.kit.unread import note_unread

NAME: Final = "copilot-interchange"


def read(source: Source, view: View) -> History:
    """Read one file.

    Raises:
        LoadError: the file has no message.
    """
    refuse_branch(view, "an interchange file of Copilot")
    notes = Notes(keep=view.keep_records)
    log, about = TurnLog(NAME), dict[str, Any]()
    for line, fields in decode_objects(source.data or b"", notes):
        since = notes.left_out
        if fields.get("type") == "session" and not about:
            about = fields
            continue
        made = _take(log, fields)
        if made is None:
            kind = text_of(fields.get("type")) or "unknown"
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
            continue
        note_unread(fields, made, line.number, notes, since=since)
    messages = log.messages()
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no message")
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(about.get("externalId")),
        title=text_of(about.get("name")),
        cwd=text_of(about.get("workingDirectory")),
        created=milliseconds_of(about.get("createdAt")),
    )


def _take(log: TurnLog, fields: dict[str, Any]) -> list[object] | None:
    """Read one line and return what was made of it; None if it is no part of the conversation."""
    time, content = milliseconds_of(fields.get("timestamp")), _content(fields.get("content"))
    match text_of(fields.get("type")), text_of(fields.get("role")):
        case "message", "user":
            log.ask(content, time)
        case "message", "assistant":
            log.reply([piece for piece in content if isinstance(piece, TextContent)], time, _origin(fields))
        case "tool-call", _:
            call = make_call(fields.get("id"), fields.get("name"), fields.get("arguments", fields))
            log.reply([call], time)
            return [call]
        case "tool-result", _:
            failed = text_of(object_of(fields.get("error")).get("message"))
            content = content or ([TextContent(text=failed)] if failed else [])
            name = text_of(fields.get("toolCallId")) or ""
            log.answer(name, content, time, is_error=fields.get("success") is False)
        case _:
            return None
    return list(content)


def _origin(fields: dict[str, Any]) -> Origin:
    model = text_of(fields.get("model"))
    return UNKNOWN if model is None else find_origin(model)


def _content(content: object) -> list[UserContent]:
    """Read texts and media; an attachment is a path, which is not read."""
    links = [
        TextContent(text=f"[{part.get('name') or 'attachment'}]({part.get('path')})")
        for part in objects_of(content)
        if part.get("type") == "attachment"
    ]
    return [*text_and_media(content), *links]


FORMAT: Final = Format(
    name=NAME,
    read=read,
    kind="export",
    samples=read_samples(__package__),
    title="interchange file of Copilot CLI",
    source="Copilot CLI 1.0.102, run",
    read_on="2026-11-18",
)
