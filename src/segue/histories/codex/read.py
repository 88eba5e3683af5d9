"""Reads a Codex session: Responses items, each on its own line.

The lines of a Codex session ("rollout"): the items that count, with compactions, rewinds and forks applied.

Facts (Codex CLI 0.166.0, seen 2026-11-15):
- `internal_chat_message_metadata_passthrough` on an item is the program's own; it is not sent.
- An answer that was interrupted is lost except for its reasoning; the event `turn_aborted` follows.
- A sub-agent is a separate session; the output of `spawn_agent` has its id.
- The system prompt is in `session_meta.base_instructions`; the program sends it by itself.

Facts (Codex CLI 0.166.0, seen 2026-11-15; openai/codex 2026-08-22, read):
- Only `response_item` and `compacted` lines make the history; `event_msg` lines repeat it for the display.
- `compacted.replacement_history` replaces everything before it. Older versions have only `message`, the summary.
- The model of a turn is that of the last `turn_context` before it.
- A fork has `history_base {thread_id, end_ordinal_exclusive}` and none of the lines of the other session.
- `event_msg/thread_rolled_back {num_turns}` takes back the last turns of the user, and the compactions since then.
- In 2025 the lines were items without an envelope, after one with `id` and `timestamp`.   (read, not seen)
- Old files are compressed with Zstandard (`.jsonl.zst`).                                   (read, not seen)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import groupby
from typing import Any, Final, cast, final

from msgspec.structs import replace

from segue.conversation.context import Context, Summary
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage, UserMessage
from segue.errors import DecodeError, LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.envelope import find_title, name_results, with_envelope
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin, Parent
from segue.histories.kit.lines import (
    Line,
    decode_objects,
    first_objects,
    integer_of,
    object_of,
    objects_of,
    text_of,
    title_of,
)
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import last_origin, with_marked_origin
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.histories.kit.wire import TurnCodec
from segue.models.providers import PROVIDERS
from segue.projection.report import ChangeCode, Loss

_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_LARGEST: Final = 2**30
"""The largest size of a file after it is decompressed."""
_DEEPEST: Final = 50
"""How many forks of forks are followed."""

UNSENT: Final = "segue_item"
"""The kind of a line with an item that the program must not send: it skips lines of a kind that it does not know."""
_ITEM_LINES: Final = frozenset({"response_item", UNSENT})

_BARE_ITEMS: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "web_search_call"}
)
"""Items that lines of 2025 hold without an envelope."""

REPLY_ITEMS: Final = frozenset({"user", "developer", "system"})
"""Roles of messages that a model did not write."""


@final
@dataclass(eq=False)
class RolloutItem:
    """One item of the conversation, with what its line says."""

    fields: dict[str, Any]
    line: Line
    time: int | None
    stamp: str | None
    model: str
    origin: dict[str, Any]
    aborted: bool = False
    usage: dict[str, Any] | None = None
    summary: bool = False

    @property
    def is_reply(self) -> bool:
        """Whether the model wrote it."""
        kind = self.fields.get("type")
        if kind == "message":
            return text_of(self.fields.get("role")) not in REPLY_ITEMS
        return not (isinstance(kind, str) and kind.endswith("_output"))


@final
@dataclass
class Compacted:
    """A compaction: the summary and the items that it replaced."""

    text: str
    time: int | None
    before: list[RolloutItem]


@final
@dataclass
class RolloutTurn:
    """What a rollout held when a turn of the user began, so that the turn can be taken back."""

    items: list[RolloutItem]
    count: int
    older: int
    compactions: int


@final
@dataclass
class TurnsTakenBack:
    """Turns that the user took back, and the items before them."""

    before: list[RolloutItem]
    lost: list[RolloutItem]


@final
@dataclass
class Rollout:
    """A session, read."""

    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    items: list[RolloutItem] = field(default_factory=list[RolloutItem])
    older: list[RolloutItem] = field(default_factory=list[RolloutItem])
    """All items that compactions replaced, the oldest first."""
    compactions: list[Compacted] = field(default_factory=list[Compacted])
    taken_back: list[TurnsTakenBack] = field(default_factory=list["TurnsTakenBack"])
    turns: list[RolloutTurn] = field(default_factory=list["RolloutTurn"])
    title: str | None = None
    updated: int | None = None


def decompress(data: bytes) -> bytes:
    """Decompress a `.zst` file; other data is returned unchanged.

    Raises:
        LoadError: it cannot be decompressed here.
    """
    if not data.startswith(_ZSTANDARD):
        return data
    for module in ("compression.zstd", "zstandard", "pyzstd"):
        try:
            library = import_module(module)
        except ImportError:
            continue
        try:
            if module == "zstandard":
                with library.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                    plain = cast("bytes", reader.read(_LARGEST + 1))
            else:
                plain = _decompress_frames(library.ZstdDecompressor, data)
        except Exception as error:  # the libraries have their own errors
            raise LoadError(f"the compressed session cannot be read: {error}") from error
        if len(plain) > _LARGEST:
            raise LoadError(f"the compressed session has more than {_LARGEST} bytes; it is not read")
        return plain
    raise LoadError("the session is compressed; `pip install zstandard`, or decompress it with `zstd -d`")


def _decompress_frames(new: Callable[[], Any], data: bytes) -> bytes:
    """Decompress one frame after another; a decompressor stops at the end of its frame."""
    pieces: list[bytes] = []
    left = _LARGEST + 1
    while data and left > 0:
        frame = new()
        piece = cast("bytes", frame.decompress(data, max_length=left))
        pieces.append(piece)
        left -= len(piece)
        if not frame.eof:
            break
        data = cast("bytes", frame.unused_data)
    return b"".join(pieces)


def read_rollout(source: Source, notes: Notes) -> Rollout:
    """Read a session, with the lines of the session that it was forked from."""
    rollout = Rollout()
    _read_lines(source, decompress(source.data or b""), rollout, notes, end=None, depth=0)
    return rollout


def _read_lines(source: Source, data: bytes, rollout: Rollout, notes: Notes, *, end: int | None, depth: int) -> None:
    """Apply the lines of one file; `end` is the first ordinal that is not used."""
    model = ""
    seen_meta = False
    for line, fields in decode_objects(data, notes):
        ordinal = fields.get("ordinal")
        if end is not None and isinstance(ordinal, int) and ordinal >= end:
            break
        kind, payload = open_line(fields)
        stamp = text_of(fields.get("timestamp"))
        time = milliseconds_of(stamp)
        if time is not None and depth == 0:
            rollout.updated = max(time, rollout.updated or 0)
        if kind == "session_meta":
            if not seen_meta:
                seen_meta = True
                if depth == 0:
                    rollout.meta = payload
                _read_base(source, payload, rollout, notes, depth)
        elif kind == "turn_context":
            model = text_of(payload.get("model")) or model
        elif kind in _ITEM_LINES:
            if not payload:
                notes.unreadable(line.number, "an item without its payload")
                continue
            if payload.get("type") == "ghost_snapshot":
                notes.record("response_item/ghost_snapshot", line.number, len(line.data), _kept(fields, notes))
                continue
            _add(rollout, RolloutItem(payload, line, time, stamp, model, object_of(fields.get("segue"))))
            continue
        elif kind == "compacted":
            _compact(rollout, payload, line, time, model)
            continue
        elif kind == "token_usage_record":
            _note_usage(rollout.items, payload)
        elif kind == "event_msg":
            _apply_event(rollout, payload, notes)
        name = f"event_msg/{payload.get('type')}" if kind == "event_msg" else kind or "unknown"
        notes.record(name, line.number, len(line.data), _kept(fields, notes))


def open_line(fields: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the kind of a line and its content; a line without an envelope is an item, or the first line."""
    kind = text_of(fields.get("type"))
    if "payload" in fields or "record_type" in fields:
        return kind or text_of(fields.get("record_type")), object_of(fields.get("payload"))
    if kind is not None:
        return ("response_item", fields) if kind in _BARE_ITEMS else (kind, {})
    return ("session_meta", fields) if {"id", "timestamp"} <= fields.keys() else (None, {})


