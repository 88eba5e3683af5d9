"""The record of Codex CLI.

Recognises a Codex session, and describes it for a list from its beginning and its end.

Writes a Codex session.

Facts this file rests on (Codex CLI 0.166.0, seen 2026-11-15):
- A file that another program wrote is accepted. Every line needs a `timestamp`; the first one is `session_meta` with
  `id`, `timestamp`, `cwd`, `originator` and `cli_version`. It is found by the id in its name.
- A session of another `model_provider` than the configured one is refused by name; one that names none is accepted.
- The title is the first `event_msg/user_message`.
- A message of the role `system`, and one with an unknown part, is dropped without a word; `developer` is sent.
- A message without `type`, or with its content as text, is dropped as well, although the API accepts both.
- `reasoning` is sent even without encrypted content, and also that of an interrupted turn, whose answer is not stored.
  OpenAI refuses reasoning without the item that it led to.                              (vercel/ai #7099)
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from segue.conversation.messages import AssistantMessage, Message, StopReason, Usage
from segue.errors import LoadError
from segue.histories.codex.read import (
    KNOWN_RECORDS,
    METADATA,
    NAME,
    UNSENT,
    WIRE,
    RolloutItem,
    decompress,
    is_added,
    open_line,
    read,
)
from segue.histories.codex.repairing import ANATOMY
from segue.histories.kit.envelope import find_envelope, find_title, is_own_text, plain_text
from segue.histories.kit.format import Cut, Draft, Excerpt, Format, Output, Place
from segue.histories.kit.history import Parent, Session, WrittenFile
from segue.histories.kit.lines import Line, first_objects, integer_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.origins import foreign_mark
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import file_time_of, iso_of, make_id, milliseconds_of, time_of
from segue.histories.kit.writing import Clock, json_line
from segue.models.model import Model
from segue.projection.report import ChangeCode, Loss


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a session; None for a file without a conversation."""
    head = excerpt.head
    if excerpt.name.endswith(".zst"):
        try:
            head = decompress(head) if excerpt.whole else b""
        except LoadError:
            head = b""
    lines = [*first_objects(head, 400), *first_objects(excerpt.tail, 400)]
    payloads = [(*open_line(line), line) for line in lines]
    meta = next((payload for kind, payload, _ in payloads if kind == "session_meta"), dict[str, object]())
    stem = excerpt.name.rpartition("/")[2].removesuffix(".zst").removesuffix(".jsonl")
    session_id = text_of(meta.get("id")) or stem[-36:]
    times = [time for *_, line in payloads if (time := milliseconds_of(line.get("timestamp"))) is not None]
    contexts = (text_of(payload.get("model")) for kind, payload, _ in payloads if kind == "turn_context")
    items = [payload for kind, payload, _ in payloads if kind == "response_item"]
    usage = next(
        (
            object_of(object_of(payload.get("info")).get("total_token_usage"))
            for kind, payload, _ in reversed(payloads)
            if kind == "event_msg" and payload.get("type") == "token_count" and payload.get("info")
        ),
        None,
    )
    parent = text_of(meta.get("parent_thread_id"))
    forked = text_of(meta.get("forked_from_id"))
    return Session(
        format=NAME,
        id=session_id,
        path=excerpt.path,
        title=_title(items),
        cwd=text_of(meta.get("cwd")),
        created=milliseconds_of(meta.get("timestamp")) or min(times, default=None),
        updated=max(times, default=excerpt.modified),
        models=tuple(dict.fromkeys(model for model in contexts if model)),
        messages=sum(item.get("type") == "message" for item in items) if excerpt.whole else None,
        tokens=None if usage is None else integer_of(usage.get("total_tokens")),
        size=excerpt.size,
        parent=Parent(id=parent, kind="subagent")
        if parent is not None
        else None
        if forked is None
        else Parent(id=forked, kind="fork"),
    )


def _title(items: list[dict[str, object]]) -> str | None:
    for fields in items:
        item = RolloutItem(fields, Line(0, b""), None, None, "", {})
        if fields.get("role") != "user" or is_added(item):
            continue
        content = fields.get("content")
        texts = [content] if isinstance(content, str) else [part.get("text") for part in objects_of(content)]
        for text in texts:
            if (title := text_of(text)) is not None:
                return title_of(title)
    return None


