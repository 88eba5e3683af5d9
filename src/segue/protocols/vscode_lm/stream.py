"""A streamed reply of the VS Code language model API: lines of JSON, one part each, as they come out of the response.

Facts this file rests on:
- `response.stream` gives texts in fragments, calls and data whole, and parts nobody knows yet; it is over when its
  iteration is, or throws.                                                     (@types/vscode 1.140.0, read 2026-11-15)

A line `{"$": "error", "code", "message"}` is our word for a stream that threw. Neighbouring fragments are one text.
There is no last word in this API: the reply ends with the stream, and one that said nothing at all was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import of_reply
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.vscode_lm.content import KIND, decode_assistant_part
from segue.protocols.vscode_lm.response import error_text, stop_reason_of
from segue.protocols.vscode_lm.rules import PROTOCOL


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Begin to read a stream."""
    return StreamDecoder(_Reader(), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self) -> None:
        self._text: Part | None = None
        self._received = False

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
            self._close(out)
            out.extra = of_reply(PROTOCOL, {"error": _whole_error(frame)})
            out.fail(error_text(frame))
        else:
            self._received = True
            self._close(out)
            self._take(frame, out)

    def end(self, out: Assembly) -> None:
        self._close(out)
        if self._received:
            out.stop_reason = stop_reason_of(part.kind for part in out.parts)
            out.finish()

    def _take(self, frame: Mapping[str, object], out: Assembly) -> None:
        """Take in a part that came whole."""
        piece = decode_assistant_part(frame, out.tool_names)
        match piece.kind:
            case "toolCall":
                part = out.open_call(piece.id, piece.name)
                part.name, part.arguments, part.extra = piece.name, piece.arguments, piece.extra
            case "text":
                part = out.open_text()
                out.grow(part, piece.text)
                part.extra = piece.extra
            case "native":
                part = out.add_native(piece.block, piece.fallback)
            case "thinking":
                return  # this API has none
        out.close(part)

    def _close(self, out: Assembly) -> None:
        if self._text is not None:
            out.close(self._text)
            self._text = None


def _whole_error(frame: Mapping[str, object]) -> dict[str, object]:
    """Give an error line the form that a whole reply has."""
    if frame.get(KIND) != "error":
        return dict(frame)
    return {"error": {key: value for key, value in frame.items() if key != KIND}}
