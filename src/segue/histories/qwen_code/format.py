"""Qwen Code: reads and writes a session, and describes one for a list.

Facts (Qwen Code 0.15.10, run against a scripted model; its source; 2026-11-16):
- A line hangs under its `parentUuid`; the last line is the end of the path. A `rewind` hangs the next lines under an
  older one. Several lines may have one `uuid`: their parts belong together.
- `message` is a content of Google: the role `user` or `model`, and parts. Results of tools are lines of the type
  `tool_result`, with their outcome in `toolCallResult.status`.
- `system/chat_compression` has in `compressedHistory` the contents that replace everything before it.
- Other `system` lines are settings, telemetry and titles.
- It resumes a file that another program wrote, by the id of the session, which must be a UUID of version 4.
- The folder of a project is its path with `-` for every character but letters and digits.
- It ended with the provider's error for a result that was too long, and went on after the repair; calls without a
  result and results without a call it leaves out itself. (0.24.4, run 2026-11-18)

Assumed, not tried with the program: it takes the model from its settings, not from the session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.context import Summary
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import DecodeError, LoadError
from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall
from segue.histories.kit.documents import finish_history
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope, find_title, plain_text, with_envelope
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.google_repairing import call_of_part, picture_of_part, result_of_part, unsign_part
from segue.histories.kit.history import Compaction, History, Session, WrittenFile
from segue.histories.kit.lines import (
    Fields,
    decode_objects,
    first_objects,
    integer_of,
    object_of,
    objects_of,
    text_of,
    title_of,
    without,
)
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.trees import Tree
from segue.histories.kit.unread import note_unread
from segue.histories.kit.wire import TurnCodec
from segue.histories.kit.writing import Clock, json_line
from segue.models.model import Model

# -- reading -----------------------------------------------------------------------------------------------------------

NAME: Final = "qwen-code"
WIRE: Final = TurnCodec("google-genai", "contents")
KNOWN_RECORDS: Final = frozenset({
    "sidechain", "system/at_command", "system/attribution_snapshot", "system/chat_compression", "system/custom_title",
    "system/file_history_snapshot", "system/notification", "system/rewind", "system/slash_command",
    "system/turn_result", "system/ui_telemetry",
})  # fmt: skip
COMPRESSION: Final = "chat_compression"
_TURNS: Final = frozenset({"user", "assistant", "tool_result"})
_WRITTEN_ANEW: Final = ("parentUuid", "sessionId", "message", "segue")


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no line of Qwen Code, or not the branch that the view asks for.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    lines, numbers = _read_lines(source.data or b"", notes)
    if not lines:
        raise LoadError("no conversation found: the file has no line with a uuid and a message of Qwen Code")
    tree = Tree({uuid: text_of(fields.get("parentUuid")) for uuid, fields in lines.items()})
    path = tree.path(tree.end(view, next(reversed(lines))))
    messages: list[Message] = []
    compaction: Compaction | None = None
    for uuid in path:
        fields = lines[uuid]
        contents = _compressed(fields)
        is_compression = text_of(fields.get("subtype")) == COMPRESSION
        if is_compression and contents != object_of(fields.get("systemPayload")).get("compressedHistory"):
            notes.unreadable(numbers[uuid], "a compression needs its contents, which are objects")
        if contents:
            decoded = [message for each in contents for message in _decode(each, fields, numbers[uuid], notes)]
            kept = without(fields, (*_WRITTEN_ANEW, "systemPayload"))
            summary = [with_envelope(message, NAME, kept) for message in decoded]
            text = "\n".join(filter(None, map(plain_text, summary)))
            covers = Summary(covers=len(messages), text=text, timestamp=milliseconds_of(fields.get("timestamp")))
            compaction = Compaction(summary=covers, messages=tuple(messages), id=uuid)
            messages = summary
        elif text_of(fields.get("type")) in _TURNS:
            messages += _read_line(fields, numbers[uuid], notes)
    branches = tree.branches(
        path,
        notes,
        is_message=lambda uuid: text_of(lines[uuid].get("type")) in _TURNS or _compressed(lines[uuid]) != [],
        text_of=lambda uuid: _words(lines[uuid]),
        time_of=lambda uuid: milliseconds_of(lines[uuid].get("timestamp")),
    )
    first, last = lines[path[0]], lines[path[-1]]
    titles = (object_of(fields.get("systemPayload")).get("customTitle") for fields in reversed(lines.values()))
    return finish_history(
        NAME,
        notes,
        messages,
        session_id=text_of(last.get("sessionId")) or source.name.rpartition("/")[2].removesuffix(".jsonl") or None,
        version=text_of(last.get("version")),
        title=next((title for title in titles if isinstance(title, str) and title), None),
        cwd=text_of(first.get("cwd")),
        branches=branches,
        compaction=compaction,
    )


def _read_lines(data: bytes, notes: Notes) -> tuple[dict[str, dict[str, Any]], dict[str, int]]:
    """Return the lines of the conversation by their uuid, and their numbers; all others are noted."""
    lines: dict[str, dict[str, Any]] = {}
    numbers: dict[str, int] = {}
    for line, fields in decode_objects(data, notes):
        uuid, kind, subtype = (text_of(fields.get(name)) for name in ("uuid", "type", "subtype"))
        is_side = fields.get("isSidechain") is True
        if uuid is None or is_side or kind not in _TURNS:
            shown = "sidechain" if is_side else f"{kind or 'unknown'}/{subtype}" if subtype else kind or "unknown"
            notes.record(shown, line.number, len(line.data), fields if notes.keeps else None)
        if uuid is None or is_side:
            continue
        if uuid in lines and kind != text_of(lines[uuid].get("type")):
            notes.unreadable(line.number, "another line with the same uuid")
        elif uuid in lines:
            message = object_of(lines[uuid].get("message"))
            parts = [*objects_of(message.get("parts")), *objects_of(object_of(fields.get("message")).get("parts"))]
            lines[uuid] = {**lines[uuid], "message": {**message, "parts": parts}}
        else:
            lines[uuid], numbers[uuid] = fields, line.number
    return lines, numbers


def _compressed(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the contents of a compression; none for any other line."""
    is_compression = text_of(fields.get("subtype")) == COMPRESSION
    return objects_of(object_of(fields.get("systemPayload")).get("compressedHistory")) if is_compression else []


