"""The record of Gemini CLI.

Recognises a Gemini CLI session, and describes it for a list from its beginning and its end.

Writes a Gemini CLI session.

Facts this file rests on (Gemini CLI 0.61.0, seen 2026-11-15):
- A file needs a first line with `sessionId` and `projectHash`; each message an `id`.
- A message whose content is a list of parts is sent as it is: thoughts are left out, signatures are kept.
- Calls as `functionCall` parts and results as a message of `functionResponse` parts are sent once; `toolCalls` would
  send the results twice.
- The program repairs nothing: a call without a result is sent as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from segue.conversation.messages import AssistantMessage, Message, Usage
from segue.histories.gemini_cli.read import GOT_IT, KNOWN_RECORDS, NAME, WIRE, is_context, parts_of, read
from segue.histories.gemini_cli.repairing import ANATOMY
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope, find_title
from segue.histories.kit.format import Cut, Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import Parent, Session, WrittenFile
from segue.histories.kit.lines import first_objects, integer_of, object_of, text_of, title_of
from segue.histories.kit.origins import foreign_mark
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import file_time_of, iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.models.model import Model


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    lines = [*first_objects(excerpt.head, 400), *first_objects(excerpt.tail, 400)]
    header = next((line for line in lines if "projectHash" in line), dict[str, object]())
    entries = {
        str(line["id"]): line for line in lines if "id" in line and text_of(line.get("type")) in {"user", "gemini"}
    }
    asked = [line for line in entries.values() if line["type"] == "user" and not is_context(line)]
    session_id = text_of(header.get("sessionId"))
    if session_id is None or not asked:
        return None
    times = [
        time
        for value in (
            header.get("startTime"),
            *(line.get("timestamp") for line in entries.values()),
            *(object_of(line.get("$set")).get("lastUpdated") for line in lines),
        )
        if (time := milliseconds_of(value)) is not None
    ]
    directories = header.get("directories")
    folders = [text_of(item) for item in cast("list[object]", directories)] if isinstance(directories, list) else []
    models = (text_of(line.get("model")) for line in entries.values())
    replies = [line for line in entries.values() if line["type"] == "gemini"]
    tokens = sum(integer_of(object_of(line.get("tokens")).get("total")) for line in replies)
    sub = header.get("kind") == "subagent"
    return Session(
        format=NAME,
        id=session_id,
        path=excerpt.path,
        title=_title(asked),
        cwd=folders[0] if folders else None,
        created=min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in models if model)),
        messages=len(asked) + len(replies) if excerpt.whole else None,
        tokens=tokens if excerpt.whole else None,
        size=excerpt.size,
        parent=Parent(id="", kind="subagent") if sub else None,
    )


def _title(asked: list[dict[str, object]]) -> str | None:
    for line in asked:
        for part in parts_of(line.get("content")):
            if (text := text_of(part.get("text"))) is not None:
                return title_of(text)
    return None


def read_settings(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Read the folder names of projects: `{path: name}`."""
    try:
        listed = json.loads(files.get("projects.json", b"{}"))
    except ValueError:
        return {}
    projects = object_of(object_of(listed).get("projects"))
    return {path: name for path, name in projects.items() if isinstance(name, str) and "/" not in name}


_GROUPED: Final = frozenset({"toolResult", "user"})
_RESUME: Final = ("gemini", "--session-file", "{file}")


