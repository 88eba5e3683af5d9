"""The record of Kimi Code.

Writes a session of Kimi Code.

Facts (Kimi Code 2.1.0, run against a scripted model, 2026-11-18):
- It resumes a session that another program wrote: thinking, parallel calls, results and errors are sent.
- It finds the session by its folder, whose name has a hash of the path of the project; a line in `session_index.jsonl`
  is not needed. `state.json` has to be there.
- The model is an alias of the user's `config.toml`, and `-m` names it. The program then adds its own instructions; with
  a record that names the model it would send none.
- A step is closed by `step.end`, after its results. Unknown fields are ignored.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, final

from segue.conversation.content import AnyContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.histories.kimi_code.read import KNOWN_RECORDS, NAME, describe, read
from segue.histories.kit.envelope import find_envelope
from segue.histories.kit.format import Draft, Format, Output, Place
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import text_of
from segue.histories.kit.origins import UNKNOWN, origin_mark
from segue.histories.kit.pieces import arguments_text, item_of, media_address
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import make_id, time_of
from segue.histories.kit.writing import Clock, json_line, note_lost, placed
from segue.models.model import Model

TITLE: Final = "Kimi Code"
_MAIN: Final = "main"
_SLUG: Final = 40


def read_settings(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Read the user's default model from `config.toml`: sessions name a model by an alias that is there."""
    try:
        settings = tomllib.loads(files.get("config.toml", b"").decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError:
        return {}
    alias = settings.get("default_model")
    return {"default_model": alias} if isinstance(alias, str) else {}


def write(draft: Draft) -> Output:
    """Write one session: its state, and the log of its main agent."""
    writer = _Writer(draft)
    for at, message in placed(draft, TITLE, _holds):
        writer.add(message, at)
    writer.close_step()
    cwd, name = draft.cwd or "/", f"session_{draft.id}"
    folder = f"sessions/{_folder_of(cwd)}/{name}"
    times = [line["time"] for line in writer.lines if "time" in line]
    state = {
        "id": name,
        "version": 2,
        **({"cwd": cwd} if draft.cwd else {}),
        "createdAt": draft.started,
        "updatedAt": max(times, default=draft.started),
        "archived": False,
        "agents": {_MAIN: {"homedir": f"{folder}/agents/{_MAIN}", "type": _MAIN}},
        "custom": {},
        **({"title": draft.history.title} if draft.history.title else {}),
    }
    data = b"".join(map(json_line, writer.lines))
    files = (
        WrittenFile(name=f"{folder}/agents/{_MAIN}/wire.jsonl", data=data),
        WrittenFile(name=f"{folder}/state.json", data=json_line(state)),
    )
    return Output(files, ("kimi", "-S", name, *writer.options), id=name)


def _folder_of(cwd: str) -> str:
    """Name the folder of a project as the program does."""
    path = cwd.replace("\\", "/").rstrip("/")
    slug = re.sub(r"[^a-z0-9._-]+", "-", path.rpartition("/")[2].lower()).strip("-")[:_SLUG].strip("-")
    digest = sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"wd_{slug if slug.strip('.') else 'workspace'}_{digest}"


@final
class _Writer:
    """The records so far. A step stays open until its results are written."""

    def __init__(self, draft: Draft) -> None:
        self.lines: list[dict[str, Any]] = [
            {"type": "metadata", "protocol_version": "1.5", "created_at": draft.started}
        ]
        alias = draft.settings.get("default_model")
        self.options: Final = ("-m", alias or draft.model.id)
        self._draft = draft
        self._clock = Clock(draft)
        self._steps = 0
        self._end: tuple[dict[str, Any], int] | None = None
        self._calls: dict[str, str] = {}

    def add(self, message: Message, at: int) -> None:
        """Write one message; `at` is its position in the history."""
        time = self._clock.at(time_of(message))
        if isinstance(message, ToolResultMessage):
            self._result(message, time)
            return
        self.close_step()
        envelope = dict(find_envelope(message, NAME) or {})
        if isinstance(message, AssistantMessage):
            note_lost(self._draft, message, at, TITLE)
            if not envelope and all(call.arguments_text is None for call in message.tool_calls()):
                self._step(message, time)
                return
            calls = [
                {"type": "function", "id": call.id, "name": call.name, "arguments": arguments_text(call)}
                for call in message.tool_calls()
            ]
            content = _parts(message.content, message)
            body = {"role": "assistant", "content": content, "toolCalls": calls, **origin_mark(message, UNKNOWN)}
        else:
            envelope.setdefault("origin", {"kind": "user"})
            body = {"role": message.role, "content": _parts(message.content), "toolCalls": []}
        self._line("context.append_message", {"message": {**body, **envelope}}, time)

    def _result(self, message: ToolResultMessage, time: int) -> None:
        content = _parts(message.content)
        flag: dict[str, Any] = {"isError": True} if message.is_error else {}
        given = find_envelope(message, NAME)
        envelope = dict(given or {})
        if message.tool_call_id in self._calls and not envelope:
            texts = [part["text"] for part in content if "text" in part]
            result: dict[str, Any] = {"output": content or "", **flag}
            if len(texts) == len(content) == 2 and given is not None:
                result |= {"output": texts[0], "note": texts[1]}
            elif len(texts) == len(content):  # the program sends the texts of a result without anything between them
                result["output"] = "\n".join(texts)
            place = {"parentUuid": self._calls[message.tool_call_id], "toolCallId": message.tool_call_id}
            self._event("tool.result", {**place, "result": result}, time)
            return
        body = {"role": "tool", "content": content, "toolCalls": [], "toolCallId": message.tool_call_id, **flag}
        self._line("context.append_message", {"message": {**body, **envelope}}, time)

    def _step(self, message: AssistantMessage, time: int) -> None:
        self._steps += 1
        step, self._calls = self._id("step", self._steps), {}
        place: dict[str, Any] = {"turnId": "0", "step": self._steps}
        self._event("step.begin", {"uuid": step, **place, **origin_mark(message, UNKNOWN)}, time)
        for number, piece in enumerate(message.content):
            own = {"uuid": self._id("part", self._steps, number), **place, "stepUuid": step}
            if piece.kind == "toolCall":
                self._calls[piece.id] = own["uuid"]
                call = {"toolCallId": piece.id, "name": piece.name, "args": dict(piece.arguments)}
                self._event("tool.call", {**own, **call}, time)
            elif (part := _part(piece, message)) is not None:
                self._event("content.part", {**own, "part": part}, time)
        end: dict[str, Any] = {"uuid": step, **place}
        if message.raw_stop_reason:
            end["finishReason"] = message.raw_stop_reason
        if (usage := message.usage) is not None:
            cached = {"inputCacheRead": usage.cache_read, "inputCacheCreation": usage.cache_write}
            end["usage"] = {"inputOther": usage.input, "output": usage.output, **cached}
        self._end = (end, time)

    def close_step(self) -> None:
        """Write the end of the step, if one is open."""
        if self._end is not None:
            self._event("step.end", *self._end)
            self._end = None

    def _id(self, *seeds: object) -> str:
        return make_id(self._draft.id, *map(str, seeds))

    def _event(self, kind: str, fields: dict[str, Any], time: int) -> None:
        self._line("context.append_loop_event", {"event": {"type": kind, **fields}}, time)

    def _line(self, kind: str, fields: dict[str, Any], time: int) -> None:
        self.lines.append({"type": kind, "agentId": _MAIN, **fields, "time": time})


def _holds(message: Message, piece: AnyContent) -> bool:
    """Whether the program stores a piece: texts, images, audio and video."""
    return message.role == "assistant" or (piece.kind == "text" if message.role == "system" else bool(_parts([piece])))


def _parts(content: Sequence[AnyContent], answer: AssistantMessage | None = None) -> list[dict[str, Any]]:
    return [part for piece in content if (part := _part(piece, answer)) is not None]


def _part(piece: AnyContent, answer: AssistantMessage | None) -> dict[str, Any] | None:
    """Write a piece as a part of a message; None if there is none for it. A call is not a part."""
    match piece.kind:
        case "text":
            return {"type": "text", "text": piece.text}
        case "thinking" if not piece.redacted:
            signature = piece.thinking_signature
            if signature and answer is not None and answer.protocol == "openai-responses":
                signature = text_of(item_of(signature).get("encrypted_content"))
            return {"type": "think", "think": piece.thinking, **({"encrypted": signature} if signature else {})}
        case "image" | "file":
            mime = piece.mime_type or ("image/" if piece.kind == "image" else "")
            kind, address = mime.partition("/")[0], media_address(piece)
            if address is None or kind not in {"image", "audio", "video"}:
                return None
            return {"type": f"{kind}_url", f"{kind}Url": {"url": address}}
        case _:
            return None


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    write=write,
    read_settings=read_settings,
    samples=read_samples(__package__),
    title=TITLE,
    place=Place(folder=".kimi-code", variables=("KIMI_CODE_HOME",), patterns=("sessions/*/*/agents/main/wire.jsonl",)),
    keeps_folders=True,
    setting_files=("config.toml",),
    example=Model("kimi-k3", "moonshotai", "openai-chat", reasoning=True),
    source="Kimi Code 2.1.0, run against a scripted model",
    read_on="2026-11-18",
)
