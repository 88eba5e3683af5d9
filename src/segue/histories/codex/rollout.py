"""The lines of a Codex session ("rollout"): the items that count, with compactions, rewinds and forks applied.

Facts this file rests on (Codex CLI 0.166.0, seen 2026-11-15; openai/codex 2026-08-22, read):
- Only `response_item` and `compacted` lines make the history; `event_msg` lines repeat it for the display.
- `compacted.replacement_history` replaces everything before it. Older versions have only `message`, the summary.
- The model of a turn is that of the last `turn_context` before it.
- A fork has `history_base {thread_id, end_ordinal_exclusive}` and none of the lines of the other session.
- `event_msg/thread_rolled_back {num_turns}` takes back the last turns of the user, and the compactions since then.
- In 2025 the lines were items without an envelope, behind one with `id` and `timestamp`.   (read, not seen)
- Old files are compressed with Zstandard (`.jsonl.zst`).                                   (read, not seen)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, cast, final

from segue.errors import LoadError
from segue.foundation.plurals import counted
from segue.histories.kit.lines import Line, decode_objects, integer_of, object_of, objects_of, text_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.source import Source
from segue.histories.kit.stamps import milliseconds_of
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
    """Decompress a `.zst` file; other data is given back.

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
        except Exception as error:  # the libraries have errors of their own
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
    """Give the kind of a line and what it holds; a line without an envelope is an item, or the first line."""
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
    """Find the file of a session by its id: beside the given one, or anywhere in the folder of the program."""
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
