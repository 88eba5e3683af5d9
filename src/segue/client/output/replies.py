"""What a reply says about the type that was asked for: a value, or why there is none.

The answer of a function that had to be called becomes text, whole and streamed: the history keeps text, which every
model reads as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, final

from msgspec.structs import replace

from segue.client.output.output_types import Misfit, OutputType
from segue.conversation.arguments import encode_arguments
from segue.conversation.content import TextContent, ToolCall
from segue.conversation.events import (
    DoneEvent,
    ErrorEvent,
    Event,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.registry import get_protocol

ProblemKind: TypeAlias = Literal["invalid", "cut", "refused", "calls"]
_SHOWN: Final = 200
"""Characters of a refusal that an error quotes."""


class Problem(NamedTuple):
    """Why a reply has no value: it does not fit, ended at its length, is a refusal, or calls functions first."""

    kind: ProblemKind
    reason: str
    place: str = ""


class Judged(NamedTuple):
    """The value of a reply, or the problem."""

    value: Any = None
    problem: Problem | None = None


def judge_reply(message: AssistantMessage, type_: OutputType) -> Judged:
    """Read the value of a reply that ended."""
    if refusal := _find_refusal(message):
        return Judged(problem=Problem("refused", refusal[:_SHOWN]))
    if message.stop_reason == StopReason.LENGTH:
        return Judged(problem=Problem("cut", "the reply ended at its limit of tokens"))
    pieces = [piece.text for piece in message.content if piece.kind == "text"]
    texts = ["".join(pieces), *reversed(pieces)] if len(pieces) > 1 else pieces
    if not any(map(str.strip, texts)) and (calls := message.tool_calls()):
        return Judged(problem=Problem("calls", ", ".join(call.name for call in calls)))
    value = type_.read(texts)
    if isinstance(value, Misfit):
        return Judged(problem=Problem("invalid", value.reason, value.place))
    return Judged(value)


def _find_refusal(message: AssistantMessage) -> str:
    """Return the text of a refusal for which the protocol has its own place."""
    is_refusal = get_protocol(message.protocol).reply_form.is_refusal if message.protocol else None
    if is_refusal is None:
        return ""
    return "".join(piece.text for piece in message.content if piece.kind == "text" and is_refusal(piece))


def with_text(message: AssistantMessage, function: str, *, is_only: bool) -> AssistantMessage:
    """Return a reply in which the calls of the function are text; the same object if there are none."""
    content = tuple(
        _as_text(piece) if piece.kind == "toolCall" and (is_only or piece.name == function) else piece
        for piece in message.content
    )
    if content == message.content:
        return message
    message = replace(message, content=content)
    if message.stop_reason == StopReason.TOOL_USE and not message.tool_calls():
        message = replace(message, stop_reason=StopReason.STOP, raw_stop_reason=None)
    return message


def _as_text(call: ToolCall) -> TextContent:
    return TextContent(text=call.arguments_text or encode_arguments(call.arguments))


@final
class CallAsText:
    """Turns the streamed calls of the function into streamed text; a name that comes late is waited for."""

    def __init__(self, function: str, *, is_only: bool) -> None:
        self._function = function
        self._is_only = is_only
        self._texts: set[int] = set()
        self._held: dict[int, list[Event]] = {}

    def message(self, message: AssistantMessage) -> AssistantMessage:
        """Return a message with the answer as text."""
        return with_text(message, self._function, is_only=self._is_only)

    def events(self, events: Sequence[Event]) -> list[Event]:
        """Return events with the answer as text; events that were returned before stay unchanged."""
        out: list[Event] = []
        for event in events:
            match event.type:
                case "toolcall_start":
                    self._start(event, out)
                case "toolcall_delta":
                    self._grow(event, out)
                case "toolcall_end":
                    self._end(event, out)
                case "done" | "error":
                    out.append(self._terminal(event))
                case _:
                    out.append(event)
        return out

    def _start(self, event: ToolCallStart, out: list[Event]) -> None:
        if self._is_only or event.name == self._function:
            self._texts.add(event.index)
            out.append(TextStart(index=event.index))
        elif not event.name:
            self._held[event.index] = [event]
        else:
            out.append(event)

    def _grow(self, event: ToolCallDelta, out: list[Event]) -> None:
        if event.index in self._texts:
            out.append(TextDelta(index=event.index, delta=event.delta))
        elif event.index in self._held:
            self._held[event.index].append(event)
        else:
            out.append(event)

    def _end(self, event: ToolCallEnd, out: list[Event]) -> None:
        index, text = event.index, _as_text(event.tool_call)
        held = self._held.pop(index, [])
        if index in self._texts:
            out.append(TextEnd(index=index, content=text))
        elif held and event.tool_call.name == self._function:
            out += (TextStart(index=index), TextDelta(index=index, delta=text.text), TextEnd(index=index, content=text))
        else:
            out += (*held, event)

    def _terminal(self, event: DoneEvent | ErrorEvent) -> Event:
        message = self.message(event.message)
        return replace(event, message=message, reason=message.stop_reason)
