"""Session updates of the Agent Client Protocol, read as messages.

Facts (the protocol's version 1; replays of opencode, Qwen Code, Kimi Code, Copilot CLI and Gemini CLI; 2026-11-18):
- Chunks of one kind that follow each other are one text; `messageId` separates messages where an agent gives it.
- `tool_call` begins a call, `tool_call_update` replaces the fields that it has. `completed` and `failed` end it; its
  content then is the result, else `rawOutput`. Agents replay calls that ran together one after the other.
- `title` of a call is for people. Some agents name the tool in `_meta`; there is no model and no signature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.histories.kit.documents import json_text
from segue.histories.kit.envelope import with_envelope
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import SEGUE, UNKNOWN, marked_origin, set_origin
from segue.histories.kit.pieces import make_call, read_media, stop_of

DISPLAYED: Final = frozenset({
    "plan", "available_commands_update", "current_mode_update", "config_option_update", "session_info_update",
    "usage_update", "turn_completed", "hook_execution", "retry_state",
})  # fmt: skip
"""Kinds of updates that are not part of the conversation."""
_CALL_FIELDS: Final = frozenset({
    "sessionUpdate", "toolCallId", "title", "kind", "status", "content", "locations", "rawInput", "rawOutput",
    "messageId", "_meta",
})  # fmt: skip
_ENDED: Final = frozenset({"completed", "failed"})
_NAMES: Final = ("name", "toolName", "tool_name")
_OUTPUTS: Final = ("output", "content", "text", "error", "message")


@final
@dataclass
class _Call:
    """A call as its updates describe it so far."""

    id: str
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    result: _Turn | None = None

    def made(self) -> AssistantContent:
        return make_call(self.id, tool_name(self.fields), self.fields.get("rawInput"))


@final
@dataclass
class _Turn:
    """A message whose pieces arrive one by one."""

    role: str
    key: object = None
    time: int | None = None
    pieces: list[UserContent | AssistantContent | _Call] = field(
        default_factory=list[UserContent | AssistantContent | _Call]
    )
    mark: Mapping[str, Any] = field(default_factory=dict[str, Any])
    call: _Call | None = None


@final
class Updates:
    """The conversation as the updates build it."""

    def __init__(self, format_name: str) -> None:
        self._format: Final = format_name
        self._turns: list[_Turn] = []
        self.replaced: bool = False
        """Whether the last update of a call replaced its input by another one."""
        self._calls: dict[str, _Call] = {}

    def prompt(self, blocks: object, time: int | None = None) -> list[UserContent]:
        """Add what the user asked in `session/prompt`, and return it."""
        turn, asked = _Turn("user", time=time), content_of(objects_of(blocks))
        turn.pieces += asked
        self._turns.append(turn)
        return asked

    def take(
        self, update: Mapping[str, Any], *, time: int | None = None, prompt: str | None = None
    ) -> Sequence[object] | None:
        """Apply one update and return what was read from it; None if it is not part of the conversation.

        `prompt` is the id of the user's prompt.
        """
        mark = object_of(object_of(update.get("_meta")).get(SEGUE))
        key = mark.get("message", update.get("messageId"))
        given = object_of(update.get("content"))
        match text_of(update.get("sessionUpdate")):
            case "user_message_chunk":
                asked = content_of([given])
                _append(self._turn("user", prompt if key is None else key, time, mark), asked)
                return asked
            case "agent_message_chunk":
                texts = [piece for piece in content_of([given]) if isinstance(piece, TextContent)]
                _append(self._turn("assistant", key, time, mark), texts)
                return texts
            case "agent_thought_chunk":
                thoughts = [ThinkingContent(thinking=text_of(given.get("text")) or "")]
                _append(self._turn("assistant", key, time, mark), thoughts)
                return thoughts
            case "tool_call" | "tool_call_update":
                call = self._tool(update, key, time, mark)
                result = () if call.result is None else _result_of(call.fields)
                return [call.made(), *result, call.fields.get("title"), call.fields.get("locations")]
            case _:
                return None

    def _turn(self, role: str, key: object, time: int | None, mark: Mapping[str, Any]) -> _Turn:
        last = self._turns[-1] if self._turns else None
        if last is not None and last.role == role and (key is None or last.key is None or key == last.key):
            return last
        self._turns.append(_Turn(role, key, time, mark=mark))
        return self._turns[-1]

    def _tool(self, update: Mapping[str, Any], key: object, time: int | None, mark: Mapping[str, Any]) -> _Call:
        name = text_of(update.get("toolCallId")) or ""
        call = self._calls.get(name)
        begins, ends = update.get("sessionUpdate") == "tool_call", text_of(update.get("status")) in _ENDED
        has_ended = call is not None and call.result is not None
        if (
            call is None
            or (begins and has_ended)
            or ((begins or (ends and has_ended)) and _is_other(call.fields, update))
        ):
            call = self._calls[name] = _Call(name)
            self._turn("assistant", key, time, mark).pieces.append(call)
        self.replaced = _is_other(call.fields, update)
        call.fields |= {field: value for field, value in update.items() if value is not None}
        if ends and call.result is None:
            call.result = _Turn("toolResult", time=time, call=call)
            self._turns.append(call.result)
        return call

    def messages(self) -> list[Message]:
        """Return the messages."""
        return [message for turn in self._turns for message in self._made(turn)]

    def _made(self, turn: _Turn) -> Iterator[Message]:
        if turn.call is not None:
            result = ToolResultMessage(
                tool_call_id=turn.call.id,
                tool_name=tool_name(turn.call.fields),
                content=_result_of(turn.call.fields),
                is_error=turn.call.fields.get("status") == "failed",
                timestamp=turn.time,
            )
            yield with_envelope(result, self._format, {})
        elif turn.role == "user":
            content = tuple(piece for piece in turn.pieces if not isinstance(piece, ThinkingContent | _Call))
            words: Any = content
            if content:
                asked = UserMessage(content=words, timestamp=turn.time)
                yield with_envelope(asked, self._format, {}, own=turn.mark.get("own") is True)
        elif turn.pieces:
            pieces: Any = tuple(piece.made() if isinstance(piece, _Call) else piece for piece in turn.pieces)
            answer = AssistantMessage(content=pieces, stop_reason=stop_of(None, pieces), timestamp=turn.time)
            origin = marked_origin(UNKNOWN, {SEGUE: turn.mark})
            yield with_envelope(set_origin(answer, origin), self._format, {})


def _is_other(before: Mapping[str, Any], update: Mapping[str, Any]) -> bool:
    """Whether a call with the id of an earlier one has another input, so that it is not the same one again."""
    return bool(before.get("rawInput")) and update.get("rawInput") not in (None, before["rawInput"])


def is_other_call(update: Mapping[str, Any]) -> bool:
    """Whether an update of a call has a value in a field that the protocol does not have: its input may be there."""
    is_call = text_of(update.get("sessionUpdate")) in {"tool_call", "tool_call_update"}
    return is_call and any(isinstance(update[key], (dict, list)) for key in update.keys() - _CALL_FIELDS)


def tool_name(fields: Mapping[str, Any]) -> str:
    """Return the name of a tool: the one in `_meta` of the agents that give it, else the title for people."""
    meta = object_of(fields.get("_meta"))
    for each in (meta, *(object_of(value) for value in meta.values())):
        for key in _NAMES:
            if (name := text_of(each.get(key))) is not None:
                return name
    return text_of(fields.get("title")) or ""


def content_of(blocks: Iterable[Mapping[str, Any]]) -> list[UserContent]:
    """Read the content blocks of a prompt or a result."""
    found: list[UserContent] = []
    for block in blocks:
        resource = object_of(block.get("resource"))
        if isinstance(text := block.get("text", resource.get("text")), str):
            found += [TextContent(text=text)] if text else []
        elif block.get("type") == "resource_link":
            found.append(TextContent(text=f"[{block.get('name') or 'file'}]({block.get('uri')})"))
        elif block.get("type") == "diff":
            shown = {key: block[key] for key in ("path", "oldText", "newText") if key in block}
            found.append(TextContent(text=json_text(shown)))
        elif block.get("type") == "content":
            found += content_of([object_of(block.get("content"))])
        elif (media := read_media(block)) is not None:
            found.append(media)
    return found


def _result_of(fields: Mapping[str, Any]) -> tuple[UserContent, ...]:
    found = content_of(objects_of(fields.get("content")))
    raw = fields.get("rawOutput")
    if found or raw in (None, "", {}, []):
        return tuple(found)
    inner = next((text for key in _OUTPUTS if (text := text_of(object_of(raw).get(key))) is not None), None)
    return (TextContent(text=raw if isinstance(raw, str) else inner or json_text(raw)),)


def _append(turn: _Turn, pieces: Iterable[UserContent | ThinkingContent]) -> None:
    """Add pieces; a text that follows one of its kind is the next part of it."""
    for piece in pieces:
        last = turn.pieces[-1] if turn.pieces else None
        if isinstance(piece, TextContent) and isinstance(last, TextContent):
            turn.pieces[-1] = TextContent(text=last.text + piece.text)
        elif isinstance(piece, ThinkingContent) and isinstance(last, ThinkingContent):
            turn.pieces[-1] = ThinkingContent(thinking=last.thinking + piece.thinking)
        else:
            turn.pieces.append(piece)
