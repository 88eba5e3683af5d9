"""`StreamEncoder`: writes the events of a reply as the frames of one protocol.

The encoder checks and completes the order of events, and passes them to the protocol's `StreamWriter`, which appends
frames. Events are written as they arrive. The encoder itself holds back only what no protocol can write:

- the first half of a surrogate pair, until the second half arrives;
- a tool call without an id or a name, until it is complete: some providers send them late.

A part whose deltas are missing is written from its end event. Nothing is written after the terminal event. A stream
that is finished without one ends with the protocol's error frame, never without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import (
    ErrorEvent,
    Event,
    StartEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from segue.conversation.messages import AssistantMessage, StopReason, Usage
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import EMPTY, Block, Wire

if TYPE_CHECKING:
    from segue.foundation.growing_json import GrowingJson

StreamFrame: TypeAlias = Mapping[str, object] | str
"""A frame to write: a JSON object, or a text that is not JSON, such as the end mark `[DONE]`."""

Explain: TypeAlias = Callable[[object], Fault]
"""Returns what to write of an error: of a `Failure`, of an `ErrorEvent`, or of anything that `classify` reads."""


FrameMaker: TypeAlias = Callable[[str], StreamFrame]
"""Makes the frame of one more delta."""


class StreamWriter:
    """The part of a stream encoder that each protocol implements: every method appends frames to `frames`.

    `index` is the index of a part in the message. `extra` of a start event is given as `first`, the keys of this
    protocol alone.
    """

    name: str = ""
    """The protocol, for `extra`."""
    reasons: Mapping[str, StopReason] = {}
    """The stop reasons of this protocol: a reply that ended with one of them is complete."""
    empty_arguments: str = ""
    """The JSON of a call without arguments; empty if the protocol writes none."""
    json_arguments: bool = False
    """Readers of the protocol parse the arguments, so what a model wrote is completed to an object."""

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        self.endpoint = endpoint
        self.options = options
        """The options of the client's request, None if they are unknown: some change the format of a reply."""
        self.frames: list[StreamFrame] = []

    def start(self, event: StartEvent, first: Block) -> None:
        """Begin the reply."""

    def open_text(self, index: int, first: Block) -> None:
        """Begin a text."""

    def add_text(self, index: int, text: str) -> None:
        """Add to a text."""
        raise NotImplementedError

    def close_text(self, index: int, content: TextContent) -> None:
        """End a text; all of it has been added."""

    def open_thinking(self, index: int, first: Block) -> None:
        """Begin thinking."""

    def add_thinking(self, index: int, text: str) -> None:
        """Add to thinking."""
        raise NotImplementedError

    def close_thinking(self, index: int, content: ThinkingContent) -> None:
        """End thinking; its signature is known now."""

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:
        """Begin a call."""

    def add_arguments(self, index: int, text: str) -> None:
        """Add to the JSON of the arguments."""

    def close_call(self, index: int, call: ToolCall) -> None:
        """End a call; all of its arguments have been added."""

    def frame_maker(self, index: int, kind: str) -> FrameMaker | None:
        """Return the function for further deltas of a part that has one already: it makes what `add_...` appends.

        It is a fast path for nearly all events. None if a delta is not exactly one frame.
        """
        del index, kind
        return None

    def add_native(self, index: int, content: NativeContent) -> None:
        """Write a native block.

        Raises:
            EncodeError: it is a block of another protocol.
        """
        raise NotImplementedError

    def usage(self, usage: Usage) -> None:
        """Note token counts; most protocols write them at the end only."""

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        """End a complete reply; `refused` if it was withheld."""
        raise NotImplementedError

    def heartbeat(self) -> None:
        """Write a frame that clients ignore and that resets their idle timers."""
        raise NotImplementedError

    def fail(self, fault: Fault) -> None:
        """End the reply with an error frame."""
        raise NotImplementedError


class _Part:
    """A part that is open: its kind, how much was written, half a surrogate pair, and a call that is held back."""

    __slots__ = ("add", "half", "held", "json", "kind", "make", "maker", "written")

    def __init__(self, kind: str, add: Callable[[int, str], None]) -> None:
        self.kind = kind
        self.add = add
        self.maker: FrameMaker | None = None
        self.make: FrameMaker | None = None
        """`maker` while a delta is written as it is: nothing is held back."""
        self.written = 0
        self.half = ""
        self.held: tuple[list[str], Block] | None = None
        self.json: GrowingJson | None = None


