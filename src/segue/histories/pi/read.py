"""Reads a pi session.

Facts (pi 0.87.1, seen 2026-11-15; its session-format page):
- An entry hangs under its `parentId`; the last entry is the end of the active path.
- A `compaction` replaces the entries before `firstKeptEntryId` by its summary, which is sent as a text of the user.
- `context_edit` replaces or removes the message of `targetId`.
- A command of the user (`bashExecution`), a `branch_summary` and a `custom_message` are sent as texts of the user.
- Turns that ended in `error` or `aborted` are not sent.
- Version 1 has no ids; `firstKeptEntryIndex` counts the lines of the file, the header first.
- OpenClaw (earlier Clawdbot) stores its sessions as pi does. An answer of the model `delivery-mirror` is a copy of what
  went to a channel; the model never gave it, and it is not sent.     (38 sessions of public projects, 2026-11-16)
- The output of `pi --mode json` has the same header; `message_end` has each whole message, and all other lines repeat
  parts of them.                                                                       (pi 0.87.1, seen 2026-11-18)
- The message format is that of pi-ai, which `segue.conversation.foreign` reads; versions 1 and 2 differ in the entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.context import Context, Summary
from segue.conversation.foreign import read_message
from segue.conversation.messages import Message, SystemMessage, UserMessage
from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import find_title, name_results, with_envelope
from segue.histories.kit.history import Compaction, History, HistoryOrigin, Parent
from segue.histories.kit.lines import Line, decode_objects, object_of, text_of, title_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import last_origin, with_marked_origin
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.histories.kit.trees import Tree
from segue.projection.report import ChangeCode, Loss

NAME: Final = "pi"
OUTPUT: Final = (
    "agent_start", "agent_end", "agent_settled", "turn_start", "turn_end", "message_start", "message_update",
    "tool_execution_start", "tool_execution_update", "tool_execution_end",
)  # fmt: skip
"""Lines of the output that repeat messages, or parts of them."""
KNOWN_RECORDS: Final = frozenset(
    {"session", "model_change", "thinking_level_change", "usage", "label", "session_info", "context_edit",
     *OUTPUT, "compaction", "system prompt", "command that is not sent", "copy of an answer", "custom model-snapshot"}
)  # fmt: skip
_ON_BRANCHES: Final = frozenset({"message", "branch_summary", "custom_message", "custom"})
"""Kinds of entries that belong to the branch that they are on."""
SUMMARY: Final = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
BRANCH_SUMMARY: Final = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
SUMMARY_ENDS: Final = {SUMMARY: "\n</summary>", BRANCH_SUMMARY: "</summary>"}
"""How the program ends the text of each kind of summary."""
_MIRROR: Final = "delivery-mirror"
_CHANNELS: Final = frozenset({"openclaw", "clawdbot"})

_Entry = tuple[Line, dict[str, Any]]


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no conversation of pi.
    """
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    header: dict[str, Any] = {}
    entries: dict[str, _Entry] = {}
    last_id: str | None = None
    order: list[str] = []
    for line, fields in decode_objects(source.data or b"", notes):
        if fields.get("type") == "session":
            header = header or fields
            notes.record("session", line.number, len(line.data), fields if notes.keeps else None)
            order.append("")
            continue
        if fields.get("type") in OUTPUT:
            notes.record(str(fields["type"]), line.number, len(line.data), fields if notes.keeps else None)
            continue
        if fields.get("type") == "message_end":
            fields = {**fields, "type": "message"}  # noqa: PLW2901 - read like an entry of a session
        # Version 1 has no ids: each entry follows the one before it.
        entry_id = text_of(fields.get("id")) or f"line-{line.number}"
        if entry_id in entries:
            notes.record("repeated entry", line.number, len(line.data))
            continue
        linked = fields if "parentId" in fields or "id" in fields else {**fields, "parentId": last_id}
        kept = linked.get("firstKeptEntryIndex")
        if isinstance(kept, int) and 0 <= kept < len(order) and "firstKeptEntryId" not in linked:
            linked = {**linked, "firstKeptEntryId": order[kept]}
        order.append(entry_id)
        entries[entry_id] = (line, linked)
        last_id = entry_id
    if not header and not any(fields.get("type") == "message" for _, fields in entries.values()):
        raise LoadError("no conversation found: the file has no header and no message of pi")
    tree = Tree({each: text_of(fields.get("parentId")) for each, (_, fields) in entries.items()})
    path = tree.path(tree.end(view, last_id))
    reader = _Reader(entries, path, notes)
    shown = reader.active()
    compactions = reader.compactions()
    full = view.name == "full" and bool(compactions)
    messages = name_results(reader.messages(path, keep_summaries=False) if full else shown)
    for at, compaction in enumerate(() if full else compactions):
        detail = counted(len(compaction.messages), "message")
        notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", at), Loss.CONTENT, detail)
    branches = tree.branches(
        path,
        notes,
        is_message=lambda each: entries[each][1].get("type") == "message",
        text_of=lambda each: "",  # noqa: ARG005 - the list shows none
        time_of=lambda each: milliseconds_of(entries[each][1].get("timestamp")),
    )
    for entry_id in entries.keys() - set(path):
        line, fields = entries[entry_id]
        kind = text_of(fields.get("type")) or "unknown"
        if kind not in KNOWN_RECORDS and kind not in _ON_BRANCHES:
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
    summaries = tuple(compaction.summary for compaction in compactions) if full else ()
    times = [time for message in messages if (time := time_of(message)) is not None]
    names = [text_of(entries[each][1].get("name")) for each in path if entries[each][1].get("type") == "session_info"]
    older = [message for compaction in compactions for message in compaction.messages]
    title = next((name for name in reversed(names) if name), None) or find_title([*older, *messages])
    created = milliseconds_of(header.get("timestamp"))
    parent = text_of(header.get("parentSession"))
    return History(
        context=Context(messages=tuple(messages), summaries=summaries),
        origin=HistoryOrigin(format=NAME, id=text_of(header.get("id")), version=str(header.get("version", 1))),
        title=None if title is None else title_of(title),
        cwd=text_of(header.get("cwd")),
        created=created if created is not None else min(times, default=None),
        updated=max(times, default=created),
        parent=None if parent is None else Parent(id=_session_id(parent), kind="fork", path=parent),
        branches=branches,
        compactions=compactions,
        records=notes.records,
        report=notes.report(),
    )


