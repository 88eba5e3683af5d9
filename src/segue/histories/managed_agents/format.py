"""The record of sessions of Claude Managed Agents: the events of the API, as JSON Lines or as its list.

Facts (types of anthropic 2.9.0, `beta/sessions`; 2026-11-18; not run):
- The id of a call is the id of its event; results name it in `tool_use_id`, `mcp_tool_use_id` or `custom_tool_use_id`.
- `agent.thinking` has no words. No event names the model or the session.
- Events with `session_thread_id` and messages between threads are of sub-agents.
- A list may be newest first: it is sorted by `processed_at` if its first event is later than its last one.
"""

from __future__ import annotations

from typing import Any, Final

from segue.conversation.content import TextContent
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, parse_text, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.pieces import make_call
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog, text_and_media
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "managed-agents"
KNOWN_RECORDS: Final = frozenset({"agent.thinking", "session", "span", "workflow_run", "user.interrupt"})
_CALLS: Final = frozenset({"agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"})
_RESULTS: Final = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
_COMPACTED: Final = "agent.thread_context_compacted"


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no event of a session.
    """
    refuse_branch(view, "Managed Agents")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    log = TurnLog(NAME)
    for number, size, event in _in_order(source, notes):
        kind, since = text_of(event.get("type")) or "unknown", notes.left_out
        made = None if text_of(event.get("session_thread_id")) else _take(log, kind, event)
        if made is None:
            if kind == _COMPACTED:
                notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", 0), Loss.CONTENT, "the summary is not stored")
            family = kind.partition(".")[0]
            name = "sub-agent" if event.get("session_thread_id") else family if family in KNOWN_RECORDS else kind
            notes.record(name, number, size, event if notes.keeps else None)
            continue
        note_unread(event, [*made, event.get("mcp_server_name")], number, notes, since=since)
    messages = log.messages()
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no event of Claude Managed Agents")
    return finish_history(NAME, notes, messages)


def _in_order(source: Source, notes: Notes) -> list[tuple[int, int, dict[str, Any]]]:
    value = source.value if source.data is None else parse_text(source.data)
    events = [(at, 0, event) for at, event in enumerate(objects_of(object_of(value).get("data", value)), 1)]
    if not events:
        events = [(line.number, len(line.data), fields) for line, fields in decode_objects(source.data or b"", notes)]
    times = [milliseconds_of(event.get("processed_at")) or 0 for _, _, event in events]
    return events[::-1] if times and times[0] > times[-1] > 0 else events


def _take(log: TurnLog, kind: str, event: dict[str, Any]) -> list[object] | None:
    """Read one event and return what was made of it; None if it is no part of the conversation."""
    time, content = milliseconds_of(event.get("processed_at")), text_and_media(event.get("content"))
    name = next((found for key in _RESULTS if (found := text_of(event.get(key))) is not None), None)
    if kind == "user.message":
        log.ask(content, time)
    elif kind == "system.message":
        log.ask(content, time, own=True)
    elif kind == "agent.message":
        log.reply([piece for piece in content if isinstance(piece, TextContent)], time)
    elif kind in _CALLS:
        call = make_call(event.get("id"), event.get("name"), event.get("input", event))
        log.reply([call], time)
        return [call]
    elif name is not None and kind.endswith("tool_result"):
        log.answer(name, content, time, is_error=event.get("is_error") is True)
    else:
        return None
    return list(content)


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    kind="export",
    samples=read_samples(__package__),
    title="Claude Managed Agents",
    source="anthropic 2.9.0: types",
    read_on="2026-11-18",
)
