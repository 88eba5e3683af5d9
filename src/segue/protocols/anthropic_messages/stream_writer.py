"""Write a streamed Anthropic reply.

Facts this file relies on:
- Clients need message_start first, a stop for each block, message_delta with the stop reason and all token counts, and
  message_stop. The counts of message_start stay where message_delta has none.        (Claude Code 2.1.325, 2026-11)
- Blocks may overlap: clients find a block by its index, and the SDK appends them in the order of their starts.
  llama.cpp sends such streams.                                  (anthropic 2.8.0; Claude Code, opencode, pi: 2026-11)
- A delta whose type differs from its block ends the turn of Claude Code, so a block is opened when its type is certain:
  thinking with its first text, redacted thinking at its end, whole.                                (litellm #33224)
- Claude Code reads the input of a call, also of a server tool, from deltas only, not from the start of its block.
- The heartbeat is `ping`.                              (every client of this protocol accepts it; facts of 2026-11)

Nothing waits for a later event, except redacted thinking, which has no deltas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.anthropic_messages.content import encode_assistant_blocks, encode_native
from segue.protocols.anthropic_messages.errors import encode_error
from segue.protocols.anthropic_messages.response import NO_USAGE, STOP_REASONS, encode_response, encode_usage
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import EMPTY, Block, Wire, list_of, object_of
from segue.protocols.kit.stream_writing import FrameMaker, MakeEncoder, StreamWriter, encoder_of

_WRITTEN: Final = frozenset({"id", "type", "role", "model", "content", "usage"})
_BESIDE_DELTA: Final = frozenset({"context_management"})
"""Keys of message_delta that stand beside its delta.  (anthropic 2.8.0: BetaRawMessageDeltaEvent)"""
_DELTAS: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "toolCall": ("input_json_delta", "partial_json"),
}
"""The type of a delta, and its field with text, by the kind of the part."""
_UNNAMED: Final = "msg_0"


class _Writer(StreamWriter):
    name = PROTOCOL
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
