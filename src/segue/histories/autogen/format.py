"""The record of AutoGen: the state of an agent, of a team or of a model context, or the messages of a run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from segue.histories.autogen.codec import ASSISTANT, CODEC, RESULTS, SYSTEM, TITLE, USER
from segue.histories.autogen.events import EVENTS, from_events, to_events
from segue.histories.kit.entries import Entry
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    list_of,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.samples import read_samples

_CONTEXT: Final = "llm_context"
_AGENTS: Final = "agent_states"
_PACKAGES: Final = ("autogen_core", "autogen_agentchat")
_FIELDS: Final = ("content", "thought", "source", "type")
_TYPES: Final = frozenset({SYSTEM, USER, ASSISTANT, RESULTS})


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("type")) in _TYPES and "content" in entry


def _is_event(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("type")) in EVENTS and "source" in entry


def _states(value: object) -> dict[str, dict[str, Any]]:
    """Give the states of agents by their names: those of a team, or the one."""
    whole = object_of(value)
    if _CONTEXT in whole:
        return {"": whole}
    found: dict[str, dict[str, Any]] = {}
    for name, container in object_of(whole.get(_AGENTS)).items():
        state = object_of(object_of(container).get("agent_state")) or object_of(container)
        if list_of(object_of(state.get(_CONTEXT)).get("messages")):
            found[name] = state
    return found


def _messages_of(state: Mapping[str, Any]) -> list[Entry] | None:
    return list_of(object_of(state.get(_CONTEXT)).get("messages"))


def _open(value: object, session: str | None) -> EntryList | None:
    states = _states(value)
    if states:
        longest = max(states, key=lambda name: len(_messages_of(states[name]) or ()))
        name = session if session in states else longest
        state = states[name]
        rest = {key: item for key, item in state.items() if key != _CONTEXT}
        inner = {key: item for key, item in object_of(state[_CONTEXT]).items() if key != "messages"}
        entries = _messages_of(state)
        if not entries or not any(_is_message(entry) for entry in entries):
            return None
        return EntryList(entries, {"state": rest, "context": inner}, id=name or None, others=len(states) - 1)
    whole = object_of(value)
    entries = list_of(whole.get("messages", value))
    if entries and any(_is_event(entry) for entry in entries):
        around = {key: item for key, item in whole.items() if key != "messages"}
        return EntryList(from_events(entries), {"form": "events", "around": around})
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    if not whole:
        return EntryList(entries, {"form": "messages"})
    return EntryList(entries, {"form": "context", "context": {key: whole[key] for key in whole if key != "messages"}})


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if rest.get("form") == "events":
        events, around = to_events(entries, draft), object_of(rest.get("around"))
        return {"messages": events, **around} if around else events
    if rest.get("form") == "messages":
        return entries
    context = {"messages": entries, **object_of(rest.get("context"))}
    if rest.get("form") == "context":
        return context
    state = object_of(rest.get("state")) or {"type": "AssistantAgentState", "version": "1.0.0"}
    return {**state, _CONTEXT: context}


def _give(files: tuple[WrittenFile, ...]) -> object:
    contexts: Any = import_module("autogen_core.model_context")
    value = give_json(files)
    whole = object_of(value)
    messages = list_of(object_of(whole.get(_CONTEXT)).get("messages") or whole.get("messages", value)) or []
    messages = [{key: entry[key] for key in _FIELDS if key in entry} for entry in from_events(messages)]
    return contexts.ChatCompletionContextState.model_validate({"messages": messages}).messages


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    close=_close,
    plain=dumped_by("model_dump", *_PACKAGES, alone=True, mode="json"),
    file_name="agent_state.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="autogen-core 0.7.5 and autogen-agentchat 0.7.5, their own dumps",
)
