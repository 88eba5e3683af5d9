"""Write a streamed reply of the VS Code language model API: lines of JSON, one part each.

Facts this file relies on:
- Texts come in fragments, calls whole; there is no thinking, no usage and no end mark.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)

The format is segue's own, see `stream`. A call waits for its end. The heartbeat is an empty text.
"""

from __future__ import annotations

from segue.conversation.content import AssistantContent, NativeContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError
from segue.protocols.kit.codec import Fault
from segue.protocols.kit.json_values import Wire, object_of
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of
from segue.protocols.vscode_lm.content import KIND, encode_parts
from segue.protocols.vscode_lm.errors import encode_error
from segue.protocols.vscode_lm.rules import PROTOCOL


class _Writer(StreamWriter):
    name = PROTOCOL

    def add_text(self, index: int, text: str) -> None:  # noqa: ARG002 - parts have no index here
        self.frames.append({KIND: "text", "value": text})

    def add_thinking(self, index: int, text: str) -> None:  # noqa: ARG002 - the same
        raise EncodeError(f"{PROTOCOL} does not support thinking; remove it from the reply", path=(index,))

    def close_call(self, index: int, call: ToolCall) -> None:
        self.frames.append(self._whole(index, call))

    def add_native(self, index: int, content: NativeContent) -> None:
        self.frames.append(self._whole(index, content))

    def _whole(self, index: int, content: AssistantContent) -> Wire:
        (part,) = encode_parts((content,), (index,))
        return part

    def finish(self, message: AssistantMessage, *, refused: bool) -> None:
        if refused:
            text = message.error_message or "the reply was withheld by a content filter"
            self.frames.append({KIND: "error", "code": "Blocked", "message": text})
        elif not message.content:
            self.heartbeat()  # a stream without any part is incomplete

    def heartbeat(self) -> None:
        self.frames.append({KIND: "text", "value": ""})

    def fail(self, fault: Fault) -> None:
        self.frames.append({KIND: "error", **object_of(encode_error(fault).body["error"])})


stream_encoder: MakeEncoder = encoder_of(_Writer)
