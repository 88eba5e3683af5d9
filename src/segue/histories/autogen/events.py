"""Messages and events of a run of AutoGen's agents, converted to what a model context stores, and back.

Facts this file rests on (autogen-agentchat 0.7.5, 2026-11-15):
- A run gives messages (TextMessage, MultiModalMessage, StopMessage, HandoffMessage) and events (ThoughtEvent,
  ToolCallRequestEvent, ToolCallExecutionEvent). `source` is the name of the agent; that of the user is `user` by
  default, and UserProxyAgent has a name of its own.
- A ThoughtEvent stands before the reply that it belongs to, and holds what becomes `thought` of the reply.
- A ToolCallSummaryMessage repeats results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from segue.histories.autogen.codec import ASSISTANT, RESULTS, SYSTEM, USER
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of

_TEXTS: Final = frozenset({"TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage"})
_THOUGHT: Final = "ThoughtEvent"
_CALLS: Final = "ToolCallRequestEvent"
_RESULTS: Final = "ToolCallExecutionEvent"
_USERS: Final = ("user", "human")
"""How names of users begin."""
_EVENT: Final = "event"
"""The field of a converted message with the type of its event."""
_BEFORE: Final = "thought_event"
"""The field of a converted message with the event that its `thought` is from."""
EVENTS: Final = frozenset(
    {*_TEXTS, _THOUGHT, _CALLS, _RESULTS, "ToolCallSummaryMessage", "StructuredMessage", "MemoryQueryEvent",
     "UserInputRequestedEvent", "ModelClientStreamingChunkEvent", "SelectSpeakerEvent", "SelectorEvent",
     "CodeGenerationEvent", "CodeExecutionEvent"}
)  # fmt: skip


def from_events(entries: list[Entry]) -> list[Entry]:
    """Give the messages of events; an event that is no part of the conversation stays as it is."""
    return list(_convert(entries))


def _convert(entries: list[Entry]) -> Iterator[Entry]:
    thought: Entry | None = None
    for entry in entries:
        kind = text_of(entry.get("type"))
        is_users = (text_of(entry.get("source")) or "").lower().startswith(_USERS)
        is_reply = kind == _CALLS or (kind in _TEXTS and not is_users)
        if thought is not None and not is_reply:
            yield thought
            thought = None
        if kind == _THOUGHT:
            thought = entry
        elif is_reply:
            before = {} if thought is None else {"thought": thought.get("content"), _BEFORE: thought}
            thought = None
            yield {"thought": None, **entry, **before, "type": ASSISTANT, _EVENT: kind}
        elif kind in _TEXTS:
            yield {**entry, "type": USER, _EVENT: kind}
        elif kind == _RESULTS:
            yield {**entry, "type": RESULTS, _EVENT: kind}
        else:
            yield entry
    if thought is not None:
        yield thought


def to_events(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Give the events of messages: those of `from_events` as they were, others in the form of a run."""
    events: list[Entry] = []
    now = draft.started
    for entry in entries:
        kind, content = text_of(entry.get(_EVENT)), entry.get("content")
        now = milliseconds_of(entry.get("created_at")) or now + 1
        stamp: Entry = {"id": make_id(draft.id, "event", str(len(events))), "created_at": iso_of(now), "metadata": {}}
        default: Entry = {"source": "assistant", "models_usage": None, **stamp}
        thought = text_of(entry.get("thought"))
        if thought is not None:
            given = object_of(entry.get(_BEFORE))
            events.append({**default, "type": _THOUGHT, **given, "content": thought})
        kept = {key: value for key, value in entry.items() if key not in {_EVENT, _BEFORE, "thought", "type"}}
        if text_of(entry.get("type")) not in {ASSISTANT, USER, RESULTS, SYSTEM}:
            events.append(entry)
            continue
        if kind is None and isinstance(content, list):
            kind = (
                _RESULTS if entry["type"] == RESULTS else _CALLS if entry["type"] == ASSISTANT else "MultiModalMessage"
            )
        events.append({**default, **kept, "type": kind or "TextMessage"})
    return events
