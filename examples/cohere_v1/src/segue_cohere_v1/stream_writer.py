"""Streams that a server of this protocol writes, for the gateway and the emulator.

Facts this file rests on, all of cohere 7.3.1, read 2026-11-15:
- The events are those that `stream` reads; `stream-end` has the whole reply.
"""

from __future__ import annotations

from segue import AssistantMessage, EncodeError, NativeContent, Options
from segue.events import StartEvent
from segue.protocols import Endpoint
from segue.protocols.kit.codec import Fault
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.stream_writing import StreamWriter, encoder_of
from segue_cohere_v1.errors import encode_error
from segue_cohere_v1.response import STOP_REASONS, encode_response
from segue_cohere_v1.rules import PROTOCOL


class _Writer(StreamWriter):
    """Writes events; calls wait for the end, because a reply of this protocol has them behind its text."""

    name = PROTOCOL
    reasons = STOP_REASONS

    def __init__(self, endpoint: Endpoint, options: Options | None) -> None:
        super().__init__(endpoint, options)
        self._joint = ""

    def _send(self, event_type: str, **fields: object) -> None:
        self.frames.append({"is_finished": event_type == "stream-end", "event_type": event_type, **fields})

    def start(self, event: StartEvent, first: Block) -> None:  # noqa: ARG002 - common signature
        self._send("stream-start", generation_id=event.id or "")

    def add_text(self, index: int, text: str) -> None:  # noqa: ARG002 - a reply has one text
        self._send("text-generation", text=self._joint + text)
        self._joint = ""

    def close_text(self, index: int, content: object) -> None:  # noqa: ARG002 - the same
        self._joint = "\n"

    def add_thinking(self, index: int, text: str) -> None:  # noqa: ARG002 - the same
        raise EncodeError("cohere-v1 does not support thinking; remove it from the reply")

    def add_native(self, index: int, content: NativeContent) -> None:  # noqa: ARG002 - the same
        raise EncodeError("cohere-v1 has no native content in replies; project the reply first")

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:  # noqa: ARG002 - the reason is in the reply
        whole = encode_response(message, self.endpoint)
        if "tool_calls" in whole:
            self._send("tool-calls-generation", text=whole["text"], tool_calls=whole["tool_calls"])
        self._send("stream-end", finish_reason=whole.get("finish_reason"), response=whole)

    def heartbeat(self) -> None:
        self._send("text-generation", text="")

    def fail(self, fault: Fault) -> None:
        self.frames.append(encode_error(fault).body)


stream_encoder = encoder_of(_Writer)
