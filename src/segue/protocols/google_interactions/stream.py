"""Streamed replies: events, step by step.

Steps are put together again as they arrive and read as those of a whole reply, so that both give the same message.

Write a streamed reply of the Interactions API.

Nothing waits for a later event, with one exception: an output ends when the next step begins, because it may have
further contents.

Facts:
- `interaction.created` begins a reply; each step is `step.start`, `step.delta` ..., `step.stop`;
  `interaction.completed` has status and usage, and rarely the steps; then `[DONE]`.   (google-genai 3.1.0, 2026-11-17)
- A call begins with its id, its name and empty arguments; `arguments_delta` is a piece of their JSON. A thought gets
  texts of its summary, then its signature. A step of a server tool gets its fields.                       (the same)
- `interaction.status_update` changes nothing in the message.                                              (the same)
- A stream that is resumed may begin with a delta without its start.                                       (the same)
- An `error` event ends the reply.                                                                         (the same)
- The order of events and the types of deltas: see `stream`. Every event names its kind in `event_type`, and the step by
  `index`; the last event is the text `[DONE]`.                               (google-genai 3.1.0, read 2026-11-17)
- `interaction.completed` has status and usage, and no steps.                                            (the same)
- `interaction.status_update` with the same status is the heartbeat: clients accept it at any time.      (the same)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

import msgspec

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.google_interactions.content import MEDIA, native_step
from segue.protocols.google_interactions.response import decode_error, decode_response, encode_response, error_object
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.google_interactions.turns import OUTPUT, TurnReader, is_in_output
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import EMPTY, Block, Wire, is_list, kind_of, object_of
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.sources import objects_in
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of
from segue.protocols.kit.streaming import MISFIT, StreamDecoder
from segue.protocols.kit.verbatim import chosen, data_of

_START_KEYS: Final = frozenset({"id", "model", "status", "steps", "usage"})
"""Keys of the first event that the encoder of a stream writes itself; the others are kept in the start event."""
_STEPS_OF: Final[Mapping[str, str]] = {
    "text": OUTPUT,
    "text_annotation_delta": OUTPUT,
    **dict.fromkeys(MEDIA, OUTPUT),
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}
"""The step that a delta belongs to; that of a server tool has the name of its step."""
SAME_STEP: Final[Block] = {"same": True}
"""In the start event of a text: it is in the step of the content before it."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make a decoder for one streamed reply."""
    reader = _Reader(endpoint, tool_names)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_growth)


class _Step:
    """A step that is arriving: what its start had, its parts, and its contents if it is an output."""

    __slots__ = ("contents", "is_done", "kind", "parts", "wire")

    def __init__(self, wire: Block) -> None:
        self.kind = kind_of(wire)
        self.wire: Wire = dict(wire)
        self.parts: list[Part] = []
        self.contents: list[Wire] = []
        self.is_done = False


