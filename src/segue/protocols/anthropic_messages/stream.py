"""A streamed Anthropic reply.

Facts this file rests on:
- message_start, then blocks (start, deltas, stop) found by their index, then message_delta with the reason and the
  counts, then message_stop; ping anywhere; unknown events are to be ignored.  (Anthropic documentation: streaming)
- Counts of message_delta are totals: they replace the earlier ones, and those it leaves out stay.  (anthropic 2.8.0)
- message_start may bring blocks of its own, whole, where a reply goes on after a pause for tools; so may it say why it
  ended.                                                     (vercel/ai e83d780: tools called from code; 2026-04)
- Redacted thinking and server results come whole in their start; a call may too, without any delta.
                                                                      (anthropic 2.8.0; eager input streaming)
- llama.cpp opens several blocks at once, stops them all at the end, and starts a call without `input`.      (tried)
- A summary of what was said before comes in one delta, which says it whole.        (anthropic 2.8.0: its own folding)
- A signature may come in pieces from others than Anthropic.                                    (strands #3425)
- An error may come in mid-stream with status 200.                                             (anthropic 2.8.0)

Blocks are put together as the wire would have sent them whole, and read by the same functions: so a folded stream and
a whole reply are equal. Without message_stop the reply was not finished, whatever it had said before; with it but
without a reason it was not either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

import msgspec

from segue.conversation.arguments import parse_arguments
from segue.protocols.anthropic_messages.content import (
    REDACTED_KEYS,
    TEXT_KEYS,
    decode_assistant_block,
    decode_thinking,
    keep_of_call,
)
from segue.protocols.anthropic_messages.native import fallback_of
from segue.protocols.anthropic_messages.response import decode_usage, error_text, finish_response, reply_extra_of
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.verbatim import keep
from segue.protocols.kit.assembly import Assembly, Part, PartKind, join_chunks
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.streaming import StreamDecoder

Wire: TypeAlias = dict[str, object]

_DELTA: Final = "content_block_delta"
_EVENT_KEYS: Final = frozenset({"type", "delta", "usage"})
_FAST: Final[Mapping[PartKind, str]] = {
    "text": "text",
    "thinking": "thinking",
    "toolCall": "partial_json",
    "native": "partial_json",  # a server's call; other blocks of its own kind come whole or change by other fields
}
"""The field of a delta that makes a part grow."""
_IGNORED: Final[Mapping[object, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "tool_use",
}
"""The block that a delta belongs to where a stream forgot to open it."""
_BEGUN: Final = "begun"
"""Where a block stands that came with message_start: no event names it."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Begin to read a stream."""
    reader = _Reader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_fast)


class _Delta(msgspec.Struct, frozen=True, gc=False):
    """The fields by which parts grow."""

    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class _FastDelta(msgspec.Struct, frozen=True, gc=False):
    """What most events say: that a block has grown. To read no more than that costs less than reading all of it."""

    type: str = ""
    index: int | None = None
    delta: _Delta | None = None


