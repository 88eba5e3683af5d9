"""`message_events`: the events of a message that arrived whole.

A program that streams to its client needs them for a reply that its provider did not stream.
"""

from __future__ import annotations

from segue.conversation.arguments import encode_arguments
from segue.conversation.events import (
    DoneEvent,
    ErrorEvent,
    Event,
    NativeEvent,
    StartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from segue.conversation.messages import AssistantMessage, StopReason


def message_events(message: AssistantMessage, *, with_deltas: bool = True) -> list[Event]:
    """Return the events of a message: each part in one delta, then `done`, or `error` for a failed message.

    Without deltas, only those are given that say something new: the start of a call, the ends, and the last one.
    """
    events: list[Event] = []
    if with_deltas:
        model = message.response_model or message.model or None
        events.append(StartEvent(id=message.response_id, model=model, usage=message.usage))
    for index, piece in enumerate(message.content):
        match piece.kind:
            case "text":
                if with_deltas:
                    deltas = [TextDelta(index=index, delta=piece.text)] if piece.text else []
                    events += [TextStart(index=index), *deltas]
                events.append(TextEnd(index=index, content=piece))
            case "thinking":
                if with_deltas:
                    thoughts = [ThinkingDelta(index=index, delta=piece.thinking)] if piece.thinking else []
                    events += [ThinkingStart(index=index), *thoughts]
                events.append(ThinkingEnd(index=index, content=piece))
            case "toolCall":
                events.append(ToolCallStart(index=index, id=piece.id, name=piece.name))
                text = piece.arguments_text
                if with_deltas and (text := encode_arguments(piece.arguments) if text is None else text):
                    events.append(ToolCallDelta(index=index, delta=text))
                events.append(ToolCallEnd(index=index, tool_call=piece))
            case "native":
                events.append(NativeEvent(index=index, content=piece))
    is_failed = message.stop_reason in (StopReason.ERROR, StopReason.ABORTED)
    end = ErrorEvent if is_failed else DoneEvent
    return [*events, end(reason=StopReason(message.stop_reason), message=message)]
