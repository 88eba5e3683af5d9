"""Reads a Gemini CLI session.

The log of a Gemini CLI session: a list of changes, applied in order.

Facts (Gemini CLI 0.61.0, seen 2026-11-15; google-gemini/gemini-cli, read):
- Results are in `toolCalls[].result` and again as a message of the user, and once more after each start; a result
  may also repeat those of other calls. Only the first one of an id counts.
- Call ids have the prefix `<tool>__` in the file, and not on the wire.
- A text of the user that begins with `/` or `?` is a command; it is not sent.
- `info`, `warning` and `error` messages are shown only. Thoughts are sent by no version after a start.
- The answer that was interrupted is not in the file.
- One session may be spread over several files of the same id, one for each minute of a start.

Facts (Gemini CLI 0.61.0, seen 2026-11-15; google-gemini/gemini-cli 2026-08-06, read):
- A message line with a known id replaces that message; `{"$set": {"messages": [...]}}` replaces all of them;
  `{"$rewindTo": id}` removes that message and all after it, or every message if there is none of that id.
- On each start the messages are set to the session context alone, then to all of them again. They are then without
  model, tokens and thoughts, and have new times: the first line of the same id has these.
- A compression sets the messages to the summary, the answer "Got it. ...", and the messages that are kept.
- Before 2026 a session was one JSON object with `messages`; the program still reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, cast, final

from msgspec.structs import replace

from segue.conversation.context import Context, Summary
from segue.conversation.messages import AssistantMessage, Message, StopReason, SystemMessage, Usage
from segue.errors import DecodeError, LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import find_title, name_results, with_envelope
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin
from segue.histories.kit.lines import (
    Line,
    decode_object,
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
from segue.histories.kit.origins import with_marked_origin
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.histories.kit.unread import note_unread
from segue.histories.kit.wire import TurnCodec
from segue.projection.report import ChangeCode, Loss

GOT_IT: Final = "Got it. Thanks for the additional context!"
"""What the program writes after the summary of a compression, in the name of the model."""
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
    """A summary with the answer after it, and the messages that are no longer sent since then."""

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
    """Return the parts of a message; a text is one part, and so is each one of a list in the list."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, dict):
        return [object_of(cast("object", content))]
    items = cast("list[object]", content) if isinstance(content, list) else []
    return [part for item in items if item for part in parts_of(item)]


def text_of_entry(entry: LogEntry) -> str:
    """Return the text of a message."""
    parts = parts_of(entry.fields.get("content"))
    return "".join(text for part in parts if (text := text_of(part.get("text"))))