_READ_FAST: Final = msgspec.json.Decoder(_FastDelta).decode
_MISFIT: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is anything else is read the long way."""


class _Block:
    """A block that is being put together: what its start said, and the part of the message it becomes."""

    __slots__ = ("grows_by", "part", "signature", "wire")

    def __init__(self, wire: Wire, part: Part) -> None:
        self.wire = wire
        self.part = part
        self.grows_by = _FAST[part.kind]
        self.signature: list[str] = []


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._message: Wire = {}  # the reply as the wire would have sent it whole, without its content
        self._blocks: dict[object, _Block] = {}

    def read_fast(self, frame: bytes, out: Assembly) -> bool:
        """Take in a delta that simply lengthens its block, the short way; say whether it was one."""
        try:
            fast = _READ_FAST(frame)
        except _MISFIT:
            return False
        block, delta = self._blocks.get(fast.index), fast.delta
        if block is None or delta is None or fast.type != _DELTA:
            return False
        text: str | None = getattr(delta, block.grows_by)
        if not text:
            return False
        out.grow(block.part, text)
        return True

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        kind = frame.get("type")
        if kind == _DELTA:
            # Nearly every frame comes here, and a cast is a call: so the type is claimed, and looked at below.
            delta: Wire | None = frame.get("delta")  # pyright: ignore[reportAssignmentType]
            if isinstance(delta, dict):
                block = self._blocks.get(frame.get("index"))
                if block is None or not isinstance(text := delta.get(block.grows_by), str):
                    self._grow(frame.get("index"), delta, out)
                elif text:
                    out.grow(block.part, text)
        elif kind == "content_block_start":
            block = frame.get("content_block")
            if isinstance(block, Mapping):
                self._open(frame.get("index"), cast("Mapping[str, object]", block), out)
        elif kind == "content_block_stop":
            block = self._blocks.pop(frame.get("index"), None)
            if block is not None:
                self._close(block, out)
        elif kind == "message_start":
            message = frame.get("message")
            if isinstance(message, Mapping):
                self._begin(cast("Mapping[str, object]", message), out)
            self._settle(out)
            out.start()
        elif kind == "message_delta":
            self._change(frame, out)
        elif kind == "message_stop":
            self._finish(out)
        elif kind == "error" or (kind is None and "error" in frame):
            self._fail(frame, out)

    def end(self, out: Assembly) -> None:
        """Leave what arrived in order; the assembly then says that the reply did not end."""
        self._close_all(out)
        out.stop_reason = None

    def _begin(self, message: Mapping[str, object], out: Assembly) -> None:
        """Take in what message_start says, and the blocks that already stand in it; a second one has nothing new."""
        is_first = not self._message
        self._message.update(message)
        content = message.get("content")
        if is_first and isinstance(content, list):
            for block in cast("list[object]", content):
                if isinstance(block, Mapping):
                    self._open(_BEGUN, cast("Mapping[str, object]", block), out)
            self._close_all(out)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _open(self, index: object, wire: Mapping[str, object], out: Assembly) -> _Block:
        earlier = self._blocks.pop(index, None)
        if earlier is not None:
            self._close(earlier, out)
        match wire.get("type"):
            case "text":
                part = out.open_text()
                self._grow_part(part, wire.get("text"), out)
            case "thinking":
                part = out.open_thinking()
                self._grow_part(part, wire.get("thinking"), out)
            case "redacted_thinking":
                part = out.open_thinking()
                part.redacted, part.signature = True, text_of(wire.get("data"))
            case "tool_use":
                part = out.open_call(text_of(wire.get("id")) or "", text_of(wire.get("name")) or "")
            case _:
                part = out.add_native(wire, fallback_of(wire))
        block = self._blocks[index] = _Block(dict(wire), part)
        return block

    def _grow_part(self, part: Part, text: object, out: Assembly) -> None:
        if isinstance(text, str) and text:
            out.grow(part, text)

    def _grow(self, index: object, delta: Mapping[str, object], out: Assembly) -> None:
        """Take a delta that does not simply lengthen its block."""
        kind = delta.get("type")
        block = self._blocks.get(index)
        if block is None:
            ignored = _IGNORED.get(kind)
            if ignored is not None:
                block = self._open(index, {"type": ignored}, out)
                self._grow_part(block.part, delta.get(block.grows_by), out)
        elif kind == "signature_delta":
            block.signature.append(text_of(delta.get("signature")) or "")
        elif kind == "citations_delta":
            citations = block.wire.get("citations")
            known = cast("list[object]", citations) if isinstance(citations, list) else []
            block.wire["citations"] = [*known, delta.get("citation")]
        elif kind == "compaction_delta" and block.part.kind == "native":
            sent = ((key, value) for key, value in delta.items() if key != "type")
            block.wire.update((key, value) for key, value in sent if value is not None or key in block.wire)
        elif block.part.kind == "native":
            _merge(block.wire, delta)

    def _close(self, block: _Block, out: Assembly) -> None:
        """Read the block as if it had come whole, and give the part what only the whole tells."""
        part, wire = block.part, block.wire
        text = join_chunks(part.chunks)
        if part.kind == "text":
            if len(wire) != 2:
                part.extra = keep(wire, TEXT_KEYS)
        elif part.kind == "toolCall":
            self._close_call(part, wire, text)
        elif part.kind == "thinking" and not part.redacted:
            self._close_thinking(block, text)
        elif part.kind == "thinking":
            part.extra = keep(wire, REDACTED_KEYS)
        elif part.kind == "native":
            if text:
                wire["input"] = parse_arguments(text).arguments
            part.block, part.fallback = wire, fallback_of(wire)
        out.close(part)

    def _close_call(self, part: Part, wire: Wire, text: str) -> None:
        given = wire.get("input")
        part.extra = keep_of_call(wire)
        if text:
            parsed = parse_arguments(text)
            if parsed.diagnostic is None:
                # The wire takes an object back, so the spelling of sound JSON means nothing here; without it the call
                # equals the one that comes whole.
                part.chunks, part.arguments = [], parsed.arguments
        elif isinstance(given, dict):
            part.arguments = cast("dict[str, object]", given)
        elif given:
            call = decode_assistant_block({**wire, "id": part.id, "name": part.name}, self._endpoint, {})
            if call.kind == "toolCall":
                part.arguments, part.extra = call.arguments, call.extra
        else:
            part.arguments = {}

    def _close_thinking(self, block: _Block, text: str) -> None:
        wire = block.wire
        signature = (text_of(wire.get("signature")) or "") + "".join(block.signature)
        whole = {**wire, "thinking": text}
        if signature or "signature" in wire or block.signature:
            whole["signature"] = signature
        content = decode_thinking(whole, self._endpoint)
        if content is not None:
            block.part.signature, block.part.extra = content.thinking_signature, content.extra

    def _close_all(self, out: Assembly) -> None:
        for block in self._blocks.values():
            self._close(block, out)
        self._blocks.clear()

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _change(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Take in what message_delta says: why the reply ended, the counts, and whatever else stands there."""
        delta, usage = frame.get("delta"), frame.get("usage")
        if isinstance(delta, Mapping):
            self._message.update(cast("Mapping[str, object]", delta))
        if isinstance(usage, Mapping):
            known = self._message.get("usage")
            before = cast("Wire", known) if isinstance(known, Mapping) else Wire()
            sent = cast("Mapping[str, object]", usage).items()
            self._message["usage"] = {**before, **{k: v for k, v in sent if v is not None or k not in before}}
        self._message.update((key, value) for key, value in frame.items() if key not in _EVENT_KEYS)
        self._settle(out)

    def _settle(self, out: Assembly) -> None:
        """Tell the assembly what is known so far of the message as a whole."""
        message = self._message
        out.response_id = text_of(message.get("id"))
        out.response_model = text_of(message.get("model"))
        out.raw_stop_reason = text_of(message.get("stop_reason"))
        out.usage = decode_usage(message.get("usage"), self._endpoint)

    def _finish(self, out: Assembly) -> None:
        self._close_all(out)
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        whole = finish_response(self._message, pieces, {}, self._endpoint)
        self._settle(out)
        out.stop_reason, out.error_message, out.extra = whole.stop_reason, whole.error_message, whole.extra
        out.finish()

    def _fail(self, frame: Mapping[str, object], out: Assembly) -> None:
        self._close_all(out)
        self._settle(out)
        out.extra = reply_extra_of({PROTOCOL: {"error": frame.get("error")}})
        out.fail(error_text(frame))


def _merge(wire: Wire, delta: Mapping[str, object]) -> None:
    """Add a delta of a kind nobody knows to a block that only this wire knows: texts grow, the rest is replaced."""
    for key, value in delta.items():
        if key == "type":
            continue
        before = wire.get(key)
        if isinstance(before, str) and isinstance(value, str):
            wire[key] = before + value
        elif value is not None or key not in wire:
            wire[key] = value
