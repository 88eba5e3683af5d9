"""A streamed Anthropic reply.

Blocks are assembled as the wire sends them in a whole reply, and read by the same functions: so a folded stream and a
whole reply are equal. Without message_stop the reply is not finished, whatever came before; with it but without a stop
reason it is not either.

Write a streamed Anthropic reply.

Nothing waits for a later event, except redacted thinking, which has no deltas.

Facts:
- message_start, then blocks (start, deltas, stop) identified by their index, then message_delta with the stop reason
  and the token counts, then message_stop; ping anywhere; unknown events are to be ignored.
                                                                             (Anthropic documentation: streaming)
- Counts of message_delta are totals: they replace the earlier ones, and those it leaves out stay.  (anthropic 2.8.0)
- message_start may hold complete blocks, where a reply continues after a pause for tools, and a stop reason.
                                                             (vercel/ai e83d780: tools called from code; 2026-04)
- Redacted thinking and server results come whole in their start; a call may too, without any delta.
                                                                      (anthropic 2.8.0; eager input streaming)
- llama.cpp opens several blocks at once, stops them all at the end, and starts a call without `input`.      (tried)
- A `compaction` block comes in one delta, which holds all of it.              (anthropic 2.8.0: how the SDK merges it)
- A signature may come in pieces from other providers than Anthropic.                           (strands #3425)
- An error may come in mid-stream with status 200.                                             (anthropic 2.8.0)
- Clients need message_start first, a stop for each block, message_delta with the stop reason and all token counts, and
  message_stop. The counts of message_start stay where message_delta has none.        (Claude Code 2.1.325, 2026-11)
- Blocks may overlap: clients find a block by its index, and the SDK appends them in the order of their starts.
  llama.cpp sends such streams.                                  (anthropic 2.8.0; Claude Code, opencode, pi: 2026-11)
- A delta whose type differs from its block ends the turn of Claude Code, so a block is opened when its type is certain:
  thinking with its first text, redacted thinking at its end, whole.                                (litellm #33224)
- Claude Code reads the input of a call, also of a server tool, from deltas only, not from the start of its block.
- The heartbeat is `ping`.                              (every client of this protocol accepts it; facts of 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from segue.conversation.arguments import encode_arguments, parse_arguments
from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import Event, StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.anthropic_messages.content import decode_reply_block, encode_assistant_blocks, encode_native
from segue.protocols.anthropic_messages.native import fallback_of, find_writer
from segue.protocols.anthropic_messages.response import (
    NO_USAGE,
    STOP_REASONS,
    decode_usage,
    encode_error,
    encode_response,
    encode_usage,
    error_text,
    finish_response,
)
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.families.claude_prefix import note_transformations
from segue.protocols.kit.assembly import Assembly, Part, PartKind, join_chunks
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_patch import difference
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.readable_signatures import read_wrapped
from segue.protocols.kit.reading import of_reply, text_of
from segue.protocols.kit.reply_form import TRANSFORMATIONS
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of
from segue.protocols.kit.streaming import MISFIT, StreamDecoder

_DELTA: Final = "content_block_delta"
_EVENT_KEYS: Final = frozenset({"type", "delta", "usage"})
_BLOCK_KEYS: Final = frozenset({"type", "text", "thinking", "signature", "id", "name", "input"})
_START_KEYS: Final = frozenset({"type", "role", "content", "id", "model"})
"""Keys of message_start that the encoder of a stream writes itself; the others are kept in the start event."""
_GROWTH: Final[Mapping[PartKind, str]] = {
    "text": "text",
    "thinking": "thinking",
    "toolCall": "partial_json",
    "native": "partial_json",  # the call of a server tool; other native blocks come whole or change by other fields
}
"""The field of a delta that lengthens a part."""
_UNOPENED: Final[Mapping[object, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "tool_use",
}
"""The type of the block that a delta belongs to where the stream did not open it."""
_IN_START: Final = "in start"
"""The index of a block that came with message_start: no event refers to it."""
_NO_INDEX: Final = "no index"
"""The index of a block whose start has none. It is not None, which the fast path finds in events without one."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make the decoder of one stream."""
    reader = _Reader(endpoint)
    return StreamDecoder(reader, Assembly(endpoint.model, PROTOCOL, tool_names), reader.read_growth)


