"""The events of a streamed reply, the same for every provider.

A stream is one `StartEvent`, then the parts of the message, then exactly one `DoneEvent` or `ErrorEvent`. A part is a
text, thinking or a tool call: a start, any number of deltas and an end, each with the `index` of the part in the
content of the message. A block that only one protocol has is one `NativeEvent`; `UsageEvent`, `NoticeEvent` and
`PingEvent` may come anywhere between the start and the end. Match on `event.type`; `Event` is the union of all events.
"""

from segue.conversation.events import (
    DoneEvent,
    ErrorEvent,
    Event,
    NativeEvent,
    NoticeEvent,
    PingEvent,
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
    UsageEvent,
)

__all__ = [  # noqa: RUF022 - in the order of a stream
    "Event",
    "StartEvent",
    "TextStart",
    "TextDelta",
    "TextEnd",
    "ThinkingStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ToolCallStart",
    "ToolCallDelta",
    "ToolCallEnd",
    "NativeEvent",
    "UsageEvent",
    "PingEvent",
    "NoticeEvent",
    "DoneEvent",
    "ErrorEvent",
]
