"""A streamed Bedrock reply.

The reader assembles the blocks and the body of the whole reply and decodes them with the functions for whole replies:
so a folded stream equals a whole reply. Without messageStop the reply is incomplete.

Write a streamed Bedrock reply: frames `{event type: payload}`.

Nothing waits for a later event, except redacted reasoning, which has no deltas.

Facts:
- messageStart, then blocks identified by their index, then messageStop with the reason, then metadata with the counts.
  Calls, results of the provider's own tools and images have a start; text and reasoning begin with their first delta.
                                                                     (botocore 1.44.0 service model, read 2026-11-15)
- Bytes (redacted reasoning, images) arrive as base64, each piece encoded separately.                     (the same)
- Every event has `p`, padding without meaning.                                           (recorded traffic, 2026-11)
- An exception may arrive in mid-stream with status 200.                                            (service model)
- Some streams end without metadata.                                                    (vercel/ai, its fixtures)
- messageStart, blocks by their index (calls have a start, texts and reasoning begin with their first delta),
  messageStop with the reason, metadata with the counts.            (botocore 1.44.0 service model, read 2026-11-15)
- botocore skips events of unknown types without an error, so the heartbeat is one.    (botocore 1.44.0: parsers.py)
- A stream may report five exceptions only.                                      (service model: ConverseStreamOutput)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.arguments import encode_arguments, parse_arguments, read_arguments
from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.bedrock_converse.content import (
    CITATIONS,
    DELTA_DECODERS,
    TextPart,
    decode_reasoning,
    decode_stop,
    encode_assistant_blocks,
)
from segue.protocols.bedrock_converse.native import SERVER_CALL, DocumentNames, fallback_of
from segue.protocols.bedrock_converse.response import (
    STOP_REASONS,
    decode_usage,
    encode_response,
    error_text,
    exception_of,
    finish_response,
    stream_exception,
)
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_patch import difference
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.reading import of_reply, text_of
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.kit.streaming import MISFIT, NamedFrame, StreamDecoder

_PADDING: Final = "p"
_DELTA: Final = "contentBlockDelta"
_STOP: Final = "contentBlockStop"
_TEXT_FIELDS: Final[Mapping[str, str]] = {"text": "text", "toolUse": "input"}
"""The type of a block -> the field of a delta that extends it."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make the decoder of one stream."""
    assembly = Assembly(endpoint.model, PROTOCOL, tool_names)
    reader = _Reader(endpoint, assembly)
    return StreamDecoder(reader, assembly, named_shortcut=reader.read_last)


class _Block:
    """A block under construction: its type, the members of its start, and the part of the message it becomes."""

    __slots__ = (
        "blobs",
        "citations",
        "decode_delta",
        "index",
        "kind",
        "part",
        "pieces",
        "signature",
        "start",
        "text_field",
    )

    def __init__(self, index: object, kind: str, part: Part, start: Block) -> None:
        self.index = index
        self.kind = kind
        self.text_field = _TEXT_FIELDS.get(kind, "")
        self.decode_delta = DELTA_DECODERS.get(kind)
        self.part = part
        self.start = start
        self.signature: list[str] = []
        self.blobs: list[str] = []
        self.citations: list[object] = []
        self.pieces: list[Wire] = []  # the content of a result


