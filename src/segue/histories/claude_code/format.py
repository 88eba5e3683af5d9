"""The record of Claude Code.

Recognises a Claude Code session, and describes it for a list from its beginning and its end.

Writes a Claude Code session.

Facts this file rests on (Claude Code 2.1.325, seen 2026-11-15):
- A file that another program wrote is accepted. Each line needs `type`, `uuid`, `parentUuid`, `message` and
  `timestamp`; without a timestamp the program finds no conversation.
- Several blocks on one line are accepted, and a user's content as text.
- The folder of a project is its path with `-` for every character but letters and digits.
- The program writes a fork with the old uuids under a new session id.
- Unknown fields of a block are sent to the provider; unknown fields of a line are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from segue.conversation.messages import AssistantMessage, Message, StopReason
from segue.histories.claude_code.read import KNOWN_RECORDS, is_title, read
from segue.histories.claude_code.repairing import ANATOMY
from segue.histories.claude_code.tree import WIRE
from segue.histories.claude_code.turns import NAME, SYNTHETIC, attachment_content
from segue.histories.kit.entries import runs_of
from segue.histories.kit.envelope import find_envelope, find_title, plain_text
from segue.histories.kit.format import Cut, Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import Session, WrittenFile
from segue.histories.kit.lines import (
    first_objects,
    integer_of,
    number_of,
    object_of,
    objects_of,
    text_of,
    title_of,
    without,
)
from segue.histories.kit.origins import foreign_mark
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.models.model import Model


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    first = first_objects(excerpt.head, 400)
    # The first line of the end is most likely cut; a line that cannot be read is left out.
    last = first_objects(excerpt.tail, 400)
    lines = [*first, *last]
    if any((text_of(line.get("sessionId")) or "").startswith("session-") for line in first[:5]):
        return None  # iFlow, whose files have the same places
    conversation: list[dict[str, Any]] = []
    stamps: list[str] = []
    models: dict[str, None] = {}
    others: dict[str, dict[str, Any]] = {}  # the last line of each other kind
    for line in lines:
        kind, stamp = line.get("type"), line.get("timestamp")
        if type(stamp) is str and stamp:
            stamps.append(stamp)
        if kind in ("user", "assistant"):
            if line.get("uuid"):
                conversation.append(line)
                if (model := text_of(object_of(line.get("message")).get("model"))) and model != SYNTHETIC:
                    models[model] = None
        elif type(kind) is str and (kind not in _TITLES or text_of(line.get(_TITLES[kind]))):
            others[kind] = line
    if not conversation:
        return None
    cost = others.get("cost-state", {}).get("totalCostUSD")
    counted = conversation if excerpt.whole else []
    replies = {str(object_of(line.get("message")).get("id")): line for line in counted if line["type"] == "assistant"}
    asked = sum(line["type"] == "user" for line in counted)
    return Session(
        format=NAME,
        id=excerpt.name.rpartition("/")[2].removesuffix(".jsonl"),
        path=excerpt.path,
        title=_title(lines, others),
        cwd=next((cwd for line in conversation if (cwd := text_of(line.get("cwd")))), None),
        created=milliseconds_of(min(stamps, default=None)),
        updated=milliseconds_of(max(stamps, default=None)) or excerpt.modified,
        models=tuple(models),
        messages=asked + len(replies) if excerpt.whole else None,
        tokens=_tokens(list(replies.values())) if excerpt.whole else None,
        cost=number_of(cost),
        size=excerpt.size,
    )


_TITLES: Final = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Kinds of lines with a title, the one that goes first first, and the field that has it."""


def _title(lines: list[dict[str, Any]], others: dict[str, dict[str, Any]]) -> str | None:
    for kind, field in _TITLES.items():
        if kind in others:
            return text_of(others[kind].get(field))
    for line in lines:
        if line.get("type") != "user" or line.get("isMeta") or line.get("isCompactSummary"):
            continue
        content = object_of(line.get("message")).get("content")
        texts = [content] if isinstance(content, str) else [block.get("text") for block in objects_of(content)]
        for text in texts:
            if (title := text_of(text)) and not title.startswith("<"):
                return title_of(title)
    return None


