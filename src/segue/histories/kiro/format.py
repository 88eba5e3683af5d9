"""The record of the command line of Kiro.

Facts (another program that reads and writes these files; 2026-11-18; not run):
- `<id>.jsonl` has lines `{version, kind, data}` of the kinds `Prompt`, `AssistantMessage` and `ToolResults`; parts of
  their content are `{kind, data}`: text, thinking, toolUse and toolResult. `data.results` repeats results.
- A result is text or JSON; that of the shell is `{stdout, stderr, exit_status}`. `status` is `success` or `error`.
- `<id>.json` next to it has folder, title, the session before it and the model.
- It is written as that program writes it; whether Kiro resumes it was not tried. Results of one answer are one line.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import describe_document, finish_history, json_text, parse_object, refuse_branch
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope, with_envelope
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import History, Parent, Session, WrittenFile
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import Media, make_call, read_media, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.unread import note_unread, read_list
from segue.histories.kit.writing import Clock, json_line, note_lost, placed
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

NAME: Final = "kiro"
TITLE: Final = "Kiro CLI"
_PARTS: Final = frozenset({"text", "thinking", "toolUse", "toolResult", "json", "image"})
_SHELL: Final = frozenset({"stdout", "stderr", "exit_status"})


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no line of Kiro.
    """
    refuse_branch(view, "Kiro")
    notes = Notes(keep=view.keep_records)
    meta = parse_object(source.neighbours.read(source.name.removesuffix("l")))
    state = object_of(object_of(meta.get("session_state")).get("rts_model_state"))
    model = text_of(object_of(state.get("model_info")).get("model_id"))
    messages: list[Message] = []
    for line, fields in decode_objects(source.data or b"", notes):
        since, data = notes.left_out, object_of(fields.get("data"))
        made = list(_read(text_of(fields.get("kind")), data, model))
        if not made:
            kind = text_of(fields.get("kind")) or "unknown"
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
        parts = read_list(data.get("content"), "content", line.number, notes)
        if not all(_is_known(part) for part in parts):
            notes.record("part of another form", line.number, len(line.data), fields if notes.keeps else None)
        given = without(data, ("results",)) if "content" in data else fields
        note_unread(given, [message.content for message in made], line.number, notes, since=since)
        messages += made
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no line of Kiro")
    before = text_of(meta.get("parent_session_id"))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(meta.get("session_id")) or _id_of(source.name),
        title=text_of(meta.get("title")),
        cwd=text_of(meta.get("cwd")),
        created=milliseconds_of(meta.get("created_at")),
        updated=milliseconds_of(meta.get("updated_at")),
        parent=None if before is None else Parent(id=before, kind="fork"),
    )


def _is_known(part: dict[str, Any]) -> bool:
    """Whether a part is of a known kind, with data; that of a call has to be whole."""
    kind, data = text_of(part.get("kind")), part.get("data")
    if kind == "toolUse":
        return isinstance(object_of(data).get("input"), dict)
    if kind == "image":
        return _media(part) is not None
    return kind in _PARTS and data is not None


def _read(kind: str | None, data: dict[str, Any], model: str | None) -> Iterator[Message]:
    parts = objects_of(data.get("content"))
    time = milliseconds_of(object_of(data.get("meta")).get("timestamp"))
    envelope = {"message_id": data.get("message_id")}
    if kind == "AssistantMessage":
        pieces = [piece for part in parts for piece in _reply(part)]
        names = (text_of(object_of(part.get("data")).get("modelId")) for part in parts)
        name = next((each for each in names if each), None) or model
        origin: Origin = UNKNOWN if name is None else find_origin(name)
        answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces), timestamp=time)
        if pieces:
            yield with_envelope(set_origin(answer, marked_origin(origin, data)), NAME, envelope)
        return
    if kind not in {"Prompt", "ToolResults"}:
        return
    for part in parts:
        if part.get("kind") == "toolResult":
            yield with_envelope(_result(object_of(part.get("data")), time), NAME, envelope)
    content = tuple(piece for part in parts if part.get("kind") != "toolResult" for piece in _piece(part))
    if content:
        yield with_envelope(UserMessage(content=content, timestamp=time), NAME, envelope)


def _reply(part: dict[str, Any]) -> Iterator[AssistantContent]:
    given = part.get("data")
    data = object_of(given)
    if part.get("kind") == "text" and isinstance(given, str):
        yield TextContent(text=given)
    elif part.get("kind") == "thinking":
        hidden = text_of(data.get("redactedContent"))
        yield ThinkingContent(
            thinking=text_of(data.get("text")) or "",
            thinking_signature=text_of(data.get("signature")) or hidden,
            redacted=hidden is not None,
        )
    elif part.get("kind") == "toolUse":
        yield make_call(data.get("toolUseId"), data.get("name"), data.get("input"))


def _piece(part: dict[str, Any]) -> Iterator[UserContent]:
    given = part.get("data")
    if isinstance(given, str) and part.get("kind") == "text":
        yield TextContent(text=given)
    elif part.get("kind") == "json":
        yield TextContent(text=_shown(given))
    elif (media := _media(part)) is not None:
        yield media


def _media(part: dict[str, Any]) -> Media | None:
    """Read an image, whose bytes are a list of numbers or base64 (aws/amazon-q-developer-cli: `ImageBlock`)."""
    data = object_of(part.get("data"))
    source = object_of(data.get("source"))
    given = source.get("bytes", source.get("data"))
    if isinstance(given, list):
        try:
            source = {"data": base64.b64encode(bytes(cast("list[int]", given))).decode()}
        except (TypeError, ValueError):
            return None
    mime = {"mimeType": f"image/{data['format']}"} if text_of(data.get("format")) else {}
    return read_media({**mime, **data, "type": part.get("kind"), "source": source})


