"""Reads a session of Kimi Code, the agent of Moonshot AI since 2026.

Facts (Kimi Code 2.1.0, run against a scripted model; its manifest of records; 2026-11-18):
- `wire.jsonl` of an agent is a log of records; the first line has `protocol_version`. The conversation is what the
  `context.*` records make of it. `turn.prompt` and `agent.message.appended` repeat messages.
- `step.begin` opens an answer, to which `content.part` and `tool.call` belong by `stepUuid`. Results come in the order
  in which tools ended. `note` of a result is sent after its output, on a separate line.
- `origin.kind` says whose words a message of the user has; `injection` and others are the program's.
- After `context.apply_compaction` the summary and the kept messages are sent; after `context.clear` nothing before it.
  `context.undo` removes messages backwards until `count` prompts are gone, never past a summary.
- `llm.request` has the model of the step. Title and folder are in `state.json` of the session.
- `encrypted` of a thought is what the provider signed: on Responses the `encrypted_content` of an item.   (its bundle)
- Media are `{type: image_url, imageUrl: {url}}`, and the same of audio and video.                         (its bundle)
- Not seen: media in blobs of the session.                                               (manifest of the program)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, Usage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import describe_document, finish_history, json_text, parse_object, refuse_branch
from segue.histories.kit.envelope import plain_text, with_envelope
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Child, Compaction, History, Session
from segue.histories.kit.lines import (
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
from segue.histories.kit.origins import SEGUE, UNKNOWN, find_origin, marked_origin, set_origin
from segue.histories.kit.pieces import Media, make_call, read_media, reasoning_item, stop_of, usage_of
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread, read_list
from segue.projection.report import ChangeCode, Loss

NAME: Final = "kimi-code"
KNOWN_RECORDS: Final = frozenset({
    "metadata", "turn.prompt", "agent.message.appended", "profile.bind", "config.update", "llm.request",
    "llm.response", "usage.record", "token_counting.update", "context.undo", "context.clear", "step.end",
})  # fmt: skip
_USERS: Final = frozenset({"user", "skill_activation", "plugin_command", "shell_command"})
"""Kinds of origins of what the person wrote or started; all others are the program's."""

SUMMARY: Final = "compaction_summary"
"""The origin of a message that replaces those before it."""

_READ: Final = frozenset({"role", "content", "toolCalls", "toolCallId", "name", "isError", SEGUE})
"""Fields of a message that are read; the others are kept with it."""

_WORDS: Final = 40
"""Characters of a message that the report shows."""


@final
@dataclass
class _Entry:
    """A message of the context, or a step, whose pieces arrive one by one."""

    message: Message | None = None
    pieces: list[AssistantContent] = field(default_factory=list[AssistantContent])
    time: int | None = None
    model: str = ""
    provider: str = ""
    stop: object = None
    usage: Usage | None = None
    is_prompt: bool = False
    is_summary: bool = False
    mark: dict[str, Any] = field(default_factory=dict[str, Any])

    def finished(self) -> Iterator[Message]:
        """Yield the message; nothing for a step in which the model wrote nothing."""
        if self.message is not None:
            yield self.message
        elif self.pieces:
            answer = AssistantMessage(
                content=tuple(self.pieces),
                stop_reason=stop_of(self.stop, self.pieces),
                raw_stop_reason=text_of(self.stop),
                usage=self.usage,
                timestamp=self.time,
            )
            origin = find_origin(self.model, self.provider) if self.model else UNKNOWN
            yield _from(answer, marked_origin(origin, self.mark), {})