def _tokens(replies: list[dict[str, object]]) -> int:
    usages = (object_of(object_of(line.get("message")).get("usage")) for line in replies)
    return sum(value for usage in usages for value in usage.values() if type(value) is int)


VERSION: Final = "2.1.325"
"""The version of the program whose format is written."""
_LONGEST: Final = 200
"""The program cuts a longer folder name and adds a hash of its own; then the file is named with its path."""

_STOPS: Final[Mapping[str, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
}


def write(draft: Draft) -> Output:
    """Write one session: a chain of lines."""
    writer = _Writer(draft)
    end = 0 if draft.cut is None else draft.cut.at
    for group in runs_of(draft.messages[:end], _same_line):
        writer.add(group)
    if draft.cut is not None:
        writer.compact(draft.cut)
    for group in runs_of(draft.messages[end:], _same_line):
        writer.add(group)
    cwd = draft.cwd or "/"
    folder = re.sub(r"[^A-Za-z0-9]", "-", cwd)
    name = f"projects/{folder[:_LONGEST]}/{draft.id}.jsonl"
    title = draft.history.title
    derived = find_title(each for each in draft.messages if is_title(each))
    if title and (derived is None or title_of(derived) != title):
        writer.lines.append({"type": "custom-title", "customTitle": title, "sessionId": draft.id})
    data = b"".join(json_line(line) for line in writer.lines)
    return Output((WrittenFile(name=name, data=data),), ("claude", "-r", draft.id), ("claude", "-r", "{file}"))


def _same_line(before: Message, message: Message) -> bool:
    """Whether two messages were read from one line, or are results of one batch."""
    if message.role == "assistant" or before.role == "assistant":
        return False
    one, other = find_envelope(before, NAME), find_envelope(message, NAME)
    if one is None and other is None:
        return before.role == message.role == "toolResult"
    return one is not None and other is not None and one.get("uuid") == other.get("uuid")


class _Writer:
    """The lines so far; each hangs under the one before it."""

    def __init__(self, draft: Draft) -> None:
        self.lines: list[dict[str, Any]] = []
        self._draft = draft
        self._clock = Clock(draft)
        self._last: str | None = None
        self._moved = draft.cwd != draft.history.cwd

    def add(self, group: Sequence[Message]) -> None:
        """Write the lines of one group of messages."""
        first = group[0]
        envelope = find_envelope(first, NAME)
        if first.role == "assistant":
            self._assistant(first, envelope)
            return
        if envelope is not None and "attachment" in envelope:
            fields = {}
            if first.content != attachment_content(object_of(envelope["attachment"])):
                fields["rendered"] = [{"content": each.text} for each in first.content if each.kind == "text"]
            self._line("attachment", envelope, self._time(first, envelope), fields)
            return
        if envelope is not None and envelope.get("subtype") == "local_command":
            self._line("system", envelope, self._time(first, envelope), {"content": plain_text(first)})
            return
        if envelope is not None and envelope.get("isCompactSummary") is True:
            compactions = self._draft.history.compactions
            uuid = compactions[-1].id if compactions else None
            self._boundary(self._clock.at(time_of(first)), {"uuid": uuid} if uuid else {}, None, 0)
        for turn in self._turns(group, is_own=envelope is not None):
            # A line of the type `user` has the role `user`; instructions in the middle are such a line as well.
            fields: dict[str, Any] = {"message": {**turn, "role": "user"}}
            if first.role == "toolResult" and first.details is not None and envelope is not None:
                fields["toolUseResult"] = first.details
            self._line("user", envelope or {}, self._time(first, envelope), fields)

    def compact(self, cut: Cut) -> None:
        """Write that the program compacted the lines so far: they stay in the file and are no longer sent."""
        self._boundary(self._clock.at(None), {}, self._last, cut.tokens)
        fields = {"message": {"role": "user", "content": cut.text}, "isCompactSummary": True}
        self._line("user", {}, self._clock.at(None), {**fields, "isVisibleInTranscriptOnly": True})

    def _turns(self, messages: Sequence[Message], *, is_own: bool) -> list[dict[str, Any]]:
        """Encode messages, those of others without cache marks: the program sets all that a request may have."""
        turns = WIRE.encode(messages, self._draft.model.id, self._draft.model.provider)
        for turn in () if is_own else turns:
            if not isinstance(content := turn["content"], str):
                turn["content"] = [without(block, ("cache_control",)) for block in objects_of(content)]
        return turns

    def _boundary(self, time: int, envelope: Mapping[str, object], before: str | None, tokens: int) -> None:
        self._last = None
        fields = {
            "logicalParentUuid": before,
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": {"trigger": "auto", "preTokens": tokens},
        }
        self._line("system", envelope, time, fields)

    def _assistant(self, message: AssistantMessage, envelope: Mapping[str, object] | None) -> None:
        turns = self._turns([message], is_own=envelope is not None)
        content: object = turns[0]["content"] if turns else []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects_of(content)
        lines = objects_of((envelope or {}).get("lines"))
        mark = foreign_mark(message, WIRE.protocol)
        counts = [integer_of(line.get("blocks")) for line in lines]
        if envelope is None or sum(counts) != len(blocks):
            reply = self._reply(message, blocks) if envelope is None else {**_reply_of(envelope), "content": blocks}
            self._line("assistant", lines[0] if lines else {}, self._time(message, None), {"message": reply, **mark})
            return
        for line, count in zip(lines, counts, strict=True):
            kept = {key: value for key, value in line.items() if key != "blocks"}
            reply = {**_reply_of(envelope), "content": blocks[:count]}
            del blocks[:count]
            self._line("assistant", kept, self._time(message, kept), {"message": reply, **mark})

    def _reply(self, message: AssistantMessage, blocks: list[Any]) -> dict[str, Any]:
        usage = message.usage
        reply_id = message.response_id or f"msg_{make_id(self._draft.id, str(len(self.lines))).replace('-', '')[:24]}"
        return {
            "model": message.model or self._draft.model.id,
            "id": reply_id,
            "type": "message",
            "role": "assistant",
            "content": blocks,
            "stop_reason": _STOPS.get(message.stop_reason, "end_turn"),
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input if usage else 0,
                "cache_creation_input_tokens": usage.cache_write if usage else 0,
                "cache_read_input_tokens": usage.cache_read if usage else 0,
                "output_tokens": usage.output if usage else 0,
            },
        }

    def _time(self, message: Message, envelope: Mapping[str, object] | None) -> int | str:
        """Give the time of a line: that of the file it was read from, or that of the message."""
        return text_of((envelope or {}).get("timestamp")) or self._clock.at(time_of(message))

    def _line(self, kind: str, envelope: Mapping[str, object], time: int | str, fields: Mapping[str, Any]) -> None:
        draft = self._draft
        uuid = text_of(envelope.get("uuid")) or make_id(draft.id, "line", str(len(self.lines)))
        line: dict[str, Any] = {
            "parentUuid": self._last,
            "isSidechain": False,
            "type": kind,
            "userType": "external",
            "entrypoint": "cli",
            "version": VERSION,
            "gitBranch": "",
            "cwd": draft.cwd or "/",
        }
        line |= envelope
        if self._moved:
            line["cwd"] = draft.cwd or "/"
        stamp = time if isinstance(time, str) else iso_of(time)
        line |= {"uuid": uuid, "timestamp": stamp, "sessionId": draft.id, **fields}
        self.lines.append(line)
        self._last = uuid


def _reply_of(envelope: Mapping[str, object]) -> dict[str, Any]:
    reply = envelope.get("reply")
    return dict(cast("Mapping[str, Any]", reply)) if isinstance(reply, Mapping) else {}


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    write=write,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="Claude Code",
    wire=WIRE.protocol,
    compacts=True,
    reads_long=True,
    place=Place(folder=".claude", variables=("CLAUDE_CONFIG_DIR",), patterns=("projects/*/*.jsonl",)),
    sends_thinking=True,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="Claude Code 2.1.325, run against a scripted model",
    read_on="2026-11-15",
)
