"""What a client may see of a reply: nothing that only the provider of the reply understands.

Signatures are removed: envelopes take their place. Native blocks become their fallback text. Texts and thinking without
a character are left out: some clients return them, and providers refuse them. A reply in the client's own protocol, by
the author that the client expects, is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.events import (
    Event,
    NativeEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
)

Show: TypeAlias = Callable[[Event], list[Event]]


def show_all(event: Event) -> list[Event]:
    """Show an event as it is."""
    return [event]


class ForeignView:
    """Shows a reply in another protocol, or of an author that the client does not expect."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, TextStart | ThinkingStart] = {}  # parts that have no character yet

    def feed(self, event: Event) -> list[Event]:
        """Give the events that the client may see."""
        match event.type:
            case "text_delta" | "thinking_delta":
                start = self._waiting.pop(event.index, None)
                return [event] if start is None else [start, event]
            case "toolcall_delta":
                return [event]
            case "text_start" | "thinking_start":
                self._waiting[event.index] = event if event.extra is None else replace(event, extra=None)
                return []
            case "toolcall_start" | "start":
                return [event if event.extra is None else replace(event, extra=None)]
            case "text_end" | "thinking_end":
                return self._end(event)
            case "toolcall_end":
                call = event.tool_call
                if call.thought_signature is None and call.extra is None:
                    return [event]
                return [replace(event, tool_call=replace(call, thought_signature=None, extra=None))]
            case "native":
                return _show_native(event)
            case "done" | "error":
                return [replace(event, message=replace(event.message, extra=None, raw_stop_reason=None))]
            case _:
                return [event]

    def _end(self, event: TextEnd | ThinkingEnd) -> list[Event]:
        start = self._waiting.pop(event.index, None)
        text = event.content.text if event.type == "text_end" else event.content.thinking
        if not text:
            return []
        before: list[Event] = [] if start is None else [start]
        if event.type == "text_end":
            plain = replace(event.content, text_signature=None, extra=None)
            return [*before, TextEnd(index=event.index, content=plain)]
        thought = replace(event.content, thinking_signature=None, redacted=False, extra=None)
        return [*before, ThinkingEnd(index=event.index, content=thought)]


def _show_native(event: NativeEvent) -> list[Event]:
    text = "\n".join(piece.text for piece in event.content.fallback if piece.kind == "text")
    if not text:
        return []
    return [
        TextStart(index=event.index),
        TextDelta(index=event.index, delta=text),
        TextEnd(index=event.index, content=TextContent(text=text)),
    ]