def write(draft: Draft) -> Output:
    """Write one session: a header and the messages, whose content is parts."""
    cwd = draft.cwd or "/"
    clock = Clock(draft)
    lines: list[dict[str, Any]] = []
    end = 0 if draft.cut is None else draft.cut.at
    for group in runs_of(draft.messages[:end], _same_turn):
        lines += _lines(draft, clock, group, len(lines))
    if draft.cut is not None:
        lines.append(_compression(draft, draft.cut, iso_of(clock.at(None))))
    for group in runs_of(draft.messages[end:], _same_turn):
        lines += _lines(draft, clock, group, len(lines))
    last = next((line["timestamp"] for line in reversed(lines) if "timestamp" in line), iso_of(draft.started))
    header = {
        "sessionId": draft.id,
        "projectHash": hashlib.sha256(cwd.encode("utf-8", "replace")).hexdigest(),
        "startTime": iso_of(draft.started),
        "lastUpdated": last,
        "kind": "main",
    }
    if draft.cwd is not None:
        header["directories"] = [cwd]
    title, first = draft.history.title, find_title(draft.messages)
    if title and (first is None or title_of(first) != title):
        header["summary"] = title
    data = b"".join(json_line(line) for line in (header, *lines))
    time = file_time_of(draft.started)[:16]
    slug = draft.settings.get(cwd) or re.sub(r"[^A-Za-z0-9_-]+", "-", cwd.rstrip("/").rpartition("/")[2]) or "root"
    name = f"tmp/{slug}/chats/session-{time}-{draft.id[:8]}.jsonl"
    return Output((WrittenFile(name=name, data=data),), _RESUME, _RESUME)


def _compression(draft: Draft, cut: Cut, time: str) -> dict[str, Any]:
    """Write that the program compressed the messages so far: their lines stay, and the list of messages is another."""
    texts = (("user", cut.text), ("gemini", GOT_IT))
    messages = [
        {"id": make_id(draft.id, "compression", kind), "timestamp": time, "type": kind, "content": [{"text": text}]}
        for kind, text in texts
    ]
    return {"$set": {"messages": messages, "lastUpdated": time}}


def _same_turn(before: Message, message: Message) -> bool:
    """Whether two messages were read from one message, or are results of one batch."""
    if before.role not in _GROUPED or message.role not in _GROUPED:
        return False
    one, other = find_envelope(before, NAME), find_envelope(message, NAME)
    if one is None and other is None:
        return before.role == message.role == "toolResult"
    return one is not None and other is not None and one.get("id") == other.get("id")


def _lines(draft: Draft, clock: Clock, group: Sequence[Message], count: int) -> list[dict[str, Any]]:
    first = group[0]
    envelope = find_envelope(first, NAME) or {}
    lines: list[dict[str, Any]] = []
    for turn in WIRE.encode(group, draft.model.id, draft.model.provider):
        own_id = text_of(envelope.get("id"))
        used = own_id if own_id is not None and not lines else None
        line: dict[str, Any] = {
            **envelope,
            "id": used or make_id(draft.id, "message", str(count + len(lines))),
            "timestamp": iso_of(clock.at(time_of(first))),
            "type": "gemini" if first.role == "assistant" else "user",
            "content": turn["parts"],
        }
        if isinstance(first, AssistantMessage):
            line |= _reply_fields(first)
        lines.append(line)
    return lines


def _reply_fields(message: AssistantMessage) -> Mapping[str, Any]:
    fields = dict(foreign_mark(message, WIRE.protocol))
    if message.model:
        fields["model"] = message.model
    if message.usage is not None:
        fields["tokens"] = _tokens(message.usage)
    return fields


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input + usage.cache_read,
        "output": max(0, usage.output - usage.reasoning),
        "cached": usage.cache_read,
        "thoughts": usage.reasoning,
        "tool": 0,
        "total": usage.total_tokens,
    }


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    read_settings=read_settings,
    write=write,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="Gemini CLI",
    wire=WIRE.protocol,
    compacts=True,
    place=Place(
        folder=".gemini",
        variables=("GEMINI_CLI_HOME/.gemini",),
        patterns=("tmp/*/chats/session-*.jsonl", "tmp/*/chats/session-*.json"),
        project_file=".project_root",
    ),
    setting_files=("projects.json",),
    closes_calls=False,
    example=Model("gemini-2.5-pro", "google", "google-genai", reasoning=True),
    source="Gemini CLI 0.61.0, run against a scripted model; google-gemini/gemini-cli 2026-08-06",
    read_on="2026-11-15",
)
