"""The steps of a streamed reply, the same for every provider.

A stream begins with `start`, goes on with the parts of the message (each with its index in the message's content) and
ends with exactly one of `done` and `error`. Parts may overlap; each opens once, grows by deltas, and closes once.
Parts that only one protocol knows take an index and appear in the finished message, without events of their own.

Most events are deltas, a number and a text: nothing that the garbage collector would have to look at.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, final

import msgspec

from segue.conversation.content import TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", omit_defaults=True):
    """The parent of all events."""


@final
class StartEvent(_Event, frozen=True, kw_only=True, tag="start"):
    """The reply has begun."""

    type: ClassVar[Literal["start"]] = "start"


@final
class TextStart(_Event, frozen=True, kw_only=True, tag="text_start"):
    """A text opens."""

    type: ClassVar[Literal["text_start"]] = "text_start"
    index: int


@final
class TextDelta(_Event, frozen=True, kw_only=True, tag="text_delta", gc=False):
    """A text grows. A delta may end in half a surrogate pair; the halves are joined in the finished text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    index: int
    delta: str


@final
class TextEnd(_Event, frozen=True, kw_only=True, tag="text_end"):
    """A text is whole."""

    type: ClassVar[Literal["text_end"]] = "text_end"
    index: int
    content: TextContent


@final
class ThinkingStart(_Event, frozen=True, kw_only=True, tag="thinking_start"):
    """Thinking opens."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"
    index: int


@final
class ThinkingDelta(_Event, frozen=True, kw_only=True, tag="thinking_delta", gc=False):
    """Thinking grows."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    index: int
    delta: str


@final
class ThinkingEnd(_Event, frozen=True, kw_only=True, tag="thinking_end"):
    """Thinking is whole, its signature with it."""

    type: ClassVar[Literal["thinking_end"]] = "thinking_end"
    index: int
    content: ThinkingContent


@final
class ToolCallStart(_Event, frozen=True, kw_only=True, tag="toolcall_start"):
    """A tool call opens. Some providers send the id or the name only later; then they are empty here."""

    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"
    index: int
    id: str
    name: str


@final
class ToolCallDelta(_Event, frozen=True, kw_only=True, tag="toolcall_delta", gc=False):
    """The text of a call's arguments grows."""

    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    index: int
    delta: str


@final
class ToolCallEnd(_Event, frozen=True, kw_only=True, tag="toolcall_end"):
    """A tool call is whole, its arguments parsed."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"
    index: int
    tool_call: ToolCall


@final
class DoneEvent(_Event, frozen=True, kw_only=True, tag="done"):
    """The reply is whole."""

    type: ClassVar[Literal["done"]] = "done"
    reason: StopReason
    message: AssistantMessage


@final
class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """The reply broke off; `message` holds what had arrived and can be stored: it ended in `error` or `aborted`."""

    type: ClassVar[Literal["error"]] = "error"
    reason: StopReason
    message: AssistantMessage


Event: TypeAlias = (
    StartEvent
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | DoneEvent
    | ErrorEvent
)
