"""Build the message of a streamed reply and its events.

A protocol's reader opens parts, appends deltas to them and closes them. `Assembly` guarantees the order of events for
every provider: one `start` first, each part opened and closed once, exactly one terminal event and none after it.

Facts:
- Arguments arrive in thousands of deltas: they are kept in a list, joined and parsed once. Parsing them after each
  delta takes quadratic time.
- A provider may split a surrogate pair between two deltas.                                     (claude-code #1709)
- Some servers send the arguments so far with every delta, and not what they add. No valid arguments begin with
  themselves, since a quote inside of a string is escaped.  (reports on compatible servers: `{"comm{"command": "l{...`)
- A stream may stop without an end. The content received so far is kept; its calls are unfinished.  (vercel/ai f807e45)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    FallbackContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
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
from segue.conversation.fast_checks import is_plain
from segue.conversation.limits import ABOVE_A_MESSAGE
from segue.conversation.messages import AssistantMessage, Diagnostic, StopReason, Usage
from segue.models.model import Model
from segue.models.origin import new_assistant_message
from segue.protocols.kit.storable import make_plain, repair

PartKind: TypeAlias = Literal["text", "thinking", "toolCall", "native"]
Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta

_DELTAS: Final[Mapping[PartKind, type[Delta]]] = {
    "text": TextDelta,
    "thinking": ThinkingDelta,
    "toolCall": ToolCallDelta,
}
"""The delta event of each kind of part; a `native` part has one event, when it is complete."""


class Part(Struct, eq=False):
    """One content item of the message under construction. Readers set its fields; closing it joins `chunks`."""

    kind: PartKind
    index: int
    delta: type[TextDelta | ThinkingDelta | ToolCallDelta] | None = None
    """The type of its delta events; None where it has none."""
    chunks: list[str] = []
    signature: str | None = None
    redacted: bool = False
    id: str = ""
    name: str = ""
    arguments: Mapping[str, object] | None = None
    """Arguments that were received as an object; text in `chunks` takes precedence."""
    block: Mapping[str, object] = {}
    fallback: tuple[FallbackContent, ...] = ()
    extra: Extra | None = None
    closed: AssistantContent | None = None

    def extend(self, text: str) -> list[Event]:
        """Append a delta and give its event. It is for fast paths; other code calls `Assembly.grow`."""
        if text[:1] == "{" and self.kind == "toolCall" and not (text := self.unrepeated(text)):
            return []
        self.chunks.append(text)
        return [] if self.delta is None else [self.delta(index=self.index, delta=text)]

    def unrepeated(self, text: str) -> str:
        """Return what arguments add to those before, where a server repeats these."""
        at = 0
        for chunk in self.chunks:
            if not text.startswith(chunk, at):
                return text
            at += len(chunk)
        return text[at:]


class Assembly:
    """The message under construction, and its events.

    The reader sets the fields of the whole message (`response_id`, `usage`, `stop_reason`, ...) when it receives them.
    """

    def __init__(self, model: Model, protocol: str, tool_names: Mapping[str, str] | None = None) -> None:
        self.model = model
        self.protocol = protocol
        self.tool_names: Mapping[str, str] = tool_names or {}
        self.parts: list[Part] = []
        self.events: list[Event] = []
        self.response_id: str | None = None
        self.response_model: str | None = None
        self.usage: Usage | None = None
        self.stop_reason: StopReason | None = None
        self.raw_stop_reason: str | None = None
        self.error_message: str | None = None
        self.diagnostics: list[Diagnostic] = []
        self.stamp: Callable[[AssistantMessage], AssistantMessage] | None = None
        """Adds what the request contained to the message."""
        self.extra: Extra | None = None
        self.ended: bool = False
        """The end mark of the stream was received (`[DONE]`)."""
        self.started: bool = False
        self.first: Mapping[str, object] | None = None
        """Keys of the first frame that an encoder of the same protocol repeats; set before `start`."""
        self._reported: Usage | None = None
        self.final: AssistantMessage | None = None
        self._replaced: list[str] | None = None
        """Texts in place of values that cannot be stored; None as long as every frame was plain JSON."""

    def make_plain(self, frame: Mapping[str, object]) -> Mapping[str, object]:
        """Return a frame as plain JSON, with text in place of what cannot be stored; the message gets a diagnostic."""
        if is_plain([frame]):
            return frame
        if self._replaced is None:
            self._replaced = []
        return make_plain(frame, self._replaced)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Emit `start`, with what is known of the reply so far. Further calls do nothing."""
        if not self.started:
            self.started = True
            usage = self._reported = self.usage
            self.events.append(
                StartEvent(
                    id=self.response_id,
                    model=self.response_model,
                    usage=usage,
                    extra={self.protocol: self.first} if self.first else None,
                )
            )

    def report_usage(self) -> None:
        """Emit `usage` if the token counts changed since they were reported; the terminal event has the last ones."""
        usage = self.usage
        if usage is self._reported or usage is None or not self.started or self.final is not None:
            return
        if usage != self._reported:
            self.events.append(UsageEvent(usage=usage))
        self._reported = usage

    def notice(self, diagnostic: Diagnostic) -> None:
        """Emit `notice`; the reader adds the diagnostic to the message when it is complete."""
        self.start()
        self.events.append(NoticeEvent(diagnostic=diagnostic))

    def ping(self) -> None:
        """Emit `ping`, for a frame that only shows that the connection is alive; before `start` it emits nothing."""
        if self.started and self.final is None:
            self.events.append(PingEvent())

    def open_text(self, first: Mapping[str, object] | None = None) -> Part:
        """Open a text part; `first` has the keys of its beginning that only this protocol has."""
        part = self._open("text")
        self.events.append(TextStart(index=part.index, extra={self.protocol: first} if first else None))
        return part

    def open_thinking(self, first: Mapping[str, object] | None = None) -> Part:
        """Open a thinking part."""
        part = self._open("thinking")
        self.events.append(ThinkingStart(index=part.index, extra={self.protocol: first} if first else None))
        return part

    def open_call(self, call_id: str, name: str, first: Mapping[str, object] | None = None) -> Part:
        """Open a tool call; `tool_names` maps the wire name back to the original name."""
        part = self._open("toolCall")
        part.id = call_id
        part.name = self.tool_names.get(name, name)
        extra = {self.protocol: first} if first else None
        self.events.append(ToolCallStart(index=part.index, id=part.id, name=part.name, extra=extra))
        return part

    def add_native(self, block: Mapping[str, object], fallback: tuple[FallbackContent, ...] = ()) -> Part:
        """Add a block that only this protocol has; its event is emitted when it is closed."""
        part = self._open("native")
        part.block = block
        part.fallback = fallback
        return part

    def open_content(self, content: AssistantContent) -> Part:
        """Open the part of a content that no event announced."""
        match content.kind:
            case "text":
                return self.open_text()
            case "thinking":
                return self.open_thinking()
            case "toolCall":
                return self.open_call(content.id, content.name)
            case "native":
                return self.add_native(content.block, content.fallback)

    def grow(self, part: Part, delta: str) -> None:
        """Append a delta to a text, to thinking or to the arguments of a call."""
        if delta[:1] == "{" and part.kind == "toolCall" and not (delta := part.unrepeated(delta)):
            return
        part.chunks.append(delta)
        if part.delta is not None:
            self.events.append(part.delta(index=part.index, delta=delta))

    def close(self, part: Part, content: AssistantContent | None = None) -> None:
        """Close a part. `content` replaces what was streamed, where the wire repeats the finished item.

        Closing a part again does nothing.
        """
        if part.closed is not None:
            return
        if content is None:
            content = self._content(part, record_diagnostics=True)
        if self._replaced is not None:
            content = repair(content, ABOVE_A_MESSAGE + 2, self._replaced)
        part.closed = content
        match content.kind:
            case "text":
                self.events.append(TextEnd(index=part.index, content=content))
            case "thinking":
                self.events.append(ThinkingEnd(index=part.index, content=content))
            case "toolCall":
                self.events.append(ToolCallEnd(index=part.index, tool_call=content))
            case "native":
                self.events.append(NativeEvent(index=part.index, content=content))

    def close_all(self) -> None:
        """Close every part that is still open, in order."""
        for part in self.parts:
            self.close(part)

    def _open(self, kind: PartKind) -> Part:
        self.start()
        part = Part(kind, len(self.parts), _DELTAS.get(kind))
        self.parts.append(part)
        return part

    def _content(self, part: Part, *, record_diagnostics: bool) -> AssistantContent:
        text = join_chunks(part.chunks)
        match part.kind:
            case "text":
                return TextContent(text=text, text_signature=part.signature, extra=part.extra)
            case "thinking":
                return ThinkingContent(
                    thinking=text, thinking_signature=part.signature, redacted=part.redacted, extra=part.extra
                )
            case "native":
                return NativeContent(protocol=self.protocol, block=part.block, fallback=part.fallback, extra=part.extra)
            case "toolCall":
                return self._call(part, text, record_diagnostics=record_diagnostics)

    def _call(self, part: Part, text: str, *, record_diagnostics: bool) -> ToolCall:
        if not text and part.arguments is not None:
            arguments, original = part.arguments, None
        else:
            parsed = parse_arguments(text)
            arguments, original = parsed.arguments, parsed.text
            if record_diagnostics and parsed.diagnostic is not None:
                self.diagnostics.append(parsed.diagnostic)
        return ToolCall(
            id=part.id,
            name=part.name,
            arguments=arguments,
            arguments_text=original,
            thought_signature=part.signature,
            extra=part.extra,
        )

    # -- the whole message ---------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Close all parts and emit `done`; `error` if the stop reason is missing or is an error."""
        if self.final is not None:
            return
        self.start()
        self.close_all()
        if self.stop_reason is None:
            self.fail("the stream ended before the reply was complete")
            return
        if self.stop_reason in (StopReason.ERROR, StopReason.ABORTED):
            self.fail(self.error_message or f"the reply ended with {self.raw_stop_reason or self.stop_reason.value}")
            return
        message = self.final = self.message()
        self.events.append(DoneEvent(reason=message.stop_reason, message=message))

    def fail(self, error_message: str, reason: StopReason = StopReason.ERROR) -> None:
        """Close all parts, keep their content and emit `error`."""
        if self.final is not None:
            return
        self.start()
        self.close_all()
        self.stop_reason = reason
        self.error_message = error_message
        message = self.final = self.message()
        self.events.append(ErrorEvent(reason=reason, message=message))

    def message(self) -> AssistantMessage:
        """Return the message received so far; after the terminal event, the final message."""
        if self.final is not None:
            return self.final
        content = tuple(part.closed or self._content(part, record_diagnostics=False) for part in self.parts)
        usage = self.usage
        message = replace(
            new_assistant_message(self.model, content=content),
            protocol=self.protocol,
            response_id=self.response_id,
            response_model=self.response_model,
            usage=usage,
            stop_reason=self.stop_reason or StopReason.STOP,
            raw_stop_reason=self.raw_stop_reason,
            error_message=self.error_message,
            diagnostics=tuple(self.diagnostics),
            extra=self.extra,
        )
        if self.stamp is not None:
            message = self.stamp(message)
        return message if self._replaced is None else repair(message, ABOVE_A_MESSAGE, self._replaced)


def join_chunks(chunks: list[str]) -> str:
    """Join deltas of text, and surrogate pairs that were split between two deltas."""
    text = "".join(chunks)
    if text.isascii():
        return text
    try:
        text.encode("utf-16-le")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
