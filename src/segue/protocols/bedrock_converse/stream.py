"""A streamed Bedrock reply.

Facts this file rests on:
- messageStart, then blocks found by their index, then messageStop with the reason, then metadata with the counts.
  Calls, results of the provider's own tools and images have a start; text and reasoning begin with their first delta.
                                                                     (botocore 1.44.0 service model, read 2026-11-15)
- Bytes (redacted reasoning, images) come as base64, each piece for itself.                               (the same)
- Every event carries `p`, padding that means nothing.                                    (recorded traffic, 2026-11)
- An exception may come in mid-stream with status 200.                                              (service model)
- Some streams end without metadata.                                                    (vercel/ai, its fixtures)

Blocks are put together as the wire would have sent them whole, and read by the same functions: so a folded stream and
a whole reply are equal. Without messageStop the reply was not finished.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.arguments import parse_arguments
from segue.conversation.events import Event
from segue.protocols.bedrock_converse.content import (
    CITATIONS,
    SERVER_CALL,
    decode_call,
    decode_reasoning,
    decode_redacted,
)
from segue.protocols.bedrock_converse.errors import exception_of
from segue.protocols.bedrock_converse.fast_decode import FAST_READERS, MISFIT, TextDeltaBody
from segue.protocols.bedrock_converse.native import fallback_of
from segue.protocols.bedrock_converse.response import decode_usage, error_text, finish_response, reply_extra_of
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.verbatim import NOTHING, Block, Wire, object_of, plain
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.streaming import NamedFrame, StreamDecoder

_PADDING: Final = "p"
_DELTA: Final = "contentBlockDelta"
_FAST: Final[Mapping[str, str]] = {"text": "text", "toolUse": "input"}
"""The field of a delta that simply makes a block longer."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Begin to read a stream."""
    reader = _Reader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), named_shortcut=reader.grow)