@final
class _Log:
    """The context as the records build it."""

    def __init__(self, notes: Notes) -> None:
        self.notes: Final = notes
        self.entries: list[_Entry] = []
        self.older: list[_Entry] = []
        self.summary: tuple[str, int | None] | None = None
        self.system: str | None = None
        self.cwd: str | None = None
        self._steps: dict[str, _Entry] = {}
        self._open: _Entry | None = None

    def take(self, fields: dict[str, Any], number: int, size: int) -> None:
        """Apply one record."""
        kind, time, since = (
            text_of(fields.get("type")) or "unknown",
            _time(fields.get("time")),
            len(self.entries),
        )
        match kind:
            case "context.append_message":
                entry = self._message(object_of(fields.get("message")) or fields, number, time)
                self.entries += () if entry is None else (entry,)
            case "context.append_loop_event":
                self._event(object_of(fields.get("event")), number, size, time)
                return
            case "context.apply_compaction":
                self._compact(fields, number, time)
                return
            case "context.clear":
                self._remove(self.entries, "messages before the context was cleared")
                self.entries = []
            case "context.undo":
                self._undo(integer_of(fields.get("count")) or 1)
            case "profile.bind" | "config.update":
                self.system = text_of(fields.get("systemPrompt")) or self.system
                self.cwd = text_of(fields.get("cwd")) or self.cwd
            case "llm.request" if self._open is not None:
                self._open.model = text_of(fields.get("model")) or ""
                self._open.provider = text_of(fields.get("provider")) or ""
            case _:
                pass
        if len(self.entries) <= since and kind != "context.append_message":
            self.notes.record(kind, number, size, fields if self.notes.keeps else None)

    def _message(self, given: dict[str, Any], number: int, time: int | None) -> _Entry | None:
        since = self.notes.left_out
        kind = text_of(object_of(given.get("origin")).get("kind")) or "user"
        content, calls = given.get("content"), read_list(given.get("toolCalls"), "toolCalls", number, self.notes)
        envelope = without(given, _READ)
        made: Message | None = None
        match text_of(given.get("role")):
            case "user":
                made = with_envelope(
                    UserMessage(content=_content(content), timestamp=time),
                    NAME,
                    envelope,
                    own=kind not in _USERS and kind != SUMMARY,
                )
            case "system":
                texts = tuple(piece for piece in _content(content) if isinstance(piece, TextContent))
                made = with_envelope(SystemMessage(content=texts), NAME, envelope)
            case "tool":
                made = ToolResultMessage(
                    tool_call_id=text_of(given.get("toolCallId")) or "",
                    tool_name=text_of(given.get("name")) or "",
                    content=_content(content),
                    is_error=given.get("isError") is True,
                    timestamp=time,
                )
                made = with_envelope(made, NAME, envelope)
            case "assistant":
                if not all("arguments" in (object_of(call.get("function")) or call) for call in calls):
                    self.notes.unreadable(number, "a call has no arguments")
                pieces = [*_reply(content), *(_call(call, "arguments") for call in calls)]
                answer = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces), timestamp=time)
                made = _from(answer, marked_origin(UNKNOWN, given), envelope)
            case _:
                pass
        note_unread({"message": given}, [] if made is None else [made.content], number, self.notes, since=since)
        if made is None:
            self.notes.record("message of another form", number, len(json_text(given)), given)
            return None
        is_summary = kind == SUMMARY
        if is_summary and self.summary is not None and self.entries and self.entries[-1].is_summary:
            self.entries.pop()  # the record before it has the same summary
        return _Entry(made, is_prompt=made.role == "user" and kind in _USERS, is_summary=is_summary)

    def _event(self, event: dict[str, Any], number: int, size: int, time: int | None) -> None:
        since, made = self.notes.left_out, list[object]()
        kind = text_of(event.get("type"))
        match kind:
            case "step.begin":
                self._begin(text_of(event.get("uuid")) or "", time).mark = event
            case "content.part":
                found = list(_reply([event.get("part")]))
                self._step(event, time).pieces += found
                made += found
            case "tool.call":
                call = _call({**event, "id": event.get("toolCallId")}, "args")
                if not isinstance(event.get("args"), dict):
                    self.notes.unreadable(number, "`args` of a call is not an object")
                self._step(event, time).pieces.append(call)
                made.append(call)
            case "tool.result":
                result = _result(event, time)
                self.entries.append(_Entry(result))
                made.append(result.content)
            case "step.end":
                step = self._steps.get(text_of(event.get("uuid")) or "", self._open)
                if step is not None:
                    step.stop, step.usage = event.get("finishReason"), _usage(object_of(event.get("usage")))
            case _:
                self.notes.record(kind or "unknown", number, size, event if self.notes.keeps else None)
        note_unread(event, made, number, self.notes, since=since)

    def _begin(self, uuid: str, time: int | None) -> _Entry:
        self._open = _Entry(time=time)
        self._steps[uuid] = self._open
        self.entries.append(self._open)
        return self._open

    def _step(self, event: dict[str, Any], time: int | None) -> _Entry:
        uuid = text_of(event.get("stepUuid")) or ""
        return self._steps.get(uuid) or self._begin(uuid, time)

    def _compact(self, fields: dict[str, Any], number: int, time: int | None) -> None:
        """Replace the first messages by their summary; some prompts among them may be kept."""
        text = text_of(fields.get("summary")) or text_of(fields.get("contextSummary")) or ""
        note_unread(fields, text, number, self.notes, since=self.notes.left_out)
        given = fields.get("compactedCount")
        count = integer_of(given) if isinstance(given, int) else len(self.entries)
        gone, rest = self.entries[:count], self.entries[count:]
        wanted = integer_of(fields.get("keptUserMessageCount"))
        kept = [entry for entry in gone if entry.is_prompt][-wanted:] if wanted else []
        self.older += [entry for entry in gone if not any(entry is each for each in kept) and not entry.is_summary]
        envelope = {"origin": {"kind": SUMMARY}}
        message = with_envelope(UserMessage.of(text, timestamp=time), NAME, envelope)
        self.entries = [*kept, _Entry(message, is_summary=True), *rest]
        self.summary = (text, time)

    def _undo(self, count: int) -> None:
        removed: list[_Entry] = []
        while count and self.entries and not self.entries[-1].is_summary:
            entry = self.entries.pop()
            removed.append(entry)
            count -= entry.is_prompt
        self._remove(removed, "messages that were undone")

    def _remove(self, entries: Iterable[_Entry], what: str) -> None:
        """Report messages that are sent no more, with the first words of each."""
        gone = [message for entry in entries for message in entry.finished()]
        if gone:
            words = ", ".join(title_of(plain_text(message))[:_WORDS] for message in gone)
            self.notes.add(ChangeCode.RECORD_LEFT_OUT, ("records", what), Loss.CONTENT, f"{len(gone)} {what}: {words}")


