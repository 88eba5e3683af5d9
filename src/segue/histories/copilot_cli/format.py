"""GitHub Copilot CLI: reads and writes the log of a session.

Facts (Copilot CLI 1.0.40, run against a scripted model; the schema of its log; 2026-11-16):
- A line is an event: `type`, `data`, `id`, `timestamp`, `parentId`. The conversation is in `user.message`,
  `assistant.message` and `tool.execution_complete`; `tool.execution_start` repeats a call.
- `content` of a user's message is what was typed, `transformedContent` what was sent, with reminders round it.
- The model of an answer is that of the last `session.model_change`, or `selectedModel` of the start; the last one is
  the model of the next turn.
- Arguments of a call are an object or a text. A tool that failed has `error` and no `result`; `detailedContent` is for
  the screen.
- Events with `parentToolCallId` or `agentId` are those of a sub-agent.
- `session.compaction_complete` replaces everything before it by `summaryContent`.
- A long answer may be in several events with the same `messageId`.                     (reported; read tolerantly)
- It resumes a file that another program wrote: the start, messages of the user and the model, and completed tools are
  enough. Ids of events must be UUIDs.
- It answers a call without a result itself, and sends no reasoning over the protocols of OpenAI.
- It shows and replays a call only if its tool was started; the model gets it all the same.  (1.0.102, 2026-11-18)
- Calls without a result, results without a call, long results and broken lines do not stop it: it went on before and
  after their repair. (1.0.102, run 2026-11-18)
- `copilot sessions import` takes another form of file. It has no thinking, so it is not what is written. (1.0.102)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from segue.histories.kit.anatomy import NO_RESULT, Anatomy, OpenCall
from segue.histories.kit.documents import finish_history, json_text, parse_text, refuse_branch
from segue.histories.kit.envelope import find_envelope, find_title, plain_text, with_envelope
from segue.histories.kit.format import Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import Child, Compaction, History, Session, WrittenFile
from segue.histories.kit.lines import (
    Fields,
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
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import arguments_text, encode_json, make_call, media_of, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.unread import note_unread
from segue.histories.kit.writing import Clock, json_line
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

# -- reading -----------------------------------------------------------------------------------------------------------

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


# -- repairing: see `segue.histories.kit.repairing` --------------------------------------------------------------------


def _answer(event: Fields, call: OpenCall) -> dict[str, Any]:
    data = {"toolCallId": call.id, "success": False, "error": {"message": NO_RESULT, "code": "failure"}}
    return {"type": "tool.execution_complete", "data": data, "timestamp": event.get("timestamp")}


def _call_id(node: Fields) -> str | None:
    return text_of(node.get("toolCallId")) if "name" in node and "arguments" in node else None


def _result_id(node: Fields) -> str | None:
    return text_of(node.get("toolCallId")) if "success" in node else None


def _picture(node: Fields) -> str | None:
    kind = str(node.get("mimeType") or node.get("mediaType") or node.get("type") or "")
    return text_of(node.get("data")) if "image" in kind or node.get("type") == "blob" else None


def _model(events: Sequence[Fields], _provider: str, model: str) -> dict[str, Any]:
    last = next(each for each in reversed(events) if each.get("id"))
    fresh = make_id("repair", str(last.get("id")), model)
    stamp = {"id": fresh, "timestamp": last.get("timestamp"), "parentId": last.get("id")}
    return {"type": "session.model_change", "data": {"newModel": model}, **stamp}


def _is_hollow(node: Fields) -> bool:
    data = object_of(node.get("data"))
    return node.get("type") == "assistant.message" and not data.get("content") and not data.get("toolRequests")


ANATOMY: Final = Anatomy(
    id_key="id",
    parent_key="parentId",
    carrier="data",
    is_record=lambda node: isinstance(node.get("type"), str) and isinstance(node.get("data"), dict) and "id" in node,
    call_id=_call_id,
    result_id=_result_id,
    is_holder=lambda node: node.get("type") == "assistant.message",
    answer=_answer,
    signatures=frozenset({"reasoningOpaque", "encryptedContent"}),
    unsign=lambda node, name: {key: value for key, value in node.items() if key != name},
    picture=_picture,
    note=lambda _node, _text: None,
    is_hollow=_is_hollow,
    model_record=_model,
)


# -- the record --------------------------------------------------------------------------------------------------------

VERSION: Final = "1.0.40"
"""The version of the program whose log is written."""
START: Final = "tool.execution_start"
_KINDS: Final = {"user": USER, "assistant": ASSISTANT, "toolResult": RESULT, "system": USER}


def write(draft: Draft) -> Output:
    """Write one session: a chain of events."""
    writer = _Writer(draft)
    for at, message in enumerate(draft.messages):
        writer.add(message, at)
    writer.name_model(draft.model.id)
    data = b"".join(json_line(line) for line in writer.lines)
    folder = f"session-state/{draft.id}"
    files = [WrittenFile(name=f"{folder}/events.jsonl", data=data)]
    title, first = draft.history.title, find_title(draft.messages)
    if title and (first is None or title_of(first) != title):
        facts = {"id": draft.id, "cwd": draft.cwd or "/", "name": title, "summary": title}
        about = "".join(f"{key}: {encode_json(value)}\n" for key, value in facts.items())
        files.append(WrittenFile(name=f"{folder}/workspace.yaml", data=about.encode("utf-8", "replace")))
    return Output(tuple(files), ("copilot", "--resume", draft.id))


class _Writer:
    """The events so far; each hangs under the one before it."""

    def __init__(self, draft: Draft) -> None:
        self.lines: list[dict[str, Any]] = []
        self._draft = draft
        self._clock = Clock(draft)
        self._model = ""
        self._calls: dict[str, dict[str, Any]] = {}
        start = iso_of(draft.started)
        about = {"sessionId": draft.id, "version": 1, "producer": "copilot-agent", "copilotVersion": VERSION}
        self._line("session.start", {**about, "startTime": start, "context": {"cwd": draft.cwd or "/"}}, start)

    def add(self, message: Message, at: int) -> None:
        """Write the event of one message, as it was read if it has not changed."""
        envelope = object_of(find_envelope(message, NAME))
        kept, kind = object_of(envelope.get("data")), text_of(envelope.get("type")) or _KINDS[message.role]
        time = text_of(envelope.get("timestamp")) or iso_of(self._clock.at(time_of(message)))
        mark: dict[str, Any] = {}
        origin = None
        if isinstance(message, AssistantMessage):
            self.name_model(message.model or self._draft.model.id)
            origin = find_origin(self._model, PROVIDER)
            mark = origin_mark(message, origin)
        if kind == COMPACTION:
            data = {**kept, "summaryContent": plain_text(message)}
        elif kept and read_event(kind, kept, None, origin).content == message.content:
            data = kept
        else:
            data = self._data(message, at)
            kind = SYSTEM if kind == SYSTEM else _KINDS[message.role]
        if isinstance(message, ToolResultMessage) and message.tool_call_id in self._calls:
            self._line(START, self._calls.pop(message.tool_call_id), time)
        elif isinstance(message, AssistantMessage):
            self._calls = {
                call.id: {"toolCallId": call.id, "toolName": call.name, "arguments": dict(call.arguments)}
                for call in message.tool_calls()
            }
        self._line(kind, data, time, {**envelope, **mark})

    def name_model(self, model: str) -> None:
        """Write which model the next answers are of."""
        if model != self._model:
            self._model = model
            self._line("session.model_change", {"newModel": model}, self.lines[-1]["timestamp"])

    def _data(self, message: Message, at: int) -> dict[str, Any]:
        texts = [piece.text for piece in message.content if piece.kind == "text"]
        if isinstance(message, AssistantMessage):
            return self._answer(message, texts, at)
        images = [piece for piece in message.content if piece.kind == "image" and piece.data]
        others = [piece for piece in message.content if piece.kind != "text" and piece not in images]
        if others or (images and not isinstance(message, ToolResultMessage)):
            detail = "Copilot CLI stores texts, and images of results"
            self._draft.notes.add(ChangeCode.MEDIA_OMITTED, ("messages", at), Loss.CONTENT, detail)
        self._note_joined(texts, at)
        text = "\n".join(texts)
        if not isinstance(message, ToolResultMessage):
            if message.role == "system":
                self._draft.notes.add(ChangeCode.SYSTEM_AS_USER, ("messages", at), Loss.NONE)
            return {"content": text, "attachments": []}
        data: dict[str, Any] = {"toolCallId": message.tool_call_id, "success": not message.is_error}
        pictures = [{"type": "image", "data": each.data, "mimeType": each.mime_type or "image/png"} for each in images]
        if message.is_error:
            data["error"] = {"message": text, "code": "failure"}
        if pictures or not message.is_error:
            data["result"] = {"content": text, **({"contents": pictures} if pictures else {})}
        return data

    def _answer(self, message: AssistantMessage, texts: Sequence[str], at: int) -> dict[str, Any]:
        thoughts = [piece for piece in message.content if piece.kind == "thinking"]
        kinds = [piece.kind for piece in message.content]
        if "native" in kinds:
            self._draft.notes.add(ChangeCode.NATIVE_DROPPED, ("messages", at), Loss.OPAQUE)
        if any(piece.thinking_signature for piece in thoughts):
            detail = "Copilot CLI stores the words of reasoning"
            self._draft.notes.add(ChangeCode.SIGNATURE_REMOVED, ("messages", at), Loss.OPAQUE, detail)
        self._note_joined(texts, at)
        self._note_joined(thoughts, at)
        data: dict[str, Any] = {
            "messageId": make_id(self._draft.id, "message", str(at)),
            "content": "\n".join(texts),
            "toolRequests": [
                {
                    "toolCallId": call.id,
                    "name": call.name,
                    "arguments": arguments_text(call) if call.arguments_text is not None else dict(call.arguments),
                    "type": "function",
                }
                for call in message.tool_calls()
            ],
        }
        if words := "\n".join(piece.thinking for piece in thoughts if piece.thinking):
            data["reasoningText"] = words
        return data

    def _note_joined(self, pieces: Sequence[object], at: int) -> None:
        if len(pieces) > 1:
            detail = "Copilot CLI has one text for each message"
            self._draft.notes.add(ChangeCode.TURN_MERGED, ("messages", at), Loss.NONE, detail)

    def _line(self, kind: str, data: dict[str, Any], time: str, envelope: dict[str, Any] | None = None) -> None:
        kept = envelope or {}
        last = self.lines[-1]["id"] if self.lines else None
        event_id = text_of(kept.get("id")) or make_id(self._draft.id, "event", str(len(self.lines)))
        self.lines.append({**kept, "type": kind, "data": data, "id": event_id, "timestamp": time, "parentId": last})


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    write=write,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="GitHub Copilot CLI",
    place=Place(
        folder=".copilot",
        variables=("COPILOT_HOME",),
        patterns=("session-state/*/events.jsonl", "session-state/*.jsonl"),
    ),
    keeps_folders=True,
    example=Model("claude-sonnet-4-5", "anthropic", "anthropic-messages", reasoning=True, max_tokens=8000),
    source="Copilot CLI 1.0.40 and 1.0.102, run against a scripted model; the schema of its log",
    read_on="2026-11-18",
)
