"""The record of AutoGen: the state of an agent, of a team or of a model context, or the messages of a run.

Messages of AutoGen: what the model context of an agent stores.

Messages and events of a run of AutoGen's agents, converted to what a model context stores, and back.

Facts (autogen-core 0.7.5, autogen-agentchat 0.7.5, 2026-11-15):
- A message has `type`: SystemMessage, UserMessage, AssistantMessage, FunctionExecutionResultMessage. Fields that are
  not defined are dropped when a state is loaded.
- The content of an AssistantMessage is a text or a list of calls. `thought` is the reasoning next to a text; next to
  calls it is the text that the model wrote before them.
- An image is `{"data": base64}`. It is decoded when it is loaded, and encoded anew as PNG when it is saved.
- A result is one text. There are no signatures, no usage and no model.

Facts (autogen-agentchat 0.7.5, 2026-11-15):
- A run gives messages (TextMessage, MultiModalMessage, StopMessage, HandoffMessage) and events (ThoughtEvent,
  ToolCallRequestEvent, ToolCallExecutionEvent). `source` is the name of the agent; that of the user is `user` by
  default, and UserProxyAgent has its own name.
- A ThoughtEvent comes before the reply that it belongs to, and holds what becomes `thought` of the reply.
- A ToolCallSummaryMessage repeats results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from segue.conversation.content import AssistantContent, ImageContent, TextContent, ThinkingContent, UserContent
from segue.conversation.media_types import type_of_data
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_of,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.pieces import (
    arguments_text,
    image_of,
    is_base64,
    make_call,
    note_signatures,
    note_unsupported,
    shown,
    stop_of,
    texts_of,
    usage_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import iso_of, make_id, milliseconds_of
from segue.projection.report import ChangeCode, Loss

NAME: Final = "autogen"
TITLE: Final = "AutoGen"
SYSTEM: Final = "SystemMessage"
USER: Final = "UserMessage"
ASSISTANT: Final = "AssistantMessage"
RESULTS: Final = "FunctionExecutionResultMessage"
_USER_NAME: Final = "user"
_AGENT_NAME: Final = "assistant"
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types that the framework's image library reads."""


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    content = entry.get("content")
    time = milliseconds_of(entry.get("created_at"))
    match entry.get("type"):
        case "SystemMessage" if isinstance(content, str):
            return [SystemMessage(content=(TextContent(text=content),))]
        case "UserMessage":
            return [UserMessage(content=_read_content(content), timestamp=time)]
        case "AssistantMessage":
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            return [_read_assistant(entry, time)]
        case "FunctionExecutionResultMessage":
            return [_read_result(result, time) for result in objects_of(content)]
        case _:
            return []


def _read_content(content: object) -> tuple[UserContent, ...]:
    found: list[UserContent] = []
    for item in [content] if isinstance(content, str) else items_of(content):
        if isinstance(item, str):
            found.append(TextContent(text=item))
        elif (image := image_of(None, data=object_of(item).get("data"))) is not None:
            mime = None if image.data is None else type_of_data(image.data)
            found.append(ImageContent(data=image.data, mime_type=mime or "image/png"))
    return tuple(found)


def _read_assistant(entry: Entry, time: int | None) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    content, thought = entry.get("content"), text_of(entry.get("thought"))
    if isinstance(content, str):
        pieces += [] if thought is None else [ThinkingContent(thinking=thought)]
        pieces += [TextContent(text=content)] if content else []
    else:
        pieces += [] if thought is None else [TextContent(text=thought)]
        for item in items_of(content):
            call = object_of(item)
            if call:
                pieces.append(make_call(call.get("id"), call.get("name"), call.get("arguments")))
            elif isinstance(item, str):
                pieces.append(TextContent(text=item))
    counts = object_of(entry.get("models_usage"))
    usage = usage_of(counts.get("prompt_tokens"), counts.get("completion_tokens"))
    return AssistantMessage(content=tuple(pieces), usage=usage, stop_reason=stop_of(None, pieces), timestamp=time)


def _read_result(result: Entry, time: int | None) -> ToolResultMessage:
    text = result.get("content")
    return ToolResultMessage(
        tool_call_id=text_of(result.get("call_id")) or "",
        tool_name=text_of(result.get("name")) or "",
        content=(TextContent(text=text),) if isinstance(text, str) and text else (),
        is_error=result.get("is_error") is True,
        timestamp=time,
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for run in results_together(messages):
        first = run[0]
        match first.role:
            case "toolResult":
                results = [_write_result(each, writing) for each in run if isinstance(each, ToolResultMessage)]
                entries.append({"content": results, "type": RESULTS})
            case "assistant":
                entries.append(_write_assistant(first, writing))
            case "user":
                entries.append(_write_user(first, writing))
            case "system":
                if len(first.content) > 1:
                    writing.note(first, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for instructions")
                texts = [piece.text for piece in shown(first, writing) if piece.kind == "text"]
                entries.append({"content": "\n".join(texts), "type": SYSTEM})
    return entries


def _write_user(message: UserMessage, writing: Writing) -> Entry:
    items: list[object] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            items.append(piece.text)
        elif piece.kind == "image" and _is_readable(piece):
            items.append({"data": piece.data})
        else:
            note_unsupported(message, writing, piece, TITLE)
    only_text = items[0] if len(items) == 1 and isinstance(items[0], str) else items
    return {"content": only_text if items else "", "source": _USER_NAME, "type": USER}


def _is_readable(image: ImageContent) -> bool:
    return image.data is not None and is_base64(image.data) and type_of_data(image.data) in _IMAGES


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    for piece in shown(message, writing):
        if piece.kind != "text":
            note_unsupported(message, writing, piece, TITLE)
    called = {"name": message.tool_name, "call_id": message.tool_call_id}
    return {"content": texts_of(message), **called, "is_error": message.is_error}


def _write_assistant(message: AssistantMessage, writing: Writing) -> Entry:
    note_signatures(message, writing, TITLE)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Entry] = []
    for piece in shown(message, writing):
        match piece.kind:
            case "text":
                texts.append(piece.text)
            case "thinking":
                thoughts.append(piece.thinking)
            case "toolCall":
                calls.append({"id": piece.id, "arguments": arguments_text(piece), "name": piece.name})
            case "image" | "file":
                note_unsupported(message, writing, piece, TITLE)
    if len(texts) > 1 or len(thoughts) > 1:
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each turn")
    if calls and thoughts:
        writing.note(message, ChangeCode.THINKING_DROPPED, Loss.CONTENT, f"{TITLE} has no field for it next to calls")
    thought = "\n".join(texts if calls else thoughts) or None
    content = calls or "\n".join(texts)
    return {"content": content, "thought": thought, "source": _AGENT_NAME, "type": ASSISTANT}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)


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
    """Convert events to messages; an event that is not part of the conversation stays unchanged."""
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
    """Convert messages to events: those of `from_events` unchanged, others in the form of a run."""
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
    """Return the states of agents by their names: those of a team, or the only one."""
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
