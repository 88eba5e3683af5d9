"""The events of a streamed reply, the same for every provider.

A stream begins with `start`, continues with the parts of the message (each with its index in the message's content) and
ends with exactly one `done` or `error`. Parts may overlap; each has one start event, any number of deltas, and one end
event. Native content is one event, sent when it is complete. `usage`, `notice` and `ping` may come anywhere between
`start` and the terminal event.

Most events are deltas, an integer and a string. They cannot form cycles, so the garbage collector skips them.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias, final

import msgspec

from segue.conversation.content import Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason, Usage


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", omit_defaults=True):
    """The base class of all events; the tag is `type` in JSON and in Python, and `kind` as for messages and content."""


@final
class StartEvent(_Event, frozen=True, kw_only=True, tag="start"):
    """The reply begins.

    `id` and `model` are the reply's id and the model that it names, `usage` the tokens of the prompt; each is None if
    the provider sends it later or not at all. `extra` has other keys of the first frame, by protocol: the encoder of
    the same protocol writes them first, too.
    """

    type: ClassVar[Literal["start"]] = "start"
    kind: ClassVar[Literal["start"]] = "start"
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    extra: Extra | None = None


@final
class TextStart(_Event, frozen=True, kw_only=True, tag="text_start"):
    """A text begins. `extra` of the start of a part has the keys that only its protocol has, as in `StartEvent`."""

    type: ClassVar[Literal["text_start"]] = "text_start"
    kind: ClassVar[Literal["text_start"]] = "text_start"
    index: int
    extra: Extra | None = None


@final
class TextDelta(_Event, frozen=True, kw_only=True, tag="text_delta", gc=False):
    """More of a text. A delta may end in half a surrogate pair; the halves are joined in the finished text."""

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    kind: ClassVar[Literal["text_delta"]] = "text_delta"
    index: int
    delta: str


@final
class TextEnd(_Event, frozen=True, kw_only=True, tag="text_end"):
    """A text is complete."""

    type: ClassVar[Literal["text_end"]] = "text_end"
    kind: ClassVar[Literal["text_end"]] = "text_end"
    index: int
    content: TextContent


@final
class ThinkingStart(_Event, frozen=True, kw_only=True, tag="thinking_start"):
    """Thinking begins."""

    type: ClassVar[Literal["thinking_start"]] = "thinking_start"
    kind: ClassVar[Literal["thinking_start"]] = "thinking_start"
    index: int
    extra: Extra | None = None


@final
class ThinkingDelta(_Event, frozen=True, kw_only=True, tag="thinking_delta", gc=False):
    """More of the thinking."""

    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    kind: ClassVar[Literal["thinking_delta"]] = "thinking_delta"
    index: int
    delta: str


@final
class ThinkingEnd(_Event, frozen=True, kw_only=True, tag="thinking_end"):
    """Thinking is complete, including its signature."""

    type: ClassVar[Literal["thinking_end"]] = "thinking_end"
    kind: ClassVar[Literal["thinking_end"]] = "thinking_end"
    index: int
    content: ThinkingContent


@final
class ToolCallStart(_Event, frozen=True, kw_only=True, tag="toolcall_start"):
    """A tool call begins. Some providers send the id or the name only later; then they are empty here."""

    type: ClassVar[Literal["toolcall_start"]] = "toolcall_start"
    kind: ClassVar[Literal["toolcall_start"]] = "toolcall_start"
    index: int
    id: str
    name: str
    extra: Extra | None = None


@final
class ToolCallDelta(_Event, frozen=True, kw_only=True, tag="toolcall_delta", gc=False):
    """More of the JSON text of a call's arguments."""

    type: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    kind: ClassVar[Literal["toolcall_delta"]] = "toolcall_delta"
    index: int
    delta: str


@final
class ToolCallEnd(_Event, frozen=True, kw_only=True, tag="toolcall_end"):
    """A tool call is complete, its arguments parsed."""

    type: ClassVar[Literal["toolcall_end"]] = "toolcall_end"
    kind: ClassVar[Literal["toolcall_end"]] = "toolcall_end"
    index: int
    tool_call: ToolCall


@final
class NativeEvent(_Event, frozen=True, kw_only=True, tag="native"):
    """A block that only one protocol has, complete."""

    type: ClassVar[Literal["native"]] = "native"
    kind: ClassVar[Literal["native"]] = "native"
    index: int
    content: NativeContent


@final
class UsageEvent(_Event, frozen=True, kw_only=True, tag="usage"):
    """The token counts so far; they replace earlier ones. The final counts are those of the finished message."""

    type: ClassVar[Literal["usage"]] = "usage"
    kind: ClassVar[Literal["usage"]] = "usage"
    usage: Usage


@final
class PingEvent(_Event, frozen=True, kw_only=True, tag="ping"):
    """The provider sent a heartbeat: the connection is alive, and nothing was added."""

    type: ClassVar[Literal["ping"]] = "ping"
    kind: ClassVar[Literal["ping"]] = "ping"


@final
class NoticeEvent(_Event, frozen=True, kw_only=True, tag="notice"):
    """What the provider says about the request, such as reasoning that it did not read; the message has it too."""

    type: ClassVar[Literal["notice"]] = "notice"
    kind: ClassVar[Literal["notice"]] = "notice"
    diagnostic: Diagnostic


@final
class DoneEvent(_Event, frozen=True, kw_only=True, tag="done"):
    """The reply is complete."""

    type: ClassVar[Literal["done"]] = "done"
    kind: ClassVar[Literal["done"]] = "done"
    reason: StopReason
    message: AssistantMessage


@final
class ErrorEvent(_Event, frozen=True, kw_only=True, tag="error"):
    """The reply was cut off; `message` is what had arrived, with the stop reason `error` or `aborted`. Store it."""

    type: ClassVar[Literal["error"]] = "error"
    kind: ClassVar[Literal["error"]] = "error"
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
    | NativeEvent
    | UsageEvent
    | PingEvent
    | NoticeEvent
    | DoneEvent
    | ErrorEvent
)
