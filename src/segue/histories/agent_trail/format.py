"""The record of Agent Trail, a format for the sessions of any agent, version 0.1.0.

Facts (its schema and fixtures, agent-trail/spec; 2026-11-18; not run):
- The first line is the session, or `trail` before it. Every other line is an event with `payload`; unknown events and
  fields have to be tolerated.
- `tool_call.payload.tool` is a kind of tool; for `other`, `args` has the `name` and the `args` of the tool itself.
- A result names the event of its call in `for_id`, or the id of the call in `semantic.call_id`; otherwise it belongs to
  the oldest call without a result.
- There are no signatures. `context_compact` has the summary that replaced the messages before it.
"""

from __future__ import annotations

from typing import Any, Final, final

from segue.conversation.content import TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import Message
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, refuse_branch
from segue.histories.kit.format import Format
from segue.histories.kit.history import Compaction, History
from segue.histories.kit.lines import decode_objects, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin
from segue.histories.kit.pieces import make_call, read_media
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.turn_log import TurnLog
from segue.histories.kit.unread import note_unread

NAME: Final = "agent-trail"
KNOWN_RECORDS: Final = frozenset({"trail", "session_end", "model_change", "capability_change", "user_interrupt"})
_OTHER: Final = "other"


@final
class _Trail:
    """What the events so far say."""

    def __init__(self) -> None:
        self.log = TurnLog(NAME)
        self.older: list[Message] = []
        self.summary: Summary | None = None
        self._calls: dict[str, str] = {}
        self._open: list[str] = []
        self._origin = UNKNOWN

    def take(self, kind: str, event: dict[str, Any]) -> list[object] | None:
        """Read one event and return what was made from it; None if it is not part of the conversation."""
        payload, time = object_of(event.get("payload")), milliseconds_of(event.get("ts"))
        words = text_of(payload.get("text"))
        content: list[UserContent] = [TextContent(text=words)] if words else []
        match kind:
            case "user_message":
                content += _attachments(payload)
                self.log.ask(content, time)
            case "agent_message":
                self.log.reply([TextContent(text=words)] if words else [], time, self._model(payload))
            case "agent_thinking":
                self.log.reply([ThinkingContent(thinking=words)] if words else [], time, self._origin)
            case "tool_call":
                call = self._call(event, payload)
                self.log.reply([call], time, self._origin)
                return [call, payload.get("tool")]
            case "tool_result":
                content = _result(payload)
                self.log.answer(self._called(event, payload), content, time, is_error=payload.get("ok") is False)
            case "context_compact" if summary := text_of(payload.get("summary")):
                self.older += self.log.messages()
                self.log = TurnLog(NAME)
                self.log.ask([TextContent(text=summary)], time)
                self.summary = Summary(covers=len(self.older), text=summary, timestamp=time)
                return [summary]
            case "model_change":
                self._origin = self._model({"model": payload.get("model", payload.get("to"))})
                return None
            case _:
                return None
        return list(content)

    def _model(self, payload: dict[str, Any]) -> Origin:
        name = text_of(payload.get("model"))
        self._origin = self._origin if name is None else find_origin(name)
        return self._origin

    def _call(self, event: dict[str, Any], payload: dict[str, Any]) -> ToolCall:
        event_id = text_of(event.get("id")) or ""
        name, given = payload.get("tool"), payload.get("args", payload)
        inner = object_of(given)
        if name == _OTHER and text_of(inner.get("name")):
            name, given = inner["name"], inner.get("args", given)
        named = text_of(object_of(event.get("semantic")).get("call_id"))
        self._calls |= {event_id: event_id} | ({named: event_id} if named else {})
        self._open.append(event_id)
        return make_call(event_id, name, given)

    def _called(self, event: dict[str, Any], payload: dict[str, Any]) -> str:
        """Return the id of the call that a result answers."""
        named = text_of(payload.get("for_id")) or text_of(object_of(event.get("semantic")).get("call_id"))
        found = self._calls.get(named or "", named) or (self._open[0] if self._open else "")
        if found in self._open:
            self._open.remove(found)
        return found


def _attachments(payload: dict[str, Any]) -> list[UserContent]:
    return [found for each in objects_of(payload.get("attachments")) if (found := read_media(each)) is not None]


def _result(payload: dict[str, Any]) -> list[UserContent]:
    """Read the output of a tool; a failed one may have an error instead."""
    found = [value for key in ("output", "error") if (value := payload.get(key)) not in (None, "", [], {})]
    value = found[0] if found else None
    text = text_of(object_of(value).get("message")) or (None if value is None else json_text(value))
    return [TextContent(text=text)] if text else []


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no event.
    """
    refuse_branch(view, "Agent Trail")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    trail, about = _Trail(), dict[str, Any]()
    for line, fields in decode_objects(source.data or b"", notes):
        kind, since = text_of(fields.get("type")) or "unknown", notes.left_out
        if kind == "session" and not about:
            about = fields
            continue
        made = trail.take(kind, fields)
        if made is None:
            notes.record(kind, line.number, len(line.data), fields if notes.keeps else None)
            continue
        note_unread(object_of(fields.get("payload")) or fields, made, line.number, notes, since=since)
    messages = trail.log.messages()
    if not messages and not notes.records:
        raise LoadError("no conversation found: the file has no event of Agent Trail")
    compaction = None
    if trail.summary is not None:
        compaction = Compaction(summary=trail.summary, messages=tuple(trail.older))
    full = view.name == "full" and compaction is not None
    return finish_history(
        NAME,
        notes,
        [*trail.older, *messages[1:]] if full else messages,
        session_id=text_of(about.get("session_uid")) or text_of(about.get("id")),
        cwd=text_of(about.get("cwd")),
        created=milliseconds_of(about.get("ts")),
        compaction=compaction,
        shows_compacted=full,
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    kind="export",
    samples=read_samples(__package__),
    title="Agent Trail",
    source="agent-trail/spec: schema and fixtures",
    read_on="2026-11-18",
)
