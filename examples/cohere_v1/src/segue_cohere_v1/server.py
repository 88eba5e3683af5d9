"""What a server of this protocol writes, for the gateway and the emulator: routes, streams and errors; and batch lines.

Facts this file rests on, all of cohere 7.3.1, read 2026-11-15:
- The events of a stream are those that `response` reads; `stream-end` has the whole reply.
- An error is an object with `message`; the status says what it is.
- A batch reads a data set of the type `batch-chat-input`. The keys of its lines are not documented in the package; that
  they are `custom_id` and `body`, and that results have the status and the body of a reply, is inferred.
"""

from __future__ import annotations

from typing import Final

from segue import AssistantMessage, EncodeError, NativeContent, Options
from segue.events import StartEvent
from segue.protocols import Endpoint, Route
from segue.protocols.kit.batch_form import BatchForm, Envelope
from segue.protocols.kit.batch_results import read_http_result
from segue.protocols.kit.codec import ErrorReply, Fault
from segue.protocols.kit.error_writing import STATUSES, error_headers, error_message, find_status
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.stream_writing import Explain, StreamEncoder, StreamWriter
from segue_cohere_v1.response import STOP_REASONS, encode_response
from segue_cohere_v1.rules import NAME, PROVIDER

ROUTES: Final = (Route(path="/v1/chat", kind="generate"),)

BATCH_FORMS: Final = (
    BatchForm(
        NAME,
        frozenset({PROVIDER}),
        Envelope(("custom_id",), ("body",), absent=frozenset({"url"})),
        read_http_result,
        recognised_by=frozenset({"message"}),
    ),
)

_OVERFLOW: Final = "too many tokens: the prompt has {used}, and cannot exceed {limit}; use a shorter prompt"
_UNKNOWN_OVERFLOW: Final = "too many tokens: the prompt exceeds the context length; use a shorter prompt"


def encode_error(fault: Fault) -> ErrorReply:
    """Write an error body with its status."""
    status = find_status(STATUSES, fault)
    message = error_message(fault, _OVERFLOW, _UNKNOWN_OVERFLOW)
    return ErrorReply(status, error_headers(fault, status), {"message": message})


def stream_encoder(endpoint: Endpoint, options: Options | None, explain: Explain) -> StreamEncoder:
    """Make the encoder of one stream."""
    return StreamEncoder(_Writer(endpoint, options), explain)


class _Writer(StreamWriter):
    """Writes events; calls wait for the end, because a reply of this protocol has them behind its text."""

    name = NAME
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
