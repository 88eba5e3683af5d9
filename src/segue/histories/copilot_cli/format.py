"""The record of GitHub Copilot CLI.

Writes a session of GitHub Copilot CLI.

Facts this file rests on (Copilot CLI 1.0.40, run against a scripted model, 2026-11-16):
- It resumes a file that another program wrote: the start, messages of the user and the model, and completed tools are
  enough. Ids of events must be UUIDs.
- It answers a call without a result itself, and sends no reasoning over the protocols of OpenAI.
- It shows and replays a call only if its tool was started; the model gets it all the same.  (1.0.102, 2026-11-18)
- `copilot sessions import` takes another form of file. It has no thinking, so it is not what is written. (1.0.102)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.histories.copilot_cli.read import (
    ASSISTANT,
    COMPACTION,
    KNOWN_RECORDS,
    NAME,
    PROVIDER,
    RESULT,
    SYSTEM,
    USER,
    describe,
    read,
    read_event,
)
from segue.histories.copilot_cli.repairing import ANATOMY
from segue.histories.kit.envelope import find_envelope, find_title, plain_text
from segue.histories.kit.format import Draft, Format, Output, Place
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of, title_of
from segue.histories.kit.origins import find_origin, origin_mark
from segue.histories.kit.pieces import arguments_text, encode_json
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import iso_of, make_id, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss

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