VERSION: Final = "0.166.0"
"""The version of the program whose format is written."""
_LEFT_OUT: Final = frozenset(
    {"session_id", "forked_from_id", "forked_from_ordinal_exclusive", "parent_thread_id", "history_base",
     "history_mode", "context_window", "source"}
)  # fmt: skip
"""Fields of `session_meta` that tie a session to its file."""


def read_settings(files: Mapping[str, bytes]) -> Mapping[str, str]:
    """Read the user's provider from `config.toml`: a session of another one is refused."""
    try:
        settings = tomllib.loads(files.get("config.toml", b"").decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError:
        return {}
    provider = settings.get("model_provider")
    return {"model_provider": provider} if isinstance(provider, str) else {}


def write(draft: Draft) -> Output:
    """Write one session in the mode `legacy`, which any version reads."""
    writer = _Writer(draft)
    compacted = [message for message in draft.messages if _is_compacted(message)]
    if compacted:
        writer.add_compacted(compacted)
    end = len(compacted) if draft.cut is None else max(len(compacted), draft.cut.at)
    for message in draft.messages[len(compacted) : end]:
        writer.add(message)
    if draft.cut is not None:
        writer.compact(draft.cut)
    for message in draft.messages[end:]:
        writer.add(message)
    writer.add_title()
    started = iso_of(draft.started)
    name = (
        f"sessions/{started[:4]}/{started[5:7]}/{started[8:10]}/rollout-{file_time_of(draft.started)}-{draft.id}.jsonl"
    )
    data = b"".join(json_line(line) for line in writer.lines)
    return Output((WrittenFile(name=name, data=data),), ("codex", "resume", draft.id))


def _is_compacted(message: Message) -> bool:
    items = objects_of((find_envelope(message, NAME) or {}).get("items"))
    return bool(items) and all(item.get("compacted") is True for item in items)


def _full(item: dict[str, Any]) -> dict[str, Any]:
    """Write an item in full: the program drops a message without its type, or with its content as text."""
    role = item.get("role")
    if role is None:
        return item
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": content}]
    return {"type": "message", **item, "role": "developer" if role == "system" else role, "content": content}


class _Writer:
    """The lines so far."""

    def __init__(self, draft: Draft) -> None:
        self.lines: list[dict[str, Any]] = []
        self._draft = draft
        self._clock = Clock(draft)
        self._model: str | None = None
        self._turn = 0
        self._time = iso_of(draft.started)
        self._meta()

    def _meta(self) -> None:
        draft = self._draft
        extra = (draft.history.context.extra or {}).get(NAME, {})
        stored = extra.get("session_meta")
        meta = dict(cast("Mapping[str, Any]", stored)) if isinstance(stored, Mapping) else {}
        meta = {key: value for key, value in meta.items() if key not in _LEFT_OUT}
        own_provider = text_of(meta.pop("model_provider", None))
        meta |= {
            "id": draft.id,
            "timestamp": text_of(meta.get("timestamp")) or self._time,
            "cwd": draft.cwd or "/",
            "originator": text_of(meta.get("originator")) or "segue",
            "cli_version": text_of(meta.get("cli_version")) or VERSION,
            "source": "cli",
        }
        if provider := draft.settings.get("model_provider") or own_provider:
            meta["model_provider"] = provider
        self._line("session_meta", meta)

    def add_compacted(self, messages: Sequence[Message]) -> None:
        """Write the messages that the program put in the place of a compacted history, with the summary."""
        items: list[dict[str, Any]] = []
        text = ""
        for message in messages:
            for item, own in self._items(message):
                items.append({**item, METADATA: own[METADATA]} if METADATA in own else item)
                text = plain_text(message) if own.get("summary") is True else text
        self._time = iso_of(self._clock.at(time_of(messages[-1]) or self._draft.started))
        self._line("compacted", {"message": text, "replacement_history": items})

    def compact(self, cut: Cut) -> None:
        """Write that the program compacted the items so far: they stay in the file and are no longer sent."""
        self._time = iso_of(self._clock.at(None))
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": cut.text}]}
        self._line("compacted", {"message": cut.text, "replacement_history": [item]})

    def _items(self, message: Message) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Give the items of a message, each with what its line said before."""
        items = [_full(item) for item in WIRE.encode([message], self._draft.model.id, self._draft.model.provider)]
        kept = objects_of((find_envelope(message, NAME) or {}).get("items"))
        return list(zip(items, kept if len(kept) == len(items) else [{} for _ in items], strict=True))

    def add(self, message: Message) -> None:
        """Write the lines of one message."""
        if message.role == "assistant":
            self._turn_context(message)
        fields = foreign_mark(message, WIRE.protocol) if message.role == "assistant" else {}
        kinds = {content.kind for content in message.content}
        unsent = message.role == "assistant" and kinds == {"thinking"}
        if unsent:
            detail = "the answer to this reasoning is missing; it stays in the file, and the program does not send it"
            self._draft.notes.add(ChangeCode.THINKING_DROPPED, ("messages", self._at(message)), Loss.OPAQUE, detail)
        for item, own in self._items(message):
            self._time = text_of(own.get("timestamp")) or iso_of(self._clock.at(time_of(message)))
            payload = {**item, METADATA: own[METADATA]} if METADATA in own else item
            self._line(UNSENT if unsent else "response_item", payload, fields)
        self._events(message)

    def _at(self, message: Message) -> int:
        """Give the place of a message in the given history."""
        places = (at for at, each in enumerate(self._draft.history.context.messages) if each is message)
        return next(places, len(self._draft.history.context.messages))

    def add_title(self) -> None:
        """Write the title, if it is not the first text of the user."""
        title, first = self._draft.history.title, find_title(self._draft.messages)
        if title and (first is None or title_of(first) != title):
            event = {"type": "thread_name_updated", "thread_id": self._draft.id, "thread_name": title}
            self._line("event_msg", event)

    def _turn_context(self, message: AssistantMessage) -> None:
        """Name the model of a turn: that of the message if the program can ask it, else the one that continues."""
        own = message.protocol == WIRE.protocol and message.model
        model = message.model if own else self._draft.model.id
        if model == self._model:
            return
        self._model = model
        self._turn += 1
        context = {
            "turn_id": make_id(self._draft.id, "turn", str(self._turn)),
            "cwd": self._draft.cwd or "/",
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "model": model,
            "summary": "auto",
        }
        self._line("turn_context", context)

    def _events(self, message: Message) -> None:
        """Write what the program shows of a message; the history is in the items."""
        if message.role == "user" and not is_own_text(message):
            self._line("event_msg", {"type": "user_message", "message": plain_text(message), "images": []})
        elif message.role == "assistant":
            if text := message.text():
                self._line("event_msg", {"type": "agent_message", "message": text})
            if message.usage is not None:
                self._line("token_usage_record", self._usage(message, message.usage))
            if message.stop_reason == StopReason.ABORTED:
                self._line("event_msg", {"type": "turn_aborted", "reason": "interrupted"})

    def _usage(self, message: AssistantMessage, usage: Usage) -> dict[str, Any]:
        return {
            "thread_id": self._draft.id,
            "session_id": self._draft.id,
            "response_id": message.response_id,
            "usage": {
                "input_tokens": usage.input + usage.cache_read + usage.cache_write,
                "cached_input_tokens": usage.cache_read,
                "cache_write_input_tokens": usage.cache_write,
                "output_tokens": usage.output,
                "reasoning_output_tokens": usage.reasoning,
                "total_tokens": usage.total_tokens,
            },
        }

    def _line(self, kind: str, payload: Mapping[str, Any], fields: Mapping[str, Any] | None = None) -> None:
        self.lines.append({"timestamp": self._time, "type": kind, "payload": payload, **(fields or {})})


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    write=write,
    read_settings=read_settings,
    samples=read_samples(__package__),
    anatomy=ANATOMY,
    title="Codex CLI",
    wire=WIRE.protocol,
    compacts=True,
    place=Place(
        folder=".codex",
        variables=("CODEX_HOME",),
        patterns=(
            "sessions/*/*/*/rollout-*.jsonl",
            "sessions/*/*/*/rollout-*.jsonl.zst",
            "archived_sessions/rollout-*.jsonl",
        ),
    ),
    setting_files=("config.toml",),
    example=Model("gpt-5.4", "openai", "openai-responses", reasoning=True),
    source="Codex CLI 0.166.0, run against a scripted model; openai/codex 2026-08-22",
    read_on="2026-11-15",
)
