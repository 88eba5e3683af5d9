"""The record of Grok Build, the agent of xAI.

Facts (sources of Grok Build; another program that reads and writes these files; 2026-11-18; not run):
- A session is a folder: `updates.jsonl` is what resuming reads, notifications of the Agent Client Protocol in an
  envelope; `chat_history.jsonl` is what the model got; `summary.json` has id, folder, title and model.
- `chat_history.jsonl`: a line `reasoning` belongs to the answer after it. `synthetic_reason` marks what the program
  added, except `interjection` and `agent_message`. There is no error flag: `updates.jsonl` has it as a status.
- The name of the folder of a project is its path, percent-encoded. Resuming needs `current_model_id`, a model of Grok.
- It is written without `chat_history.jsonl`, as that program does; whether Grok resumes it was not tried here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from msgspec.structs import replace

from segue.conversation.content import AnyContent, AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.acp_updates import DISPLAYED, Updates, content_of, is_other_call
from segue.histories.kit.documents import describe_document, finish_history, parse_object, refuse_branch
from segue.histories.kit.envelope import find_envelope, is_own_text, with_envelope
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import History, Parent, Session, WrittenFile
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, task_id, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import SEGUE, UNKNOWN, find_origin, origin_mark, set_origin
from segue.histories.kit.pieces import make_call, read_media, reasoning_item, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import iso_of, milliseconds_of, time_of
from segue.histories.kit.unread import note_unread
from segue.histories.kit.writing import Clock, json_line, note_lost, placed
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

NAME: Final = "grok-build"
TITLE: Final = "Grok Build"
KNOWN_RECORDS: Final = DISPLAYED
_USERS: Final = frozenset({"interjection", "agent_message"})
"""Reasons of added messages that are words of a person, or of another agent."""


def read(source: Source, view: View) -> History:
    """Read one session: what the model got, else the updates.

    Raises:
        LoadError: the file has no message and no update.
    """
    refuse_branch(view, TITLE)
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    folder = source.name.rpartition("/")[0]
    chat = source.neighbours.read(f"{folder}/chat_history.jsonl") if source.name.endswith("/updates.jsonl") else None
    updates, asked = Updates(NAME), _Chat(notes)
    for line, fields in decode_objects(chat or source.data or b"", notes):
        since, params = notes.left_out, object_of(fields.get("params"))
        meta = object_of(params.get("_meta"))
        stamp = meta.get("agentTimestampMs")
        time = stamp if type(stamp) is int and stamp >= 0 else milliseconds_of(fields.get("timestamp"))
        update = object_of(params.get("update"))
        made = updates.take(update, time=time, prompt=text_of(meta.get("promptId"))) if update else asked.take(fields)
        if made is None:
            kind = text_of(update.get("sessionUpdate")) or text_of(fields.get("type")) or "unknown"
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
            continue
        if is_other_call(update):
            notes.record("call of another form", line.number, len(line.data), fields if notes.keeps else None)
        note_unread({"update": update or fields}, made, line.number, notes, since=since)
    messages = [*asked.finished(), *updates.messages()]
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no message and no update of Grok Build")
    about = parse_object(source.neighbours.read(f"{folder}/summary.json" if folder else "summary.json"))
    info, before = object_of(about.get("info")), text_of(about.get("parent_session_id"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(info.get("id")) or task_id(source.name),
        title=text_of(about.get("generated_title")) or text_of(about.get("session_summary")),
        cwd=text_of(info.get("cwd")),
        created=milliseconds_of(about.get("created_at")),
        updated=milliseconds_of(about.get("updated_at")),
        system_prompt=asked.system,
        parent=None if before is None else Parent(id=before, kind="fork"),
    )


class _Chat:
    """The messages of `chat_history.jsonl` so far."""

    def __init__(self, notes: Notes) -> None:
        self.system: str | None = None
        self._notes = notes
        self._messages: list[Message] = []
        self._thoughts: list[ThinkingContent] = []
        self._lines: list[dict[str, Any]] = []

    def take(self, fields: dict[str, Any]) -> list[object] | None:
        """Read one line and return what was made from it; None if it is not part of the conversation."""
        content = fields.get("content")
        self._lines.append(fields)
        match text_of(fields.get("type")):
            case "system":
                if self.system is not None and self.system != content:
                    return None  # of another session: a file has its instructions once
                self.system = text_of(content)
                return [self.system]
            case "user":
                reason = text_of(fields.get("synthetic_reason"))
                parts = content_of(objects_of(content)) if not isinstance(content, str) else [TextContent(text=content)]
                own = reason is not None and reason not in _USERS
                self._add(UserMessage(content=tuple(parts)), own=own)
            case "reasoning":
                words = "\n".join(
                    text for each in objects_of(fields.get("summary")) if (text := text_of(each.get("text")))
                )
                self._thoughts.append(
                    reasoning_item(words, text_of(fields.get("id")), text_of(fields.get("encrypted_content")))
                )
                return list(self._thoughts)
            case "assistant":
                self._answer(fields, text_of(content))
            case "tool_result":
                images = (read_media(each) for each in objects_of(fields.get("images")))
                texts: list[UserContent] = [TextContent(text=content)] if isinstance(content, str) and content else []
                result = ToolResultMessage(
                    tool_call_id=text_of(fields.get("tool_call_id")) or "",
                    tool_name="",
                    content=(*(texts or content_of(objects_of(content))), *(each for each in images if each)),
                )
                self._add(result)
            case _:
                return None
        return [self._messages[-1].content]  # its lines are kept with it, and would explain themselves

    def _answer(self, fields: dict[str, Any], text: str | None) -> None:
        pieces: list[AssistantContent] = [*self._thoughts, *([TextContent(text=text)] if text else [])]
        calls = objects_of(fields.get("tool_calls"))
        pieces += (make_call(call.get("id"), call.get("name"), call.get("arguments", call)) for call in calls)
        self._thoughts = []
        model = text_of(fields.get("model_id"))
        answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces))
        origin = find_origin(model) if model else UNKNOWN
        self._add(set_origin(answer, origin))

    def _add(self, message: Message, *, own: bool = False) -> None:
        """Add a message with its lines, from which the file is written again."""
        self._messages.append(with_envelope(message, NAME, {"lines": self._lines}, own=own))
        self._lines = []

    def finished(self) -> list[Message]:
        """Return the messages; thoughts without an answer are one."""
        if self._thoughts:
            self._answer({}, None)
        return self._messages


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by the beginning of its updates."""
    if not any("params" in line or "type" in line for line in first_objects(excerpt.head, 1)):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, task_id(excerpt.name) or excerpt.name)
    if found is None or excerpt.whole:
        return found
    return replace(found, messages=None, tokens=None, cost=None, updated=excerpt.modified)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(draft: Draft) -> Output:
    """Write one session: its updates, and the file about it."""
    clock = Clock(draft)
    lines: list[dict[str, Any]] = []
    prompt = 0
    for number, (at, message) in enumerate(placed(draft, TITLE, _holds)):
        time = clock.at(time_of(message))
        prompt += message.role == "user"
        for update in _updates(message, at, number, draft):
            meta = {"eventId": f"{draft.id}-{len(lines)}", "agentTimestampMs": time, "promptId": f"prompt-{prompt}"}
            params = {"sessionId": draft.id, "update": update, "_meta": meta}
            lines.append({"timestamp": time // 1000, "method": "session/update", "params": params})
    times = [time for message in draft.messages if (time := time_of(message)) is not None]
    title = draft.history.title
    about = {
        "info": {"id": draft.id, "cwd": draft.cwd or "/"},
        **({"session_summary": title, "generated_title": title} if title else {}),
        "created_at": iso_of(draft.started),
        "updated_at": iso_of(max(times, default=draft.started)),
        "num_messages": len(lines),
        "current_model_id": draft.model.id,
        "chat_format_version": 1,
    }
    folder = f"sessions/{quote(draft.cwd or '/', safe='')}/{draft.id}"
    files = (
        WrittenFile(name=f"{folder}/updates.jsonl", data=b"".join(map(json_line, lines))),
        WrittenFile(name=f"{folder}/summary.json", data=json_line(about)),
    )
    kept = [objects_of((find_envelope(message, NAME) or {}).get("lines")) for message in draft.messages]
    if all(kept):  # only messages of Grok itself: what its model got goes with them
        chat = b"".join(json_line(line) for lines in kept for line in lines)
        files = (*files, WrittenFile(name=f"{folder}/chat_history.jsonl", data=chat))
    return Output(files, ("grok", "--resume", draft.id))


def _holds(message: Message, piece: AnyContent) -> bool:
    return message.role == "assistant" or piece.kind == "text" or (piece.kind == "image" and piece.data is not None)


def _updates(message: Message, at: int, number: int, draft: Draft) -> Iterator[dict[str, Any]]:
    """Yield the updates of one message; texts of one kind that follow each other are one."""
    mark: dict[str, Any] = {"message": number, **({"own": True} if is_own_text(message) else {})}
    if isinstance(message, ToolResultMessage):
        content = [{"type": "content", "content": block} for block in map(_block, message.content)]
        status = "failed" if message.is_error else "completed"
        yield {"sessionUpdate": "tool_call_update", "toolCallId": message.tool_call_id, "status": status,
               "content": content}  # fmt: skip
        return
    if isinstance(message, AssistantMessage):
        note_lost(draft, message, at, TITLE)
        mark |= object_of(origin_mark(message, UNKNOWN).get(SEGUE))
        if any(piece.kind == "thinking" and piece.thinking_signature for piece in message.content):
            draft.notes.add(ChangeCode.SIGNATURE_REMOVED, ("messages", at), Loss.OPAQUE, f"{TITLE} has no field for it")
    elif message.role == "system":
        draft.notes.add(ChangeCode.SYSTEM_AS_USER, ("messages", at), Loss.NONE)
    meta = {"_meta": {SEGUE: mark}}
    last = ""
    for piece in message.content:
        if piece.kind == "toolCall":
            given = dict(piece.arguments) if piece.arguments_text is None else piece.arguments_text
            tool = {"x.ai/tool": {"name": piece.name}, SEGUE: mark}
            call = {"toolCallId": piece.id, "title": piece.name, "kind": "other", "status": "pending"}
            yield {"sessionUpdate": "tool_call", **call, "rawInput": given, "_meta": tool}
        elif piece.kind == "thinking":
            if not piece.redacted:
                words = {"type": "text", "text": ("\n" if last == "thinking" else "") + piece.thinking}
                yield {"sessionUpdate": "agent_thought_chunk", "content": words, **meta}
        else:
            kind = "agent_message_chunk" if message.role == "assistant" else "user_message_chunk"
            block = _block(piece)
            if last == piece.kind == "text":
                block["text"] = f"\n{block['text']}"
            yield {"sessionUpdate": kind, "content": block, **meta}
        if last == piece.kind and piece.kind in {"text", "thinking"}:
            detail = f"{TITLE} joins texts that follow each other"
            draft.notes.add(ChangeCode.TURN_MERGED, ("messages", at), Loss.NONE, detail)
        last = piece.kind


def _block(piece: AnyContent) -> dict[str, Any]:
    if piece.kind == "image":
        return {"type": "image", "data": piece.data, "mimeType": piece.mime_type or "image/png"}
    return {"type": "text", "text": piece.text if piece.kind == "text" else ""}


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    write=write,
    describe=describe,
    samples=read_samples(__package__),
    title=TITLE,
    place=Place(folder=".grok", variables=("GROK_HOME",), patterns=("sessions/*/*/updates.jsonl",)),
    keeps_folders=True,
    example=Model("grok-4.7", "xai", "openai-responses", reasoning=True),
    source="xai-org/grok-build; a reader and writer of another project",
    read_on="2026-11-18",
)