_DELTAS: Final[frozenset[type]] = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})
_KINDS: Final[Mapping[type, str]] = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "toolCall"}


class StreamEncoder:
    """Encodes one streamed reply. Feed it events in order, then call `finish`; each method returns the new frames.

    A frame is what `StreamDecoder.feed` accepts: a JSON object, or the end mark of a protocol that has one. The
    encoders of `segue.framing` turn frames into bytes.
    """

    __slots__ = ("_add", "_ended", "_explain", "_parts", "_started", "_writer")

    def __init__(self, writer: StreamWriter, explain: Explain) -> None:
        self._writer = writer
        self._explain = explain
        self._parts: dict[int, _Part] = {}
        self._started = False
        self._ended = False
        self._add: Mapping[str, Callable[[int, str], None]] = {
            "text": writer.add_text,
            "thinking": writer.add_thinking,
            "toolCall": writer.add_arguments,
        }

    def feed(self, event: Event) -> list[StreamFrame]:
        """Encode one event.

        Raises:
            EncodeError: the protocol does not support the content; project the reply first.
        """
        if type(event) in _DELTAS:
            given: TextDelta = event  # pyright: ignore[reportAssignmentType] - all deltas have the same fields
            delta = given.delta
            part = self._parts.get(given.index)
            if part is not None and part.make is not None and delta and delta.isascii():  # nearly all events
                part.written += len(delta)
                if part.json is not None and not (delta := part.json.add(delta)):
                    return []
                return [part.make(delta)]
            if not self._ended:
                self._grow(part or self._open(given.index, _KINDS[type(event)], EMPTY), given.index, delta)
        elif not self._ended:
            self._feed(event)
        return self._take()

    def heartbeat(self) -> list[StreamFrame]:
        """Write a heartbeat that clients of this protocol accept; nothing after the end of the reply."""
        if self._ended:
            return []
        self._begin()
        self._writer.heartbeat()
        return self._take()

    def fail(self, failure: object) -> list[StreamFrame]:
        """End the reply with the protocol's error frame: a `Failure`, or any error that `classify` reads."""
        if self._ended:
            return []
        self._begin()
        self._stop()
        self._writer.fail(self._explain(failure))
        return self._take()

    def finish(self) -> list[StreamFrame]:
        """End the stream. Without a terminal event it ends with an error frame."""
        return self.fail("the stream ended before the reply was complete")

    def _take(self) -> list[StreamFrame]:
        frames, self._writer.frames = self._writer.frames, []
        return frames

    def _begin(self, event: StartEvent | None = None) -> None:
        if not self._started:
            self._started = True
            event = event or StartEvent()
            self._writer.start(event, self._first(event.extra))

    def _stop(self) -> None:
        """Write nothing more, also no deltas of parts that are open."""
        self._ended = True
        self._parts.clear()

    def _first(self, extra: Extra | None) -> Block:
        return EMPTY if extra is None else extra.get(self._writer.name, EMPTY)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _grow(self, part: _Part, index: int, delta: str) -> None:
        if not delta.isascii():
            delta = part.half + delta
            part.half = ""
            if "\ud800" <= delta[-1] <= "\udbff":
                delta, part.half = delta[:-1], delta[-1]
            delta = _joined(delta)
        elif part.half:
            delta, part.half = part.half + delta, ""
        if delta:
            part.written += len(delta)
            if part.json is not None:
                delta = part.json.add(delta if part.written > len(delta) else _repaired(delta))
            if part.held is not None:
                part.held[0].append(delta)
            elif delta:
                part.add(index, delta)
                if part.maker is None:
                    part.maker = self._writer.frame_maker(index, part.kind)
        part.make = None if part.half else part.maker

    def _open(self, index: int, kind: str, first: Block, call_id: str = "", name: str = "") -> _Part:
        self._begin()
        part = self._parts[index] = _Part(kind, self._add[kind])
        match kind:
            case "text":
                self._writer.open_text(index, first)
            case "thinking":
                self._writer.open_thinking(index, first)
            case _:
                part.json = _growing_json()() if self._writer.json_arguments else None
                if call_id and name:
                    self._writer.open_call(index, call_id, name, first)
                else:
                    part.held = ([], first)
        return part

    def _end(self, index: int, kind: str, text: str) -> _Part:
        """Write what the deltas of a part left out."""
        part = self._parts.pop(index, None) or self._open(index, kind, EMPTY)
        self._parts.pop(index, None)
        part.half = ""
        if len(text) > part.written:
            rest = text[part.written :]
            if part.held is None:
                self._add[kind](index, rest)
            else:
                part.held[0].append(rest)
        return part

    def _end_call(self, index: int, call: ToolCall) -> None:
        part = self._parts.pop(index, None)
        if part is None:
            part = self._open(index, "toolCall", EMPTY, call.id, call.name)
            del self._parts[index]
        if part.held is not None:
            pieces, first = part.held
            self._writer.open_call(index, call.id, call.name, first)
            for piece in pieces:
                self._writer.add_arguments(index, piece)
        if not part.written:
            text = call.arguments_text
            growing = part.json if text else None  # what segue writes itself is JSON
            if text is None and call.arguments:
                text = encode_arguments(call.arguments)
            if text := text or self._writer.empty_arguments:
                self._writer.add_arguments(index, text if growing is None else growing.add(_repaired(text)))
        if part.json is not None and (rest := part.json.end()):
            self._writer.add_arguments(index, rest)
        self._writer.close_call(index, call)

    def _feed(self, event: Event) -> None:
        writer = self._writer
        match event.type:
            case "start":
                self._begin(event)
            case "text_start":
                self._open(event.index, "text", self._first(event.extra))
            case "thinking_start":
                self._open(event.index, "thinking", self._first(event.extra))
            case "toolcall_start":
                self._open(event.index, "toolCall", self._first(event.extra), event.id, event.name)
            case "text_end":
                self._end(event.index, "text", event.content.text)
                writer.close_text(event.index, event.content)
            case "thinking_end":
                self._end(event.index, "thinking", event.content.thinking)
                writer.close_thinking(event.index, event.content)
            case "toolcall_end":
                self._end_call(event.index, event.tool_call)
            case "native":
                self._begin()
                writer.add_native(event.index, event.content)
            case "usage":
                self._begin()
                writer.usage(event.usage)
            case "ping":
                self._begin()
                writer.heartbeat()
            case "done":
                self._begin()
                self._stop()
                writer.finish(event.message, refused=False)
            case "error":
                self._end_with_error(event)
            case "notice":
                pass  # about a request to another provider
            case "text_delta" | "thinking_delta" | "toolcall_delta":
                pass  # written by `feed`

    def _end_with_error(self, event: ErrorEvent) -> None:
        self._begin()
        self._stop()
        reason = event.message.raw_stop_reason
        refused = reason is not None and self._explain(_ended_with(reason, event.message)).kind == "refused"
        if event.reason != StopReason.ABORTED and (refused or reason in self._writer.reasons):
            self._writer.finish(event.message, refused=refused)
        else:
            self._writer.fail(self._explain(event))


