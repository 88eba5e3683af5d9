"""The log of a Gemini CLI session: a list of changes, applied in order.

Facts this file rests on (Gemini CLI 0.61.0, seen 2026-11-15; google-gemini/gemini-cli 2026-08-06, read):
- A message line with a known id replaces that message; `{"$set": {"messages": [...]}}` replaces all of them;
  `{"$rewindTo": id}` removes that message and all after it, or every message if there is none of that id.
- On each start the messages are set to the session context alone, then to all of them again. They are then without
  model, tokens and thoughts, and have new times: the first line of the same id has these.
- A compression sets the messages to the summary, the answer "Got it. ...", and the messages that are kept.
- Before 2026 a session was one JSON object with `messages`; the program still reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, cast, final

from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.lines import Line, decode_object, decode_objects, object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

GOT_IT: Final = "Got it. Thanks for the additional context!"
"""What the program writes behind the summary of a compression, in the name of the model."""
SESSION_CONTEXT: Final = "<session_context>"
"""How the message begins in which the program says what it knows about the session; each start writes it anew."""
_FIRST_WINS: Final = ("model", "tokens", "thoughts", "timestamp")
"""Fields that only the first lines of a message have, or have right."""


@final
@dataclass(eq=False)
class LogEntry:
    """One message, with the fields of all its lines."""

    fields: dict[str, Any]
    line: int
    listed: bool = False
    """Whether it is one of `Log.entries`: a list is slow to search."""

    @property
    def kind(self) -> str:
        """Who wrote the message: `user`, `gemini`, or the program (`info`, `warning`, `error`)."""
        return text_of(self.fields.get("type")) or "unknown"

    @property
    def id(self) -> str:
        """The id of the message."""
        return str(self.fields["id"])


@final
@dataclass
class LogCompression:
    """A summary with the answer behind it, and the messages that are no longer sent since then."""

    summary: list[LogEntry]
    dropped: list[LogEntry]


@final
@dataclass
class MessagesTakenBack:
    """Messages that the user took back, and those before them."""

    before: list[LogEntry]
    lost: list[LogEntry]


@final
@dataclass
class Log:
    """A session, read."""

    header: dict[str, Any] = field(default_factory=dict[str, Any])
    entries: list[LogEntry] = field(default_factory=list[LogEntry])
    everything: dict[str, LogEntry] = field(default_factory=dict[str, LogEntry])
    """All messages that ever were in the session, by id, in order of their first line."""
    taken_back: list[MessagesTakenBack] = field(default_factory=list["MessagesTakenBack"])
    compressions: list[LogCompression] = field(default_factory=list["LogCompression"])


def read_log(data: bytes, notes: Notes) -> Log:
    """Apply all lines.

    Raises:
        LoadError: the file has neither a header nor a message.
    """
    log = Log()
    whole = _read_whole(data)
    if whole is not None:
        log.header = {key: value for key, value in whole.items() if key != "messages"}
        log.entries = _merge_all(log, whole.get("messages"), 1, notes)
        return log
    for line, fields in decode_objects(data, notes):
        _apply(log, fields, line, notes)
    if not log.header and not log.everything:
        raise LoadError("no conversation found: the file has no header with a sessionId and no message of Gemini CLI")
    return log


def _read_whole(data: bytes) -> dict[str, Any] | None:
    """Read the older format: one object with `messages`."""
    start = data[:200].lstrip()
    if not start.startswith(b"{") or b'"messages"' not in data or b'{"$set"' in data:
        return None
    fields = decode_object(Line(1, data), Notes())
    return fields if fields is not None and "messages" in fields else None


def _apply(log: Log, fields: dict[str, Any], line: Line, notes: Notes) -> None:
    changes = object_of(fields.get("$set"))
    if changes:
        if "messages" in changes:
            for entry in log.entries:
                entry.listed = False
            log.entries = _merge_all(log, changes["messages"], line.number, notes)
            _note_compression(log)
        else:
            shown = {key: value for key, value in changes.items() if object_of(value) or objects_of(value)}
            note_unread(without(shown, ("memoryScratchpad",)), (), line.number, notes, since=notes.left_out)
        log.header |= {key: value for key, value in changes.items() if key != "messages"}
        rest = 0 if "messages" in changes else len(line.data)
        if rest:
            notes.record("$set", line.number, rest, fields if notes.keeps else None)
    elif (target := text_of(fields.get("$rewindTo"))) is not None:
        _rewind(log, target, notes)
    elif text_of(fields.get("sessionId")) and "id" not in fields:
        log.header |= fields
        notes.record("header", line.number, len(line.data), fields if notes.keeps else None)
    else:
        entry = _merge(log, fields, line.number, notes)
        if entry is None:
            notes.record(text_of(fields.get("type")) or "unknown", line.number, len(line.data))
        elif not entry.listed:
            entry.listed = True
            log.entries.append(entry)


def parts_of(content: object) -> list[dict[str, Any]]:
    """Give the parts of a message; a text is one part, and so is each one of a list in the list."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, dict):
        return [object_of(cast("object", content))]
    items = cast("list[object]", content) if isinstance(content, list) else []
    return [part for item in items if item for part in parts_of(item)]