class _Block:
    """A block that is being put together: its kind, what its start said, and the part of the message it becomes."""

    __slots__ = (
        "blobs",
        "citations",
        "grows_by",
        "index",
        "kind",
        "part",
        "pieces",
        "read_fast",
        "signature",
        "start",
    )

    def __init__(self, index: object, kind: str, part: Part, start: Block) -> None:
        self.index = index
        self.kind = kind
        self.grows_by = _FAST.get(kind, "")
        self.read_fast = FAST_READERS.get(kind)
        self.part = part
        self.start = start
        self.signature: list[str] = []
        self.blobs: list[str] = []
        self.citations: list[object] = []
        self.pieces: list[Wire] = []  # the content of a result


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._message: Wire = {}  # the reply as the wire would have sent it whole, without its content
        self._blocks: dict[object, _Block] = {}
        self._last: _Block | None = None  # the block that was opened last, while it is open
        self._stopped = False

    def grow(self, frame: NamedFrame) -> list[Event] | None:
        """Take in a frame that makes the block grow that was opened last, the short way; None for every other frame."""
        name, payload = frame
        block = self._last
        if block is None or name != _DELTA:
            return None
        read_fast, part = block.read_fast, block.part
        if read_fast is None or part.delta is None:
            return None
        try:
            fast = read_fast(payload)
        except MISFIT:
            return None
        delta = fast.delta
        text = delta.text if type(delta) is TextDeltaBody else delta.given.text
        if not text or fast.index != block.index:
            return None
        part.chunks.append(text)
        return [part.delta(index=part.index, delta=text)]

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        event = frame.get(_DELTA)
        if event is not None:
            # Nearly every frame comes here, and a cast is a call: so types are claimed, and looked at.
            payload: Wire = event  # pyright: ignore[reportAssignmentType]
            delta: Wire | None = payload.get("delta") if type(payload) is dict else None  # pyright: ignore[reportAssignmentType]
            if type(delta) is not dict:
                return
            index = payload.get("contentBlockIndex")
            block = self._blocks.get(index) if type(index) is int else None
            if block is not None:
                inner: Wire | None = delta if block.kind == "text" else delta.get(block.kind)  # pyright: ignore[reportAssignmentType]
                text = inner.get(block.grows_by) if type(inner) is dict else None
                if type(text) is str and text:
                    out.grow(block.part, text)
                    return
            self._grow(_index_of(payload), delta, out)
        elif "contentBlockStart" in frame:
            start = object_of(frame["contentBlockStart"])
            self._open(_index_of(start), object_of(start.get("start")), out)
        elif "contentBlockStop" in frame:
            block = self._blocks.pop(_index_of(object_of(frame["contentBlockStop"])), None)
            if block is not None:
                self._close(block, out)
        elif "messageStart" in frame:
            out.start()
        elif "messageStop" in frame or "metadata" in frame:
            self._read_metadata(frame, out)
        elif exception_of(frame) is not None:
            self._fail(frame, out)

    def end(self, out: Assembly) -> None:
        """End well if the reply had ended, else leave what arrived in order: the assembly then says what is lacking."""
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

    def _grow(self, index: object, delta: Wire, out: Assembly) -> None:
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
                self._grow_call(index, object_of(value).get("input"), out)
            elif kind == "reasoningContent":
                self._grow_reasoning(index, object_of(value), out)
            elif kind == "citation":
                if block is None or block.kind != "text":
                    block = self._begin(index, "text", out)
                block.citations.append(plain(value))
            elif block is not None:
                _grow_native(block, kind, value)

    def _begin(self, index: object, kind: str, out: Assembly) -> _Block:
        """Open a block that has no start; one of another kind at its place is over."""
        earlier = self._blocks.pop(index, None)
        if earlier is not None:
            self._close(earlier, out)
        part = out.open_text() if kind == "text" else out.open_thinking()
        return self._put(index, kind, part, NOTHING)

    def _put(self, index: object, kind: str, part: Part, start: Block) -> _Block:
        block = self._last = self._blocks[index] = _Block(index, kind, part, start)
        return block

    def _grow_call(self, index: object, text: object, out: Assembly) -> None:
        block = self._blocks.get(index)
        if block is None or block.kind not in ("toolUse", "serverCall"):
            self._open(index, {"toolUse": {}}, out)
            block = self._blocks[index]
        if isinstance(text, str) and text:
            out.grow(block.part, text)

    def _grow_reasoning(self, index: object, delta: Block, out: Assembly) -> None:
        block = self._blocks.get(index)
        if block is None or block.kind != "reasoningContent":
            block = self._begin(index, "reasoningContent", out)
        text, signature, blob = delta.get("text"), delta.get("signature"), plain(delta.get("redactedContent"))
        if isinstance(text, str) and text:
            out.grow(block.part, text)
        if isinstance(signature, str):
            block.signature.append(signature)
        if isinstance(blob, str):
            block.blobs.append(blob)

    def _close(self, block: _Block, out: Assembly) -> None:
        """Read the block as if it had come whole, and give the part what only the whole tells."""
        if block is self._last:
            self._last = None
        part = block.part
        text = join_chunks(part.chunks)
        part.chunks = [text]
        match block.kind:
            case "text":
                if block.citations:
                    part.extra = {PROTOCOL: {CITATIONS: block.citations}}
            case "toolUse":
                self._close_call(block, text)
            case "reasoningContent":
                self._close_reasoning(block, text)
            case "serverCall":
                part.block = {"toolUse": {**block.start, "input": parse_arguments(text).arguments}}
            case "toolResult":
                part.block = {"toolResult": {**block.start, "content": block.pieces}}
            case _:
                part.block = {block.kind: {**block.start, **_joined_source(block)}}
        if part.kind == "native":
            part.fallback = fallback_of(part.block)
        out.close(part)

    def _close_call(self, block: _Block, text: str) -> None:
        part = block.part
        whole: Wire = {**block.start, "toolUseId": part.id, "name": part.name}
        whole.setdefault("input", {})
        call = decode_call(whole, {}, reply=True)
        if call is not None:
            part.extra, part.arguments = call.extra, call.arguments
        parsed = parse_arguments(text)
        if text and parsed.diagnostic is None:
            # The wire takes an object back, so the spelling of sound JSON means nothing here; without it the call
            # equals the one that comes whole.
            part.chunks, part.arguments = [], parsed.arguments

    def _close_reasoning(self, block: _Block, text: str) -> None:
        part = block.part
        if block.blobs and not text:
            content = decode_redacted(_joined(block.blobs))
            part.redacted = True
        else:
            given: Wire = {"text": text}
            if block.signature:
                given["signature"] = "".join(block.signature)
            content = decode_reasoning({"reasoningText": given}, self._endpoint, reply=True)
        if content is not None:
            part.signature, part.extra = content.thinking_signature, content.extra

    def _close_all(self, out: Assembly) -> None:
        for block in self._blocks.values():
            self._close(block, out)
        self._blocks.clear()

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _read_metadata(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Take in what is said of the message as a whole; with reason and counts it is complete."""
        for name in ("messageStop", "metadata"):
            sent = object_of(frame.get(name))
            self._message.update((key, value) for key, value in sent.items() if key != _PADDING)
        self._stopped = self._stopped or "messageStop" in frame
        if self._stopped and "usage" in self._message:
            self._finish(out)
        else:
            self._settle(out)

    def _settle(self, out: Assembly) -> None:
        """Tell the assembly what is known so far of the message as a whole."""
        out.raw_stop_reason = text_of(self._message.get("stopReason"))
        out.usage = decode_usage(self._message.get("usage"), self._endpoint)

    def _finish(self, out: Assembly) -> None:
        self._close_all(out)
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        whole = finish_response(self._message, pieces, {}, self._endpoint)
        out.raw_stop_reason, out.usage, out.response_model = whole.raw_stop_reason, whole.usage, whole.response_model
        out.stop_reason, out.error_message, out.extra = whole.stop_reason, whole.error_message, whole.extra
        out.finish()

    def _fail(self, frame: Mapping[str, object], out: Assembly) -> None:
        self._close_all(out)
        self._settle(out)
        out.extra = reply_extra_of({PROTOCOL: dict(frame)})
        out.fail(error_text(frame))


def _index_of(payload: Block) -> object:
    """Give what a block is found by: a number, else whatever stands there, as a text."""
    index = payload.get("contentBlockIndex")
    return index if type(index) is int else str(index)


def _grow_native(block: _Block, kind: str, value: object) -> None:
    """Add to a block that only this wire knows: texts of a result grow, bytes are put together at the end."""
    if kind == "toolResult" and isinstance(value, list | tuple):
        for item in cast("list[object]", value):
            piece = dict(object_of(plain(item)))
            last = block.pieces[-1] if block.pieces else NOTHING
            if isinstance(last.get("text"), str) and isinstance(piece.get("text"), str):
                block.pieces[-1] = {"text": f"{last['text']}{piece['text']}"}
            else:
                block.pieces.append(piece)
    else:
        sent = object_of(plain(value))
        data = object_of(sent.get("source")).get("bytes")
        if isinstance(data, str):
            block.blobs.append(data)
            sent = {key: inner for key, inner in sent.items() if key != "source"}
        block.start = {**block.start, **sent}


def _joined_source(block: _Block) -> Block:
    return {"source": {"bytes": _joined(block.blobs)}} if block.blobs else NOTHING


def _joined(blobs: list[str]) -> str:
    """Put bytes together that came in pieces, each piece as base64."""
    if len(blobs) == 1:
        return blobs[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(blob) for blob in blobs)).decode("ascii")
    except binascii.Error:
        return "".join(blobs)
