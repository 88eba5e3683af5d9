"""The record of Mistral Vibe.

Facts (sources of Mistral Vibe 2.25 and 3.0: session logger, loader and types; 2026-11-18; not run):
- `messages.jsonl` has one chat message a line, with `message_id` and `injected`, which marks words of the program.
- Thinking is `reasoning_content`, its signature `reasoning_signature`. Arguments are text; fixtures have objects.
- `meta.json` next to it has the id, title, folder and instructions. A message does not name its model.
- A failed result is a text, `<tool_error>...`; there is no flag.
- The loader takes any chat messages and ignores further fields; `--resume` wants the id of `meta.json`. It was not
  tried: the program needs a newer Python than the one here.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AnyContent, AssistantContent, TextContent, ThinkingContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.chat_messages import read_content
from segue.histories.kit.documents import describe_document, finish_history, parse_object, refuse_branch
from segue.histories.kit.envelope import find_envelope, plain_text, with_envelope
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import History, Session, WrittenFile
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, task_id, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import SEGUE, UNKNOWN, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import arguments_text, make_call, read_media, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import file_time_of, iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.unread import note_unread, read_list
from segue.histories.kit.writing import is_text, json_line, note_lost, placed
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

NAME: Final = "mistral-vibe"
TITLE: Final = "Mistral Vibe"
_READ: Final = frozenset({"content", "role", "tool_calls", "reasoning_content", "reasoning_signature", SEGUE})


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
        read_list(fields.get("tool_calls"), "tool_calls", line.number, notes)
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
    answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces))
    return set_origin(answer, marked_origin(UNKNOWN, fields))


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by the beginning of its messages."""
    if not any("role" in line for line in first_objects(excerpt.head, 1)):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, task_id(excerpt.name) or excerpt.name)
    if found is None or excerpt.whole:
        return found
    return replace(found, messages=None, tokens=None, cost=None, updated=excerpt.modified)


def write(draft: Draft) -> Output:
    """Write one session: its messages, and the file about it."""
    lines = [_line(message, at, number, draft) for number, (at, message) in enumerate(placed(draft, TITLE, _holds))]
    times = [time for message in draft.messages if (time := time_of(message)) is not None]
    about: dict[str, Any] = {
        "session_id": draft.id,
        "parent_session_id": None,
        "start_time": iso_of(draft.started),
        "end_time": iso_of(max(times, default=draft.started)),
        "git_commit": None,
        "git_branch": None,
        "environment": {"working_directory": draft.cwd},
        "username": "",
        "title": draft.history.title,
        "title_source": "auto",
        "total_messages": len(lines),
        "stats": {},
        "config": {"active_model": draft.model.id},
        "system_prompt": None,
        "tools_available": [],
    }
    day = file_time_of(draft.started).replace("-", "").replace("T", "_")
    folder = f"logs/session/session_{day}_{draft.id[:8]}"
    files = (
        WrittenFile(name=f"{folder}/messages.jsonl", data=b"".join(map(json_line, lines))),
        WrittenFile(name=f"{folder}/meta.json", data=json_line(about)),
    )
    return Output(files, ("vibe", "--resume", draft.id))


def _holds(message: Message, piece: AnyContent) -> bool:
    """Whether the program stores a piece: texts, and the images of its own messages."""
    return is_text(message, piece) or "images" in (find_envelope(message, NAME) or {})


def _line(message: Message, at: int, number: int, draft: Draft) -> dict[str, Any]:
    """Write one message; what the program has no field for is reported."""
    envelope = find_envelope(message, NAME)
    add, place = draft.notes.add, ("messages", at)
    texts = [piece.text for piece in message.content if piece.kind == "text"]
    thoughts = [piece for piece in message.content if piece.kind == "thinking" and not piece.redacted]
    if len(texts) > 1 or len(thoughts) > 1:
        add(ChangeCode.TURN_MERGED, place, Loss.NONE, f"{TITLE} has one text for each message")
    fields: dict[str, Any] = {"role": message.role, "content": "\n".join(texts), "injected": False}
    named = {} if message.role == "toolResult" else {"message_id": make_id(draft.id, "message", str(number))}
    fields |= named if envelope is None else envelope
    if isinstance(message, ToolResultMessage):
        fields |= {"role": "tool", "tool_call_id": message.tool_call_id, "name": message.tool_name}
        if message.is_error:
            add(ChangeCode.ERROR_AS_TEXT, place, Loss.NONE, f"{TITLE} has no error flag")
            fields["content"] = f"<tool_error>{fields['content']}</tool_error>"
    elif isinstance(message, AssistantMessage):
        note_lost(draft, message, at, TITLE)
        fields |= origin_mark(message, UNKNOWN)
        if words := "\n".join(piece.thinking for piece in thoughts):
            fields["reasoning_content"] = words
        signatures = [piece.thinking_signature for piece in thoughts if piece.thinking_signature]
        if len(signatures) == len(thoughts) == 1:
            fields["reasoning_signature"] = signatures[0]
        elif signatures:
            add(ChangeCode.SIGNATURE_REMOVED, place, Loss.OPAQUE, f"{TITLE} has one signature for each message")
        calls = [
            {
                "id": call.id,
                "index": index,
                "function": {"name": call.name, "arguments": arguments_text(call)},
                "type": "function",
            }
            for index, call in enumerate(message.tool_calls())
        ]
        fields |= {"tool_calls": calls} if calls else {}
    return fields


FORMAT: Final = Format(
    name=NAME,
    read=read,
    write=write,
    describe=describe,
    samples=read_samples(__package__),
    title=TITLE,
    place=Place(folder=".vibe", variables=("VIBE_HOME",), patterns=("logs/session/session_*/messages.jsonl",)),
    keeps_folders=True,
    example=Model("mistral-medium-latest", "mistral", "mistral-chat"),
    source="mistralai/mistral-vibe",
    read_on="2026-11-18",
)