def _add(rollout: Rollout, item: RolloutItem) -> None:
    if item.fields.get("role") == "user" and not is_added(item):
        rollout.turns.append(
            RolloutTurn(rollout.items, len(rollout.items), len(rollout.older), len(rollout.compactions))
        )
    rollout.items.append(item)


def _kept(fields: dict[str, Any], notes: Notes) -> object:
    return fields if notes.keeps else None


def _read_base(source: Source, meta: dict[str, Any], rollout: Rollout, notes: Notes, depth: int) -> None:
    base = object_of(meta.get("history_base"))
    thread = text_of(base.get("thread_id"))
    if thread is None:
        return
    found = find_thread(source, thread)
    if found is None or depth >= _DEEPEST:
        notes.add(ChangeCode.FILE_MISSING, ("parent",), Loss.CONTENT, f"the session {thread} that it was forked from")
        return
    end = base.get("end_ordinal_exclusive")
    name, data = found
    _read_lines(
        Source(data=data, name=name, neighbours=source.neighbours),
        decompress(data),
        rollout,
        Notes(),
        end=end if isinstance(end, int) else None,
        depth=depth + 1,
    )


def find_thread(source: Source, thread: str) -> tuple[str, bytes] | None:
    """Find the file of a session by its id: next to the given one, or anywhere in the folder of the program."""
    if not thread.replace("-", "").isalnum():
        return None
    folder = source.name.rpartition("/")[0]
    patterns = [f"{folder}/rollout-*-{thread}.jsonl*" if folder else f"rollout-*-{thread}.jsonl*"]
    patterns += (f"sessions/*/*/*/rollout-*-{thread}.jsonl*", f"archived_sessions/rollout-*-{thread}.jsonl*")
    for pattern in patterns:
        for name in source.neighbours.find(pattern):
            if name != source.name and (data := source.neighbours.read(name)) is not None:
                return name, data
    return None