MakeEncoder: TypeAlias = Callable[[Endpoint, Options | None, Explain], StreamEncoder]


def encoder_of(writer: type[StreamWriter]) -> MakeEncoder:
    """Return the function `stream_encoder` of a protocol: it makes the encoder of one stream."""

    def stream_encoder(endpoint: Endpoint, options: Options | None, explain: Explain) -> StreamEncoder:
        return StreamEncoder(writer(endpoint, options), explain)

    return stream_encoder


def _ended_with(reason: str, message: AssistantMessage) -> AssistantMessage:
    """Return a reply of the same origin that says no more than how it ended."""
    return AssistantMessage(
        content=(),
        protocol=message.protocol,
        provider=message.provider,
        model=message.model,
        stop_reason=StopReason.ERROR,
        raw_stop_reason=reason,
    )


def _repaired(text: str) -> str:
    """Return arguments that arrive all at once as JSON; others as they are."""
    parsed = parse_arguments(text) if text.endswith("}") else None
    is_repaired = parsed is not None and parsed.diagnostic is not None and parsed.is_whole
    return encode_arguments(parsed.arguments) if parsed is not None and is_repaired else text


def _joined(text: str) -> str:
    """Join surrogate pairs that were split between deltas."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def rest_of(whole: Block, written: frozenset[str] | set[str]) -> Wire:
    """Return the keys of a whole reply that the stream has not written."""
    return {key: value for key, value in whole.items() if key not in written}


@cache
def _growing_json() -> type[GrowingJson]:
    from segue.foundation.growing_json import GrowingJson  # a request needs no stream, and its patterns compile slowly

    return GrowingJson
