"""The record of exports of Claude.ai.

Reads an export of Claude.ai: `conversations.json`, alone or in its zip archive.

Facts (descriptions of exports by others, read 2026-11-15):
- A message names the one before it in `parent_message_uuid`; abandoned answers are in the list as well.
- `content` has the blocks of a turn, results of tools among them; `text` may be empty while `content` is not.
- A long paste exists only as `extracted_content` of an attachment. Other files are not in the export.
- There are no signatures, and no model of a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolResultContent
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, UserMessage
from segue.histories.kit.documents import OTHER, choose, conversations_of, finish_history, json_text, load_value
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Format
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import make_call, media_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "claude-ai"
KNOWN_RECORDS: Final = frozenset({"token_budget", "flag", OTHER})
_PROTOCOL: Final = "anthropic-messages"
_CONTENT: Final = ("text", "thinking", "signature", "input", "content")
"""The fields of blocks that become content."""


def _updated(conversation: dict[str, Any]) -> int | None:
    return milliseconds_of(conversation.get("updated_at"))


def _id(conversation: dict[str, Any]) -> str | None:
    return text_of(conversation.get("uuid"))


def list_sessions(source: Source) -> tuple[Session, ...]:
    """List the conversations of an export.

    Raises:
        LoadError: it is not valid JSON.
    """
    return tuple(
        Session(
            format=NAME,
            id=_id(each) or "",
            path=source.path or source.name,
            title=title_of(title) if (title := text_of(each.get("name"))) else None,
            created=milliseconds_of(each.get("created_at")),
            updated=_updated(each),
            models=(model,) if (model := text_of(each.get("model"))) else (),
            messages=len(objects_of(each.get("chat_messages"))),
        )
        for each in filter(None, conversations_of(load_value(source)))
    )


def read(source: Source, view: View) -> History:
    """Read one conversation of an export.

    Raises:
        LoadError: there is none.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    found: list[dict[str, Any]] = []
    for number, each in enumerate(conversations_of(load_value(source)), 1):
        if isinstance(each.get("chat_messages"), list):
            found.append(each)
        else:
            notes.unreadable(number, "a conversation needs a list of `chat_messages`")
    conversation = choose(found, source.session, notes, _id, _updated)
    entries: dict[str, dict[str, Any]] = {}
    parents: dict[str, str | None] = {}
    before: str | None = None
    for number, raw in enumerate(conversation["chat_messages"], 1):
        entry = object_of(raw)
        name = text_of(entry.get("uuid")) or f"message-{number}"
        if not entry or name in entries:
            notes.unreadable(number, "a message needs its own `uuid`")
            continue
        entries[name] = entry
        # Without links, the order of the list is that of the conversation.
        parents[name] = text_of(entry.get("parent_message_uuid")) if "parent_message_uuid" in entry else before
        before = name
    tree = Tree(parents)
    end = tree.end(view, text_of(conversation.get("current_leaf_message_uuid")) or _newest(entries))
    path = tree.path(end)
    model = text_of(conversation.get("model")) or ""
    order = {name: number for number, name in enumerate(entries, 1)}
    messages: list[Message] = []
    for name in path:
        since = notes.left_out
        made = _read_message(entries[name], order[name], model, notes)
        note_unread(entries[name], made, order[name], notes, since=since)
        messages += made
    branches = tree.branches(
        path,
        notes,
        is_message=lambda name: True,  # noqa: ARG005 - every entry is one
        text_of=lambda name: _text(entries[name]),
        time_of=lambda name: milliseconds_of(entries[name].get("created_at")),
    )
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=_id(conversation),
        title=text_of(conversation.get("name")),
        created=milliseconds_of(conversation.get("created_at")),
        updated=_updated(conversation),
        branches=branches,
        extra={"conversation": without(conversation, ("chat_messages",))},
    )


def _newest(entries: dict[str, dict[str, Any]]) -> str | None:
    times = {name: milliseconds_of(entry.get("created_at")) or 0 for name, entry in entries.items()}
    return max(reversed(times), key=lambda name: times[name], default=None)


def _text(entry: dict[str, Any]) -> str:
    texts = [text for block in objects_of(entry.get("content")) if (text := text_of(block.get("text")))]
    return "\n".join(texts) or text_of(entry.get("text")) or ""