def _compact(rollout: Rollout, payload: dict[str, Any], line: Line, time: int | None, model: str) -> None:
    text = text_of(payload.get("message")) or ""
    rollout.compactions.append(Compacted(text, time, rollout.items))
    rollout.older += [item for item in rollout.items if not item.summary]
    replacement = objects_of(payload.get("replacement_history"))
    if not isinstance(payload.get("replacement_history"), list):
        # Older versions build the new history from the user's own messages and the summary.
        replacement = [item.fields for item in rollout.items if item.fields.get("role") == "user"]
        replacement.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    rollout.items = [RolloutItem(fields, line, time, None, model, {}, summary=True) for fields in replacement]


def _note_usage(items: list[RolloutItem], payload: dict[str, Any]) -> None:
    last = next((item for item in reversed(items) if item.is_reply), None)
    if last is not None and last.usage is None:
        last.usage = {"usage": object_of(payload.get("usage")), "response_id": text_of(payload.get("response_id"))}


def _apply_event(rollout: Rollout, payload: dict[str, Any], notes: Notes) -> None:
    kind = payload.get("type")
    if kind == "turn_aborted":
        answered = {text_of(item.fields.get("call_id")) for item in rollout.items if not item.is_reply}
        last = next((item for item in reversed(rollout.items) if item.fields.get("role") != "user"), None)
        if last is not None and last.is_reply and text_of(last.fields.get("call_id")) not in answered - {None}:
            last.aborted = True
    elif kind == "thread_rolled_back":
        _take_back(rollout, integer_of(payload.get("num_turns")), notes)
    elif kind == "thread_name_updated":
        rollout.title = text_of(payload.get("thread_name")) or rollout.title


def _take_back(rollout: Rollout, count: int, notes: Notes) -> None:
    if count <= 0 or not rollout.turns:
        return
    turn = rollout.turns[-count] if count <= len(rollout.turns) else rollout.turns[0]
    before = turn.items[: turn.count]
    known = {id(item) for item in before}
    lost = [*rollout.older[turn.older :], *(item for item in rollout.items if not item.summary)]
    lost = [item for item in lost if id(item) not in known]
    del rollout.turns[-count:], rollout.older[turn.older :], rollout.compactions[turn.compactions :]
    rollout.items = before
    path = ("branches", len(rollout.taken_back))
    notes.add(ChangeCode.BRANCH_LEFT_OUT, path, Loss.CONTENT, f"{counted(len(lost), 'item')} that the user took back")
    rollout.taken_back.append(TurnsTakenBack(list(before), lost))