class _Inner(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str
    text: str


class _Delta(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    type: str
    text: str = ""
    arguments: str = ""
    content: _Inner | None = None

    def piece_of(self, kind: str) -> str:
        """Return the text of a delta of this type; empty if it has fields of another one."""
        inner = self.content
        match kind:
            case "text":
                return self.text if not self.arguments and inner is None else ""
            case "arguments_delta":
                return self.arguments if not self.text and inner is None else ""
            case _:
                is_text = inner is not None and inner.type == "text" and not self.text and not self.arguments
                return inner.text if is_text and inner is not None else ""


class _Growth(msgspec.Struct, frozen=True, gc=False):
    """The keys of a delta, which most events are. To read only these takes half the time."""

    event_type: str
    index: int
    delta: _Delta


_READ_GROWTH: Final = msgspec.json.Decoder(_Growth).decode
"""Any other event is read in full."""


class _Reader:
    """Reads the events into an assembly."""

    def __init__(self, endpoint: Endpoint, tool_names: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self.turn = TurnReader(tool_names, is_reply=True)
        self.steps: dict[int, _Step] = {}
        self.first: Block = EMPTY
        self.growing: tuple[int, str, Part] | None = None  # the last delta: its step, its type, and its part

    def read_growth(self, frame: bytes) -> list[Event] | None:
        """Fast path for a delta of the same type and step as the event before; None for every other frame."""
        if self.growing is None:
            return None
        try:
            event = _READ_GROWTH(frame)
        except MISFIT:
            return None
        index, kind, part = self.growing
        delta = event.delta
        if event.event_type != "step.delta" or event.index != index or delta.type != kind:
            return None
        text = delta.piece_of(kind)
        return part.extend(text) if text else None

    def read(self, frame: Block, out: Assembly) -> None:
        """Read one event; events that do not change the message are skipped."""
        kind = frame.get("event_type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(self, frame, out)
        elif "event_type" not in frame and frame.get("error") is not None:
            self.error(frame, out)

    def end(self, out: Assembly) -> None:
        """End without a terminal event: an error, with the content that arrived."""
        self.settle_all(out)
        out.finish()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def created(self, frame: Block, out: Assembly) -> None:
        self.first = object_of(frame.get("interaction"))
        out.response_id = text_of(self.first.get("id")) or out.response_id
        out.response_model = text_of(self.first.get("model")) or out.response_model
        out.first = {key: value for key, value in self.first.items() if key not in _START_KEYS}
        out.start()

    def updated(self, frame: Block, out: Assembly) -> None:
        if frame.get("status") == "in_progress":
            out.ping()

    def started(self, frame: Block, out: Assembly) -> None:
        self.open(self.place(frame, len(self.steps)), object_of(frame.get("step")), out)

    def place(self, frame: Block, default: int) -> int:
        """Return the index of an event's step, also from a server that leaves it out or writes it as text."""
        index = frame.get("index")
        if isinstance(index, str) and index.isdecimal() and len(index) < 10:
            return int(index)
        return index if isinstance(index, int) else default

    def open(self, index: int, wire: Block, out: Assembly) -> _Step:
        """Begin a step; what its start has already is read as deltas."""
        step = self.steps[index] = _Step(wire)
        self.growing = None
        match step.kind:
            case "model_output":
                contents = step.wire.pop("content", None)
                for content in objects_in(contents):
                    self.add_content(index, step, content, out)
            case "thought":
                step.parts.append(out.open_thinking())
                summary = step.wire.pop("summary", None)
                for content in objects_in(summary):
                    self.add_summary(index, step, content, out)
            case "function_call" if text_of(step.wire.get("name")):
                part = out.open_call(text_of(step.wire.get("id")) or "", str(step.wire["name"]))
                step.parts.append(part)
                given = step.wire.get("arguments")
                if isinstance(given, Mapping):
                    part.arguments = cast("Block", given)  # text that deltas add counts instead
            case _:
                step.parts.append(out.add_native(wire))
        return step

    def delta(self, frame: Block, out: Assembly) -> None:
        index, delta = self.place(frame, max(self.steps, default=0)), object_of(frame.get("delta"))
        kind = kind_of(delta)
        if not kind:
            return
        step = self.steps.get(index)
        if step is None:
            step = self.open(index, {"type": _STEPS_OF.get(kind, kind)}, out)
        self.growing = None
        if step.is_done:
            return
        if step.kind == OUTPUT:
            self.add_content(index, step, delta, out)
        elif kind == "thought_summary" and step.kind == "thought":
            self.add_summary(index, step, object_of(delta.get("content")), out)
        elif kind == "thought_signature":
            step.wire["signature"] = delta.get("signature")
        elif kind == "arguments_delta" and step.parts and step.parts[0].kind == "toolCall":
            self.grow(index, kind, step.parts[0], text_of(delta.get("arguments")), out)
        else:
            _merge(step.wire, delta)

    def add_content(self, index: int, step: _Step, content: Block, out: Assembly) -> None:
        """Add a content to an output, or the next piece of its text."""
        kind, last = kind_of(content), step.parts[-1] if step.parts else None
        if kind == "text":
            if last is None or last.kind != "text":
                self.close_contents(step, out)
                last = out.open_text(SAME_STEP if step.parts else None)
                step.parts.append(last)
                step.contents.append({})
            known = step.contents[-1]
            known |= {key: value for key, value in content.items() if key != "text"}
            self.grow(index, kind, last, text_of(content.get("text")), out)
        elif kind == "text_annotation_delta":
            if last is None or last.kind != "text":
                self.add_content(index, step, {"type": "text", "text": ""}, out)
            known, added = step.contents[-1], content.get("annotations")
            known.setdefault("type", "text")
            before = known.get("annotations")
            known["annotations"] = [*(before if is_list(before) else ()), *(added if is_list(added) else ())]
        else:
            self.growing = None
            self.close_contents(step, out)
            native = native_step(content)
            step.parts.append(out.add_native(native.block, native.fallback))
            step.contents.append(dict(content))
            self.close_contents(step, out)

    def close_contents(self, step: _Step, out: Assembly) -> None:
        """Close the contents of an output before the next one begins."""
        if step.parts:
            self.close_parts(step, out)

    def add_summary(self, index: int, step: _Step, content: Block, out: Assembly) -> None:
        """Add the next piece of the summary of a thought; images in it are kept, but not shown."""
        text = text_of(content.get("text"))
        if content.get("type") == "text" and text is not None:
            self.grow(index, "thought_summary", step.parts[0], text, out)
        elif content:
            step.contents.append(dict(content))

    def grow(self, index: int, kind: str, part: Part, text: str | None, out: Assembly) -> None:
        if text:
            out.grow(part, text)
            self.growing = index, kind, part

    def stopped(self, frame: Block, out: Assembly) -> None:
        step = self.steps.get(self.place(frame, max(self.steps, default=0)))
        self.growing = None
        if step is not None:
            self.settle(step, out)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def settle(self, step: _Step, out: Assembly) -> None:
        """Close the parts of a step with what the whole step holds."""
        if step.is_done:
            return
        self.close_parts(step, out)
        step.is_done = True

    def close_parts(self, step: _Step, out: Assembly) -> None:
        """Close the parts of a step so far."""
        _complete(step)
        known = len(self.turn.diagnostics)
        contents = self.turn.read(step.wire)
        out.diagnostics += self.turn.diagnostics[known:]
        for place, content in enumerate(contents):
            part = step.parts[place] if place < len(step.parts) else None
            if part is None:
                part = out.open_content(content)
            out.close(part, content)
            part.kind = content.kind

    def settle_all(self, out: Assembly) -> None:
        self.growing = None
        for index in sorted(self.steps):
            self.settle(self.steps[index], out)

    def completed(self, frame: Block, out: Assembly) -> None:
        interaction = object_of(frame.get("interaction"))
        self.settle_all(out)
        if not self.steps:
            for index, wire in enumerate(objects_in(interaction.get("steps"))):
                self.settle(self.open(index, wire, out), out)
        steps = [self.steps[index].wire for index in sorted(self.steps)]
        whole: Wire = {**self.first, "status": "completed", **interaction, "steps": steps}
        message = decode_response(whole, self.endpoint, out.tool_names)
        out.response_id, out.response_model = message.response_id, message.response_model
        out.usage, out.extra = message.usage, message.extra
        out.stop_reason, out.raw_stop_reason = message.stop_reason, message.raw_stop_reason
        out.error_message = message.error_message
        if out.stop_reason == StopReason.ABORTED:
            out.fail(out.error_message or "the reply was cancelled", StopReason.ABORTED)
        else:
            out.finish()

    def error(self, frame: Block, out: Assembly) -> None:
        self.settle_all(out)
        error = decode_error(frame, None)
        out.raw_stop_reason = error.code or error.type or "error"
        out.fail(error.message or error.code or "the provider reported an error")


def _complete(step: _Step) -> None:
    """Put a step together from what its deltas added."""
    match step.kind:
        case "model_output":
            if step.parts:
                step.wire["content"] = [
                    {**content, "type": "text", "text": join_chunks(part.chunks)} if part.kind == "text" else content
                    for part, content in zip(step.parts, step.contents, strict=True)
                ]
        case "thought":
            text = join_chunks(step.parts[0].chunks)
            summary: list[object] = [{"type": "text", "text": text}] if text else []
            if summary or step.contents:
                step.wire["summary"] = [*summary, *step.contents]
        case "function_call" if step.parts[0].kind == "toolCall":
            text = join_chunks(step.parts[0].chunks)
            if text:
                parsed = parse_arguments(text)
                step.wire["arguments"] = parsed.arguments if parsed.is_whole else text
        case _:
            pass


def _merge(wire: Wire, delta: Block) -> None:
    """Add the fields of a delta to a step of a server tool: texts and lists grow, objects are filled, others count."""
    for key, value in delta.items():
        before = wire.get(key)
        if key == "type":
            continue
        if key == "result" and isinstance(before, str) and isinstance(value, str):
            wire[key] = before + value
        elif is_list(before) and is_list(value):
            wire[key] = [*before, *value]
        elif isinstance(before, dict) and isinstance(value, dict):
            wire[key] = {**cast("Wire", before), **cast("Wire", value)}
        else:
            wire[key] = value


_HANDLERS: Final[Mapping[str, Callable[[_Reader, Block, Assembly], None]]] = {
    "interaction.created": _Reader.created,
    "interaction.status_update": _Reader.updated,
    "step.start": _Reader.started,
    "step.delta": _Reader.delta,
    "step.stop": _Reader.stopped,
    "interaction.completed": _Reader.completed,
    "error": _Reader.error,
}
"""Other events add nothing to the message."""


_END: Final = "[DONE]"


class _Writer(StreamWriter):
    name = PROTOCOL
    json_arguments = True
    reasons = {"failed": StopReason.ERROR}  # noqa: RUF012 - read only

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._id = ""
        self._count = 0  # steps
        self._output: int | None = None  # the step of an output that is not ended
        self._places: dict[int, int] = {}  # the steps of open parts, by their index in the message

    def _send(self, kind: str, **fields: object) -> None:
        self.frames.append({"event_type": kind, **fields})

    def _begin(self, step: Block) -> int:
        """Begin a step; gives its index."""
        self._end_output()
        place = self._count
        self._count += 1
        self._send("step.start", index=place, step=step)
        return place

    def _end_output(self) -> None:
        if self._output is not None:
            self._send("step.stop", index=self._output)
            self._output = None

    def _delta(self, place: int, **delta: object) -> None:
        self._send("step.delta", index=place, delta=delta)

    def start(self, event: StartEvent, first: Block) -> None:
        self._id = event.id or ""
        model = event.model or self.endpoint.model.id
        interaction: Wire = {"id": self._id, **({"model": model} if model else {}), "status": "in_progress", **first}
        self._send("interaction.created", interaction=interaction)

    def frame_maker(self, index: int, kind: str) -> FrameMaker | None:
        place = self._places[index]

        def make(delta: Block) -> Wire:
            return {"event_type": "step.delta", "index": place, "delta": delta}

        match kind:
            case "text":
                return lambda text: make({"type": "text", "text": text})
            case "thinking":
                return lambda text: make({"type": "thought_summary", "content": {"type": "text", "text": text}})
            case _:
                return lambda text: make({"type": "arguments_delta", "arguments": text})

    # -- outputs -------------------------------------------------------------------------------------------------------

    def _join_output(self, *, joins: bool) -> int:
        """Return the step of a content: that of the content before it, or a new one."""
        if self._output is None or not joins:
            self._output = self._begin({"type": OUTPUT})
        return self._output

    def open_text(self, index: int, first: Block) -> None:
        self._places[index] = self._join_output(joins=first.get("same") is True)

    def add_text(self, index: int, text: str) -> None:
        self._delta(self._places[index], type="text", text=text)

    def close_text(self, index: int, content: TextContent) -> None:
        place = self._places.pop(index)
        if not content.text:
            self._delta(place, type="text", text="")
        annotations = data_of(content.extra, PROTOCOL).get("annotations")
        if annotations:
            self._delta(place, type="text_annotation_delta", annotations=annotations)

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the common signature
        block = native_block(PROTOCOL, content)
        if is_in_output(content):
            place = self._join_output(joins=chosen(content.extra, PROTOCOL, "turn", "new") == "same")
            self._send("step.delta", index=place, delta=block)
        else:
            self._send("step.stop", index=self._begin(block))

    # -- thinking ------------------------------------------------------------------------------------------------------

    def open_thinking(self, index: int, first: Block) -> None:  # noqa: ARG002 - the common signature
        self._places[index] = self._begin({"type": "thought"})

    def add_thinking(self, index: int, text: str) -> None:
        self._delta(self._places[index], type="thought_summary", content={"type": "text", "text": text})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:
        place = self._places.pop(index)
        if content.thinking_signature:
            self._delta(place, type="thought_signature", signature=content.thinking_signature)
        self._send("step.stop", index=place)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:  # noqa: ARG002 - as above
        self._places[index] = self._begin({"type": "function_call", "id": call_id, "name": name, "arguments": {}})

    def add_arguments(self, index: int, text: str) -> None:
        self._delta(self._places[index], type="arguments_delta", arguments=text)

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the common signature
        self._send("step.stop", index=self._places.pop(index))

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:  # noqa: ARG002 - its code says so
        self._end_output()
        whole = encode_response(message, self.endpoint)
        interaction: Wire = {key: value for key, value in whole.items() if key != "steps"}
        interaction["id"] = self._id or message.response_id or ""
        self._send("interaction.completed", interaction=interaction)
        self.frames.append(_END)

    def heartbeat(self) -> None:
        self._send("interaction.status_update", interaction_id=self._id, status="in_progress")

    def fail(self, fault: Fault) -> None:
        self._end_output()
        self._send("error", error=error_object(fault))


stream_encoder: MakeEncoder = encoder_of(_Writer)
