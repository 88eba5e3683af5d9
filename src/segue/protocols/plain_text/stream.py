"""A streamed reply in plain text: lines of JSON, each with some more of the words: `{"content": "..."}`.

The form is ours. It has no last word: the reply ends when the stream does. A line `{"error": "..."}` says that it
failed, and a stream that said nothing at all was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping

from segue.conversation.messages import StopReason
from segue.errors import DecodeError
from segue.protocols.kit.assembly import Assembly, Part
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import of_reply
from segue.protocols.kit.streaming import StreamDecoder
from segue.protocols.plain_text.errors import decode_error
from segue.protocols.plain_text.response import finish_response
from segue.protocols.plain_text.rules import PROTOCOL


def stream_decoder(endpoint: Endpoint, tool_names: Mapping[str, str]) -> StreamDecoder:
    """Begin to read a stream."""
    return StreamDecoder(_Reader(endpoint), Assembly(endpoint.model, PROTOCOL, tool_names))


class _Reader:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._text: Part | None = None
        self._beside: dict[str, object] = {"role": "assistant"}
        self._received = False

    def read(self, frame: Mapping[str, object], out: Assembly) -> None:
        content = frame.get("content")
        if isinstance(content, str):
            self._grow(content, out)
        elif "error" in frame:
            out.extra = of_reply(PROTOCOL, dict(frame))
            out.fail(decode_error(frame, None).message)
            return
        elif "content" in frame:
            raise DecodeError("content has to be a string", path=("content",))
        if len(frame) > 1 or content is None:
            self._beside.update((key, value) for key, value in frame.items() if key != "content")

    def _grow(self, text: str, out: Assembly) -> None:
        self._received = True
        out.start()
        if text:
            if self._text is None:
                self._text = out.open_text()
            out.grow(self._text, text)

    def end(self, out: Assembly) -> None:
        if self._received:
            out.stop_reason = StopReason.STOP
            out.extra = finish_response(self._beside, (), self._endpoint).extra
            out.finish()
