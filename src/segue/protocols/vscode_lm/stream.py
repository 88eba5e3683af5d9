"""A streamed reply of the VS Code language model API: lines of JSON, one part each, in the order of the response.

The line `{"$": "error", "code", "message"}` is segue's format of a stream that threw. Adjacent fragments are one text.
The API has no end mark: the reply ends with the stream. A stream without any part is incomplete.

Write a streamed reply of the VS Code language model API: lines of JSON, one part each.

The format is segue's own, see `stream`. A call waits for its end. The heartbeat is an empty text.

Facts:
- `response.stream` gives texts in fragments, calls and data whole, and unknown parts; it ends when its iteration ends
  or throws.                                                                   (@types/vscode 1.140.0, read 2026-11-15)
- Texts come in fragments, calls whole; there is no thinking, no usage and no end mark.
                                                                               (@types/vscode 1.140.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conversation.content import AssistantContent, NativeContent, ToolCall
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint, Fault
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.replies import rename_calls
from segue.protocols.kit.stream_writing import MakeEncoder, StreamWriter, encoder_of
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.vscode_lm.content import KIND, decode_assistant_part, encode_parts
from segue.protocols.vscode_lm.response import encode_error, error_text, finish_response
from segue.protocols.vscode_lm.rules import PROTOCOL


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make the decoder of one stream."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._text: Part | None = None
        self._received = False
        self._whole: dict[int, Block] = {}  # parts that differ from the default format, by the index of their piece

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        kind = frame.get(KIND)
        if kind == "text" and isinstance(value := frame.get("value"), str) and len(frame) == 2:
            self._received = True
            if not value:
                out.start()
                return
            if self._text is None:
                self._text = out.open_text()
            out.grow(self._text, value)
        elif kind == "error" or (kind is None and "error" in frame):
            error = error_text(frame)
            self._finish(out, _error_body(frame), error)
            out.fail(error)
        else:
            self._received = True
            self._close(out)
            self._take(frame, out)

    def end(self, out: Assembly) -> None:
        self._close(out)
        if self._received:
            self._finish(out)
            out.finish()

    def _take(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Read a part that arrives whole."""
        piece = decode_assistant_part(frame, reply=True)
        match piece.kind:
            case "toolCall":
                part = out.open_call(piece.id, piece.name)
                [piece] = rename_calls((piece,), out.tool_names)
                frame = {**frame, "name": part.name}
            case "text":
                part = out.open_text()
                out.grow(part, piece.text)
            case _:
                part = out.add_native(frame)
        out.close(part, piece)
        self._whole[part.index] = frame

    def _close(self, out: Assembly) -> None:
        if self._text is not None:
            out.close(self._text)
            self._text = None

    def _finish(self, out: Assembly, keys: Block | None = None, error: str | None = None) -> None:
        """Set the fields of the whole reply; `keys` are those that an error adds to it."""
        out.close_all()
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        body: Wire = dict(keys or {})
        if pieces or error is None:
            content = encode_parts(pieces, ("content",))
            body.update(role="assistant", content=[self._whole.get(at, part) for at, part in enumerate(content)])
        message = finish_response(body, pieces, self._endpoint, error=error)
        out.stop_reason, out.error_message, out.extra = message.stop_reason, message.error_message, message.extra


def _error_body(frame: Block) -> Block:
    """Put an error line in the format of a whole reply."""
    if frame.get(KIND) != "error":
        return frame
    return {"error": {key: value for key, value in frame.items() if key != KIND}}


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
