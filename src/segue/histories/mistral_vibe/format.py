"""The record of Mistral Vibe.

Facts (sources of Mistral Vibe 2.25 and 3.0: session logger, loader and types; 2026-11-18; not run):
- `messages.jsonl` has one chat message a line, with `message_id` and `injected`, which marks words of the program.
- Thinking is `reasoning_content`, its signature `reasoning_signature`. Arguments are text; fixtures have objects.
- `meta.json` next to it has the id, title, folder and instructions. A message does not name its model.
- A failed result is a text, `<tool_error>...`; there is no flag.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.chat_messages import read_content
from segue.histories.kit.documents import describe_document, finish_history, parse_object, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Session
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, task_id, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, set_origin
from segue.histories.kit.pieces import make_call, read_media, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "mistral-vibe"
_READ: Final = frozenset({"content", "role", "tool_calls", "reasoning_content", "reasoning_signature"})


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no message.
    """
    refuse_branch(view, "Mistral Vibe")
    notes = Notes(keep=view.keep_records)
    messages: list[Message] = []
    for line, fields in decode_objects(source.data or b"", notes):
        since = notes.left_out
        made = _read(fields)
        if made is None:
            notes.record(text_of(fields.get("role")) or "unknown", line.number, len(line.data), fields)
            continue
        note_unread(fields, [made.content], line.number, notes, since=since)
        envelope = without(fields, _READ)
        messages.append(with_envelope(made, NAME, envelope, own=fields.get("injected") is True))
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no message of Mistral Vibe")
    folder = source.name.rpartition("/")[0]
    meta = parse_object(source.neighbours.read(f"{folder}/meta.json" if folder else "meta.json"))
    given = meta.get("system_prompt")
    system = text_of(given) or text_of(object_of(given).get("content"))
    if messages and messages[0].role == "system":
        first = messages.pop(0)
        system = system or plain_text(first)
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(meta.get("session_id")) or task_id(source.name),
        title=text_of(meta.get("title")),
        cwd=text_of(object_of(meta.get("environment")).get("working_directory")),
        created=milliseconds_of(meta.get("start_time")),
        updated=milliseconds_of(meta.get("end_time")),
        system_prompt=system,
    )


def _read(fields: dict[str, Any]) -> Message | None:
    content = fields.get("content")
    match text_of(fields.get("role")):
        case "user":
            images = (read_media(image) for image in objects_of(fields.get("images")))
            return UserMessage(content=(*read_content(content), *(image for image in images if image is not None)))
        case "system":
            return SystemMessage(
                content=tuple(piece for piece in read_content(content) if isinstance(piece, TextContent))
            )
        case "tool":
            return ToolResultMessage(
                tool_call_id=text_of(fields.get("tool_call_id")) or "",
                tool_name=text_of(fields.get("name")) or "",
                content=read_content(content),
            )
        case "assistant":
            return _answer(fields)
        case _:
            return None


def _answer(fields: dict[str, Any]) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    words, signature = text_of(fields.get("reasoning_content")), text_of(fields.get("reasoning_signature"))
    if words or signature:
        pieces.append(ThinkingContent(thinking=words or "", thinking_signature=signature))
    pieces += [piece for piece in read_content(fields.get("content")) if isinstance(piece, TextContent)]
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
    if found is None or excerpt.whole:
        return found
    return replace(found, messages=None, tokens=None, cost=None, updated=excerpt.modified)


FORMAT: Final = Format(
    name=NAME,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Mistral Vibe",
    place=Place(folder=".vibe", variables=("VIBE_HOME",), patterns=("logs/session/session_*/messages.jsonl",)),
    source="mistralai/mistral-vibe",
    read_on="2026-11-18",
)
