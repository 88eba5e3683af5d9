"""Write a streamed Bedrock reply: frames `{event type: payload}`.

Facts this file rests on:
- messageStart, blocks by their index (calls have a start, texts and reasoning begin with their first delta),
  messageStop with the reason, metadata with the counts.            (botocore 1.44.0 service model, read 2026-11-15)
- botocore skips events of unknown types without an error, so the heartbeat is one.    (botocore 1.44.0: parsers.py)
- A stream may report five exceptions only.                                      (service model: ConverseStreamOutput)

Nothing waits for a later event, except redacted reasoning, which has no deltas.
"""

from __future__ import annotations

from typing import Final

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.bedrock_converse.content import CITATIONS, encode_assistant_blocks
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.errors import stream_exception
from segue.protocols.bedrock_converse.response import STOP_REASONS, encode_response
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of, rest_of

_DELTA: Final = "contentBlockDelta"
_INDEX: Final = "contentBlockIndex"
_REASONING: Final = "reasoningContent"
_STOP_KEYS: Final = frozenset({"stopReason", "additionalModelResponseFields"})


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._indexes: dict[int, int] = {}  # of open blocks, by the index of their part
        self._count = 0

    def start(self, event: StartEvent, first: Block) -> None:  # noqa: ARG002 - Bedrock sends neither id nor model
        self.frames.append({"messageStart": {"role": "assistant"}})

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _place(self, index: int) -> int:
        at = self._indexes.get(index)
        if at is None:
            at = self._indexes[index] = self._count
            self._count += 1
        return at

    def _delta(self, index: int, delta: Wire) -> None:
        self.frames.append({_DELTA: {_INDEX: self._place(index), "delta": delta}})

    def frame_maker(self, index: int, kind: str) -> FrameMaker:
        at = self._indexes[index]
        match kind:
            case "text":
                return lambda text: {_DELTA: {_INDEX: at, "delta": {"text": text}}}
            case "thinking":
                return lambda text: {_DELTA: {_INDEX: at, "delta": {_REASONING: {"text": text}}}}
            case _:
                return lambda text: {_DELTA: {_INDEX: at, "delta": {"toolUse": {"input": text}}}}

    def _close(self, index: int) -> None:
        at = self._indexes.pop(index, None)
        if at is not None:
            self.frames.append({"contentBlockStop": {_INDEX: at}})

    def _whole(self, content: AssistantContent) -> Wire:
        return encode_assistant_blocks((content,), self.endpoint, DocumentNames(), reply=True)[0]

    def open_text(self, index: int, first: Block) -> None:  # noqa: ARG002 - the common signature
        self._place(index)

    def add_text(self, index: int, text: str) -> None:
        self._delta(index, {"text": text})

    def close_text(self, index: int, content: TextContent) -> None:
        if not content.text:
            self._delta(index, {"text": ""})  # a block begins with its first delta
        if content.extra is not None:
            citations = object_of(self._whole(content).get("citationsContent")).get(CITATIONS)
            for citation in list_of(citations):
                self._delta(index, {"citation": citation})
        self._close(index)

    def open_thinking(self, index: int, first: Block) -> None:  # noqa: ARG002 - the common signature
        self._place(index)

    def add_thinking(self, index: int, text: str) -> None:
        self._delta(index, {_REASONING: {"text": text}})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:
        wire = object_of(self._whole(content).get(_REASONING))
        if "redactedContent" in wire:
            self._delta(index, {_REASONING: {"redactedContent": wire["redactedContent"]}})
        else:
            signature = object_of(wire.get("reasoningText")).get("signature")
            if isinstance(signature, str):
                self._delta(index, {_REASONING: {"signature": signature}})
            elif not content.thinking:
                self._delta(index, {_REASONING: {"text": ""}})
        self._close(index)

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:
        start: Wire = {"toolUse": {"toolUseId": call_id, "name": name, **first}}
        self.frames.append({"contentBlockStart": {"start": start, _INDEX: self._place(index)}})

    def add_arguments(self, index: int, text: str) -> None:
        self._delta(index, {"toolUse": {"input": text}})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the deltas hold all of it
        self._close(index)

    def add_native(self, index: int, content: NativeContent) -> None:
        ((kind, value),) = self._whole(content).items()
        fields = object_of(value)
        held = {"toolUse": "input", "toolResult": "content"}.get(kind, "source")
        start: Wire = {kind: rest_of(fields, frozenset({held}))}
        self.frames.append({"contentBlockStart": {"start": start, _INDEX: self._place(index)}})
        inner = fields.get(held)
        if kind == "toolUse":
            self._delta(index, {kind: {"input": encode_arguments(object_of(inner))}})
        elif inner is not None:
            self._delta(index, {kind: inner if kind == "toolResult" else {held: inner}})
        self._close(index)

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        whole = encode_response(message, self.endpoint)
        stop = {key: value for key, value in whole.items() if key in _STOP_KEYS}
        if refused and "stopReason" not in stop:
            stop["stopReason"] = "content_filtered"
        self.frames.append({"messageStop": stop})
        metadata = rest_of(whole, _STOP_KEYS | {"output", "ResponseMetadata"})
        if metadata:
            self.frames.append({"metadata": metadata})

    def heartbeat(self) -> None:
        self.frames.append({"ping": {}})

    def fail(self, fault: Fault) -> None:
        self.frames.append(stream_exception(fault))


stream_encoder: MakeEncoder = encoder_of(_Writer)