def _time(value: object) -> int | None:
    """Read a time in milliseconds, which older files have as a text."""
    return value if type(value) is int and 0 <= value < 2**53 else milliseconds_of(value)


def _content(content: object) -> tuple[UserContent, ...]:
    found: list[UserContent] = []
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    for part in objects_of(content):
        text = part.get("text")
        if isinstance(text, str):
            found.append(TextContent(text=text))
        elif (media := _media(part)) is not None:
            found.append(media)
    return tuple(found)


def _media(part: dict[str, Any]) -> Media | None:
    kind = (text_of(part.get("type")) or "").partition("_")[0]
    address = object_of(part.get(f"{kind}Url"))
    return read_media({"type": kind, **address}) if address else read_media(part)


def _from(answer: AssistantMessage, origin: Origin, envelope: dict[str, Any]) -> AssistantMessage:
    """Set the origin of an answer; a signature of Responses is an item, and the program keeps one field of it."""
    if origin.protocol == "openai-responses":
        pieces = (
            reasoning_item(piece.thinking, None, piece.thinking_signature) if piece.kind == "thinking" else piece
            for piece in answer.content
        )
        answer = replace(answer, content=tuple(pieces))
    return with_envelope(set_origin(answer, origin), NAME, envelope)


def _reply(content: object) -> Iterator[AssistantContent]:
    if isinstance(content, str) and content:
        yield TextContent(text=content)
    for part in objects_of(content):
        if isinstance(words := part.get("think"), str):
            signature = text_of(part.get("encrypted"))
            if words or signature:
                yield ThinkingContent(thinking=words, thinking_signature=signature)
        elif isinstance(text := part.get("text"), str) and text:
            yield TextContent(text=text)


