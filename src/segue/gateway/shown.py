"""What a client may see of a reply: nothing that only the provider of the reply understands.

Signatures are removed: envelopes take their place. Native blocks become their fallback text. A reply in the client's
own protocol, by the author that the client expects, is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.events import Event, TextDelta, TextEnd, TextStart

Show: TypeAlias = Callable[[Event], list[Event]]


def show_all(event: Event) -> list[Event]:
    """Show an event as it is."""
    return [event]


def show_foreign(event: Event) -> list[Event]:
    """Show an event of a reply in another protocol, or of an author that the client does not expect."""
    match event.type:
        case "thinking_end":
            content = event.content
            if not content.thinking:
                return []
            return [replace(event, content=replace(content, thinking_signature=None, redacted=False, extra=None))]
        case "text_start" | "thinking_start" | "toolcall_start" | "start":
            return [event if event.extra is None else replace(event, extra=None)]
        case "text_end":
            content = event.content
            if content.text_signature is None and content.extra is None:
                return [event]
            return [replace(event, content=replace(content, text_signature=None, extra=None))]
        case "toolcall_end":
            call = event.tool_call
            if call.thought_signature is None and call.extra is None:
                return [event]
            return [replace(event, tool_call=replace(call, thought_signature=None, extra=None))]
        case "native":
            text = "\n".join(piece.text for piece in event.content.fallback if piece.kind == "text")
            if not text:
                return []
            return [
                TextStart(index=event.index),
                TextDelta(index=event.index, delta=text),
                TextEnd(index=event.index, content=TextContent(text=text)),
            ]
        case "done" | "error":
            return [replace(event, message=replace(event.message, extra=None, raw_stop_reason=None))]
        case _:
            return [event]
