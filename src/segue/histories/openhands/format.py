"""The record of OpenHands.

Reads a conversation of OpenHands: the events of its SDK, or a trajectory of the versions before it.

Facts (OpenHands/software-agent-sdk, openhands-sdk 1.58.0; read 2026-11-16):
- A conversation is a folder: `base_state.json` has the model and the folder of the project, `events/event-*.json` an
  event each. Actions with one `llm_response_id` are one answer; the arguments are those of `tool_call`, as JSON text.
- `AgentErrorEvent` and `UserRejectObservation` are results of calls. A `Condensation` names events that are not sent
  any more, and the summary that replaces them.
- Older events have in `message` what the screen shows. Without `tool_call_metadata` (models without functions) the
  action itself is the call, and the observation names it in `cause`.               (trajectories, read 2026-11-18)
- A trajectory of the older versions is a list of `action` and `observation` objects. What the model wrote is in
  `tool_call_metadata.model_response`, the same on every action of one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin, Summary
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.errors import LoadError
from segue.histories.kit.documents import finish_history, json_text, load_value, parse_object, refuse_branch
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.format import Excerpt, Format, Place
from segue.histories.kit.history import Compaction, History, Session
from segue.histories.kit.lines import object_of, objects_of, text_of, without
from segue.histories.kit.notes import Notes
from segue.histories.kit.origins import UNKNOWN, find_origin, set_origin
from segue.histories.kit.pieces import make_call, read_media, reasoning_item, stop_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import Source, View
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.unread import note_unread
from segue.protocols.kit.json_values import list_of

NAME: Final = "openhands"
STATE: Final = "base_state.json"
KNOWN_RECORDS: Final = frozenset({
    "ConversationStateUpdateEvent", "PauseEvent", "agent_state_changed", "change_agent_state", "recall", "null",
})  # fmt: skip
_SHOWN: Final = ("tools", "activated_skills", "extras", "message", "llm_metrics")
_REPEATED: Final = (*_SHOWN, "action", "summary")
"""Fields of an event that serve the display, and those that repeat its call."""
_TOOL_ACTIONS: Final = frozenset(
    {"run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp", "delegate"}
)
"""Older actions that call a tool."""
_STATES: Final = ("confirmation_state", "security_risk")
"""Words of the program among the arguments of an action."""
_MODEL_WORDS: Final = ("content", "final_thought", "thought")
"""Arguments of an older action that are words of the model."""


def read(source: Source, view: View) -> History:
    """Read one conversation.

    Raises:
        LoadError: the source has no event of OpenHands.
    """
    refuse_branch(view, "OpenHands")
    notes = Notes(known=KNOWN_RECORDS, keep=view.keep_records)
    value = load_value(source)
    state = object_of(value)
    reader = _Reader(notes, text_of(object_of(object_of(state.get("agent")).get("llm")).get("model")) or "")
    events = list(_events(source, value, notes))
    for number, event in enumerate(events, 1):
        reader.add(event, number)
    if not events:
        raise LoadError("no conversation found: there is no event of OpenHands; name the file base_state.json")
    full = view.name == "full" and reader.compaction is not None
    return finish_history(
        NAME,
        notes,
        reader.everything if full else [message for _, message in reader.active],
        session_id=text_of(state.get("id")),
        cwd=text_of(object_of(state.get("workspace")).get("working_dir")),
        system_prompt=reader.prompt or None,
        compaction=reader.compaction,
        shows_compacted=full,
    )


def _events(source: Source, value: object, notes: Notes) -> Iterator[dict[str, Any]]:
    listed = list_of(value)
    if isinstance(value, list):
        for number, each in enumerate(listed, 1):
            if event := object_of(each):
                yield event
            else:
                notes.unreadable(number, "an event is an object")
        return
    folder = source.name.rpartition("/")[0]
    for number, name in enumerate(source.neighbours.find(f"{folder}/events/event-*.json".removeprefix("/")), 1):
        event = parse_object(source.neighbours.read(name))
        if event:
            yield event
        else:
            notes.unreadable(number, f"{name} is not a JSON object")


class _Reader:
    """Makes messages of events, one after another."""

    def __init__(self, notes: Notes, model: str) -> None:
        self.active: list[tuple[str, Message]] = []
        self.everything: list[Message] = []
        self.compaction: Compaction | None = None
        self.prompt = ""
        self._notes = notes
        self._model = model
        self._called: set[str] = set()
        """Ids of older actions that are calls without an id of the model."""

    def add(self, event: dict[str, Any], number: int) -> None:
        """Read one event."""
        since, prompt = self._notes.left_out, self.prompt
        kind = text_of(event.get("kind")) or text_of(event.get("action")) or text_of(event.get("observation"))
        time = milliseconds_of(event.get("timestamp"))
        if kind == "Condensation":
            self._condense(event, time)
        else:
            for message in self._read(event, kind or "unknown", time):
                self._append(message, event)
        before = self.active[-1][1] if self.active else None
        made = [before, self.prompt if self.prompt != prompt else None, self.compaction]
        has_call = bool(event.get("tool_call_metadata") or event.get("tool_call") or event.get("tool_call_id"))
        shown = without(event, _REPEATED if has_call else _SHOWN)
        if has_call and "args" in event:
            shown["args"] = without(object_of(event["args"]), (*_MODEL_WORDS, *_STATES))
        if has_call and (seen := object_of(event.get("observation"))):
            shown["observation"] = without(seen, ("command", "metadata"))
        if kind not in KNOWN_RECORDS:
            note_unread(shown, made, number, self._notes, since=since)
        if before is None or not self._is_last(event):
            self._notes.record(kind or "unknown", number, 0, event if self._notes.keeps else None)

    def _is_last(self, event: Mapping[str, Any]) -> bool:
        return self.active[-1][0] == str(event.get("id")) or "tool_call_metadata" in event or "tool_call" in event

    def _append(self, message: Message, event: Mapping[str, Any]) -> None:
        """Add a message, or the pieces of one more action of the same answer."""
        before = self.active[-1][1] if self.active else None
        answer = message.response_id if isinstance(message, AssistantMessage) else None
        if answer and isinstance(message, AssistantMessage):
            at = next(
                (at for at, (_, each) in enumerate(self.active) if getattr(each, "response_id", None) == answer), -1
            )
            if at >= 0:
                earlier = self.active[at][1]
                new = tuple(piece for piece in message.content if piece not in earlier.content)
                if not new:
                    return
                if earlier is before:
                    content = (*earlier.content, *new)
                    joined = replace(earlier, content=content, stop_reason=stop_of(None, content))
                    self.active[-1] = (self.active[-1][0], joined)
                    self.everything[-1] = joined
                    return
        self.active.append((str(event.get("id")), message))
        self.everything.append(message)

    def _condense(self, event: Mapping[str, Any], time: int | None) -> None:
        forgotten = {str(each) for each in list_of(event.get("forgotten_event_ids")) if isinstance(each, str | int)}
        gone = [message for name, message in self.active if name in forgotten]
        kept = [each for each in self.active if each[0] not in forgotten]
        text = text_of(event.get("summary"))
        if text is not None:
            offset = event.get("summary_offset")
            at = min(offset, len(kept)) if isinstance(offset, int) and offset >= 0 else 0
            message = with_envelope(UserMessage.of(text, timestamp=time), NAME, {"kind": "Condensation"})
            kept.insert(at, (str(event.get("id")), message))
        if gone:
            summary = Summary(covers=len(gone), text=text or "")
            earlier = () if self.compaction is None else self.compaction.messages
            self.compaction = Compaction(summary=summary, messages=(*earlier, *gone), id=text_of(event.get("id")))
        self.active = kept

    def _read(self, event: dict[str, Any], kind: str, time: int | None) -> Iterator[Message]:
        fields = {name: event[name] for name in ("id", "llm_response_id", "action_id", "cause") if name in event}
        if kind in ("SystemPromptEvent", "system"):
            words = _words(event.get("system_prompt") or object_of(event.get("args")).get("content"))
            self.prompt = "\n".join(filter(None, (self.prompt, *words)))
        elif event.get("llm_message"):
            yield from self._message(object_of(event["llm_message"]), event, fields, time)
        elif event.get("tool_call"):
            pieces = [*_thinking(event), *_texts(event.get("thought")), *_calls([event["tool_call"]])]
            yield self._answer(pieces, text_of(event.get("llm_response_id")), fields, time)
        elif event.get("tool_call_metadata"):
            yield from self._older(event, fields, time)
        elif event.get("tool_call_id"):
            yield _result(event, text_of(event.get("tool_call_id")) or "", fields, time)
        elif text_of(event.get("action")) in _TOOL_ACTIONS and event.get("source") == "agent":
            pieces = [TextContent(text=text) for text in _action_texts(event)]
            arguments = without(object_of(event.get("args")), _MODEL_WORDS)
            call = make_call(f"event_{event.get('id')}", event["action"], arguments)
            self._called.add(str(event.get("id")))
            yield self._answer([*pieces, call], None, fields, time)
        elif "observation" in event and str(event.get("cause")) in self._called:
            yield _result(event, f"event_{event['cause']}", fields, time)
        elif "action" in event and (words := _action_texts(event)):
            if event.get("source") == "user":
                yield with_envelope(UserMessage.of("\n".join(words), timestamp=time), NAME, fields)
            else:
                yield self._answer([TextContent(text=text) for text in words], None, fields, time)

    def _message(
        self, message: dict[str, Any], event: Mapping[str, Any], fields: Mapping[str, object], time: int | None
    ) -> Iterator[Message]:
        content = [*_texts(message.get("content")), *_texts(event.get("extended_content"))]
        media = [found for each in objects_of(message.get("content")) if (found := read_media(each)) is not None]
        if message.get("role") == "assistant":
            pieces = [*_thinking(message), *content, *_calls(message.get("tool_calls"))]
            yield self._answer(pieces, text_of(event.get("llm_response_id")), fields, time)
        elif content or media:
            pieces = tuple[UserContent, ...]((*content, *media))
            yield with_envelope(UserMessage(content=pieces, timestamp=time), NAME, fields)

    def _older(self, event: Mapping[str, Any], fields: Mapping[str, object], time: int | None) -> Iterator[Message]:
        about = object_of(event["tool_call_metadata"])
        if "observation" in event:
            yield _result(event, text_of(about.get("tool_call_id")) or "", fields, time)
            return
        reply = object_of(about.get("model_response"))
        choices = objects_of(reply.get("choices"))
        message = object_of(choices[0].get("message")) if choices else dict[str, Any]()
        found = [*_thinking(message), *_texts(message.get("content")), *_calls(message.get("tool_calls"))]
        pieces: list[AssistantContent] = found or [TextContent(text=text) for text in _action_texts(event)]
        call_id = about.get("tool_call_id")
        if call_id and not any(piece.kind == "toolCall" for piece in pieces):  # the action itself shows what was called
            name = about.get("function_name") or event.get("action")
            pieces.append(make_call(call_id, name, without(object_of(event.get("args")), _MODEL_WORDS)))
        model = text_of(reply.get("model"))
        yield self._answer(pieces, text_of(reply.get("id")), fields, time, model)

    def _answer(
        self,
        pieces: Sequence[AssistantContent],
        response_id: str | None,
        fields: Mapping[str, object],
        time: int | None,
        model: str | None = None,
    ) -> AssistantMessage:
        name = model or self._model
        origin: Origin = find_origin(name) if name else UNKNOWN
        message = AssistantMessage(
            content=tuple(pieces), response_id=response_id, stop_reason=stop_of(None, pieces), timestamp=time
        )
        return with_envelope(set_origin(message, origin), NAME, fields)


def _action_texts(event: Mapping[str, Any]) -> list[str]:
    """Return what an older action says."""
    arguments = object_of(event.get("args"))
    return [text for name in _MODEL_WORDS if (text := text_of(arguments.get(name)))][:1]


def _words(value: object) -> list[str]:
    """Return the texts of a text, of a block, or of a list of blocks."""
    if isinstance(value, str):
        return [value] if value else []
    blocks = objects_of(value) or [object_of(value)]
    return [text for block in blocks if (text := text_of(block.get("text")))]


def _texts(value: object) -> list[TextContent]:
    return [TextContent(text=text) for text in _words(value)]


def _calls(calls: object) -> Iterator[AssistantContent]:
    for call in objects_of(calls):
        function = object_of(call.get("function")) or call
        yield make_call(call.get("id"), function.get("name"), function.get("arguments"))


def _thinking(event: Mapping[str, Any]) -> Iterator[ThinkingContent]:
    blocks = objects_of(event.get("thinking_blocks"))
    for block in blocks:
        signature = text_of(block.get("signature")) or text_of(block.get("data"))
        words = text_of(block.get("thinking")) or ""
        yield ThinkingContent(thinking=words, thinking_signature=signature, redacted="data" in block)
    item = object_of(event.get("responses_reasoning_item"))
    words = text_of(event.get("reasoning_content"))
    if item:
        parts = item.get("summary")
        text = "\n".join(each for each in parts if isinstance(each, str)) if isinstance(parts, list) else words  # pyright: ignore[reportUnknownVariableType]
        yield reasoning_item(text or words or "", text_of(item.get("id")), text_of(item.get("encrypted_content")))
    elif words and not blocks:
        yield ThinkingContent(thinking=words)


def _result(event: Mapping[str, Any], call_id: str, fields: Mapping[str, object], time: int | None) -> Message:
    observation = object_of(event.get("observation"))
    error = text_of(event.get("error")) or text_of(event.get("rejection_reason"))
    texts = [error] if error else _words(observation.get("content") or event.get("content"))
    given = observation.get("content") or event.get("content")
    if not texts and given:
        texts = [json_text(given)]
    is_error = bool(error) or observation.get("is_error") is True or event.get("success") is False
    message = ToolResultMessage(
        tool_call_id=call_id,
        tool_name=text_of(event.get("tool_name")) or "",
        content=tuple(TextContent(text=text) for text in texts),
        is_error=is_error or event.get("observation") == "error",
        timestamp=time,
    )
    return with_envelope(message, NAME, fields)


def describe(excerpt: Excerpt) -> Session | None:
    """Describe a conversation for a list by its state; its messages are in other files."""
    state = parse_object(excerpt.head) if excerpt.whole else {}
    folder = excerpt.name.rpartition("/")[0].rpartition("/")[2]
    return Session(
        format=NAME,
        id=text_of(state.get("id")) or folder,
        path=excerpt.path,
        cwd=text_of(object_of(state.get("workspace")).get("working_dir")),
        updated=excerpt.modified,
        models=tuple(filter(None, (text_of(object_of(object_of(state.get("agent")).get("llm")).get("model")),))),
        size=excerpt.size,
    )


FORMAT: Final = Format(
    name=NAME,
    known_records=KNOWN_RECORDS,
    read=read,
    describe=describe,
    samples=read_samples(__package__),
    title="OpenHands",
    place=Place(folder=".openhands", patterns=(f"conversations/*/{STATE}",)),
    reads_lines=False,
    source="OpenHands/software-agent-sdk, openhands-sdk 1.58.0",
    read_on="2026-11-16",
)
