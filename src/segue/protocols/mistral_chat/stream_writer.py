"""Write a streamed reply of Mistral's chat endpoint.

Facts this file rests on:
- Chunks hold deltas; thinking is a list of chunks, text a string; the last chunk has the finish reason and the usage;
  then `[DONE]`.                                                                     (mistralai 3.7.0, read 2026-11-15)
- The heartbeat is an empty delta: clients read `choices[0]` of every chunk.          (AI SDK: its Mistral provider)

A call waits for its end: Mistral sends calls whole, and clients read each entry as a whole call. Nothing else waits.
"""

from __future__ import annotations

from typing import Final, cast

from segue.conversation.content import NativeContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.functions import encode_call
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.mistral_chat.errors import encode_error
from segue.protocols.mistral_chat.response import STOP_REASONS, encode_response
from segue.protocols.mistral_chat.rules import PROTOCOL
from segue.protocols.mistral_chat.turns import encode_thinking

_END: Final = "[DONE]"
_UNNAMED: Final = "cmpl-0"
_BODY_KEYS: Final = frozenset({"id", "object", "created", "model", "choices"})
_CHOICE_KEYS: Final = frozenset({"index", "message", "messages", "finish_reason"})
_MESSAGE_KEYS: Final = frozenset({"role", "content", "tool_calls"})


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._chunk: Wire = {}
        self._calls = 0
        self._message: int | None = None  # the number of the message, where the provider ran tools

    def start(self, event: StartEvent, first: Block) -> None:
        self._chunk = {
            "id": event.id or _UNNAMED,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": event.model or self.endpoint.model.id,
            **first,
        }
        self._delta({"role": "assistant", "content": ""})

    def _delta(self, delta: Wire) -> None:
        if self._message is not None:
            delta = {"index": self._message, **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        self.frames.append({**self._chunk, "choices": [choice]})

    def add_text(self, index: int, text: str) -> None:  # noqa: ARG002 - parts have no index here
        self._delta({"content": text})

    def add_thinking(self, index: int, text: str) -> None:  # noqa: ARG002 - the same
        chunk: Wire = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
        self._delta({"content": [chunk]})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:  # noqa: ARG002 - the same
        wire = encode_thinking(content)
        inner = wire.get("thinking")
        others = (
            [entry for entry in cast("list[object]", inner) if object_of(entry).get("type", "text") != "text"]
            if isinstance(inner, list)
            else []
        )
        if others or len(wire) > 2 or not content.thinking:
            self._delta({"content": [{**wire, "thinking": others}]})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the same
        wire = rest_of(encode_call(PROTOCOL, call), frozenset({"type"}))
        self._delta({"tool_calls": [{**wire, "index": self._calls}]})
        self._calls += 1

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the same
        block = native_block(PROTOCOL, content)
        if "role" in block:
            self._message = 0 if self._message is None else self._message
            self._delta(dict(block))
            self._message += 1
        elif isinstance(calls := block.get("tool_calls"), list):
            for call in cast("list[object]", calls):
                self._delta({"tool_calls": [{**object_of(call), "index": self._calls}]})
                self._calls += 1
        else:
            self._delta({"content": [block]})

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:  # noqa: ARG002 - Mistral: `error`
        whole = encode_response(message, self.endpoint)
        given = whole.get("choices")
        choices = [object_of(choice) for choice in cast("list[object]", given)] if isinstance(given, list) else []
        first = choices[0] if choices else cast("Block", {})
        delta = {"content": "", **rest_of(object_of(first.get("message")), _MESSAGE_KEYS)}
        if self._message is not None:
            delta = {"index": self._message, **delta}
        last: Wire = {"index": 0, "delta": delta, "finish_reason": first.get("finish_reason")}
        last |= rest_of(first, _CHOICE_KEYS)
        others = [
            {"index": at, **rest_of(choice, frozenset({"message"})), "delta": object_of(choice.get("message"))}
            for at, choice in enumerate(choices[1:], 1)
        ]
        self.frames.append({**self._chunk, **rest_of(whole, _BODY_KEYS), "choices": [last, *others]})
        self.frames.append(_END)

    def heartbeat(self) -> None:
        self._delta({"content": ""})

    def fail(self, fault: Fault) -> None:
        self.frames.append(encode_error(fault).body)
        self.frames.append(_END)


stream_encoder: MakeEncoder = encoder_of(_Writer)
