"""Reads the log of a session of GitHub Copilot CLI.

Facts (Copilot CLI 1.0.40, run against a scripted model; the schema of its log; 2026-11-16):
- A line is an event: `type`, `data`, `id`, `timestamp`, `parentId`. The conversation is in `user.message`,
  `assistant.message` and `tool.execution_complete`; `tool.execution_start` repeats a call.
- `content` of a user's message is what was typed, `transformedContent` what was sent, with reminders round it.
- The model of an answer is that of the last `session.model_change`, or `selectedModel` of the start.
- Arguments of a call are an object or a text. A tool that failed has `error` and no `result`; `detailedContent` is for
  the screen.
- Events with `parentToolCallId` or `agentId` are those of a sub-agent.
- `session.compaction_complete` replaces everything before it by `summaryContent`.
- A long answer may be in several events with the same `messageId`.                     (reported; read tolerantly)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, parse_text, refuse_branch
from segue.histories.kit.envelope import find_envelope, with_envelope
from segue.histories.kit.format import Excerpt
from segue.histories.kit.history import Child, Compaction, History, Session
from segue.histories.kit.lines import (
    Line,
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
from segue.histories.kit.origins import find_origin, marked_origin, set_origin
from segue.histories.kit.pieces import make_call, media_of, stop_of
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread
from segue.projection.report import ChangeCode, Loss

NAME: Final = "copilot-cli"
PROVIDER: Final = "github-copilot"
USER, ASSISTANT, RESULT = "user.message", "assistant.message", "tool.execution_complete"
SYSTEM, COMPACTION = "system.message", "session.compaction_complete"
KNOWN_RECORDS: Final = frozenset({
    "session.start", "session.resume", "session.model_change", "session.shutdown", "session.truncation", "session.idle",
    "session.compaction_start", "session.info", "tool.execution_start", "assistant.turn_start", "assistant.turn_end",
    "hook.start", "hook.end", "abort", "sub-agent",
})  # fmt: skip
_MESSAGES: Final = frozenset({USER, ASSISTANT, RESULT, SYSTEM})
_REPEATED: Final = (
    "transformedContent", "detailedContent", "intentionSummary", "toolTelemetry", "reasoningOpaque", "encryptedContent",
)  # fmt: skip
"""Fields that repeat the text of an event for the model or the screen, statistics, and signatures, which are kept."""


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no event of Copilot CLI.
    """
    refuse_branch(view, "Copilot CLI")
    reader = _Reader(Notes(known=KNOWN_RECORDS, keep=view.keep_records))
    for line, fields in decode_objects(source.data or b"", reader.notes):
        reader.add(line, fields)
    if not reader.start and not reader.active:
        raise LoadError("no conversation found: the file has no event of Copilot CLI")
    folder, _, _ = source.name.rpartition("/")
    about = _read_yaml(source.neighbours.read(f"{folder}/workspace.yaml" if folder else "workspace.yaml"))
    for at, child in enumerate(reader.children):
        reader.notes.add(ChangeCode.CHILD_LEFT_OUT, ("children", at), Loss.CONTENT, child)
    full = view.name == "full" and reader.compaction is not None
    return finish_history(
        NAME,
        reader.notes,
        reader.everything if full else reader.active,
        session_id=text_of(reader.start.get("sessionId")),
        version=text_of(reader.start.get("copilotVersion")),
        title=about.get("name") or about.get("summary"),
        cwd=text_of(object_of(reader.start.get("context")).get("cwd")) or about.get("cwd"),
        created=milliseconds_of(reader.start.get("startTime")),
        children=[Child(id=call_id, call_id=call_id) for call_id in reader.children],
        compaction=reader.compaction,
        shows_compacted=full,
    )


def _read_yaml(data: bytes | None) -> dict[str, str]:
    """Read the plain texts of a file of keys and values."""
    lines = (data or b"").decode("utf-8", "replace").splitlines()
    pairs = (line.partition(": ") for line in lines if not line.startswith((" ", "#", "-")))
    values = {key: value.strip() for key, found, value in pairs if found}
    read = {key: parse_text(value) if value.startswith('"') else value.strip("'") for key, value in values.items()}
    return {key: value for key, value in read.items() if isinstance(value, str) and value}