class _Delta(msgspec.Struct, frozen=True, gc=False):
    """The fields that lengthen a part."""

    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class _Growth(msgspec.Struct, frozen=True, gc=False):
    """The fields of most events, which lengthen a block. To read only these costs less than to read the whole event."""

    type: str = ""
    index: int | None = None
    delta: _Delta | None = None


_READ_GROWTH: Final = msgspec.json.Decoder(_Growth).decode


class _Block:
    """A block that is being assembled: the wire block so far, and the part of the message that it becomes."""

    __slots__ = ("grows_by", "part", "signature", "wire")

    def __init__(self, wire: Wire, part: Part) -> None:
        self.wire = wire
        self.part = part
        self.grows_by = _GROWTH[part.kind]
        self.signature: list[str] = []


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._message: Wire = {}  # the reply as the wire sends it whole, without its content
        self._content: list[Wire] = []  # its blocks, in the order of the parts
        self._blocks: dict[object, _Block] = {}  # those that are open

    def read_growth(self, frame: bytes) -> list[Event] | None:
        """Fast path: read a delta that only lengthens its block; None for every other frame."""
        try:
            growth = _READ_GROWTH(frame)
        except MISFIT:
            return None
        block, delta = self._blocks.get(growth.index), growth.delta
        if block is None or delta is None or growth.type != _DELTA:
            return None
        text: str | None = getattr(delta, block.grows_by)
        part = block.part
        if not text or part.delta is None or (text[0] == "{" and part.chunks):
            return None  # a bracket may begin what was received already
        part.chunks.append(text)  # as `Part.extend`
        return [part.delta(index=part.index, delta=text)]

    def read(self, frame: Block, out: Assembly) -> None:
        kind, index = frame.get("type"), frame.get("index")
        if not isinstance(index, int):
            index = self._index_of_last(kind)
        if kind == _DELTA:
            # Nearly every frame comes here, and a cast is a call: so the type is declared, and checked below.
            delta: Wire | None = frame.get("delta")  # pyright: ignore[reportAssignmentType]
            if isinstance(delta, dict):
                block = self._blocks.get(index)
                if block is None or not isinstance(text := delta.get(block.grows_by), str):
                    self._grow(index, delta, out)
                elif text:
                    out.grow(block.part, text)
        elif kind == "content_block_start":
            block = frame.get("content_block")
            if isinstance(block, Mapping):
                self._open(index, cast("Block", block), out)
        elif kind == "content_block_stop":
            block = self._blocks.pop(index, None)
            if block is not None:
                self._close(block, out)
        elif kind == "message_start":
            self._begin(object_of(frame.get("message")), out)
        elif kind == "message_delta":
            self._change(frame, out)
        elif kind == "message_stop":
            self._finish(out)
        elif kind == "ping":
            out.ping()
        elif kind == "error" or (kind is None and "error" in frame):
            self._fail(frame, out)

    def _index_of_last(self, kind: object) -> object:
        """Return the index of the block that was opened last, for an event without one; a new block has none."""
        return _NO_INDEX if kind == "content_block_start" else next(reversed(self._blocks), None)

    def end(self, out: Assembly) -> None:
        """Close all blocks; the assembly then reports that the reply did not end."""
        self._close_all(out)
        out.response_model = find_writer(_closed(out)) or out.response_model
        out.stop_reason = None

    def _begin(self, message: Block, out: Assembly) -> None:
        """Read message_start and the blocks in it; those of a second message_start are ignored."""
        is_first = not self._message
        self._message.update(message)
        self._settle(out)
        out.first = {key: value for key, value in message.items() if key not in _START_KEYS}
        out.start()
        self._note(message, out)
        content = message.get("content")
        if is_first and isinstance(content, list):
            for block in cast("list[object]", content):
                if isinstance(block, Mapping):
                    self._open(_IN_START, cast("Block", block), out)
            self._close_all(out)

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _open(self, index: object, wire: Block, out: Assembly) -> _Block:
        earlier = self._blocks.pop(index, None)
        if earlier is not None:
            self._close(earlier, out)
        match wire.get("type"):
            case "text":
                part = out.open_text(_first_keys(wire))
                self._grow_part(part, wire.get("text"), out)
            case "thinking":
                part = out.open_thinking(_first_keys(wire))
                self._grow_part(part, wire.get("thinking"), out)
            case "redacted_thinking" if isinstance(data := wire.get("data"), str):
                part = out.open_thinking()
                text = read_wrapped(data)
                part.redacted, part.signature = text is None, data
                self._grow_part(part, text, out)
            case "tool_use":
                call_id, name = text_of(wire.get("id")) or "", text_of(wire.get("name")) or ""
                part = out.open_call(call_id, name, _first_keys(wire))
            case _:
                part = out.add_native(wire, fallback_of(wire))
        block = self._blocks[index] = _Block(dict(wire), part)
        self._content.append(block.wire)
        return block

    def _grow_part(self, part: Part, text: object, out: Assembly) -> None:
        if isinstance(text, str) and text:
            out.grow(part, text)

    def _grow(self, index: object, delta: Block, out: Assembly) -> None:
        """Read a delta that does not only lengthen its block."""
        kind = delta.get("type")
        block = self._blocks.get(index)
        if block is None:
            unopened = _UNOPENED.get(text_of(kind) or "")
            if unopened is not None:
                block = self._open(index, {"type": unopened}, out)
                self._grow_part(block.part, delta.get(block.grows_by), out)
        elif kind == "signature_delta":
            block.signature.append(text_of(delta.get("signature")) or "")
        elif kind == "citations_delta":
            citations = block.wire.get("citations")
            block.wire["citations"] = [*list_of(citations), delta.get("citation")]
        elif kind == "compaction_delta" and block.part.kind == "native":
            given = ((key, value) for key, value in delta.items() if key != "type")
            block.wire.update((key, value) for key, value in given if value is not None or key in block.wire)
        elif block.part.kind == "native":
            _merge(block.wire, delta)

    def _close(self, block: _Block, out: Assembly) -> None:
        """Complete the wire block, read it as one that came whole, and add to the part what only the whole has."""
        part, wire, text = block.part, block.wire, join_chunks(block.part.chunks)
        match part.kind:
            case "text":
                wire["text"] = text
            case "thinking" if wire.get("type") == "thinking":
                wire["thinking"] = text
                if block.signature:
                    wire["signature"] = (text_of(wire.get("signature")) or "") + "".join(block.signature)
            case "thinking":
                pass
            case "toolCall":
                wire["id"], wire["name"] = text_of(wire.get("id")) or "", text_of(wire.get("name")) or ""
                self._complete_input(part, wire, text)
            case "native":
                if text:
                    wire["input"] = parse_arguments(text).arguments
        content = decode_reply_block(wire, self._endpoint, {})
        part.extra = content.extra
        if content.kind == "thinking":
            part.signature = content.thinking_signature
        elif content.kind == "toolCall" and not part.chunks:
            part.arguments = content.arguments
        elif content.kind == "native":
            part.block, part.fallback = content.block, content.fallback
        out.close(part)

    def _complete_input(self, part: Part, wire: Wire, text: str) -> None:
        if text:
            parsed = parse_arguments(text)
            wire["input"] = parsed.arguments
            if parsed.diagnostic is None:
                # The wire takes an object back, so the text of sound JSON need not be kept; without it the call equals
                # the one that comes whole.
                part.chunks = []
        else:
            wire.setdefault("input", {})

    def _close_all(self, out: Assembly) -> None:
        for block in self._blocks.values():
            self._close(block, out)
        self._blocks.clear()

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _change(self, frame: Block, out: Assembly) -> None:
        """Read message_delta: the stop reason, the token counts, and all other keys."""
        delta, usage = frame.get("delta"), frame.get("usage")
        if isinstance(delta, Mapping):
            self._message.update(cast("Block", delta))
        if isinstance(usage, Mapping):
            known = self._message.get("usage")
            before = cast("Wire", known) if isinstance(known, Mapping) else Wire()
            counts = cast("Block", usage).items()
            self._message["usage"] = {**before, **{k: v for k, v in counts if v is not None or k not in before}}
        self._message.update((key, value) for key, value in frame.items() if key not in _EVENT_KEYS)
        self._note(frame, out)
        self._settle(out)

    def _note(self, given: Block, out: Assembly) -> None:
        """Pass on what the provider says that it dropped: at the start, and again after it used another model."""
        if TRANSFORMATIONS in given:
            for diagnostic in note_transformations(given[TRANSFORMATIONS]):
                out.notice(diagnostic)

    def _settle(self, out: Assembly) -> None:
        """Pass the assembly what is known so far of the message as a whole."""
        message = self._message
        out.response_id = text_of(message.get("id"))
        out.response_model = text_of(message.get("model"))
        out.raw_stop_reason = text_of(message.get("stop_reason"))
        out.usage = decode_usage(message.get("usage"), self._endpoint)

    def _finish(self, out: Assembly) -> None:
        self._close_all(out)
        pieces = _closed(out)
        whole = finish_response({**self._message, "content": self._content}, pieces, self._endpoint)
        self._settle(out)
        out.response_model = whole.response_model
        out.stop_reason, out.error_message, out.extra = whole.stop_reason, whole.error_message, whole.extra
        out.diagnostics += whole.diagnostics
        out.finish()

    def _fail(self, frame: Block, out: Assembly) -> None:
        self._close_all(out)
        self._settle(out)
        out.response_model = find_writer(_closed(out)) or out.response_model
        error = difference({}, {"error": frame.get("error")})
        out.extra = None if error is None else of_reply(PROTOCOL, error)
        out.fail(error_text(frame))


