"""The record of Qwen Code.

Writes a session of Qwen Code, and describes one for a list.

Facts this file rests on (Qwen Code 0.15.10, run against a scripted model, 2026-11-16):
- It resumes a file that another program wrote, by the id of the session, which must be a UUID of version 4.
- The folder of a project is its path with `-` for every character but letters and digits.
"""

from __future__ import annotations

import re
from typing import Any, Final

from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope, find_title
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import Session, WrittenFile
from segue.histories.kit.lines import first_objects, integer_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.origins import find_origin, origin_mark
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.histories.qwen_code.read import COMPRESSION, KNOWN_RECORDS, NAME, WIRE, read
from segue.histories.qwen_code.repairing import ANATOMY
from segue.models.model import Model

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
