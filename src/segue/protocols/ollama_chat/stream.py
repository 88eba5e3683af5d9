"""A streamed Ollama reply: lines of JSON, each a reply with a little of the message in it, the last with the counters.

Facts this file rests on:
- `content` and `thinking` come in pieces, calls whole, and several of them may have the same index; `done: true` comes
  last, with the reason and the counters.            (ollama server source @fb30760; maka #1976; read 2026-11-15)
- An error in mid-stream is a line `{"error": "..."}`.                                      (the same; ollama 0.6.3)
- Log probabilities come with the piece they belong to.                                               (ollama 0.6.3)

The lines are put together as the server would have sent the reply whole, and read by the same functions: so a folded
stream and a whole reply are equal. Without the line that says so a reply is not finished, whatever it had said before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import DecodeError
from segue.protocols.kit.assembly import Assembly, Part, PartKind
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import expect_list
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.ollama_chat.content import decode_call, decode_images
from segue.protocols.ollama_chat.response import error_text, finish_response, reply_extra_of
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.verbatim import Wire, keep

_PIECES: Final = frozenset({"role", "content", "thinking", "tool_calls", "images"})
"""What a line's message says piece by piece; anything else there is said of the whole."""


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Begin to read a stream."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: Part | None = None  # the text or the thinking that grows
        self._role: object = "assistant"
        self._beside: Wire = {}
        self._images: list[object] = []
        self._logprobs: list[object] = []
        self._original: dict[str, Wire] = {}
        self._calls = 0
        self._notes: list[Diagnostic] = []

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        # Nearly every line has a few characters of text; a cast is a call, so the type is claimed, and looked at below.
        message: Wire | None = frame.get("message")  # pyright: ignore[reportAssignmentType]
        if isinstance(message, dict):
            texts = message.get("content")
            if texts and isinstance(texts, str) and len(message) == 2 and message.get("role") == "assistant":
                self._grow("text", texts, out)
            else:
                self._take(message, out)
        elif "error" in frame:
            out.extra = reply_extra_of({"error": dict(frame)})
            self._close(out)
            out.fail(error_text(frame))
            return
        if "logprobs" in frame:
            given = frame["logprobs"]
            self._logprobs += cast("list[object]", given) if isinstance(given, list) else []
        if frame.get("done") is True:
            self._finish(frame, out)
        else:
            out.start()

    def end(self, out: Assembly) -> None:
        """Leave what arrived in order; the assembly then says that the reply did not end."""
        self._close(out)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _take(self, message: Wire, out: Assembly) -> None:
        """Take in a message that says more than a few words."""
        self._grow_if("thinking", message.get("thinking"), out)
        self._grow_if("text", message.get("content"), out)
        images = message.get("images")
        if images:
            self._images += expect_list(images, ("message", "images"))
        calls = message.get("tool_calls")
        if calls:
            for call in expect_list(calls, ("message", "tool_calls")):
                self._call(call, out)
        self._role = message.get("role", self._role)
        self._beside.update((key, value) for key, value in message.items() if key not in _PIECES)

    def _grow_if(self, kind: PartKind, text: object, out: Assembly) -> None:
        if isinstance(text, str):
            if text:
                self._grow(kind, text, out)
        elif text is not None:
            raise DecodeError("words have to be a string", path=("message",))

    def _grow(self, kind: PartKind, text: str, out: Assembly) -> None:
        part = self._open
        if part is None or part.kind != kind:
            self._close(out)
            part = self._open = out.open_text() if kind == "text" else out.open_thinking()
        out.grow(part, text)

    def _call(self, wire: object, out: Assembly) -> None:
        self._close(out)
        path = ("message", "tool_calls", self._calls)
        found, original = decode_call(wire, self._calls, out.tool_names, path, self._notes)
        if original:
            self._original[str(self._calls)] = original
        self._calls += 1
        if found.kind == "native":
            out.close(out.add_native(found.block))
        else:
            self._open_call(found, out)

    def _open_call(self, call: ToolCall, out: Assembly) -> None:
        part = out.open_call(call.id, call.name)
        part.name = call.name  # its name has been mapped back already
        if call.arguments_text is None:
            part.arguments = call.arguments
        else:
            part.chunks.append(call.arguments_text)
        out.close(part)

    def _close(self, out: Assembly) -> None:
        if self._open is not None:
            out.close(self._open)
            self._open = None

    # -- the whole -----------------------------------------------------------------------------------------------------

    def _finish(self, frame: Mapping[str, object], out: Assembly) -> None:
        self._close(out)
        if self._images:
            images = decode_images(self._images, ("message", "images"))
            out.close(out.add_native({"images": self._images}, images))
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        whole: Wire = {**frame, "message": {}}
        if self._logprobs:
            whole["logprobs"] = self._logprobs
        left = keep({"role": self._role, **self._beside}, {"role": "assistant"})
        message = finish_response(whole, pieces, left, self._original, self._endpoint)
        out.response_model, out.usage = message.response_model, message.usage
        out.stop_reason, out.raw_stop_reason = message.stop_reason, message.raw_stop_reason
        out.extra, out.error_message = message.extra, message.error_message
        out.finish()
