"""The record of logs of the Agent Client Protocol: the JSON-RPC lines between an editor and an agent.

Facts (version 1 of the protocol; replays of five agents, 2026-11-18):
- `session/update` has what the agent wrote and did; `session/load` replays a stored session as such updates.
- `session/prompt` has the words of the user, which agents do not repeat; a replay has them as chunks.
- Lines may come without the envelope of their program; requests, answers and errors are not part of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from segue.errors import LoadError
from segue.histories.kit.acp_updates import DISPLAYED, Updates, is_other_call
from segue.histories.kit.documents import finish_history, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.history import History
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread

NAME: Final = "acp-log"
KNOWN_RECORDS: Final = DISPLAYED | {
    "earlier input",
    "answer", "initialize", "authenticate", "session/new", "session/load", "session/list", "session/resume",
    "session/set_mode", "session/cancel", "session/request_permission",
}  # fmt: skip


def read(source: Source, view: View) -> History:
    """Read one log; of several sessions, the one with most lines is read.

    Raises:
        LoadError: the file has no update of a session.
    """
    refuse_branch(view, "an ACP log")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    sessions: dict[str | None, tuple[Updates, list[int]]] = {}
    cwd: str | None = None
    for line, fields in decode_objects(source.data or b"", notes):
        since, params = notes.left_out, object_of(fields.get("params"))
        cwd = text_of(params.get("cwd")) or cwd
        name = text_of(params.get("sessionId"))
        updates, lines = sessions.setdefault(name, (Updates(NAME), []))
        made = _take(updates, fields, params)
        if made is None:
            kind = _kind_of(fields, params)
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
            continue
        lines.append(line.number)
        given = params.get("update", params.get("prompt"))
        if updates.replaced:
            updates.replaced = False
            notes.record("earlier input", line.number, len(line.data), fields if notes.keeps else None)
        if is_other_call(object_of(given)):
            notes.record("call of another form", line.number, len(line.data), fields if notes.keeps else None)
        note_unread({"update": given}, made, line.number, notes, since=since)
    chosen = max(sessions, key=lambda name: len(sessions[name][1]), default=None)
    if chosen not in sessions or not sessions[chosen][1]:
        raise LoadError("no conversation found: the file has no update of a session of the Agent Client Protocol")
    for name, (_, lines) in sessions.items():
        if name != chosen and lines:
            notes.record("another session", lines[0], 0, name)
    return finish_history(NAME, notes, sessions[chosen][0].messages(), session_id=chosen, cwd=cwd)


def _take(updates: Updates, fields: dict[str, Any], params: dict[str, Any]) -> Sequence[object] | None:
    time = milliseconds_of(fields.get("timestamp"))
    if fields.get("method") == "session/prompt" and objects_of(params.get("prompt")):
        return updates.prompt(params.get("prompt"), time)
    return updates.take(object_of(params.get("update")), time=time)


def _kind_of(fields: dict[str, Any], params: dict[str, Any]) -> str:
    update = text_of(object_of(params.get("update")).get("sessionUpdate"))
    is_answer = "params" not in fields and ("result" in fields or "error" in fields)
    return update or text_of(fields.get("method")) or ("answer" if is_answer else "unknown")


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    kind="export",
    samples=read_samples(__package__),
    title="log of the Agent Client Protocol",
    source="opencode 1.18.33, Qwen Code 0.24.4, Kimi Code 2.1.0, Copilot CLI 1.0.102 and Gemini CLI 0.61.0, run",
    read_on="2026-11-18",
)