def _first_keys(wire: Block) -> Wire | None:
    """Return the keys of a block's start that an encoder does not write itself."""
    if wire.keys() <= _BLOCK_KEYS:
        return None
    return {key: value for key, value in wire.items() if key not in _BLOCK_KEYS}


def _closed(out: Assembly) -> tuple[AssistantContent, ...]:
    return tuple(part.closed for part in out.parts if part.closed is not None)


def _merge(wire: Wire, delta: Block) -> None:
    """Add a delta of unknown type to a native block: texts are appended, other values replaced."""
    for key, value in delta.items():
        if key == "type":
            continue
        before = wire.get(key)
        if isinstance(before, str) and isinstance(value, str):
            wire[key] = before + value
        elif value is not None or key not in wire:
            wire[key] = value


_WRITTEN: Final = frozenset({"id", "type", "role", "model", "content", "usage"})
_BESIDE_DELTA: Final = frozenset({"context_management"})
"""Keys of message_delta that are next to its delta.  (anthropic 2.8.0: BetaRawMessageDeltaEvent)"""
_DELTAS: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "toolCall": ("input_json_delta", "partial_json"),
}
"""The type of a delta, and its field with text, by the kind of the part."""
_UNNAMED: Final = "msg_0"


class _Writer(StreamWriter):
    name = PROTOCOL
    json_arguments = True
    reasons = STOP_REASONS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._indexes: dict[int, int] = {}  # of open blocks, by the index of their part
        self._count = 0
        self._first: dict[int, Block] = {}  # the keys of thinking that is not open yet
        self._start: Wire = {}

    def start(self, event: StartEvent, first: Block) -> None:
        usage = NO_USAGE if event.usage is None else encode_usage(event.usage)
        self._start = {
            "id": event.id or _UNNAMED,
            "type": "message",
            "role": "assistant",
            "model": event.model or self.endpoint.model.id,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
            **first,
        }
        self.frames.append({"type": "message_start", "message": self._start})

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _open(self, index: int, block: Wire) -> int:
        at = self._indexes[index] = self._count
        self._count += 1
        self.frames.append({"type": "content_block_start", "index": at, "content_block": block})
        return at

    def _delta(self, index: int, delta: Wire) -> None:
        self.frames.append({"type": "content_block_delta", "index": self._indexes[index], "delta": delta})

    def frame_maker(self, index: int, kind: str) -> FrameMaker:
        at, (name, field) = self._indexes[index], _DELTAS[kind]
        return lambda text: {"type": "content_block_delta", "index": at, "delta": {"type": name, field: text}}

    def _close(self, index: int) -> None:
        self.frames.append({"type": "content_block_stop", "index": self._indexes.pop(index)})

    def open_text(self, index: int, first: Block) -> None:
        block: Wire = {"type": "text", "text": "", **first}
        if isinstance(block.get("citations"), list):
            block["citations"] = list[object]()  # each citation is a delta
        self._open(index, block)

    def add_text(self, index: int, text: str) -> None:
        self._delta(index, {"type": "text_delta", "text": text})

    def close_text(self, index: int, content: TextContent) -> None:
        if content.extra is not None:
            (block,) = encode_assistant_blocks((content,), self.endpoint, is_reply=True)
            citations = block.get("citations")
            for citation in list_of(citations):
                self._delta(index, {"type": "citations_delta", "citation": citation})
        self._close(index)

    def open_thinking(self, index: int, first: Block) -> None:
        self._first[index] = first

    def _open_thinking(self, index: int) -> None:
        if index not in self._indexes:
            self._open(index, {"type": "thinking", "thinking": "", "signature": "", **self._first.pop(index, EMPTY)})

    def add_thinking(self, index: int, text: str) -> None:
        self._open_thinking(index)
        self._delta(index, {"type": "thinking_delta", "thinking": text})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:
        (block,) = encode_assistant_blocks((content,), self.endpoint, is_reply=True)
        if block.get("type") != "thinking" and index not in self._indexes:
            self._first.pop(index, None)
            self._open(index, block)
        else:
            self._open_thinking(index)
            if content.thinking_signature:
                self._delta(index, {"type": "signature_delta", "signature": content.thinking_signature})
        self._close(index)

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:
        self._open(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}, **first})

    def add_arguments(self, index: int, text: str) -> None:
        self._delta(index, {"type": "input_json_delta", "partial_json": text})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the deltas hold all of it
        self._close(index)

    def add_native(self, index: int, content: NativeContent) -> None:
        block = encode_native(content)
        given = block.get("input")
        if isinstance(given, Mapping) and given:
            self._open(index, {**block, "input": {}})
            text = encode_arguments(cast("Block", given))
            self._delta(index, {"type": "input_json_delta", "partial_json": text})
        else:
            self._open(index, block)
        self._close(index)

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        whole = encode_response(message, self.endpoint)
        if refused and whole.get("stop_reason") not in STOP_REASONS:
            whole["stop_reason"] = "refusal"
        known = {key: value for key, value in self._start.items() if key not in ("stop_reason", "stop_sequence")}
        new = {k: v for k, v in whole.items() if k not in _WRITTEN and (k not in known or known[k] != v)}
        delta = {key: value for key, value in new.items() if key not in _BESIDE_DELTA}
        usage = object_of(whole.get("usage")) or object_of(self._start["usage"])
        beside = {key: value for key, value in new.items() if key in _BESIDE_DELTA}
        self.frames.append({"type": "message_delta", "delta": delta, "usage": usage, **beside})
        self.frames.append({"type": "message_stop"})

    def heartbeat(self) -> None:
        self.frames.append({"type": "ping"})

    def fail(self, fault: Fault) -> None:
        self.frames.append(encode_error(fault).body)


stream_encoder: MakeEncoder = encoder_of(_Writer)
