"""Writes an opencode session as JSON for `opencode import`; its database is never written.

Facts this file rests on (opencode 1.18.33, seen 2026-11-15):
- The import checks the schema: ids begin with `ses`, `msg` and `prt`, and one unknown part type refuses the file.
- Unknown fields are lost, but for those under `metadata` of a part.
- Messages are sorted by `time.created`, then by id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from segue.conversation.content import FileContent, ImageContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.histories.kit.envelope import find_envelope
from segue.histories.kit.format import Cut, Draft, Output
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import foreign_mark
from segue.histories.kit.stamps import make_id, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.histories.opencode.interrupted import hide_interrupted
from segue.histories.opencode.turns import NAME, MessageReader
from segue.projection.report import ChangeCode, Loss
from segue.protocols.kit.reading import data_url

VERSION: Final = "1.18.33"
"""The version of the program whose format is written."""
_FINISH: Final[Mapping[str, str]] = {"stop": "stop", "length": "length", "toolUse": "tool-calls"}


def write(draft: Draft) -> Output:
    """Write one session."""
    writer = _Writer(draft)
    writer.add_all()
    session = writer.session
    data = json_line({"info": writer.info(), "messages": writer.entries})
    resume = ("opencode", "-s", session)
    files = (WrittenFile(name=f"{session}.json", data=data),)
    return Output(files, resume, resume, ("opencode", "import", "{file}"), id=session)


class _Writer:
    """The messages so far. Ids grow with the position, because messages of the same time are sorted by them."""

    def __init__(self, draft: Draft) -> None:
        self.session: Final = f"ses_{make_id(draft.id, 'session').replace('-', '')[:26]}"
        self.entries: list[dict[str, Any]] = []
        self._draft = draft
        self._clock = Clock(draft)
        self._count = 0
        self._asked = ""
        self._tail_at: int | None = None
        self._tail: str | None = None
        self._results: dict[str, deque[tuple[int, ToolResultMessage]]] = {}
        for at, message in enumerate(draft.messages):
            if message.role == "toolResult":
                self._results.setdefault(message.tool_call_id, deque()).append((at, message))

    def add_all(self) -> None:
        """Write all messages. Those that a compaction keeps were stored before it, and are sorted by their time."""
        messages = list(enumerate(self._draft.messages))
        question, summary, end = _find_tail(self._draft.messages)
        if end > summary:
            self._tail_at = summary
            tail, between = messages[summary:end], messages[question:summary]
            messages = [*messages[:question], *tail, *between, *messages[end:]]
        cut = self._draft.cut
        for at, message in messages:
            if cut is not None and cut.at == at:
                self._compact(cut)
            self.add(at, message)
        if cut is not None and cut.at == len(messages):
            self._compact(cut)

    def _compact(self, cut: Cut) -> None:
        """Write that the program compacted the messages so far: a request for it, and the summary as its answer."""
        draft, asked = self._draft, self._id("msg")
        model = {"providerID": draft.model.provider, "modelID": draft.model.id}
        time = {"created": self._clock.at(None)}
        info = {"id": asked, "role": "user", "time": time, "agent": "build", "model": model}
        self._entry(info, [self._part(asked, type="compaction", auto=True)])
        entry_id, created = self._id("msg"), self._clock.at(None)
        info = {
            "id": entry_id,
            "role": "assistant",
            "parentID": asked,
            "mode": "compaction",
            "agent": "compaction",
            "summary": True,
            "path": {"cwd": draft.cwd or "/", "root": draft.cwd or "/"},
            "cost": 0,
            "tokens": _tokens(None),
            **model,
            "time": {"created": created, "completed": created},
            "finish": "stop",
        }
        span = {"start": created, "end": created}
        self._entry(info, [self._part(entry_id, type="text", text=cut.text, time=span)])
        self._asked = asked

    def info(self) -> dict[str, Any]:
        """Write what the session is: its folder, title and times."""
        draft = self._draft
        stored = (draft.history.context.extra or {}).get(NAME, {}).get("info")
        kept = dict(cast("Mapping[str, Any]", stored)) if isinstance(stored, Mapping) else {}
        kept.pop("parentID", None)
        created = (object_of(entry["info"].get("time")).get("created") for entry in self.entries)
        times = [time for time in created if isinstance(time, int)]
        return {
            "projectID": "global",
            "path": "",
            "version": VERSION,
            "cost": 0,
            "tokens": _tokens(None),
            **kept,
            "id": self.session,
            "slug": f"segue-{draft.id[:8]}",
            "directory": draft.cwd or "/",
            "title": draft.history.title or "Session",
            "time": {"created": draft.started, "updated": max((draft.started, *times))},
        }

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:012x}{make_id(self._draft.id, str(self._count)).replace('-', '')[:14]}"

    def add(self, at: int, message: Message) -> None:
        """Write one message; a result is written with its call."""
        envelope = find_envelope(message, NAME)
        if message.role == "toolResult":
            return
        entry_id = self._id("msg")
        if at == self._tail_at:
            self._tail = entry_id
        if envelope is not None and "info" in envelope and self._is_unchanged(at, message, envelope):
            self._own(at, entry_id, envelope)
        elif message.role == "assistant":
            self._assistant(at, entry_id, message)
        else:
            self._asked = entry_id
            parts = [self._part(entry_id, **self._user_piece(at, content)) for content in message.content]
            model = {"providerID": self._draft.model.provider, "modelID": self._draft.model.id}
            time = {"created": self._clock.at(time_of(message))}
            self._entry({"id": entry_id, "role": "user", "time": time, "agent": "build", "model": model}, parts)

    def _is_unchanged(self, at: int, message: Message, envelope: Mapping[str, object]) -> bool:
        """Whether a message and its results are still what was read, so that the stored parts can be written."""
        entry = {"info": envelope.get("info"), "parts": envelope.get("parts")}
        readings = (MessageReader(Notes(), whole=whole).messages([entry]) for whole in (False, True))
        return any(
            bool(stored) and stored[0].content == message.content and self._are_given(at, stored[1:])
            for stored in readings
        )

    def _are_given(self, at: int, results: Iterable[Message]) -> bool:
        for result in results:
            if not isinstance(result, ToolResultMessage):
                return False
            waiting = self._results.get(result.tool_call_id, ())
            given = next((each for place, each in waiting if place > at), None)
            if given is None or (given.content, given.is_error) != (result.content, result.is_error):
                return False
        return True

    def _own(self, at: int, entry_id: str, envelope: Mapping[str, object]) -> None:
        """Write a message as it was read, under a new id."""
        info = {**object_of(envelope.get("info")), "id": entry_id}
        if info.get("role") == "user":
            self._asked = entry_id
        else:
            info["parentID"] = self._asked or entry_id
        parts: list[dict[str, Any]] = []
        for part in objects_of(envelope.get("parts")):
            kept = without(part, ("id", "messageID", "sessionID", "tail_start_id"))
            if part.get("type") == "compaction" and self._tail is not None:
                kept["tail_start_id"] = self._tail
            parts.append(self._part(entry_id, **kept))
        if (hidden := hide_interrupted(info, parts)) is not None:
            info, parts = hidden
            detail = "it was interrupted behind its reasoning"
            self._draft.notes.add(ChangeCode.UNFINISHED_TURN, ("messages", at), Loss.CONTENT, detail)
        created = object_of(info.get("time")).get("created")
        self._clock.at(created if isinstance(created, int) else None)
        self._entry(info, parts)

    def _entry(self, info: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        self.entries.append({"info": {**info, "sessionID": self.session}, "parts": parts})

    def _part(self, entry_id: str, **fields: object) -> dict[str, Any]:
        return {**fields, "id": self._id("prt"), "messageID": entry_id, "sessionID": self.session}

    def _user_piece(self, at: int, content: object) -> dict[str, Any]:
        if isinstance(content, (ImageContent, FileContent)):
            return self._file(at, content)
        text = text_of(getattr(content, "text", None))
        if text is None:
            self._lost(at)
        return {"type": "text", "text": text or ""}

    def _lost(self, at: int) -> None:
        detail = "opencode stores texts, images and files only"
        self._draft.notes.add(ChangeCode.NATIVE_DROPPED, ("messages", at), Loss.OPAQUE, detail)

    def _file(self, at: int, content: ImageContent | FileContent) -> dict[str, Any]:
        mime = content.mime_type or ("image/*" if content.kind == "image" else "application/octet-stream")
        url = data_url(mime, content.data) if content.data is not None else content.url
        if url is None:
            self._lost(at)
        name = content.name if isinstance(content, FileContent) else None
        return {"type": "file", "mime": mime, "url": url or "", "filename": name or "file"}

    def _assistant(self, at: int, entry_id: str, message: AssistantMessage) -> None:
        draft = self._draft
        created = self._clock.at(message.timestamp)
        span = {"start": created, "end": created}
        parts: list[dict[str, Any]] = []
        for content in message.content:
            match content.kind:
                case "text":
                    metadata = _metadata(message, text=content.text_signature)
                    parts.append(self._part(entry_id, type="text", text=content.text, time=span, **metadata))
                case "thinking":
                    redacted = {"redactedData": content.thinking_signature} if content.redacted else None
                    metadata = _metadata(message, thinking=content.thinking_signature, redacted=redacted)
                    parts.append(self._part(entry_id, type="reasoning", text=content.thinking, time=span, **metadata))
                case "toolCall":
                    metadata = _metadata(message, text=content.thought_signature)
                    state = self._state(at, entry_id, content.id, dict(content.arguments), span)
                    call = {"type": "tool", "callID": content.id, "tool": content.name, "state": state}
                    parts.append(self._part(entry_id, **call, **metadata))
                case "native":
                    self._lost(at)
        origin = foreign_mark(message, "")
        if parts and origin:
            parts[0]["metadata"] = {**object_of(parts[0].get("metadata")), **origin}
        info = {
            "id": entry_id,
            "role": "assistant",
            "parentID": self._asked or entry_id,
            "mode": "build",
            "agent": "build",
            "path": {"cwd": draft.cwd or "/", "root": draft.cwd or "/"},
            "cost": message.usage.cost.total if message.usage is not None and message.usage.cost is not None else 0,
            "tokens": _tokens(message),
            "modelID": message.model or draft.model.id,
            "providerID": message.provider or draft.model.provider,
            "time": {"created": created, "completed": created},
            "finish": _FINISH.get(message.stop_reason, "stop"),
        }
        self._entry(info, parts)

    def _state(
        self, at: int, entry_id: str, call_id: str, arguments: dict[str, Any], span: dict[str, int]
    ) -> dict[str, Any]:
        result = self._find_result(at, call_id)
        if result is None:
            return {"status": "error", "input": arguments, "error": "No result provided", "time": span}
        text = "\n".join(content.text for content in result.content if content.kind == "text")
        if result.is_error:
            return {"status": "error", "input": arguments, "error": text, "time": span}
        files = [
            self._part(entry_id, **self._file(at, content))
            for content in result.content
            if isinstance(content, (ImageContent, FileContent))
        ]
        state = {"status": "completed", "input": arguments, "output": text, "title": "", "metadata": {}, "time": span}
        return {**state, "attachments": files} if files else state

    def _find_result(self, at: int, call_id: str) -> ToolResultMessage | None:
        waiting = self._results.get(call_id, deque())
        while waiting and waiting[0][0] <= at:  # before the call: no later call can have it either
            waiting.popleft()
        return waiting.popleft()[1] if waiting else None


def _find_tail(messages: Sequence[Message]) -> tuple[int, int, int]:
    """Give the places of a compaction, of the first message behind its summary, and behind the last one it keeps."""
    envelopes = [find_envelope(message, NAME) or {} for message in messages]
    for question, envelope in enumerate(envelopes):
        if not any(part.get("tail_start_id") for part in objects_of(envelope.get("parts"))):
            continue
        start, asked = question + 1, time_of(messages[question])
        while start < len(messages) and object_of(envelopes[start].get("info")).get("summary") is True:
            start += 1
        end = start
        while end < len(messages) and asked is not None and (time_of(messages[end]) or asked) < asked:
            end += 1
        return question, start, end
    return 0, 0, 0


def _metadata(
    message: AssistantMessage,
    *,
    text: str | None = None,
    thinking: str | None = None,
    redacted: dict[str, str | None] | None = None,
) -> dict[str, Any]:
    """Write signatures where the package of the provider looks for them."""
    if redacted is not None:
        return {"metadata": {"anthropic": redacted}}
    given = text if text is not None else thinking
    if given is not None and message.protocol == "openai-responses":
        try:
            item = object_of(msgspec.json.decode(given))
        except (msgspec.DecodeError, ValueError):
            return {}
        fields = {"itemId": item.get("id"), "reasoningEncryptedContent": item.get("encrypted_content")}
        return {"metadata": {"openai": {name: value for name, value in fields.items() if value is not None}}}
    if thinking is not None and message.protocol == "anthropic-messages":
        return {"metadata": {"anthropic": {"signature": thinking}}}
    signature = text if text is not None else thinking
    if signature is not None and message.protocol == "google-genai":
        return {"metadata": {"google": {"thoughtSignature": signature}}}
    return {}


def _tokens(message: AssistantMessage | None) -> dict[str, Any]:
    usage = None if message is None else message.usage
    if usage is None:
        return {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    cache = {"read": usage.cache_read, "write": usage.cache_write}
    output = max(0, usage.output - usage.reasoning)
    return {"input": usage.input, "output": output, "reasoning": usage.reasoning, "cache": cache}