_ADDED: Final = (
    "<environment_context>", "<user_instructions>", "<turn_aborted>", "<subagent_notification>", "<permissions",
    "<skills_instructions>", "<model_switch>", "<collaboration_mode>", "<apps_instructions>", "<plugins_instructions>",
    "<INSTRUCTIONS>", "# AGENTS.md instructions for", "<personality_spec>", "<realtime_conversation>",
)  # fmt: skip
"""How texts begin that the program adds in the name of the user (0.166.0, seen and read)."""


def is_added(item: RolloutItem) -> bool:
    """Whether the program added this message by itself."""
    fields = item.fields
    if fields.get("type") != "message" or text_of(fields.get("role")) not in REPLY_ITEMS:
        return False
    if fields.get("role") != "user":
        return True
    content = fields.get("content")
    texts = [content] if isinstance(content, str) else [part.get("text") for part in objects_of(content)]
    return any(isinstance(text, str) and text.lstrip().startswith(_ADDED) for text in texts[:1])


NAME: Final = "codex"
WIRE: Final = TurnCodec("openai-responses", "input", lead={"role": "user", "content": "-"})
METADATA: Final = "internal_chat_message_metadata_passthrough"

KNOWN_RECORDS: Final = frozenset(
    {"session_meta", "turn_context", "world_state", "token_usage_record", "security_risk_score",
     "response_item/ghost_snapshot", "inter_agent_communication_metadata", "state"}
    | {
        f"event_msg/{kind}"
        for kind in (
            "task_started", "task_complete", "turn_started", "turn_complete", "thread_settings_applied",
            "item_completed", "token_count", "user_message", "agent_message", "agent_reasoning", "turn_aborted",
            "context_compacted", "thread_name_updated", "exec_command_end", "mcp_tool_call_end", "web_search_end",
            "patch_apply_end", "view_image_tool_call", "entered_review_mode", "exited_review_mode",
            "thread_rolled_back", "agent_reasoning_raw_content", "warning", "error",
        )
    }
)  # fmt: skip
"""Kinds of lines that hold settings and statistics, or repeat the conversation for the display."""


_TAKEN_BACK: Final = "taken-back-"
"""How the ids of branches begin."""


def read(source: Source, view: View) -> History:
    """Read one session.

    Raises:
        LoadError: the file has no conversation, or is compressed and cannot be decompressed here.
    """
    return _read(source, view, {})


def _read(source: Source, view: View, known: dict[str, History | None]) -> History:
    """Read one session; `known` are the files that were read so far, with None for one that is not read to its end."""
    known[source.name] = None
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    rollout = read_rollout(source, notes)
    if not rollout.meta and not rollout.items:
        raise LoadError("no conversation found: the file has no session_meta and no response_item of Codex")
    if view.branch is not None:
        _follow_branch(rollout, view.branch)
    reader = _Reader(rollout, notes)
    older = reader.messages(rollout.older)
    compactions = _read_compactions(reader, rollout, older)
    if view.name == "full" and older:
        items = [*rollout.older, *(item for item in rollout.items if not item.summary)]
        messages = name_results(reader.messages(items))
        summaries = tuple(compaction.summary for compaction in compactions)
    else:
        messages, summaries = name_results(reader.messages(rollout.items)), ()
        for at, compaction in enumerate(compactions):
            detail = counted(len(compaction.messages), "message")
            notes.add(ChangeCode.COMPACTED_AWAY, ("compactions", at), Loss.CONTENT, detail)
    meta = rollout.meta
    context = Context(messages=tuple(messages), summaries=summaries, extra={NAME: {"session_meta": meta}})
    everything = messages if view.name == "full" else name_results([*older, *messages])
    children = _read_children(source, everything, view, notes, known)
    times = [time for message in (*older, *messages) if (time := time_of(message)) is not None]
    created = milliseconds_of(meta.get("timestamp"))
    title = rollout.title or find_title([*older, *messages])
    return History(
        context=context,
        origin=HistoryOrigin(
            format=NAME, id=text_of(meta.get("id")) or _id_of(source.name), version=text_of(meta.get("cli_version"))
        ),
        title=None if title is None else title_of(title),
        cwd=text_of(meta.get("cwd")),
        created=created if created is not None else min(times, default=None),
        updated=rollout.updated or max(times, default=None),
        parent=_read_parent(meta),
        children=children,
        branches=tuple(
            Branch(id=f"{_TAKEN_BACK}{at}", messages=len(reader.messages(branch.lost)))
            for at, branch in enumerate(rollout.taken_back)
        ),
        compactions=compactions,
        records=notes.records,
        report=notes.report(),
    )