def _words(fields: dict[str, Any]) -> str:
    parts = objects_of(object_of(fields.get("message")).get("parts"))
    return "\n".join(text for part in parts if (text := text_of(part.get("text"))))


def _read_line(fields: dict[str, Any], number: int, notes: Notes) -> list[Message]:
    since = notes.left_out
    made = _decode(object_of(fields.get("message")), fields, number, notes)
    shown = without(fields, ("toolCallResult", "cwd", "gitBranch"))
    note_unread(shown, [each.content for each in made], number, notes, since=since)
    if not made and notes.left_out == since:
        notes.unreadable(number, "the message has no parts")
    envelope = without(fields, _WRITTEN_ANEW)
    return [
        with_envelope(message, NAME, envelope if not at else {"uuid": fields["uuid"]})
        for at, message in enumerate(made)
    ]


def _decode(content: dict[str, Any], fields: dict[str, Any], number: int, notes: Notes) -> Sequence[Message]:
    model = text_of(fields.get("model")) or ""
    try:
        decoded = WIRE.decode([content], model)
    except DecodeError as error:
        notes.unreadable(number, str(error))
        return []
    time = milliseconds_of(fields.get("timestamp"))
    status = text_of(object_of(fields.get("toolCallResult")).get("status"))
    made: list[Message] = []
    for message in decoded:
        if isinstance(message, AssistantMessage):
            usage = object_of(fields.get("usageMetadata"))
            counted = usage_of(
                usage.get("promptTokenCount"),
                usage.get("candidatesTokenCount"),
                cache_read=usage.get("cachedContentTokenCount"),
                reasoning=usage.get("thoughtsTokenCount"),
                total=usage.get("totalTokenCount"),
            )
            ended = replace(message, usage=counted, stop_reason=stop_of(None, message.content), timestamp=time)
            made.append(set_origin(ended, marked_origin(find_origin(model), fields)))
        elif isinstance(message, ToolResultMessage):
            made.append(replace(message, is_error=message.is_error or status == "error", timestamp=time))
        elif isinstance(message, UserMessage):
            made.append(replace(message, timestamp=time))
        else:
            made.append(message)
    return made


# -- repairing: see `segue.histories.kit.repairing` --------------------------------------------------------------------

_KEPT: Final = ("sessionId", "timestamp", "cwd", "version", "gitBranch")


def _answer(line: Fields, call: OpenCall) -> dict[str, Any]:
    part = {"functionResponse": {"id": call.id, "name": call.name, "response": {"error": NO_RESULT}}}
    kept = {key: line[key] for key in _KEPT if key in line}
    outcome = {"callId": call.id, "status": "error", "resultDisplay": NO_RESULT}
    return {**kept, "type": "tool_result", "message": {"role": "user", "parts": [part]}, "toolCallResult": outcome}


ANATOMY: Final = Anatomy(
    id_key="uuid",
    parent_key="parentUuid",
    is_record=lambda node: "uuid" in node and "sessionId" in node,
    call_id=call_of_part,
    result_id=result_of_part,
    is_holder=lambda node: "uuid" in node and "message" in node,
    answer=_answer,
    signatures=frozenset({"thoughtSignature"}),
    unsign=unsign_part,
    picture=picture_of_part,
    note=lambda _, text: {"text": text},
    is_hollow=lambda node: "message" in node and object_of(node.get("message")).get("parts") == [],
)


# -- the record --------------------------------------------------------------------------------------------------------

VERSION: Final = "0.15.10"
"""The version of the program whose format is written."""


