"""A streamed reply in plain text: lines of JSON, each with more of the text: `{"content": "..."}`.

The format is segue's own. It has no end mark: the reply ends when the stream does. A line `{"error": "..."}` reports a
failure. A stream without any content is incomplete.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.errors import DecodeError
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.plain_text.content import encode_turn
from segue.protocols.plain_text.response import decode_error, finish_response
from segue.protocols.plain_text.rules import PROTOCOL


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Make the decoder of one stream."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._text: Part | None = None
        self._keys: Wire = {}  # the keys of the whole reply, without its content
        self._received = False

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        content = frame.get("content")
        if isinstance(content, str):
            self._extend(content, out)
        elif "error" in frame:
            self._keys.update(frame)
            error = decode_error(frame, None).message
            self._finish(out, error=error)
            out.fail(error)
            return
        elif "content" in frame:
            raise DecodeError("`content` must be a string; send its text", path=("content",))
        if len(frame) > 1 or content is None:
            self._keys.update((key, value) for key, value in frame.items() if key != "content")

    def _extend(self, text: str, out: Assembly) -> None:
        self._received = True
        out.start()
        if text:
            if self._text is None:
                self._text = out.open_text()
            out.grow(self._text, text)

    def _finish(self, out: Assembly, *, error: str | None = None) -> None:
        """Set the fields of the whole reply."""
        out.close_all()
        pieces = tuple(part.closed for part in out.parts if part.closed is not None)
        turn = {} if error is not None and not pieces else encode_turn("assistant", pieces, None, ("content",))
        message = finish_response({**turn, **self._keys}, pieces, self._endpoint, error=error)
        out.stop_reason, out.error_message, out.extra = message.stop_reason, message.error_message, message.extra

    def end(self, out: Assembly) -> None:
        if self._received:
            self._finish(out)
            out.finish()