class _Reader:
    def __init__(self, endpoint: Endpoint, out: Assembly) -> None:
        self._endpoint = endpoint
        self._out = out
        self._role: object = "assistant"
        self._body: Wire = {}  # the body of the whole reply, without its message
        self._content: dict[int, Wire] = {}  # the blocks of the whole reply, by the index of their part
        self._blocks: dict[object, _Block] = {}
        self._last: _Block | None = None  # the block that was opened last, while it is open
        self._stopped = False

    def read_last(self, frame: NamedFrame) -> list[Event] | None:
        """Fast path: read a frame that extends or ends the block that was opened last; None for every other frame."""
        block = self._last
        if block is None or len(frame) != 2 or block.decode_delta is None:
            return None
        if frame[0] != _DELTA:
            return self._end_last(block, frame[1]) if frame[0] == _STOP else None
        try:
            event = block.decode_delta(frame[1])
        except MISFIT:
            return None
        delta = event.delta
        text = delta.text if type(delta) is TextPart else delta.inner.text
        part = block.part
        if not text or event.index != block.index or part.delta is None or (text[0] == "{" and part.chunks):
            return None  # a bracket may begin what was received already
        part.chunks.append(text)  # as `Part.extend`
        return [part.delta(index=part.index, delta=text)]

    def _end_last(self, block: _Block, payload: bytes) -> list[Event] | None:
        try:
            index = decode_stop(payload).index
        except MISFIT:
            return None
        if index != block.index or self._blocks.get(index) is not block:
            return None
        del self._blocks[index]
        out = self._out
        self._close(block, out)
        events, out.events = out.events, []
        return events

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        event = frame.get(_DELTA)
        if event is not None:
            # Most frames take this branch, and `cast` is a call: so the types are asserted by comments and checked.
            payload: Wire = event  # pyright: ignore[reportAssignmentType]
            delta: Wire | None = payload.get("delta") if type(payload) is dict else None  # pyright: ignore[reportAssignmentType]
            if type(delta) is not dict:
                return
            index = payload.get("contentBlockIndex")
            block = self._blocks.get(index) if type(index) is int else None
            if block is not None:
                inner: Wire | None = delta if block.kind == "text" else delta.get(block.kind)  # pyright: ignore[reportAssignmentType]
                text = inner.get(block.text_field) if type(inner) is dict else None
                if type(text) is str and text:
                    out.grow(block.part, text)
                    return
            self._extend(_index_of(payload), delta, out)
        elif "contentBlockStart" in frame:
            start = object_of(frame["contentBlockStart"])
            self._open(_index_of(start), object_of(start.get("start")), out)
        elif _STOP in frame:
            block = self._blocks.pop(_index_of(object_of(frame[_STOP])), None)
            if block is not None:
                self._close(block, out)
        elif "messageStart" in frame:
            self._role = object_of(frame["messageStart"]).get("role", self._role)
            out.start()
        elif "messageStop" in frame or "metadata" in frame:
            self._read_end(frame, out)
        elif exception_of(frame) is not None:
            self._fail(frame, out)

    def end(self, out: Assembly) -> None:
        """Finish a complete reply; close the blocks of an incomplete one, which the assembly reports."""
        if self._stopped:
            self._finish(out)
        else:
            self._close_all(out)
            out.stop_reason = None

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _open(self, index: object, start: Block, out: Assembly) -> None:
        earlier = self._blocks.pop(index, None)
        if earlier is not None:
            self._close(earlier, out)
        if "toolUse" in start:
            call = object_of(start["toolUse"])
            if call.get("type") == SERVER_CALL:
                self._put(index, "serverCall", out.add_native({"toolUse": call}), call)
            else:
                part = out.open_call(text_of(call.get("toolUseId")) or "", text_of(call.get("name")) or "")
                self._put(index, "toolUse", part, call)
        elif start:
            kind, inner = next(iter(start.items()))
            self._put(index, kind, out.add_native({kind: inner}), object_of(inner))

    def _extend(self, index: object, delta: Wire, out: Assembly) -> None:
        block = self._blocks.get(index)
        text = delta.get("text")
        if isinstance(text, str):
            if block is None or block.kind != "text":
                block = self._begin(index, "text", out)
            if text:
                out.grow(block.part, text)
            return
        for kind, value in delta.items():
            if kind == "toolUse":
                self._extend_call(index, object_of(value).get("input"), out)
            elif kind == "reasoningContent":
                self._extend_reasoning(index, object_of(value), out)
            elif kind == "citation":
                if block is None or block.kind != "text":
                    block = self._begin(index, "text", out)
                block.citations.append(without_bytes(value))
            elif block is not None:
                _extend_native(block, kind, value)

    def _begin(self, index: object, kind: str, out: Assembly) -> _Block:
        """Open a block that has no start; a block of another type at its index is closed."""
        earlier = self._blocks.pop(index, None)
        if earlier is not None:
            self._close(earlier, out)
        part = out.open_text() if kind == "text" else out.open_thinking()
        return self._put(index, kind, part, EMPTY)

    def _put(self, index: object, kind: str, part: Part, start: Block) -> _Block:
        block = self._last = self._blocks[index] = _Block(index, kind, part, start)
        return block

    def _extend_call(self, index: object, text: object, out: Assembly) -> None:
        block = self._blocks.get(index)
        if block is None or block.kind not in ("toolUse", "serverCall"):
            self._open(index, {"toolUse": {}}, out)
            block = self._blocks[index]
        if isinstance(text, str) and text:
            out.grow(block.part, text)

    def _extend_reasoning(self, index: object, delta: Block, out: Assembly) -> None:
        block = self._blocks.get(index)
        if block is None or block.kind != "reasoningContent":
            block = self._begin(index, "reasoningContent", out)
        text, signature = delta.get("text"), delta.get("signature")
        blob = without_bytes(delta.get("redactedContent"))
        if isinstance(text, str) and text:
            out.grow(block.part, text)
        if isinstance(signature, str):
            block.signature.append(signature)
        if isinstance(blob, str):
            block.blobs.append(blob)

    def _close(self, block: _Block, out: Assembly) -> None:
        """Complete the part, and note the block as a whole reply contains it."""
        if block is self._last:
            self._last = None
        part = block.part
        text = join_chunks(part.chunks)
        part.chunks = [text]
        match block.kind:
            case "text":
                whole: Wire = {"text": text}
                if block.citations:
                    part.extra = {PROTOCOL: {CITATIONS: block.citations}}
                    whole = {"citationsContent": {"content": [whole], CITATIONS: block.citations}}
            case "toolUse":
                whole = {"toolUse": _close_call(block, text)}
            case "reasoningContent":
                whole = {"reasoningContent": self._close_reasoning(block, text)}
            case "serverCall":
                part.block = whole = {"toolUse": {**block.start, "input": parse_arguments(text).arguments}}
            case "toolResult":
                part.block = whole = {"toolResult": {**block.start, "content": block.pieces}}
            case _:
                part.block = whole = {block.kind: {**block.start, **_joined_source(block)}}
        if part.kind == "native":
            part.fallback = fallback_of(part.block)
        self._content[part.index] = whole
        out.close(part)

    def _close_reasoning(self, block: _Block, text: str) -> Wire:
        part = block.part
        if block.blobs and not text:
            wire: Wire = {"redactedContent": _join_blobs(block.blobs)}
            part.redacted = True
        else:
            inner: Wire = {"text": text}
            if block.signature:
                inner["signature"] = "".join(block.signature)
            wire = {"reasoningText": inner}
        content = decode_reasoning(wire, self._endpoint, reply=True)
        if content is not None:
            part.signature, part.extra = content.thinking_signature, content.extra
        return wire

    def _close_all(self, out: Assembly) -> None:
        for block in self._blocks.values():
            self._close(block, out)
        self._blocks.clear()

    # -- the whole reply -----------------------------------------------------------------------------------------------

    def _read_end(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Read the fields of the whole reply; with stop reason and counts it is complete."""
        for name in ("messageStop", "metadata"):
            fields = object_of(frame.get(name))
            self._body.update((key, value) for key, value in fields.items() if key != _PADDING)
        self._stopped = self._stopped or "messageStop" in frame
        if self._stopped and "usage" in self._body:
            self._finish(out)
        else:
            self._update(out)

    def _update(self, out: Assembly) -> None:
        """Pass the assembly the fields of the whole reply that are known so far."""
        out.raw_stop_reason = text_of(self._body.get("stopReason"))
        out.usage = decode_usage(self._body, self._endpoint)

    def _finish(self, out: Assembly) -> None:
        self._close_all(out)
        closed = [part for part in out.parts if part.closed is not None]
        pieces = tuple(part.closed for part in closed if part.closed is not None)
        message: Wire = {"role": self._role, "content": [self._content[part.index] for part in closed]}
        whole = finish_response({**self._body, "output": {"message": message}}, pieces, self._endpoint)
        out.raw_stop_reason, out.usage, out.response_model = whole.raw_stop_reason, whole.usage, whole.response_model
        out.stop_reason, out.error_message, out.extra = whole.stop_reason, whole.error_message, whole.extra
        out.diagnostics += whole.diagnostics
        for diagnostic in whole.diagnostics:
            out.notice(diagnostic)
        out.finish()

    def _fail(self, frame: Mapping[str, object], out: Assembly) -> None:
        self._close_all(out)
        self._update(out)
        out.extra = of_reply(PROTOCOL, object_of(without_bytes(difference({}, dict(frame)))))
        out.fail(error_text(frame))


def _index_of(payload: Block) -> object:
    """Return the index of a block: a number, else the text of whatever is there."""
    index = payload.get("contentBlockIndex")
    return index if type(index) is int else str(index)


def _close_call(block: _Block, text: str) -> Wire:
    part = block.part
    if text:
        parsed = parse_arguments(text)
        if parsed.diagnostic is None:
            # A request sends an object, so the text of valid JSON is not kept; the call equals that of a whole reply.
            part.chunks = []
        part.arguments = parsed.arguments
    else:
        part.arguments = read_arguments(block.start.get("input")).arguments
    return {**block.start, "toolUseId": part.id, "name": part.name, "input": part.arguments}


def _extend_native(block: _Block, kind: str, value: object) -> None:
    """Extend a native block: texts of a result grow, bytes are joined when it closes."""
    if kind == "toolResult" and isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            piece = dict(object_of(without_bytes(item)))
            last = block.pieces[-1] if block.pieces else EMPTY
            if isinstance(last.get("text"), str) and isinstance(piece.get("text"), str):
                block.pieces[-1] = {"text": f"{last['text']}{piece['text']}"}
            else:
                block.pieces.append(piece)
    else:
        fields = object_of(without_bytes(value))
        data = object_of(fields.get("source")).get("bytes")
        if isinstance(data, str):
            block.blobs.append(data)
            fields = {key: inner for key, inner in fields.items() if key != "source"}
        block.start = {**block.start, **fields}


def _joined_source(block: _Block) -> Block:
    return {"source": {"bytes": _join_blobs(block.blobs)}} if block.blobs else EMPTY


def _join_blobs(blobs: list[str]) -> str:
    """Join bytes that arrived in pieces, each piece as base64."""
    if len(blobs) == 1:
        return blobs[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(blob) for blob in blobs)).decode("ascii")
    except binascii.Error:
        return "".join(blobs)


_INDEX: Final = "contentBlockIndex"
_REASONING: Final = "reasoningContent"
_STOP_KEYS: Final = frozenset({"stopReason", "additionalModelResponseFields"})


class _Writer(StreamWriter):
    name = PROTOCOL
    json_arguments = True
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