def text_of_entry(entry: LogEntry) -> str:
    """Give the text of a message."""
    parts = parts_of(entry.fields.get("content"))
    return "".join(text for part in parts if (text := text_of(part.get("text"))))


def find_summary(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Give the summary and the answer behind it, if the session was compressed."""
    for entry, following in pairwise(entries):
        if following.kind == "gemini" and entry.kind == "user" and text_of_entry(following) == GOT_IT:
            return [entry, following]
    return []


def _note_compression(log: Log) -> None:
    summary = find_summary(log.entries)
    earlier = {entry.id for each in log.compressions for entry in (*each.summary, *each.dropped)}
    if summary and summary[0].id not in earlier:
        dropped = [entry for entry in log.everything.values() if not entry.listed and entry.id not in earlier]
        log.compressions.append(LogCompression(summary, dropped))


def _merge_all(log: Log, items: object, line: int, notes: Notes) -> list[LogEntry]:
    """Give the messages of a list; one without an id is noted."""
    entries: list[LogEntry] = []
    if not isinstance(items, list):
        notes.unreadable(line, "`messages` is no list")
        return entries
    for item in cast("list[object]", items):
        entry = _merge(log, object_of(item), line, notes)
        if entry is None:
            notes.unreadable(line, "a message without an id")
        elif not entry.listed:
            entry.listed = True
            entries.append(entry)
    return entries


def _merge(log: Log, fields: dict[str, Any], line: int, notes: Notes) -> LogEntry | None:
    """Give the message of a line, with what earlier lines of the same id say; None if it has no id.

    A text that the line replaces by another one is noted.
    """
    message_id = text_of(fields.get("id"))
    if message_id is None:
        return None
    known = log.everything.get(message_id)
    if known is None:
        entry = log.everything[message_id] = LogEntry(fields, line)
        return entry
    kept = {name: known.fields[name] for name in _FIRST_WINS if name in known.fields}
    before, place = text_of_entry(known), known.line
    known.fields = {**fields, **kept}
    known.line = line
    if before not in text_of_entry(known) and not before.lstrip().startswith(SESSION_CONTEXT):
        notes.record("replaced message", place, len(before), before)
    return known


def _rewind(log: Log, target: str, notes: Notes) -> None:
    first = log.everything.get(target)
    at = 0
    if first is not None and first.listed:
        at = next(at for at in range(len(log.entries) - 1, -1, -1) if log.entries[at] is first)
    lost = log.entries[at:]
    if not lost:
        return
    detail = f"{counted(len(lost), 'message')} that the user took back"
    notes.add(ChangeCode.BRANCH_LEFT_OUT, ("branches", len(log.taken_back)), Loss.CONTENT, detail)
    log.taken_back.append(MessagesTakenBack(log.entries[:at], lost))
    for entry in lost:
        entry.listed = False
        log.everything.pop(entry.id, None)
    del log.entries[at:]