def _follow_branch(rollout: Rollout, branch: str) -> None:
    """Put the turns that the user took back in place of those that followed."""
    known = {f"{_TAKEN_BACK}{at}": taken for at, taken in enumerate(rollout.taken_back)}
    if branch not in known:
        raise LoadError(f"the session has no branch {branch!r}; History.branches lists them")
    rollout.items = [*known[branch].before, *known[branch].lost]


def _id_of(name: str) -> str | None:
    """Return the id at the end of a file name: `rollout-2026-11-15T12-47-43-<uuid>.jsonl`."""
    stem = name.rpartition("/")[2].removesuffix(".zst").removesuffix(".jsonl")
    return stem[-36:] if len(stem) > 36 else None


def _read_parent(meta: Mapping[str, Any]) -> Parent | None:
    if (started := text_of(meta.get("parent_thread_id"))) is not None:
        return Parent(id=started, kind="subagent")
    base = object_of(meta.get("history_base"))
    forked = text_of(meta.get("forked_from_id")) or text_of(base.get("thread_id"))
    return None if forked is None else Parent(id=forked, kind="fork")


def _read_compactions(reader: _Reader, rollout: Rollout, older: Sequence[Message]) -> tuple[Compaction, ...]:
    compactions: list[Compaction] = []
    counted = 0
    for compacted in rollout.compactions:
        before = reader.messages([item for item in compacted.before if not item.summary])
        counted += len(before)
        summary = Summary(
            covers=counted, text=compacted.text, origin=last_origin(older[:counted]), timestamp=compacted.time
        )
        compactions.append(Compaction(summary=summary, messages=tuple(name_results(before))))
    return tuple(compactions)


def _read_children(
    source: Source, messages: Sequence[Message], view: View, notes: Notes, known: dict[str, History | None]
) -> tuple[Child, ...]:
    children: list[Child] = []
    for message in messages:
        if message.role != "toolResult" or message.tool_name != "spawn_agent":
            continue
        texts = [content.text for content in message.content if content.kind == "text"]
        output = first_objects("".join(texts).replace("\n", " ").encode("utf-8", "replace"), 1)
        child = text_of(output[0].get("agent_id")) if output else None
        if child is None:
            continue
        found = find_thread(source, child)
        history = None
        at = ("children", len(children))
        if found is None:
            notes.add(ChangeCode.FILE_MISSING, at, Loss.CONTENT, f"the session {child} of a sub-agent")
        else:
            name, data = found
            try:
                if name not in known:  # sessions may name each other
                    child_source = Source(data=data, name=name, neighbours=source.neighbours)
                    known[name] = _read(child_source, View(keep_records=view.keep_records), known)
                history = known[name]
            except (LoadError, RecursionError) as error:
                notes.add(ChangeCode.FILE_MISSING, at, Loss.CONTENT, f"{name}: {error}")
        notes.add(ChangeCode.CHILD_LEFT_OUT, at, Loss.CONTENT, child)
        nickname = text_of(output[0].get("nickname"))
        children.append(
            Child(
                id=child,
                call_id=message.tool_call_id,
                title=nickname,
                path=None if found is None else found[0],
                history=history,
            )
        )
    return tuple(children)


