"""Passes the bytes of a streamed reply on before they are decoded, where client and model speak one protocol.

The reply is decoded for its usage and its state alone, some kilobytes at a time. Its end is held back until the state
is stored: so bytes that may be the end are decoded before they are passed on.

Facts:
- The last frame of a stream, and an error in its place, has one of the texts below: decoders end a reply with it, or
  with the end of the bytes (`tests/gateway/test_relaying.py` checks it for all samples).
- Decoding a frame alone costs about three times its share of a large piece.                       (measured 2026-11-18)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from segue.gateway.exchange import Exchange
from segue.gateway.writing import StreamWriter

ENDS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "openai-chat": (b"[DONE]", b"error"),
    "anthropic-messages": (b"message_stop", b"error"),
    "openai-responses": (b"response.completed", b"response.incomplete", b"response.failed", b"error"),
}
"""By protocol: texts, one of them in the last frame of every stream. Other protocols are decoded frame by frame."""
_LONGEST: Final = max(len(text) for texts in ENDS.values() for text in texts)
_KEPT: Final = 16_000
"""Bytes that are passed on at most before they are decoded: a client that leaves pays for what was decoded."""


@final
class StreamRelay:
    """The relay of one reply, from its first content on."""

    __slots__ = ("_ends", "_exchange", "_kept", "_seen", "_size", "_writer")

    def __init__(self, exchange: Exchange, writer: StreamWriter, ends: tuple[bytes, ...]) -> None:
        self._exchange = exchange
        self._writer = writer
        self._ends = ends
        self._kept: list[bytes] = []
        self._size = 0
        self._seen = b""

    async def pass_on(self, chunk: bytes) -> bytes:
        """Pass a chunk on and keep it, or return what is to be decoded first."""
        self._kept.append(chunk)
        self._size += len(chunk)
        seen = self._seen + chunk
        self._seen = seen[-_LONGEST:]
        for end in self._ends:
            if end in seen:
                return self.flush()
        if self._size >= _KEPT:
            return self.flush()
        await self._writer.write_bytes(self._exchange.take_bytes(), is_last=False)
        return b""

    def flush(self) -> bytes:
        """Return the bytes that were passed on and not decoded."""
        data = b"".join(self._kept)
        self._kept.clear()
        self._size = 0
        return data