def _session_id(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".jsonl").rpartition("_")[2]


class _Reader:
    """Makes messages of entries."""

    def __init__(self, entries: dict[str, _Entry], path: Sequence[str], notes: Notes) -> None:
        self._entries = entries
        self._path = list(path)
        self._notes = notes
        self._noted: set[int] = set()
        edits = [entries[each][1] for each in path if entries[each][1].get("type") == "context_edit"]
        self._edits = {text_of(edit.get("targetId")): edit.get("replacement") for edit in edits}

    def active(self) -> list[Message]:
        """Return the messages that the program sends: those after the newest compaction, and those that it keeps."""
        path = self._path
        found = self._compactions_on_path()
        if not found:
            return self.messages(path)
        at, first = found[-1]
        line, fields = self._entries[path[at]]
        return [self._summary(line, fields, SUMMARY), *self.messages(path[first:at]), *self.messages(path[at + 1 :])]

    def compactions(self) -> tuple[Compaction, ...]:
        """Return all compactions of the path; each with the messages that are not sent since then."""
        made: list[Compaction] = []
        done = 0
        for at, first in self._compactions_on_path():
            fields = self._entries[self._path[at]][1]
            replaced = name_results(self.messages(self._path[:first], keep_summaries=False))
            summary = Summary(
                covers=len(replaced),
                text=text_of(fields.get("summary")) or "",
                origin=last_origin(replaced),
                timestamp=milliseconds_of(fields.get("timestamp")),
            )
            made.append(Compaction(summary=summary, messages=tuple(replaced[done:]), id=self._path[at]))
            done = max(done, len(replaced))
        return tuple(made)

    def _compactions_on_path(self) -> list[tuple[int, int]]:
        """Return the place of each compaction, and that of the first entry that it keeps."""
        places = {entry_id: at for at, entry_id in enumerate(self._path)}
        found: list[tuple[int, int]] = []
        for at, entry_id in enumerate(self._path):
            if self._kind(entry_id) == "compaction":
                first = places.get(text_of(self._entries[entry_id][1].get("firstKeptEntryId")) or "", at)
                found.append((at, min(first, at)))
        return found

    def _kind(self, entry_id: str) -> object:
        return self._entries[entry_id][1].get("type")

    def messages(self, path: Sequence[str], *, keep_summaries: bool = True) -> list[Message]:
        """Return the messages of entries; entries that hold none are noted as records."""
        made: list[Message] = []
        for entry_id in path:
            line, fields = self._entries[entry_id]
            kind = text_of(fields.get("type")) or "unknown"
            message = object_of(fields.get("message"))
            if entry_id in self._edits:
                edited = object_of(self._edits[entry_id])
                if not edited:
                    self._record(line, fields, "context_edit")
                    continue
                message = edited if "role" in edited else {**message, **edited}
            if kind == "message":
                made += self._message(line, fields, message)
            elif kind == "branch_summary" and keep_summaries:
                made.append(self._summary(line, fields, BRANCH_SUMMARY))
            elif kind == "custom_message":
                made += self._user(line, fields, fields.get("content"), own=True)
            else:
                self._record(line, fields, f"{kind} {text_of(fields.get('customType')) or ''}".strip())
        return made

    def _record(self, line: Line, fields: dict[str, Any], kind: str) -> None:
        if line.number not in self._noted:
            self._noted.add(line.number)
            self._notes.record(kind, line.number, len(line.data), fields if self._notes.keeps else None)

    def _summary(self, line: Line, fields: dict[str, Any], prefix: str) -> Message:
        self._noted.add(line.number)
        text = f"{prefix}{text_of(fields.get('summary')) or ''}{SUMMARY_ENDS[prefix]}"
        time = milliseconds_of(fields.get("timestamp"))
        message = UserMessage(content=(TextContent(text=text),), timestamp=time)
        return with_envelope(
            message, NAME, without(fields, ("parentId", "summary", "systemMessage", "firstKeptEntryId"))
        )

    def _user(self, line: Line, fields: dict[str, Any], content: object, *, own: bool) -> list[Message]:
        value = {"role": "user", "content": content, "timestamp": milliseconds_of(fields.get("timestamp"))}
        return self._stamped(line, fields, value, own=own)

    def _message(self, line: Line, fields: dict[str, Any], message: dict[str, Any]) -> list[Message]:
        role = text_of(message.get("role"))
        if role == "system" and (message.get("sections") is not None or "toolsAdded" in message):
            self._record(line, fields, "system prompt")
            return []
        if role == "assistant" and message.get("model") == _MIRROR and message.get("provider") in _CHANNELS:
            self._record(line, fields, "copy of an answer")
            return []
        if role == "bashExecution":
            if message.get("excludeFromContext") is True:
                self._record(line, fields, "command that is not sent")
                return []
            kept = {**fields, "bash": without(message, ("role",))}
            return self._user(line, kept, _command_text(message), own=False)
        if role in {"compactionSummary", "branchSummary"}:
            prefix = SUMMARY if role == "compactionSummary" else BRANCH_SUMMARY
            return self._user(line, fields, f"{prefix}{message.get('summary', '')}{SUMMARY_ENDS[prefix]}", own=False)
        if role in {"custom", "hookMessage"}:
            return self._user(line, fields, message.get("content"), own=True)
        return self._stamped(line, fields, message, own=False)

    def _stamped(self, line: Line, fields: dict[str, Any], value: dict[str, Any], *, own: bool) -> list[Message]:
        try:
            message = read_message(value, foreign=True)
        except LoadError as error:
            if line.number not in self._noted:
                self._noted.add(line.number)
                self._notes.unreadable(line.number, str(error))
            return []
        envelope = without(fields, ("parentId", "message", "content", "segue"))
        if not isinstance(message, SystemMessage) and message.timestamp is None:
            message = replace(message, timestamp=milliseconds_of(fields.get("timestamp")))
        if message.role == "assistant":
            message = with_marked_origin(message, fields)
        return [with_envelope(message, NAME, envelope, own=own)]


def _command_text(message: dict[str, Any]) -> str:
    """Write a command of the user as the program sends it."""
    output = text_of(message.get("output"))
    text = f"Ran `{message.get('command', '')}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    if message.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif message.get("exitCode") not in (None, 0):
        text += f"\n\nCommand exited with code {message.get('exitCode')}"
    if message.get("truncated") is True and message.get("fullOutputPath"):
        text += f"\n\n[Output truncated. Full output: {message.get('fullOutputPath')}]"
    return text
