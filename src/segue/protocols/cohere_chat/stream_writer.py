"""Write a streamed reply of Cohere's v2 chat endpoint.

Facts this file rests on:
- message-start; blocks of content and calls, each with start, deltas and end, by two series of indexes; citations;
  message-end with the finish reason, the usage and an error.                        (cohere 7.3.1, read 2026-11-15)
- Text before calls is a plan only in Cohere's own replies: a text of another protocol is written before it is known
  whether calls follow, so it is content.
- The heartbeat is a `debug` event, which the SDK knows and clients ignore.        (cohere 7.3.1: V2ChatStreamResponse)

Nothing waits for a later event.
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.cohere_chat.errors import encode_error
from segue.protocols.cohere_chat.response import STOP_REASONS, encode_response
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.cohere_chat.turns import CITATIONS
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of, rest_of

_UNNAMED: Final = "00000000-0000-0000-0000-000000000000"
_BODY_KEYS: Final = frozenset({"id", "message", "finish_reason", "usage"})
_PLAN: Final = "tool_plan"


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS
    empty_arguments = "{}"

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._id = _UNNAMED
        self._places: dict[int, int] = {}  # of open blocks and calls, by the index of their part
        self._plans: set[int] = set()
        self._blocks = 0
        self._calls = 0

    def _send(self, kind: str, index: int | None, **message: object) -> None:
        frame: Wire = {"type": kind}
        if index is not None:
            frame["index"] = index
        if message:
            frame["delta"] = {"message": message}
        self.frames.append(frame)

    def start(self, event: StartEvent, first: Block) -> None:  # noqa: ARG002 - nothing besides the id
        self._id = event.id or _UNNAMED
        message: Wire = {"role": "assistant", "content": [], _PLAN: "", "tool_calls": [], CITATIONS: []}
        self.frames.append({"type": "message-start", "id": self._id, "delta": {"message": message}})

    # -- content -------------------------------------------------------------------------------------------------------

    def _open(self, index: int, content: Wire) -> None:
        at = self._places[index] = self._blocks
        self._blocks += 1
        self._send("content-start", at, content=content)

    def open_text(self, index: int, first: Block) -> None:
        if first.get("field") == _PLAN:
            self._plans.add(index)
        else:
            self._open(index, {**first, "type": "text", "text": ""})

    def add_text(self, index: int, text: str) -> None:
        if index in self._plans:
            self._send("tool-plan-delta", None, tool_plan=text)
        else:
            self._send("content-delta", self._places[index], content={"text": text})

    def close_text(self, index: int, content: TextContent) -> None:  # noqa: ARG002 - the deltas hold all of it
        if index in self._plans:
            self._plans.discard(index)
        else:
            self._send("content-end", self._places.pop(index))

    def open_thinking(self, index: int, first: Block) -> None:
        self._open(index, {**first, "type": "thinking", "thinking": ""})

    def add_thinking(self, index: int, text: str) -> None:
        self._send("content-delta", self._places[index], content={"thinking": text})

    def close_thinking(self, index: int, content: ThinkingContent) -> None:  # noqa: ARG002 - the same
        self._send("content-end", self._places.pop(index))

    def open_call(self, index: int, call_id: str, name: str, first: Block) -> None:  # noqa: ARG002 - no other keys
        at = self._places[index] = self._calls
        self._calls += 1
        call: Wire = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        self._send("tool-call-start", at, tool_calls=call)

    def add_arguments(self, index: int, text: str) -> None:
        self._send("tool-call-delta", self._places[index], tool_calls={"function": {"arguments": text}})

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the same
        self._send("tool-call-end", self._places.pop(index))

    def add_native(self, index: int, content: NativeContent) -> None:
        self._open(index, dict(native_block(PROTOCOL, content)))
        self._send("content-end", self._places.pop(index))

    # -- the end -------------------------------------------------------------------------------------------------------

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        whole = encode_response(message, self.endpoint)
        citations = object_of(whole.get("message")).get(CITATIONS)
        for at, citation in enumerate(list_of(citations)):
            self._send("citation-start", at, citations=citation)
            self._send("citation-end", at)
        reason = whole.get("finish_reason")
        delta: Wire = {"finish_reason": "ERROR_TOXIC" if refused and reason == "ERROR" else reason}
        if "usage" in whole:
            delta["usage"] = whole["usage"]
        rest = rest_of(whole, _BODY_KEYS)
        self.frames.append({"type": "message-end", "id": self._id, "delta": delta, **rest})

    def heartbeat(self) -> None:
        self.frames.append({"type": "debug", "prompt": ""})

    def fail(self, fault: Fault) -> None:
        error = encode_error(fault).body["message"]
        delta = {"finish_reason": "ERROR", "error": error}
        self.frames.append({"type": "message-end", "id": self._id, "delta": delta})


stream_encoder: MakeEncoder = encoder_of(_Writer)