def _read_message(entry: dict[str, Any], number: int, model: str, notes: Notes) -> list[Message]:
    time = milliseconds_of(entry.get("created_at"))
    envelope = without(entry, ("text", "content"))
    blocks = objects_of(entry.get("content"))
    if blocks != (entry.get("content") or []):
        notes.unreadable(number, "the content of a message is a list of objects")
    if shown := [without(block, _CONTENT) for block in blocks]:
        envelope["blocks"] = shown
    if not blocks and (text := text_of(entry.get("text"))):
        blocks = [{"type": "text", "text": text}]
    for file in (*objects_of(entry.get("files")), *objects_of(entry.get("files_v2"))):
        name = text_of(file.get("file_name")) or text_of(file.get("file_uuid")) or ""
        notes.add(ChangeCode.FILE_MISSING, ("files", name), Loss.CONTENT, f"{name}: the export has no files")
    pasted = [text for each in objects_of(entry.get("attachments")) if (text := text_of(each.get("extracted_content")))]
    made: list[Message] = []
    sender = entry.get("sender")
    if sender not in ("human", "assistant"):
        notes.unreadable(number, f"a message of {sender!r}; it is read as one of the user")
    if sender == "assistant":
        if pasted:
            made.append(UserMessage(content=tuple(TextContent(text=text) for text in pasted), timestamp=time))
        made += _reply(blocks, model, time, notes)
    else:
        texts = [*pasted, *(text for block in blocks if (text := text_of(block.get("text"))))]
        for block in blocks:
            if not isinstance(block.get("text"), str):
                _record(block, notes)
        if texts:
            made.append(UserMessage(content=tuple(TextContent(text=text) for text in texts), timestamp=time))
    return [with_envelope(message, NAME, envelope) for message in made]


def _record(block: dict[str, Any], notes: Notes) -> None:
    kind = text_of(block.get("type")) or "block without a type"
    notes.record(kind, 0, len(json_text(block)), block if notes.keeps else None)


def _reply(blocks: Sequence[dict[str, Any]], model: str, time: int | None, notes: Notes) -> Iterator[Message]:
    """Yield the turns of an answer: each result of a tool ends one."""
    content: list[AssistantContent] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            if content:
                yield _assistant(content, model, time)
                content = []
            yield _result(block, time, notes)
        elif kind == "text" and isinstance(block.get("text"), str):
            content.append(TextContent(text=block["text"]))
        elif kind == "thinking" and isinstance(block.get("thinking"), str):
            content.append(
                ThinkingContent(thinking=block["thinking"], thinking_signature=text_of(block.get("signature")))
            )
        elif kind == "tool_use":
            made_id = text_of(block.get("id")) or f"call_{len(content)}"
            content.append(make_call(made_id, block.get("name"), block.get("input")))
        else:
            _record(block, notes)
    if content:
        yield _assistant(content, model, time)


def _assistant(content: Sequence[AssistantContent], model: str, time: int | None) -> AssistantMessage:
    calls = any(each.kind == "toolCall" for each in content)
    return AssistantMessage(
        content=tuple(content),
        protocol=_PROTOCOL,
        provider="anthropic",
        model=model,
        stop_reason=StopReason.TOOL_USE if calls else StopReason.STOP,
        timestamp=time,
    )


def _result(block: dict[str, Any], time: int | None, notes: Notes) -> ToolResultMessage:
    content = block.get("content")
    pieces: list[ToolResultContent] = []
    if isinstance(content, str):
        pieces.append(TextContent(text=content))
    elif not isinstance(content, list):
        _record(block, notes)
    for given in cast("list[object]", content) if isinstance(content, list) else ():
        piece = object_of(given)
        source = object_of(piece.get("source"))
        if isinstance(piece.get("text"), str):
            pieces.append(TextContent(text=piece["text"]))
        elif isinstance(source.get("data"), str):
            media = media_of(source.get("media_type"), data=source["data"])
            pieces.append(media or TextContent(text=json_text(given)))
        else:
            pieces.append(TextContent(text=json_text(given)))
    return ToolResultMessage(
        tool_call_id=text_of(block.get("tool_use_id")) or "",
        tool_name=text_of(block.get("name")) or "",
        content=tuple(pieces),
        is_error=block.get("is_error") is True,
        timestamp=time,
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    list=list_sessions,
    samples=read_samples(__package__),
    title="Claude.ai export",
    kind="export",
    archive_members=("conversations.json", "*/conversations.json"),
    reads_lines=False,
    source="descriptions of exports by others",
    read_on="2026-11-15",
)
