"""The record of Agent Trail, a format for the sessions of any agent, version 0.1.0.

Facts (its specification, schema and fixtures, agent-trail/spec; 2026-11-19; not run):
- The first line is the session, or `trail` before it. Every other line is an event with `payload`; unknown events and
  fields have to be tolerated. An id is a UUID or a ULID and occurs once; a time is UTC with milliseconds.
- `tool_call.payload.tool` is a kind of tool; for `other`, `args` has the `name` and the `args` of the tool itself.
- A result names the event of its call in `for_id`, or the id of the call in `semantic.call_id`; otherwise it belongs to
  the newest call without a result.
- `usage` counts input without cached tokens, and is in the first event of a reply that takes it. The model of a reply
  that names none is `agent.model_default` of the session.
- An attachment is an address: `https:`, `file:` or a digest, never the bytes.
- There are no signatures and no instructions, and tools are named without their schemas. `meta` takes keys
  `x-vendor/name`: what binds a message is in the first event of it (`kit.bound_state`). Instructions are a
  `system_event` of a kind of ours.
- `context_compact` has the summary that replaced the messages before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.content import (
    AnyContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from segue.errors import EmptyConversation, LoadError, Path
from segue.histories.kit.bound_state import META, state_of, with_bound_state
from segue.histories.kit.documents import finish_history, json_text, refuse_branch
from segue.histories.kit.entries import Writing
from segue.histories.kit.envelope import find_title, with_envelope
from segue.histories.kit.format import Draft, Format, Output
from segue.histories.kit.framework import CLAUDE, has_half, without_halves
from segue.histories.kit.history import Compaction, History, WrittenFile
from segue.histories.kit.lines import decode_objects, integer_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    image_of,
    is_media,
    make_call,
    media_of,
    note_unsupported,
    read_media,
    shown,
    stop_of,
    string_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.turn_log import TurnLog
from segue.histories.kit.unread import note_unread
from segue.histories.kit.writing import Clock, json_line
from segue.projection.report import ChangeCode, Loss

NAME: Final = "agent-trail"
KNOWN_RECORDS: Final = frozenset({"trail", "session_end", "model_change", "capability_change", "user_interrupt"})
TITLE: Final = "Agent Trail"
_OTHER: Final = "other"
_MESSAGE: Final = "x-segue/message"
"""The key of `meta` of the first event of a message that segue wrote: ids of its calls are in `semantic.call_id`."""
_INSTRUCTIONS: Final = "x-segue/instructions"
"""The kind of a `system_event` with instructions."""
_STOPS: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "end_turn",
    StopReason.LENGTH: "max_tokens",
    StopReason.TOOL_USE: "tool_use",
    StopReason.ERROR: "error",
    StopReason.ABORTED: "aborted",
}


@final
class _Trail:
    """What the events so far say."""

    def __init__(self, notes: Notes) -> None:
        self.log = TurnLog(NAME)
        self.older: list[Message] = []
        self.summary: Summary | None = None
        self._notes = notes
        self._calls: dict[str, str] = {}
        self._open: list[str] = []
        self._origin = UNKNOWN
        self._has_ids = False
        self._usage: Usage | None = None
        self._stop: object = None

    def begin(self, session: dict[str, Any]) -> None:
        """Take the model of replies that name none from the line of the session."""
        if name := text_of(object_of(session.get("agent")).get("model_default")):
            self._origin = find_origin(name)

    def take(self, kind: str, event: dict[str, Any], line: int) -> list[object] | None:
        """Read one event and return what was made from it; None if it is not part of the conversation."""
        payload, time = object_of(event.get("payload")), milliseconds_of(event.get("ts"))
        meta = object_of(event.get("meta"))
        words = text_of(payload.get("text"))
        texts = [TextContent(text=words)] if words else []
        content: list[UserContent] = [*texts]
        if kind in _OF_REPLY:
            self._begin_reply(payload, meta, line)
        match kind:
            case "user_message":
                content += _attachments(payload)
                self._add(UserMessage(content=tuple(content), timestamp=time), meta, line)
            case "agent_message":
                self.log.reply(texts, time, self._model(payload))
            case "agent_thinking":
                self.log.reply([ThinkingContent(thinking=words)] if words else [], time, self._model(payload))
            case "tool_call":
                call = self._call(event, payload)
                self.log.reply([call], time, self._origin)
                return [call, payload.get("tool")]
            case "tool_result":
                content = [*_result(payload), *_attachments(payload)]
                called, failed = self._called(event, payload), payload.get("ok") is False
                result = ToolResultMessage(tool_call_id=called, content=tuple(content), is_error=failed, timestamp=time)
                self._add(result, meta, line)
            case "system_event" if payload.get("kind") == _INSTRUCTIONS:
                self._add(SystemMessage(content=tuple(texts)), meta, line)
            case "context_compact" if summary := text_of(payload.get("summary")):
                self.older += self.log.messages()
                self.log = TurnLog(NAME)
                self.log.ask([TextContent(text=summary)], time)
                self.summary = Summary(covers=len(self.older), text=summary, timestamp=time)
                return [summary]
            case "model_change":
                named = (payload.get(key) for key in ("to_model", "model", "to"))
                self._model({"model": next(filter(None, map(text_of, named)), None)})
                return None
            case _:
                return None
        return list(content)

    def _add(self, message: Message, meta: dict[str, Any], line: int) -> None:
        if not message.content and message.role != "toolResult":
            self.log.close_answer()
            return
        made = with_bound_state(message, meta.get(META), self._notes, ("lines", line))
        self.log.add(with_envelope(made, NAME, {}))

    def _begin_reply(self, payload: dict[str, Any], meta: dict[str, Any], line: int) -> None:
        """Begin a reply where segue has marked its first event, or where there is none open."""
        marked = meta.get(_MESSAGE)
        if marked is not None or not self.log.is_open:
            state = meta.get(META)
            self.log.finish_with(partial(self._finish, state, object_of(marked), line))
            self._has_ids, self._usage, self._stop = marked is not None, None, object_of(marked).get("stop_reason")
        self._usage = self._usage or _usage(object_of(payload.get("usage")))
        self._stop = payload.get("stop_reason", self._stop)

    def _finish(self, state: object, mark: dict[str, Any], line: int, message: AssistantMessage) -> AssistantMessage:
        found = Origin(protocol=message.protocol, provider=message.provider, model=message.model)
        made = set_origin(message, marked_origin(UNKNOWN if mark.get("unknown") is True else found, mark))
        made = replace(made, usage=self._usage, stop_reason=stop_of(self._stop, made.content))
        return with_bound_state(made, state, self._notes, ("lines", line))

    def _model(self, payload: dict[str, Any]) -> Origin:
        name = text_of(payload.get("model"))
        self._origin = self._origin if name is None else find_origin(name)
        return self._origin

    def _call(self, event: dict[str, Any], payload: dict[str, Any]) -> ToolCall:
        event_id = text_of(event.get("id")) or ""
        name, given = payload.get("tool"), payload.get("args", payload)
        inner = object_of(given)
        if name == _OTHER and isinstance(inner.get("name"), str):
            name, given = inner["name"], inner.get("args", given)
        named = string_of(object_of(event.get("semantic")).get("call_id"))
        call_id = named if self._has_ids and named is not None else event_id
        self._calls |= {event_id: call_id} | ({named: call_id} if named else {})
        self._open.append(call_id)
        return make_call(call_id, name, given)

    def _called(self, event: dict[str, Any], payload: dict[str, Any]) -> str:
        """Return the id of the call that a result answers."""
        named = text_of(payload.get("for_id")) or string_of(object_of(event.get("semantic")).get("call_id"))
        found = (self._open[-1] if self._open else "") if named is None else self._calls.get(named, named)
        if found in self._open:
            self._open.remove(found)
        return found


_OF_REPLY: Final = frozenset({"agent_message", "agent_thinking", "tool_call"})


def _usage(fields: dict[str, Any]) -> Usage | None:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
    given, out, read, written, reasoning = (integer_of(fields.get(name)) for name in names)
    if not any((given, out, read, written)):
        return None
    total = given + out + read + written
    return Usage(input=given, output=out, cache_read=read, cache_write=written, reasoning=reasoning, total_tokens=total)


def _attachments(payload: dict[str, Any]) -> list[UserContent]:
    found: list[UserContent] = []
    for each in objects_of(payload.get("attachments")):
        mime, uri = each.get("media_type"), each.get("uri")
        if each.get("kind") == "image":
            made = image_of(mime, url=uri)
        elif each.get("kind") is not None:
            made = media_of(mime, url=uri, name=each.get("name"))
        else:
            made = read_media(each)
        found += [] if made is None else [made]
    return found


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
    refuse_branch(view, TITLE)
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    trail, about = _Trail(notes), dict[str, Any]()
    for line, fields in decode_objects(source.data or b"", notes):
        kind, since = text_of(fields.get("type")) or "unknown", notes.left_out
        if kind == "session" and not about:
            about = fields
            trail.begin(about)
            continue
        made = trail.take(kind, fields, line.number)
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
    shown_messages = [*trail.older, *messages[1:]] if full else messages
    prompt = shown_messages.pop(0).content if shown_messages and shown_messages[0].role == "system" else ()
    history = finish_history(
        NAME,
        notes,
        shown_messages,
        session_id=text_of(about.get("session_uid")) or text_of(about.get("id")),
        title=text_of(about.get("name")),
        cwd=text_of(about.get("cwd")),
        created=milliseconds_of(about.get("ts")),
        compaction=compaction,
        shows_compacted=full,
    )
    return replace(history, context=replace(history.context, system_prompt=_prompt(prompt))) if prompt else history


def _prompt(content: tuple[AnyContent, ...]) -> str | tuple[SystemContent, ...]:
    texts = tuple(piece for piece in content if piece.kind == "text")
    return texts[0].text if len(texts) == 1 and texts[0] == TextContent(text=texts[0].text) else texts


# -- writing -----------------------------------------------------------------------------------------------------------


def write(draft: Draft) -> Output:
    """Write one session: its line, then the events of each message.

    Raises:
        EmptyConversation: there is nothing to write.
    """
    context = draft.history.context
    messages, positions = list(draft.messages), list(draft.positions)
    if context.system_prompt:
        prompt = context.system_prompt
        content = (TextContent(text=prompt),) if isinstance(prompt, str) else prompt
        messages.insert(0, SystemMessage(content=content))
        positions.insert(0, None)
    if context.tools:
        draft.notes.add(ChangeCode.TOOL_REMOVED, ("tools",), Loss.CONTENT, f"{TITLE} has no schemas of tools")
    for at, (message, place) in enumerate(zip(messages, positions, strict=True)):
        if has_half(message):
            path: Path = ("system_prompt",) if place is None else ("messages", place)
            draft.notes.add(ChangeCode.SURROGATE_REPLACED, path, Loss.CONTENT, f"{TITLE} refuses half a character")
            messages[at] = msgspec.convert(without_halves(msgspec.to_builtins(message)), type(message))
    writing = Writing(messages, draft.notes, positions, draft.settings)
    events = _Events(draft.id, Clock(draft), draft.started)
    for message in messages:
        if message.content or message.role == "toolResult":
            events.write(message, writing)
    if all(event["type"] == "system_event" for event in events.lines):
        raise EmptyConversation(f"the history has no content that {TITLE} can store")
    first, title = find_title(draft.messages), draft.history.title
    name = {} if title is None or title == title_of(first or "") else {"name": title}  # readers use the first text
    head = {
        "type": "session",
        "schema_version": "0.1.0",
        "id": draft.id,
        "session_uid": draft.id,
        **name,
        "ts": iso_of(draft.started),
        "agent": {"name": "x-segue/segue", **({"model_default": events.model} if events.model else {})},
        **({"cwd": draft.cwd} if draft.cwd else {}),
    }
    lines: list[object] = [head, *events.lines]
    return Output((WrittenFile(name="session.trail.jsonl", data=b"".join(map(json_line, lines))),))


@final
class _Events:
    """The events so far."""

    def __init__(self, session: str, clock: Clock, started: int) -> None:
        self.lines: list[dict[str, Any]] = []
        self.model = ""
        """The model of the first reply that names one."""
        self._session = session
        self._clock = clock
        self._last = started
        self._given: int | None = None
        self._time: int | None = None
        self._last_model: str = ""
        self._calls: dict[str, str] = {}

    def _event(self, kind: str, payload: dict[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
        if self._time is None:  # a message that is not written takes no time
            self._time = self._last = self._clock.at(self._given)
        made = {
            "type": kind,
            "id": make_id(self._session, str(len(self.lines))),
            "ts": iso_of(self._time),
            "payload": payload,
            **({"meta": meta} if meta else {}),
        }
        self.lines.append(made)
        return made

    def write(self, message: Message, writing: Writing) -> None:
        """Write the events of one message; the first one has what binds it."""
        self._given = self._last if message.role == "system" else time_of(message)  # instructions have no time
        self._time = None
        state = state_of(message)
        meta: dict[str, Any] = {} if state is None else {META: state}
        if isinstance(message, AssistantMessage):
            self._write_reply(message, meta, writing)
            return
        pieces = list(shown(message, writing))
        is_result = message.role == "toolResult"
        words = "\n".join(piece.text for piece in pieces if piece.kind == "text" and (piece.text or is_result))
        media = [made for piece in pieces if is_media(piece) for made in _attachment(message, piece, writing)]
        attachments = {"attachments": media} if media else {}
        if isinstance(message, ToolResultMessage):
            event = self._calls.get(message.tool_call_id)
            named = {} if event is None else {"for_id": event}
            payload = {**named, "ok": not message.is_error, **({"output": words} if words else {}), **attachments}
            self._event("tool_result", payload, meta)["semantic"] = {"call_id": message.tool_call_id}
        elif words or media:
            if message.role == "system":
                self._event("system_event", {"kind": _INSTRUCTIONS, "text": words}, meta)
            else:
                self._event("user_message", {"text": words, **attachments}, meta)
            if len(pieces) > 1 and state is None:
                writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each message")

    def _write_reply(self, message: AssistantMessage, meta: dict[str, Any], writing: Writing) -> None:
        worded: list[TextContent | ThinkingContent | ToolCall] = []
        for piece in shown(message, writing):
            match piece.kind:
                case "text":
                    worded += [piece] if piece.text else []
                case "thinking":
                    worded += [piece] if piece.thinking else []
                case "toolCall":
                    worded.append(piece)
                case _:
                    note_unsupported(message, writing, piece, TITLE)
        if not worded and not meta:
            return
        if message.model and message.model != self._last_model:
            if self._last_model:
                payload = {"from_model": self._last_model, "to_model": message.model, "trigger": "runtime_inferred"}
                self._event("model_change", payload, {})
            self.model, self._last_model = self.model or message.model, message.model
        mark: dict[str, Any] = {} if message.model or message.protocol else {"unknown": True}
        mark |= origin_mark(message, find_origin(message.model))
        stopped = stop_of(_STOPS[StopReason(message.stop_reason)], message.content)
        stop = _STOPS[stopped]
        if stopped != stop_of(None, message.content):
            mark["stop_reason"] = stop
        meta = {_MESSAGE: mark, **meta}
        named = {"model": message.model} if message.model else {}
        usage = _usage_fields(message.usage)
        for piece in worded or [ThinkingContent(thinking="")]:
            if piece.kind == "text":
                payload: dict[str, Any] = {"text": piece.text, **named, "stop_reason": stop, **usage}
                self._event("agent_message", payload, meta)
            elif piece.kind == "thinking":
                self._event("agent_thinking", {"text": piece.thinking, **named, **usage}, meta)
            else:
                payload = {"tool": _OTHER, "args": {"name": piece.name, "args": dict(piece.arguments)}, **usage}
                event = self._event("tool_call", payload, meta)
                event["semantic"] = {"call_id": piece.id}
                self._calls[piece.id] = event["id"]
            meta, usage = {}, {}


def _usage_fields(usage: Usage | None) -> dict[str, Any]:
    if usage is None or not any((usage.input, usage.output, usage.cache_read, usage.cache_write)):
        return {}
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_creation_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }
    return {"usage": {name: count for name, count in counts.items() if count or name in _COUNTED}}


_COUNTED: Final = ("input_tokens", "output_tokens")


def _attachment(message: Message, piece: Media, writing: Writing) -> Iterator[dict[str, str]]:
    """Yield the address of an image or a file; what has none is reported."""
    if message.role == "system" or piece.url is None or not piece.url.startswith(("https:", "file:", "sha256:")):
        note_unsupported(message, writing, piece, TITLE)
        return
    mime = {} if piece.mime_type is None else {"media_type": piece.mime_type}
    name = {"name": piece.name} if piece.kind == "file" and piece.name else {}
    yield {"kind": piece.kind, **mime, "uri": piece.url, **name}


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    write=write,
    kind="export",
    samples=read_samples(__package__),
    title=TITLE,
    example=CLAUDE,
    closes_calls=False,
    adds_own_text=False,
    source="agent-trail/spec: specification, schema and fixtures",
    read_on="2026-11-19",
)
