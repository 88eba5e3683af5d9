"""A streamed Ollama reply: lines of JSON, each a reply with a part of the message; the last one has the counts.

The lines are put together to the body of a whole reply, which the same function reads: so a folded stream and a whole
reply are equal. Without a line with `done: true` the reply is incomplete.

Write a streamed Ollama reply: lines of JSON.

A call waits for its end: Ollama sends calls whole. Nothing else waits.

Facts:
- `content` and `thinking` arrive in pieces, calls whole, and several calls may have the same index; `done: true` comes
  last, with the stop reason and the counts.         (ollama server source @fb30760; maka #1976; read 2026-11-15)
- An error during the stream is a line `{"error": "..."}`.                                  (the same; ollama 0.6.3)
- Log probabilities arrive with the piece they belong to.                                             (ollama 0.6.3)
- Every line has model, created_at, a message and `done`; the last one has `done: true`, the reason and the counts.
                                                                       (ollama server source @fb30760; ollama 0.6.3)
- The heartbeat is a line with an empty content: a blank line or a comment breaks the SDK.     (tried, 2026-11)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.content import AssistantContent, NativeContent, ToolCall
from segue.conversation.context import Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import AssistantMessage
from segue.errors import DecodeError
from segue.protocols.families.chat_content import TextJoint
from segue.protocols.kit.assembly import Assembly, Part, PartKind
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, list_of, object_of
from segue.protocols.kit.reading import expect_list, text_of
from segue.protocols.kit.replies import rename_calls
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of, rest_of
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.ollama_chat.content import decode_call, decode_images, native_images
from segue.protocols.ollama_chat.response import (
    STOP_REASONS,
    encode_error,
    encode_response,
    error_text,
    finish_response,
)
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.turns import BETWEEN_TEXTS, encode_assistant

_PIECES: Final = frozenset({"content", "thinking", "tool_calls", "images"})
"""The keys of a message that arrive in pieces; the others hold for the whole message."""
_REPEATED: Final = ("model", "created_at", "message", "done")
"""Keys that every line has."""
_READ_KEYS: Final = frozenset({*_REPEATED, "logprobs", "error"})


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make the decoder of one stream."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: Part | None = None  # the text or the thinking that grows
        self._keys: Wire = {}  # the keys of the whole message
        self._body: Wire = {}  # other keys of the lines
        self._images: list[object] = []
        self._logprobs: list[object] = []
        self._calls: list[Block] = []  # as received, with the given names of the tools

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        if not out.started and "error" not in frame:
            out.response_model = text_of(frame.get("model"))
            created = frame.get("created_at")
            out.first = None if created is None else {"created_at": created}
            out.start()
        # Most lines have a few characters of text. `cast` is a call, so the type is asserted here and checked below.
        message: Wire | None = frame.get("message")  # pyright: ignore[reportAssignmentType]
        if isinstance(message, dict):
            text = message.get("content")
            if text and isinstance(text, str) and len(message) == 2 and message.get("role") == "assistant":
                self._extend("text", text, out)
            else:
                self._read_message(message, out)
        elif "error" in frame:
            error = error_text(frame)
            self._finish(frame, out, error=error)
            out.fail(error)
            return
        if "logprobs" in frame:
            received = frame["logprobs"]
            self._logprobs += list_of(received)
        if len(frame) > len(_REPEATED):
            self._body.update((key, value) for key, value in frame.items() if key not in _READ_KEYS)
        if frame.get("done") is True:
            self._finish(frame, out)
            out.finish()

    def end(self, out: Assembly) -> None:
        """Close the open part; the assembly reports that the reply is incomplete."""
        self._close(out)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _read_message(self, message: Wire, out: Assembly) -> None:
        """Read a message that has more than a piece of text."""
        self._extend_if("thinking", message.get("thinking"), out)
        self._extend_if("text", message.get("content"), out)
        images = message.get("images")
        if images:
            self._images += expect_list(images, ("message", "images"))
        calls = message.get("tool_calls")
        if calls:
            for call in expect_list(calls, ("message", "tool_calls")):
                self._read_call(call, out)
        self._keys.update((key, value) for key, value in message.items() if key not in _PIECES)

    def _extend_if(self, kind: PartKind, text: object, out: Assembly) -> None:
        if isinstance(text, str):
            if text:
                self._extend(kind, text, out)
        elif text is not None:
            raise DecodeError("`content` and `thinking` must be strings", path=("message",))

    def _extend(self, kind: PartKind, text: str, out: Assembly) -> None:
        part = self._open
        if part is None or part.kind != kind:
            self._close(out)
            part = self._open = out.open_text() if kind == "text" else out.open_thinking()
        out.grow(part, text)

    def _read_call(self, wire: object, out: Assembly) -> None:
        self._close(out)
        position = len(self._calls)
        path = ("message", "tool_calls", position)
        piece = decode_call(wire, position, path, out.diagnostics, reply=True)
        received = object_of(wire)
        if piece.kind == "native":
            part = out.add_native(piece.block)
        else:
            part = out.open_call(piece.id, piece.name)
            received = {**received, "function": {**object_of(received["function"]), "name": part.name}}
        self._calls.append(received)
        out.close(part, rename_calls((piece,), out.tool_names)[0])

    def _close(self, out: Assembly) -> None:
        if self._open is not None:
            out.close(self._open)
            self._open = None

    # -- the whole reply -----------------------------------------------------------------------------------------------

    def _finish(self, frame: Mapping[str, object], out: Assembly, *, error: str | None = None) -> None:
        """Set the fields of the whole reply; `frame` is its last line."""
        self._close(out)
        if self._images:
            images = decode_images(self._images, ("message", "images"))
            native = native_images(self._images, images)
            out.close(out.add_native(native.block), native)
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        body: Wire = {**self._body, **frame}
        if pieces or error is None:
            turn: Wire = {**encode_assistant(pieces, ("message",), ids=True), **self._keys}
            body["message"] = {**turn, "tool_calls": self._calls} if self._calls else turn
        if self._logprobs:
            body["logprobs"] = self._logprobs
        message = finish_response(body, pieces, self._endpoint, error=error)
        out.response_model, out.usage = message.response_model, message.usage
        out.stop_reason, out.raw_stop_reason = message.stop_reason, message.raw_stop_reason
        out.extra, out.error_message = message.extra, message.error_message


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