def find_summary(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Find the summary and the answer after it, if the session was compressed."""
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
    """Return the messages of a list; one without an id is noted."""
    entries: list[LogEntry] = []
    if not isinstance(items, list):
        notes.unreadable(line, "`messages` is not a list")
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
    """Return the message of a line, merged with earlier lines of the same id; None if it has no id.

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


NAME: Final = "gemini-cli"
WIRE: Final = TurnCodec("google-genai", "contents")
KNOWN_RECORDS: Final = frozenset(
    {
        "header",
        "$set",
        "info",
        "warning",
        "error",
        "command",
        "repeated results",
        "details of tool calls",
        "answer to a summary",
    }
)
_IN_MESSAGE: Final = frozenset({"content", "toolCalls", "thoughts", "tokens", "model", "type", "timestamp", "segue"})

_TAKEN_BACK: Final = "taken-back-"
"""How the ids of branches begin."""


def read(source: Source, view: View) -> History:
    """Read one session; of several files of the same session, the one that has the conversation.

    Raises:
        LoadError: the file has no conversation of Gemini CLI.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    log = read_log(source.data or b"", notes)
    if view.branch is not None:
        _follow_branch(log, view.branch)
    if not _has_conversation(log) and (fuller := _find_fuller(source, log)) is not None:
        return read(fuller, view)
    reader = _Reader(notes)
    messages = name_results(reader.messages(log.entries))
    compactions = _read_compactions(log, notes)
    summaries: tuple[Summary, ...] = ()
    if compactions and view.name == "full":
        # Once more from the beginning: the results of old calls count where they first appear.
        reader = _Reader(notes)
        older = name_results(reader.messages(_dropped(log)))
        summary = find_summary(log.entries)
        rest = [entry for entry in log.entries if entry not in summary]
        messages = name_results([*older, *reader.messages(rest)])
        summaries = tuple(compaction.summary for compaction in compactions)
    else:
        for at, compaction in enumerate(compactions):
            detail = counted(len(compaction.messages), "message")
            notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", at), Loss.CONTENT, detail)
    if not messages and not log.header:
        raise LoadError("no conversation found: the file has no message of Gemini CLI")
    times = [time for message in messages if (time := time_of(message)) is not None]
    older = [message for compaction in compactions for message in compaction.messages]
    title = text_of(log.header.get("summary")) or find_title([*older, *messages])
    created = milliseconds_of(log.header.get("startTime"))
    updated = milliseconds_of(log.header.get("lastUpdated"))
    return History(
        context=Context(messages=tuple(messages), summaries=summaries),
        origin=HistoryOrigin(format=NAME, id=text_of(log.header.get("sessionId"))),
        title=None if title is None else title_of(title),
        cwd=_find_folder(source, log),
        created=min((*times, *(time for time in (created,) if time is not None)), default=None),
        updated=max((*times, *(time for time in (updated,) if time is not None)), default=None),
        children=_read_children(source, log, view, notes),
        branches=tuple(
            Branch(id=f"{_TAKEN_BACK}{at}", messages=len(branch.lost)) for at, branch in enumerate(log.taken_back)
        ),
        compactions=compactions,
        records=notes.records,
        report=notes.report(),
    )


def _follow_branch(log: Log, branch: str) -> None:
    """Put the messages that the user took back in place of those that followed."""
    known = {f"{_TAKEN_BACK}{at}": taken for at, taken in enumerate(log.taken_back)}
    if branch not in known:
        raise LoadError(f"the session has no branch {branch!r}; History.branches lists them")
    log.entries = [*known[branch].before, *known[branch].lost]


def is_context(entry: Mapping[str, Any]) -> bool:
    """Whether the program added this message: what it says about the session."""
    texts = [part.get("text") for part in parts_of(entry.get("content"))]
    return any(isinstance(text, str) and text.lstrip().startswith(SESSION_CONTEXT) for text in texts[:1])


def _has_conversation(log: Log) -> bool:
    return any(entry.kind in {"user", "gemini"} and not is_context(entry.fields) for entry in log.entries)


def _find_fuller(source: Source, log: Log) -> Source | None:
    """Find another file of the same session that has the conversation."""
    session = text_of(log.header.get("sessionId"))
    folder = source.name.rpartition("/")[0]
    if session is None or not session[:8].isalnum():
        return None
    pattern = f"session-*-{session[:8]}.json*"
    for name in source.neighbours.find(f"{folder}/{pattern}" if folder else pattern):
        data = source.neighbours.read(name) if name != source.name else None
        if data is None:
            continue
        try:
            other = read_log(data, Notes())
        except LoadError:
            continue
        if other.header.get("sessionId") == session and _has_conversation(other):
            return Source(data=data, name=name, path=source.path, neighbours=source.neighbours)
    return None


def _find_folder(source: Source, log: Log) -> str | None:
    """Find the folder of the project: in the header, or by its hash in the list of projects."""
    directories = log.header.get("directories")
    if isinstance(directories, list) and (first := text_of(next(iter(cast("list[object]", directories)), None))):
        return first
    digest = log.header.get("projectHash")
    data = source.neighbours.read("projects.json")
    listed = first_objects((data or b"").replace(b"\n", b" "), 1)
    for path in object_of(listed[0].get("projects")) if listed else ():
        if hashlib.sha256(path.encode("utf-8", "replace")).hexdigest() == digest:
            return path
    return text_of(log.header.get("cwd"))


def _read_children(source: Source, log: Log, view: View, notes: Notes) -> tuple[Child, ...]:
    session = text_of(log.header.get("sessionId"))
    if session is None or not session.replace("-", "").isalnum() or log.header.get("kind") == "subagent":
        return ()
    folder = source.name.rpartition("/")[0]
    pattern = f"{session}/*.jsonl"
    children: list[Child] = []
    calls = [call for entry in log.everything.values() for call in objects_of(entry.fields.get("toolCalls"))]
    for name in source.neighbours.find(f"{folder}/{pattern}" if folder else pattern):
        data = source.neighbours.read(name)
        child_id = name.rpartition("/")[2].removesuffix(".jsonl")
        history = None
        try:
            history = read(
                Source(data=data, name=name, neighbours=source.neighbours), View(keep_records=view.keep_records)
            )
        except LoadError as error:
            notes.add(ChangeCode.FILE_MISSING, ("children", len(children)), Loss.CONTENT, f"{name}: {error}")
        call = next((call for call in calls if child_id in str(call.get("agentId"))), None)
        if call is None and history is not None and history.title is not None:
            call = next((call for call in calls if history.title[:60] in str(call.get("args"))), None)
        notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", len(children)), Loss.CONTENT, child_id)
        call_id = None if call is None else short_id(str(call.get("id")), str(call.get("name")))
        children.append(Child(id=child_id, call_id=call_id, path=name, history=history))
    return tuple(children)


# -- compression ------------------------------------------------------------------------------------------------------


def _dropped(log: Log) -> list[LogEntry]:
    """Return the messages that are no longer sent, without the summaries of earlier compressions."""
    left_out = {entry.id for entry in log.entries} | {
        entry.id for compression in log.compressions for entry in compression.summary
    }
    return [entry for entry in log.everything.values() if entry.id not in left_out]


def _read_compactions(log: Log, notes: Notes) -> tuple[Compaction, ...]:
    reader = _Reader(notes, silent=True)
    present = {entry.id for entry in log.entries}
    seen: set[str] = set()
    compactions: list[Compaction] = []
    older: list[Message] = []
    for compression in log.compressions:
        dropped = [entry for entry in compression.dropped if entry.id not in present | seen]
        seen.update(entry.id for entry in dropped)
        messages = reader.messages(dropped)
        first, answer = compression.summary
        if answer.id not in present:
            notes.record("answer to a summary", answer.line, len(str(answer.fields)))
        if not messages and first.id in present:
            continue
        older = name_results([*older, *messages])
        summary = Summary(
            covers=len(older),
            text=text_of_entry(first),
            timestamp=milliseconds_of(first.fields.get("timestamp")),
        )
        compactions.append(
            Compaction(summary=summary, messages=tuple(older[len(older) - len(messages) :]), id=first.id)
        )
    rest = [entry for entry in _dropped(log) if entry.kind in {"user", "gemini"} and entry.id not in seen]
    if rest:
        detail = f"{counted(len(rest), 'message')} that a later line of the log removed, the first is {rest[0].id}"
        notes.add(ChangeCode.BRANCH_LEFT_OUT, ("branches", len(log.taken_back)), Loss.CONTENT, detail)
    return tuple(compactions)


# -- entries to messages ----------------------------------------------------------------------------------------------


def short_id(call_id: str, name: str) -> str:
    """Return the id of a call as the program sends it: without the name of the tool."""
    return call_id.removeprefix(f"{name}__")


class _Reader:
    """Makes messages of entries. A result counts once, where it first appears."""

    def __init__(self, notes: Notes, *, silent: bool = False) -> None:
        self._notes = notes
        self._silent = silent
        self._answered: set[str] = set()
        self._model_noted = False

    def messages(self, entries: Sequence[LogEntry]) -> list[Message]:
        """Return the messages of entries; entries that hold none are noted as records."""
        later = {
            str(object_of(part.get("functionResponse")).get("id"))
            for entry in entries
            if entry.kind == "user"
            for part in parts_of(entry.fields.get("content"))
            if "functionResponse" in part
        }
        made: list[Message] = []
        for entry in entries:
            kind = entry.kind
            if kind == "user":
                made += self._user(entry)
            elif kind == "gemini":
                made += self._model(entry, later)
            else:
                self._record(entry, kind)
        return made

    def _record(self, entry: LogEntry, kind: str) -> None:
        if not self._silent:
            data = entry.fields if self._notes.keeps else None
            self._notes.record(kind, entry.line, len(str(entry.fields)), data)

    def _decode(self, entry: LogEntry, role: str, parts: list[dict[str, Any]], model: str = "") -> tuple[Message, ...]:
        try:
            return WIRE.decode([{"role": role, "parts": parts}], model)
        except DecodeError as error:
            if not self._silent:
                self._notes.unreadable(entry.line, str(error))
            return ()

    def _user(self, entry: LogEntry) -> list[Message]:
        parts = parts_of(entry.fields.get("content"))
        text = "".join(str(part.get("text", "")) for part in parts)
        if text.strip().startswith(("/", "?")):
            self._record(entry, "command")
            return []
        fresh = self._fresh(parts)
        if fresh is None:
            self._record(entry, "repeated results")
            return []
        return self._stamped(entry, self._decode(entry, "user", fresh), own=is_context(entry.fields))

    def _fresh(self, parts: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        """Return the parts without results that were there before; None if there is nothing else."""
        results = [part for part in parts if "functionResponse" in part]
        fresh: list[dict[str, Any]] = []
        repeated = False
        for part in parts:
            response = object_of(part.get("functionResponse"))
            if response:
                call_id = short_id(str(response.get("id", "")), str(response.get("name", "")))
                repeated = bool(call_id) and call_id in self._answered
                self._answered.add(call_id)
                if not repeated:
                    fresh.append({**part, "functionResponse": {**response, "id": call_id}})
            elif not (repeated and results):
                fresh.append(part)
        return fresh or (None if results else [])

    def _stamped(self, entry: LogEntry, messages: Sequence[Message], *, own: bool) -> list[Message]:
        time = milliseconds_of(entry.fields.get("timestamp"))
        made: list[Message] = []
        envelope = without(entry.fields, _IN_MESSAGE)
        for message in messages:
            stamped = message if isinstance(message, SystemMessage) else replace(message, timestamp=time)
            made.append(with_envelope(stamped, NAME, envelope if not made else {"id": entry.id}, own=own))
        return made

    def _model(self, entry: LogEntry, later: set[str]) -> list[Message]:
        fields = entry.fields
        content = fields.get("content")
        parts = parts_of(content)
        if not any(part.get("thought") is True for part in parts):
            parts = [*_thoughts(fields), *parts]
        calls = objects_of(fields.get("toolCalls"))
        known = {str(object_of(part.get("functionCall")).get("id")) for part in parts if "functionCall" in part}
        for call in calls:
            if str(call.get("id")) not in known:
                made = {"id": call.get("id"), "name": call.get("name"), "args": object_of(call.get("args"))}
                parts.append({"functionCall": made})
        model = text_of(fields.get("model")) or ""
        decoded = self._decode(entry, "model", [_short_call(part) for part in parts], model)
        if calls:
            self._record(entry, "details of tool calls")
        made_up = text_of_entry(entry) == GOT_IT and not model
        if not model and not made_up and "segue" not in fields:
            self._note_unknown_model(entry)
        messages: list[Message] = [
            self._with_ending(message, fields, model) if message.role == "assistant" else message
            for message in self._stamped(entry, decoded, own=made_up)
        ]
        # An id that an earlier turn used has to be answered again.
        self._answered -= {call.id for each in messages if each.role == "assistant" for call in each.tool_calls()}
        return [*messages, *self._results(entry, calls, later)]

    def _with_ending(self, message: AssistantMessage, fields: dict[str, Any], model: str) -> AssistantMessage:
        ended = replace(
            message,
            model=model,
            provider=message.provider if model else "",
            usage=_usage(object_of(fields.get("tokens"))),
            stop_reason=StopReason.TOOL_USE if message.tool_calls() else StopReason.STOP,
        )
        return with_marked_origin(ended, fields)

    def _results(self, entry: LogEntry, calls: list[dict[str, Any]], later: set[str]) -> list[Message]:
        """Return the results that no message of the user repeats."""
        parts: list[dict[str, Any]] = []
        for call in calls:
            if str(call.get("id")) not in later:
                parts += self._fresh(parts_of(call.get("result"))) or ()
        if not parts:
            return []
        # The program gives them this id when it starts again.
        results = LogEntry({"id": f"{entry.id}_response", "timestamp": entry.fields.get("timestamp")}, entry.line)
        return self._stamped(results, self._decode(entry, "user", parts), own=False)

    def _note_unknown_model(self, entry: LogEntry) -> None:
        if not self._model_noted and not self._silent:
            self._model_noted = True
            self._notes.add(ChangeCode.MODEL_UNKNOWN, ("lines", entry.line), Loss.NONE)


def _thoughts(fields: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for thought in objects_of(fields.get("thoughts")):
        subject, description = text_of(thought.get("subject")), text_of(thought.get("description")) or ""
        parts.append({"text": f"**{subject}** {description}" if subject else description, "thought": True})
    return parts


def _short_call(part: dict[str, Any]) -> dict[str, Any]:
    call = object_of(part.get("functionCall"))
    if not isinstance(call.get("id"), str):
        return part
    return {**part, "functionCall": {**call, "id": short_id(call["id"], str(call.get("name", "")))}}


def _usage(tokens: dict[str, Any]) -> Usage | None:
    """Read the tokens of a reply; the input includes cached tokens, the output does not include thoughts."""
    if not tokens:
        return None
    cached, thoughts = integer_of(tokens.get("cached")), integer_of(tokens.get("thoughts"))
    return Usage(
        input=max(0, integer_of(tokens.get("input")) - cached),
        output=integer_of(tokens.get("output")) + thoughts,
        cache_read=cached,
        reasoning=thoughts,
        total_tokens=integer_of(tokens.get("total")),
    )
