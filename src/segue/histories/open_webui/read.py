"""Reads an export of Open WebUI: a list of chats, or one chat.

Facts this file rests on (open-webui 0.10.2, utils/middleware.py and models/chats.py, read 2026-11-15):
- `chat.history.messages` is a tree by `parentId`; `currentId` is the end of the conversation that is shown. Several
  answers to one question are siblings.
- `output` of an answer has items like those of the Responses API: reasoning, function_call, function_call_output,
  message. Signatures stand in `reasoning_details`.
- Older exports have thinking and calls as `<details type="reasoning">` and `<details type="tool_calls">` in `content`.
"""

from __future__ import annotations

from typing import Any, Final

from segue.conversation.content import TextContent, UserContent
from segue.conversation.messages import Message, SystemMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import OTHER, choose, conversations_of, finish_history, load_value
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import image_of, media_of
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.histories.open_webui.answers import NAME, read_answer
from segue.projection.report import ChangeCode, Loss

KNOWN_RECORDS: Final = frozenset({"status", OTHER})


def _chat(entry: dict[str, Any]) -> dict[str, Any]:
    return object_of(entry.get("chat")) or entry


def _id(entry: dict[str, Any]) -> str | None:
    return text_of(entry.get("id")) or text_of(_chat(entry).get("id"))


def _updated(entry: dict[str, Any]) -> int | None:
    return milliseconds_of(entry.get("updated_at")) or milliseconds_of(_chat(entry).get("timestamp"))


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the chats of an export.

    Raises:
        LoadError: it is not valid JSON.
    """
    found: list[Session] = []
    for entry in filter(None, conversations_of(load_value(source))):
        chat = _chat(entry)
        models = chat.get("models")
        title = text_of(entry.get("title")) or text_of(chat.get("title"))
        found.append(
            Session(
                format=NAME,
                id=_id(entry) or "",
                path=source.path or source.name,
                title=None if title is None else title_of(title),
                created=milliseconds_of(entry.get("created_at")),
                updated=_updated(entry),
                models=tuple(each for each in models if isinstance(each, str)) if isinstance(models, list) else (),  # pyright: ignore[reportUnknownVariableType]
                messages=len(object_of(object_of(chat.get("history")).get("messages"))),
            )
        )
    return tuple(found)


def read(source: Source, view: View) -> History:
    """Read one chat of an export.

    Raises:
        LoadError: there is none.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    found: list[dict[str, Any]] = []
    for number, each in enumerate(conversations_of(load_value(source)), 1):
        if isinstance(object_of(_chat(each).get("history")).get("messages"), dict):
            found.append(each)
        else:
            notes.unreadable(number, "a chat needs the messages of `chat.history`")
    if not found:
        raise LoadError("no conversation found: the file has no `chat.history` of Open WebUI with messages")
    entry = choose(found, source.session, notes, _id, _updated)
    chat = _chat(entry)
    history = object_of(chat.get("history"))
    entries = {name: object_of(each) for name, each in object_of(history.get("messages")).items()}
    tree = Tree({name: text_of(each.get("parentId")) for name, each in entries.items()})
    path = tree.path(tree.end(view, text_of(history.get("currentId"))))
    messages: list[Message] = []
    for number, name in enumerate(path, 1):
        since = notes.left_out
        made = _read_message(entries[name], number, notes)
        note_unread(entries[name], made, number, notes, since=since)
        messages += made
    branches = tree.branches(
        path,
        notes,
        is_message=lambda name: True,  # noqa: ARG005 - every entry is one
        text_of=lambda name: text_of(entries[name].get("content")) or "",
        time_of=lambda name: milliseconds_of(entries[name].get("timestamp")),
    )
    prompt = text_of(chat.get("system")) or text_of(object_of(chat.get("params")).get("system"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=_id(entry),
        title=text_of(entry.get("title")) or text_of(chat.get("title")),
        created=milliseconds_of(entry.get("created_at")),
        updated=_updated(entry),
        system_prompt=prompt,
        branches=branches,
        extra={
            "entry": without(entry, ("chat",)),
            "chat": without(chat, ("history", "messages")),
            "history": without(history, ("messages",)),
        },
    )


def _read_message(entry: dict[str, Any], number: int, notes: Notes) -> list[Message]:
    time = milliseconds_of(entry.get("timestamp"))
    envelope = without(entry, ("content", "output", "files", "role"))
    match entry.get("role"):
        case "user":
            content: list[UserContent] = [TextContent(text=text)] if (text := text_of(entry.get("content"))) else []
            for file in objects_of(entry.get("files")):
                content += _file(file, number, notes)
            made: list[Message] = [UserMessage(content=tuple(content), timestamp=time)] if content else []
            if not isinstance(entry.get("content"), str):
                notes.unreadable(number, "a message without content")
        case "assistant":
            made = read_answer(entry, time, notes, number)
        case "system":
            made = [SystemMessage.of(text_of(entry.get("content")) or "")]
        case role:
            notes.unreadable(number, f"a message of the role {role!r}")
            made = []
    return [with_envelope(message, NAME, envelope) for message in made]


def _file(file: dict[str, Any], number: int, notes: Notes) -> list[UserContent]:
    """Give an attached file: an image, the text that was extracted, or a note that the export does not have it."""
    url, name = text_of(file.get("url")), text_of(file.get("name"))
    if file.get("type") == "image" and url is not None:
        return [image] if (image := image_of(url=url)) is not None else []
    stored = object_of(object_of(file.get("file")).get("data"))
    if text := text_of(stored.get("content")):
        return [TextContent(text=text)]
    if url is not None and url.startswith("data:") and (media := media_of(url=url, name=name)) is not None:
        return [media]
    detail = f"{name or url or 'a file'}: not in the export"
    notes.add(ChangeCode.FILE_MISSING, ("messages", number - 1), Loss.CONTENT, detail)
    return []