class _Reader:
    """Makes messages of events, one after another."""

    def __init__(self, notes: Notes) -> None:
        self.notes: Final = notes
        self.start: dict[str, Any] = {}
        self.active: list[Message] = []
        self.everything: list[Message] = []
        self.children: dict[str, None] = {}
        self.compaction: Compaction | None = None
        self._model = ""

    def add(self, line: Line, fields: dict[str, Any]) -> None:
        """Read one event."""
        kind, data = text_of(fields.get("type")) or "unknown", object_of(fields.get("data"))
        child = text_of(data.get("parentToolCallId")) or text_of(fields.get("agentId"))
        if child is not None:
            self.children[child] = None
            self._record("sub-agent", line, fields)
        elif kind in _MESSAGES:
            self._message(kind, data, line, fields)
        elif kind == COMPACTION and text_of(data.get("summaryContent")):
            self._compact(data, fields)
        else:
            if kind == "session.start":
                self.start = data
                self._model = text_of(data.get("selectedModel")) or ""
            elif kind == "session.model_change":
                self._model = text_of(data.get("newModel")) or ""
            self._record(kind, line, fields)

    def _record(self, kind: str, line: Line, fields: dict[str, Any]) -> None:
        self.notes.record(kind, line.number, len(line.data), fields if self.notes.keeps else None)

    def _message(self, kind: str, data: dict[str, Any], line: Line, fields: dict[str, Any]) -> None:
        since = self.notes.left_out
        origin = marked_origin(find_origin(self._model, PROVIDER), fields) if kind == ASSISTANT else None
        message = read_event(kind, data, milliseconds_of(fields.get("timestamp")), origin)
        shown = {**fields, "data": _without_repeated(data)} if data else fields
        note_unread(shown, message.content, line.number, self.notes, since=since)
        if not message.content and kind != RESULT:
            self._record(kind, line, fields)
            return
        message = with_envelope(message, NAME, without(fields, ("parentId", "segue")), own=kind == SYSTEM)
        before = self.active[-1] if self.active else None
        if isinstance(message, AssistantMessage) and isinstance(before, AssistantMessage) and _same(before, data):
            self.active[-1] = replace(before, content=(*before.content, *message.content))
            return
        self.active.append(message)
        self.everything.append(message)

    def _compact(self, data: dict[str, Any], fields: dict[str, Any]) -> None:
        summary = Summary(
            covers=len(self.everything),
            text=data["summaryContent"],
            timestamp=milliseconds_of(fields.get("timestamp")),
        )
        self.compaction = Compaction(summary=summary, messages=tuple(self.everything), id=text_of(fields.get("id")))
        message = UserMessage(content=(TextContent(text=summary.text),), timestamp=summary.timestamp)
        self.active = [with_envelope(message, NAME, without(fields, ("parentId",)))]


def _same(before: AssistantMessage, data: Mapping[str, Any]) -> bool:
    """Whether an event continues the answer before it."""
    earlier = object_of((find_envelope(before, NAME) or {}).get("data"))
    return "chunkIndex" in data and earlier.get("messageId") == data.get("messageId")


def _without_repeated(data: dict[str, Any]) -> dict[str, Any]:
    result = object_of(data.get("result"))
    kept = without(data, _REPEATED)
    if calls := objects_of(data.get("toolRequests")):
        kept["toolRequests"] = [without(call, _REPEATED) for call in calls]
    return {**kept, "result": without(result, _REPEATED)} if result else kept


def read_event(kind: str, data: Mapping[str, Any], time: int | None, origin: Origin | None = None) -> Message:
    """Make a message of an event of the conversation."""
    if kind == USER:
        content = (*_texts(data.get("content")), *_media(data.get("attachments")))
        return UserMessage(content=content, timestamp=time)
    if kind == SYSTEM:
        return SystemMessage(content=tuple(_texts(data.get("content"))))
    if kind == RESULT:
        error, result = object_of(data.get("error")), object_of(data.get("result"))
        failed = data.get("success") is False or bool(error)
        texts = _texts(error.get("message")) if failed and error else _texts(result.get("content"))
        return ToolResultMessage(
            tool_call_id=text_of(data.get("toolCallId")) or "",
            tool_name=text_of(data.get("toolName")) or "",
            content=(*texts, *_media(result.get("contents"))),
            is_error=failed,
            timestamp=time,
        )
    pieces: list[AssistantContent] = []
    if words := text_of(data.get("reasoningText")):
        signature = text_of(data.get("reasoningOpaque"))
        is_signed = origin is not None and origin.protocol == "anthropic-messages"
        pieces.append(ThinkingContent(thinking=words, thinking_signature=signature if is_signed else None))
    pieces += _texts(data.get("content"))
    for call in objects_of(data.get("toolRequests")):
        pieces.append(make_call(call.get("toolCallId"), call.get("name"), call.get("arguments")))
    message = AssistantMessage(
        content=tuple(pieces),
        response_id=text_of(data.get("messageId")),
        stop_reason=stop_of(None, pieces),
        timestamp=time,
    )
    return message if origin is None else set_origin(message, origin)


def _texts(content: object) -> list[TextContent]:
    if isinstance(content, str):
        return [TextContent(text=content)] if content else []
    return [] if content is None else [TextContent(text=json_text(content))]


def _media(items: object) -> list[UserContent]:
    found = (media_of(item.get("mimeType"), data=item.get("data"), name=item.get("name")) for item in objects_of(items))
    return [media for media in found if media is not None]


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session for a list; None for a file of another program."""
    lines = [*first_objects(excerpt.head, 400), *first_objects(excerpt.tail, 400)]
    start = next((object_of(line.get("data")) for line in lines if line.get("type") == "session.start"), None)
    if start is None:
        return None
    events = [(line, object_of(line.get("data"))) for line in lines if text_of(line.get("type")) in _MESSAGES]
    times = [time for line in lines if (time := milliseconds_of(line.get("timestamp"))) is not None]
    texts = (text_of(data.get("content")) for line, data in events if line.get("type") == USER)
    changes = (object_of(line.get("data")) for line in lines if line.get("type") == "session.model_change")
    models = [text_of(start.get("selectedModel")), *(text_of(data.get("newModel")) for data in changes)]
    title = next((text for text in texts if text), None)
    return Session(
        format=NAME,
        id=text_of(start.get("sessionId")) or excerpt.name.rpartition("/")[0].rpartition("/")[2],
        path=excerpt.path,
        title=None if title is None else title_of(title),
        cwd=text_of(object_of(start.get("context")).get("cwd")),
        created=min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in models if model)),
        messages=len(events) if excerpt.whole else None,
        tokens=sum(integer_of(data.get("outputTokens")) for _, data in events) if excerpt.whole else None,
        size=excerpt.size,
    )
