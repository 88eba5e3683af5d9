"""Write a streamed reply of the Interactions API.

Facts this file rests on:
- The order of events and the types of deltas: see `stream`. Every event names its kind in `event_type`, and the step by
  `index`; the last event is the text `[DONE]`.                               (google-genai 3.1.0, read 2026-11-17)
- `interaction.completed` has status and usage, and no steps.                                            (the same)
- `interaction.status_update` with the same status is the heartbeat: clients accept it at any time.      (the same)

Nothing waits for a later event, with one exception: an output ends when the next step begins, because it may have
further contents.
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage, StopReason
from segue.protocols.google_interactions.errors import error_object
from segue.protocols.google_interactions.response import encode_response
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.google_interactions.turns import OUTPUT, is_in_output
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of
from segue.protocols.kit.verbatim import chosen, data_of

_END: Final = "[DONE]"


class _Writer(StreamWriter):
    name = PROTOCOL
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
        """Give the step of a content: that of the content before it, or a new one."""
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
