"""Write a streamed Ollama reply: lines of JSON.

Facts this file relies on:
- Every line has model, created_at, a message and `done`; the last one has `done: true`, the reason and the counts.
                                                                       (ollama server source @fb30760; ollama 0.6.3)
- The heartbeat is a line with an empty content: a blank line or a comment breaks the SDK.     (tried, 2026-11)

A call waits for its end: Ollama sends calls whole. Nothing else waits.
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import AssistantContent, NativeContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import TextJoint
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.ollama_chat.errors import encode_error
from segue.protocols.ollama_chat.response import STOP_REASONS, encode_response
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.turns import BETWEEN_TEXTS, encode_assistant

_MESSAGE: Final = "message"
_WRITTEN: Final = frozenset({"content", "thinking", "tool_calls"})
_NO_TIME: Final = "1970-01-01T00:00:00Z"


class _Writer(StreamWriter):
    name = PROTOCOL
    reasons = STOP_REASONS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._line: Wire = {}
        self._joint = TextJoint()
        self._thoughts: set[int] = set()
        self._written: set[str] = set(_WRITTEN)

    def start(self, event: StartEvent, first: Block) -> None:
        self._line = {"model": event.model or self.endpoint.model.id, "created_at": _NO_TIME, **first}

    def _send(self, /, **fields: object) -> None:
        message = {"role": "assistant", "content": "", **fields}
        self.frames.append({**self._line, _MESSAGE: message, "done": False})

    def open_text(self, index: int, first: Block) -> None:  # noqa: ARG002 - the common signature
        self._joint.begin()

    def add_text(self, index: int, text: str) -> None:  # noqa: ARG002 - a line has no index
        message = {"role": "assistant", "content": self._joint.add(text)}
        self.frames.append({**self._line, _MESSAGE: message, "done": False})

    def add_thinking(self, index: int, text: str) -> None:
        if index not in self._thoughts:
            text = BETWEEN_TEXTS + text if self._thoughts else text
            self._thoughts.add(index)
        self._send(thinking=text)

    def close_call(self, index: int, call: ToolCall) -> None:  # noqa: ARG002 - the same
        self._send(tool_calls=self._whole(call)["tool_calls"])

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the same
        fields = rest_of(self._whole(content), frozenset({"role", "content"}))
        self._written.update(fields)
        self._send(**fields)

    def _whole(self, content: AssistantContent) -> Wire:
        return encode_assistant((content,), ("content",), ids=self.endpoint.dialect.call_ids)

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:  # noqa: ARG002 - Ollama has no such reason
        whole = encode_response(message, self.endpoint)
        rest = rest_of(object_of(whole.get(_MESSAGE)), self._written)
        last: Wire = {"role": "assistant", "content": "", **rest}
        self.frames.append({**self._line, **whole, _MESSAGE: last, "done": True})

    def heartbeat(self) -> None:
        self._send()

    def fail(self, fault: Fault) -> None:
        self.frames.append(encode_error(fault).body)


stream_encoder: MakeEncoder = encoder_of(_Writer)
