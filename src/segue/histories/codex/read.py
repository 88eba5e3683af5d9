"""Reads a Codex session: Responses items in lines of their own.

Facts this file rests on (Codex CLI 0.166.0, seen 2026-11-15):
- `internal_chat_message_metadata_passthrough` on an item is the program's own; it is not sent.
- An answer that was interrupted is lost but for its reasoning; the event `turn_aborted` follows.
- A sub-agent is a session of its own; the output of `spawn_agent` has its id.
- The system prompt stands in `session_meta.base_instructions`; the program sends it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.context import Context, Summary
from segue.conversation.messages import AssistantMessage, Message, StopReason, ToolResultMessage, Usage, UserMessage
from segue.errors import DecodeError, LoadError
from segue.foundation.plurals import counted
from segue.histories.codex.rollout import Rollout, RolloutItem, find_thread, is_added, read_rollout
from segue.histories.kit.envelope import find_title, name_results, with_envelope
from segue.histories.kit.history import Branch, Child, Compaction, History, HistoryOrigin, Parent
from segue.histories.kit.lines import first_objects, integer_of, object_of, objects_of, text_of, title_of
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import last_origin, with_marked_origin
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of, time_of
from segue.histories.kit.wire import TurnCodec
from segue.models.providers import PROVIDERS
from segue.projection.report import ChangeCode, Loss

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
    """Put the turns that the user took back in the place of those that followed."""
    known = {f"{_TAKEN_BACK}{at}": taken for at, taken in enumerate(rollout.taken_back)}
    if branch not in known:
        raise LoadError(f"the session has no branch {branch!r}; History.branches lists them")
    rollout.items = [*known[branch].before, *known[branch].lost]


def _id_of(name: str) -> str | None:
    """Give the id at the end of a file name: `rollout-2026-11-15T12-47-43-<uuid>.jsonl`."""
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
        self._summaries = {compacted.text for compacted in rollout.compactions}
        self._notes = notes
        self._noted: set[int] = set()

    def messages(self, items: Sequence[RolloutItem]) -> list[Message]:
        """Give the messages of items; an item that cannot be read is noted."""
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
        for message in self._decode([item], item.model):
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
    """Give what a line says beside its item: the time where it is not that of the message, and metadata."""
    envelope: dict[str, object] = {}
    if item.stamp is not None and item.time != time:
        envelope["timestamp"] = item.stamp
    if METADATA in item.fields:
        envelope[METADATA] = item.fields[METADATA]
    if item.summary:
        envelope["compacted"] = True
    return envelope


def _ending(message: AssistantMessage, items: Sequence[RolloutItem]) -> dict[str, Any]:
    """Give stop reason, usage and the id of the reply, which stand in lines of their own."""
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