def _call(given: dict[str, Any], key: str) -> AssistantContent:
    function = object_of(given.get("function")) or given
    return make_call(given.get("id"), function.get("name"), function.get(key, function.get("arguments")))


def _result(event: dict[str, Any], time: int | None) -> ToolResultMessage:
    result = object_of(event.get("result"))
    output, note = result.get("output"), text_of(result.get("note"))
    content = _content(output)
    if not content and output not in (None, "", []):
        content = (TextContent(text=json_text(output)),)
    if note is not None:
        content = (*content, TextContent(text=note))
    made = ToolResultMessage(
        tool_call_id=text_of(event.get("toolCallId")) or "",
        tool_name="",
        content=content,
        is_error=result.get("isError") is True,
        timestamp=time,
    )
    return with_envelope(made, NAME, {})


def _usage(given: dict[str, Any]) -> Usage | None:
    read, written = integer_of(given.get("inputCacheRead")), integer_of(given.get("inputCacheCreation"))
    whole = integer_of(given.get("inputOther")) + read + written
    return usage_of(whole, given.get("output"), cache_read=read, cache_write=written)


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no `context` record of Kimi Code.
    """
    refuse_branch(view, "Kimi Code")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    log = _Log(notes)
    for line, fields in decode_objects(source.data or b"", notes):
        log.take(fields, line.number, len(line.data))
    active = _messages(log.entries)
    older = _messages(log.older)
    if not active and not older and not notes.records:
        raise LoadError("no conversation found: the file has no `context` record of Kimi Code")
    folder = source.name.rpartition("/agents/")[0]
    state = parse_object(source.neighbours.read(f"{folder}/state.json")) if folder else {}
    children = [
        Child(id=name.split("/")[-2], path=name)
        for name in (source.neighbours.find(f"{folder}/agents/*/wire.jsonl") if folder else ())
        if name != source.name and "/agents/main/" in source.name
    ]
    for at, child in enumerate(children):
        notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", at), Loss.CONTENT, child.id)
    compaction = None
    if log.summary is not None and older:
        text, time = log.summary
        compaction = Compaction(summary=Summary(covers=len(older), text=text, timestamp=time), messages=tuple(older))
    full = view.name == "full" and compaction is not None
    shown = [*older, *_messages(entry for entry in log.entries if not entry.is_summary)] if full else active
    return finish_history(
        NAME,
        notes,
        shown,
        session_id=text_of(state.get("id")) or _id_of(source.name),
        title=text_of(state.get("title")),
        cwd=text_of(state.get("cwd")) or log.cwd,
        created=_time(state.get("createdAt")),
        system_prompt=log.system,
        children=children,
        compaction=compaction,
        shows_compacted=full,
    )


def _messages(entries: Iterable[_Entry]) -> list[Message]:
    """Return the messages of entries, the results of a step after it."""
    return [message for entry in entries for message in entry.finished()]


def _id_of(name: str) -> str | None:
    folder = name.rpartition("/agents/")[0]
    return folder.rpartition("/")[2] or None


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session by the beginning of its log."""
    if not any("protocol_version" in line for line in first_objects(excerpt.head, 1)):
        return None
    found = describe_document(excerpt._replace(whole=True), NAME, read, _id_of(excerpt.name) or excerpt.name)
    if found is None or excerpt.whole:
        return found
    return replace(found, messages=None, tokens=None, cost=None, updated=excerpt.modified)
