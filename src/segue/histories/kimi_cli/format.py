"""The record of Kimi CLI, the older agent of Moonshot AI, to version 1.49.

Facts (sources of the program: soul/context.py, and message.py of kosong; 2026-11-18; not run):
- `context.jsonl` has one chat message a line; content is a text or parts. `encrypted` of a part `think` is a signature.
- Roles that begin with `_` are bookkeeping: `_checkpoint`, `_usage`, and `_system_prompt` with the instructions.
- A failed result begins with a part `<system>ERROR...`. There are no times, and no model is named.
- Going back to a checkpoint rewrites the file; numbered copies next to it are not part of the conversation.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.chat_messages import read_content
from segue.histories.kit.documents import describe_document, finish_history, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, task_id, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, set_origin
from segue.histories.kit.pieces import make_call, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.unread import note_unread, read_list

NAME: Final = "kimi-cli"
KNOWN_RECORDS: Final = frozenset({"_checkpoint", "_usage", "_system_prompt"})
_ERROR: Final = "<system>ERROR"
_READ: Final = frozenset({"content", "role", "tool_calls", "tool_call_id"})


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no message.
    """
    refuse_branch(view, "Kimi CLI")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    messages: list[Message] = []
    system: str | None = None
    for line, fields in decode_objects(source.data or b"", notes):
        role, since = text_of(fields.get("role")) or "unknown", notes.left_out
        if role == "_system_prompt":
            system = text_of(fields.get("content")) or system
        made = _read(role, fields)
        if made is None:
            notes.record(role, line.number, len(line.data), fields if notes.keeps else None)
            continue
        read_list(fields.get("tool_calls"), "tool_calls", line.number, notes)
        note_unread(fields, [made.content], line.number, notes, since=since)
        messages.append(with_envelope(made, NAME, without(fields, _READ)))
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no message of Kimi CLI")
    return finish_history(NAME, notes, messages, session_id=task_id(source.name), system_prompt=system)


def _read(role: str, fields: dict[str, Any]) -> Message | None:
    content = fields.get("content")
    match role:
        case "user":
            return UserMessage(content=read_content(content))
        case "system":
            texts = (piece for piece in read_content(content) if isinstance(piece, TextContent))
            return SystemMessage(content=tuple(texts))
        case "tool":
            pieces = read_content(content)
            failed = bool(pieces) and pieces[0].kind == "text" and pieces[0].text.startswith(_ERROR)
            call_id = text_of(fields.get("tool_call_id")) or ""
            return ToolResultMessage(tool_call_id=call_id, tool_name="", content=pieces, is_error=failed)
        case "assistant":
            return _answer(content, fields)
        case _:
            return None


def _answer(content: object, fields: dict[str, Any]) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    for part in ({"text": content},) if isinstance(content, str) else objects_of(content):
        if isinstance(words := part.get("think"), str):
            pieces.append(ThinkingContent(thinking=words, thinking_signature=text_of(part.get("encrypted"))))
        elif isinstance(text := part.get("text"), str) and text:
            pieces.append(TextContent(text=text))
    for call in objects_of(fields.get("tool_calls")):
        function = object_of(call.get("function"))
        # Arguments at an unknown place stay with the call.
        pieces.append(make_call(call.get("id"), function.get("name"), function.get("arguments", call)))
    return set_origin(AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces)), UNKNOWN)


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by the beginning of its messages."""
    if not any("role" in line for line in first_objects(excerpt.head, 1)):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, task_id(excerpt.name) or excerpt.name)
    if found is None:
        return None
    found = replace(found, updated=excerpt.modified)
    return found if excerpt.whole else replace(found, messages=None)


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Kimi CLI",
    place=Place(folder=".kimi", variables=("KIMI_SHARE_DIR",), patterns=("sessions/*/*/context.jsonl",)),
    source="MoonshotAI/kimi-cli",
    read_on="2026-11-18",
)