class _Reader:
    """Makes messages of items. Consecutive items of the model are one message."""

    def __init__(self, rollout: Rollout, notes: Notes) -> None:
        provider = text_of(rollout.meta.get("model_provider"))
        self._provider = provider if provider in PROVIDERS else None
        # Instructions before the first turn are for its model, which decides their role.
        self._first_model = next((item.model for item in rollout.items if item.model), "")
        self._summaries = {compacted.text for compacted in rollout.compactions}
        self._notes = notes
        self._noted: set[int] = set()

    def messages(self, items: Sequence[RolloutItem]) -> list[Message]:
        """Return the messages of items; an item that cannot be read is noted."""
        made: list[Message] = []
        for reply, run in groupby(items, lambda item: (item.is_reply, item.model, str(item.origin))):
            group = list(run)
            if reply[0]:
                made += self._reply(group)
            else:
                for item in group:
                    made += self._other(item)
        return made

    def _decode(self, items: Sequence[RolloutItem], model: str) -> tuple[Message, ...]:
        bare = [{key: value for key, value in item.fields.items() if key != METADATA} for item in items]
        try:
            return WIRE.decode(bare, model, self._provider)
        except DecodeError as error:
            if len(items) == 1:
                self._unreadable(items[0], str(error))
                return ()
        return tuple(message for item in items for message in self._decode([item], model))

    def _unreadable(self, item: RolloutItem, reason: str) -> None:
        if id(item) not in self._noted:
            self._noted.add(id(item))
            self._notes.unreadable(item.line.number, reason)

    def _other(self, item: RolloutItem) -> list[Message]:
        made: list[Message] = []
        is_summary = item.summary and self._text(item) in self._summaries
        own = is_added(item) and not is_summary
        time = self._time(item)
        for message in self._decode([item], item.model or self._first_model):
            stamped = message
            if isinstance(message, (UserMessage, ToolResultMessage)):
                stamped = replace(message, timestamp=time)
            envelope = _envelope(item, None if message.role == "system" else time)
            if is_summary:
                envelope["summary"] = True
            made.append(with_envelope(stamped, NAME, {"items": [envelope]}, own=own))
        return made

    def _text(self, item: RolloutItem) -> str:
        texts = (part.get("text") for part in objects_of(item.fields.get("content")))
        return "".join(text for text in texts if isinstance(text, str))

    def _time(self, item: RolloutItem) -> int | None:
        created = object_of(item.fields.get(METADATA)).get("create_time") if item.summary else None
        return milliseconds_of(created) if created is not None else item.time

    def _reply(self, items: Sequence[RolloutItem]) -> list[Message]:
        made: list[Message] = []
        decoded = self._decode(items, items[0].model)
        if not items[0].model and not items[0].origin:
            self._note_unknown_model(items[0])
        for message in decoded:
            if not isinstance(message, AssistantMessage):
                made.append(message)
                continue
            stamped = replace(message, timestamp=items[0].time, **_ending(message, items))
            stamped = with_marked_origin(stamped, {"segue": items[0].origin} if items[0].origin else {})
            kept = [_envelope(item, items[0].time) for item in items] if len(decoded) == 1 else []
            envelope = {"items": kept}
            made.append(with_envelope(stamped, NAME, envelope))
        return made

    def _note_unknown_model(self, item: RolloutItem) -> None:
        if -1 not in self._noted:
            self._noted.add(-1)
            self._notes.add(ChangeCode.MODEL_UNKNOWN, ("lines", item.line.number), Loss.NONE)


def _envelope(item: RolloutItem, time: int | None) -> dict[str, object]:
    """Return what a line has in addition to its item: its time, if the message has another, and metadata."""
    envelope: dict[str, object] = {}
    if item.stamp is not None and item.time != time:
        envelope["timestamp"] = item.stamp
    if METADATA in item.fields:
        envelope[METADATA] = item.fields[METADATA]
    if item.summary:
        envelope["compacted"] = True
    return envelope


def _ending(message: AssistantMessage, items: Sequence[RolloutItem]) -> dict[str, Any]:
    """Return stop reason, usage and the id of the reply, which are on separate lines."""
    ending: dict[str, Any] = {"stop_reason": StopReason.TOOL_USE if message.tool_calls() else StopReason.STOP}
    if any(item.aborted for item in items):
        ending["stop_reason"] = StopReason.ABORTED
    record = next((item.usage for item in reversed(items) if item.usage is not None), None)
    if record is not None:
        ending["usage"] = read_usage(record["usage"])
        ending["response_id"] = record["response_id"]
    return ending


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Read the usage of a reply; its input includes cached tokens."""
    cached, written = integer_of(usage.get("cached_input_tokens")), integer_of(usage.get("cache_write_input_tokens"))
    total = integer_of(usage.get("input_tokens"))
    return Usage(
        input=max(0, total - cached - written),
        output=integer_of(usage.get("output_tokens")),
        cache_read=cached,
        cache_write=written,
        reasoning=integer_of(usage.get("reasoning_output_tokens")),
        total_tokens=integer_of(usage.get("total_tokens")),
    )