def write(draft: Draft) -> Output:
    """Write one session: a chain of lines."""
    session = f"{draft.id[:14]}4{draft.id[15:]}"
    clock = Clock(draft)
    lines: list[dict[str, Any]] = []
    for group in runs_of(draft.messages, _same_line):
        lines += _lines(group, lines, session, clock, draft)
    title, first = draft.history.title, find_title(draft.messages)
    if title and (first is None or title_of(first) != title):
        time = lines[-1]["timestamp"] if lines else iso_of(draft.started)
        payload = {"customTitle": title, "titleSource": "auto"}
        fields = {"subtype": "custom_title", "systemPayload": payload, "timestamp": time}
        lines.append(_line(lines, session, draft, "system", fields))
    folder = re.sub(r"[^A-Za-z0-9]", "-", draft.cwd or "/")
    name = f"projects/{folder}/chats/{session}.jsonl"
    data = b"".join(json_line(line) for line in lines)
    return Output((WrittenFile(name=name, data=data),), ("qwen", "--resume", session), id=session)


def _same_line(before: Message, message: Message) -> bool:
    """Whether two messages were read from one line."""
    one, other = find_envelope(before, NAME) or {}, find_envelope(message, NAME) or {}
    is_summary = other.get("subtype") == COMPRESSION
    is_same = other.get("uuid") is not None and one.get("uuid") == other["uuid"]
    return is_same and (is_summary or message.role != "assistant")


def _lines(
    group: list[Message], before: list[dict[str, Any]], session: str, clock: Clock, draft: Draft
) -> list[dict[str, Any]]:
    first = group[0]
    envelope = dict(find_envelope(first, NAME) or {})
    made: list[dict[str, Any]] = []
    turns = WIRE.encode(group, draft.model.id, draft.model.provider)
    if envelope.get("subtype") == COMPRESSION:
        payload: dict[str, Any] = {"info": {}, "compressedHistory": turns}
        fields: dict[str, Any] = {**envelope, "systemPayload": payload}
        return [_line(before, session, draft, "system", fields)]
    for turn in turns:
        time = text_of(envelope.get("timestamp")) or iso_of(clock.at(time_of(first)))
        fields = {**envelope, "message": turn, "timestamp": time}
        kind = "user"
        if isinstance(first, AssistantMessage):
            kind = "assistant"
            fields["model"] = first.model or draft.model.id
            fields |= origin_mark(first, find_origin(fields["model"]))
        elif isinstance(first, ToolResultMessage):
            kind = "tool_result"
            status = "error" if first.is_error else "success"
            fields.setdefault("toolCallResult", {"callId": first.tool_call_id, "status": status})
        made.append(_line([*before, *made], session, draft, kind, fields))
        envelope.pop("uuid", None)
    return made


def _line(
    before: list[dict[str, Any]], session: str, draft: Draft, kind: str, fields: dict[str, Any]
) -> dict[str, Any]:
    place = {"parentUuid": before[-1]["uuid"] if before else None, "sessionId": session}
    about = {"cwd": draft.cwd or "/", "version": VERSION, "gitBranch": ""}
    uuid = text_of(fields.get("uuid")) or make_id(session, "line", str(len(before)))
    moved = {"cwd": about["cwd"]} if draft.cwd != draft.history.cwd else {}
    return {**about, **fields, **moved, **place, "uuid": uuid, "type": kind}


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session for a list; None for a file of another program."""
    lines = [*first_objects(excerpt.head, 400), *first_objects(excerpt.tail, 400)]
    turns = [line for line in lines if line.get("uuid") and "parts" in object_of(line.get("message"))]
    if not turns:
        return None
    times = [time for line in lines if (time := milliseconds_of(line.get("timestamp"))) is not None]
    asked = (objects_of(object_of(line.get("message")).get("parts")) for line in turns if line.get("type") == "user")
    texts = (text_of(part.get("text")) for parts in asked for part in parts)
    named = (text_of(object_of(line.get("systemPayload")).get("customTitle")) for line in reversed(lines))
    title = next((name for name in named if name), None) or next((text for text in texts if text), None)
    models = (text_of(line.get("model")) for line in turns)
    usages = (object_of(line.get("usageMetadata")) for line in turns)
    return Session(
        format=NAME,
        id=excerpt.name.rpartition("/")[2].removesuffix(".jsonl"),
        path=excerpt.path,
        title=None if title is None else title_of(title),
        cwd=next((cwd for line in turns if (cwd := text_of(line.get("cwd")))), None),
        created=min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in models if model)),
        messages=len(turns) if excerpt.whole else None,
        tokens=sum(integer_of(usage.get("totalTokenCount")) for usage in usages) if excerpt.whole else None,
        size=excerpt.size,
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    write=write,
    describe=describe,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="Qwen Code",
    wire="google-genai",
    place=Place(
        folder=".qwen",
        variables=("QWEN_RUNTIME_DIR", "QWEN_HOME"),
        patterns=("projects/*/chats/*.jsonl", "tmp/*/chats/*.jsonl"),
    ),
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True, max_tokens=8000),
    source="Qwen Code 0.15.10 and 0.24.4, run against a scripted model; its source",
    read_on="2026-11-18",
)
