"""The record of the command line of Kiro.

Facts (another program that reads and writes these files; 2026-11-18; not run):
- `<id>.jsonl` has lines `{version, kind, data}` of the kinds `Prompt`, `AssistantMessage` and `ToolResults`; parts of
  their content are `{kind, data}`: text, thinking, toolUse and toolResult. `data.results` repeats results.
- A result is text or JSON; that of the shell is `{stdout, stderr, exit_status}`. `status` is `success` or `error`.
- `<id>.json` next to it has folder, title, the session before it and the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import describe_document, finish_history, json_text, parse_object, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import History, Parent, Session
from segue.histories.kit.lines import decode_objects, first_objects, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, set_origin
from segue.histories.kit.pieces import make_call, read_media, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "kiro"
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
        given = {"content": data.get("content")} if "content" in data else fields
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
            yield with_envelope(set_origin(answer, origin), NAME, envelope)
        return
    if kind not in {"Prompt", "ToolResults"}:
        return
    for part in parts:
        if part.get("kind") == "toolResult":
            yield _result(object_of(part.get("data")), time)
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
    elif (media := read_media({"type": part.get("kind"), **object_of(given)})) is not None:
        yield media


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


FORMAT: Final = Format(
    name=NAME,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="Kiro CLI",
    place=Place(folder=".kiro", variables=("KIRO_HOME",), patterns=("sessions/cli/*.jsonl",)),
    source="a reader and writer of another project",
    read_on="2026-11-18",
)
