"""Writes a Gemini CLI session.

Facts this file rests on (Gemini CLI 0.61.0, seen 2026-11-15):
- A file needs a first line with `sessionId` and `projectHash`; each message an `id`.
- A message whose content is a list of parts is sent as it is: thoughts are left out, signatures are kept.
- Calls as `functionCall` parts and results as a message of `functionResponse` parts are sent once; `toolCalls` would
  send the results twice.
- The program repairs nothing: a call without a result is sent as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.messages import AssistantMessage, Message, Usage
from segue.histories.gemini_cli.log import GOT_IT
from segue.histories.gemini_cli.read import NAME, WIRE
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope, find_title
from segue.histories.kit.format import Cut, Draft, Output
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import text_of, title_of
from segue.histories.kit.origins import foreign_mark
from segue.histories.kit.stamps import file_time_of, iso_of, make_id, time_of
from segue.histories.kit.writing import Clock, json_line

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