def _shown(value: object) -> str:
    """Return a result in JSON as a text; of a shell what it printed."""
    fields = object_of(value)
    if fields and fields.keys() <= _SHELL:
        printed = [text for name in ("stdout", "stderr") if (text := text_of(fields.get(name)))]
        status = fields.get("exit_status")
        return (
            "\n".join(printed)
            if str(status) in {"0", "None", "exit status: 0"}
            else "\n".join([*printed, f"(exit status {status})"])
        )
    return json_text(value)


def _result(data: dict[str, Any], time: int | None) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=text_of(data.get("toolUseId")) or "",
        tool_name="",
        content=tuple(piece for part in objects_of(data.get("content")) for piece in _piece(part)),
        is_error=data.get("status") == "error",
        timestamp=time,
    )


def _id_of(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".jsonl")


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by the beginning of its lines."""
    if not any("kind" in line and "data" in line for line in first_objects(excerpt.head, 1)):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, _id_of(excerpt.name))
    if found is None or excerpt.whole:
        return found
    return replace(found, messages=None, tokens=None, cost=None, updated=excerpt.modified)


def write(draft: Draft) -> Output:
    """Write one session: its lines, and the file about it."""
    clock = Clock(draft)
    lines: list[dict[str, Any]] = []
    for group in runs_of(placed(draft, TITLE), _same_line):
        lines.append(_line(group, clock, draft, len(lines)))
    state: dict[str, Any] = {
        "version": "v1",
        "conversation_metadata": {"user_turn_metadatas": [], "user_turn_start_request": None, "last_request": None},
        "rts_model_state": {"conversation_id": draft.id, "model_info": None, "context_usage_percentage": None},
        "permissions": {
            "filesystem": {"allowed_read_paths": [], "allowed_write_paths": []},
            "trusted_tools": [],
            "denied_tools": [],
        },
        "agent_name": None,
    }
    times = [time for message in draft.messages if (time := time_of(message)) is not None]
    about: dict[str, Any] = {
        "session_id": draft.id,
        "cwd": draft.cwd,
        "created_at": _with_microseconds(draft.started),
        "updated_at": _with_microseconds(max(times, default=draft.started)),
        "title": draft.history.title,
        "parent_session_id": None,
        "session_created_reason": "user",
        "session_state": state,
    }
    files = (
        WrittenFile(name=f"sessions/cli/{draft.id}.jsonl", data=b"".join(map(json_line, lines))),
        WrittenFile(name=f"sessions/cli/{draft.id}.json", data=json_line(about)),
    )
    return Output(files, ("kiro-cli", "chat", "--resume-id", draft.id))


def _with_microseconds(time: int) -> str:
    return iso_of(time).replace("Z", "000Z")


def _same_line(before: tuple[int, Message], entry: tuple[int, Message]) -> bool:
    return before[1].role == entry[1].role == "toolResult"


def _line(group: list[tuple[int, Message]], clock: Clock, draft: Draft, number: int) -> dict[str, Any]:
    at, first = group[0]
    name = text_of((find_envelope(first, NAME) or {}).get("message_id"))
    data: dict[str, Any] = {"message_id": name or make_id(draft.id, "line", str(number)), "content": []}
    if isinstance(first, AssistantMessage):
        note_lost(draft, first, at, TITLE, redacted=True)
        parts = (_written_reply(piece, first.model) for piece in first.content)
        data["content"] = [part for part in parts if part is not None]
        return {"version": "v1", "kind": "AssistantMessage", "data": {**data, **origin_mark(first, UNKNOWN)}}
    if (time := time_of(first)) is not None or first.role == "user":
        data["meta"] = {"timestamp": clock.at(time) // 1000}
    if first.role == "toolResult":
        data["content"] = [
            {
                "kind": "toolResult",
                "data": {
                    "toolUseId": message.tool_call_id,
                    "content": _written(message),
                    "status": "error" if message.is_error else "success",
                },
            }
            for _, message in group
            if isinstance(message, ToolResultMessage)
        ]
        return {"version": "v1", "kind": "ToolResults", "data": {**data, "results": {}}}
    if first.role == "system":
        draft.notes.add(ChangeCode.SYSTEM_AS_USER, ("messages", at), Loss.NONE)
    data["content"] = _written(first)
    return {"version": "v1", "kind": "Prompt", "data": data}


def _written(message: Message) -> list[dict[str, Any]]:
    return [{"kind": "text", "data": piece.text} for piece in message.content if piece.kind == "text"]


def _written_reply(piece: AssistantContent, model: str) -> dict[str, Any] | None:
    match piece.kind:
        case "text":
            return {"kind": "text", "data": piece.text}
        case "thinking":
            signature = piece.thinking_signature
            opaque = {"redactedContent": signature} if piece.redacted else {"signature": signature}
            fields = {"signature": None, "redactedContent": None, **opaque}
            return {"kind": "thinking", "data": {"modelId": model, "text": piece.thinking, **fields}}
        case "toolCall":
            data = {"toolUseId": piece.id, "name": piece.name, "input": dict(piece.arguments)}
            return {"kind": "toolUse", "data": data}
        case "native":
            return None


FORMAT: Final = Format(
    name=NAME,
    read=read,
    write=write,
    describe=describe,
    samples=read_samples(__package__),
    title=TITLE,
    place=Place(folder=".kiro", variables=("KIRO_HOME",), patterns=("sessions/cli/*.jsonl",)),
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="a reader and writer of another project",
    read_on="2026-11-18",
)
