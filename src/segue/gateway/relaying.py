"""Passes the bytes of a streamed reply on before they are decoded, where client and model speak one protocol.

The reply is decoded for its usage and its state alone, some kilobytes at a time. Its end is held back until the state
is stored, and its calls until they were compared with the protocol (`straight_replies`): so bytes that may be an end or
a call are decoded before they are passed on.

Facts:
- The last frame of a stream, and an error in its place, has one of the texts below: decoders end a reply with it, or
  with the end of the bytes (`tests/gateway/test_relaying.py` checks it for all samples).
- In JSON a quotation mark in a string follows a backslash: the texts that end with one and a colon occur outside of
  strings only.                                                                                          (RFC 8259)
- Decoding a frame alone costs about three times its share of a large piece.                       (measured 2026-11-18)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from segue.gateway.exchange import Exchange
from segue.gateway.straight_replies import StraightReply
from segue.gateway.writing import ClientStream

ENDS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "openai-chat": (b"[DONE]", b"error"),
    "anthropic-messages": (b"message_stop", b"error"),
    "openai-responses": (b"response.completed", b"response.incomplete", b"response.failed", b"error"),
}
"""By protocol: texts, one of them in the last frame of every stream. Other protocols are decoded frame by frame."""
_REASONS: Final = (b'_reason":"', b'_reason": "')
JUDGED: Final[Mapping[str, tuple[bytes, ...]]] = {
    "openai-chat": (b'_calls":[{', b'_calls": [{', b'function_call":{', b'function_call": {', *_REASONS),
    "anthropic-messages": (b'tool_use"', b"message_delta", *_REASONS),
    "openai-responses": (b'_call"',),
}
"""By protocol: texts, one of them in every frame with a call, or with the reason why the reply ended."""
_KEPT: Final = 16_000
"""Bytes that are passed on at most before they are decoded: a client that leaves pays for what was decoded."""


@final
class StreamRelay:
    """The relay of one reply, from its first content on; it passes whole frames on."""

    __slots__ = (
        "_exchange",
        "_fed",
        "_held",
        "_is_behind",
        "_kept",
        "_rest",
        "_size",
        "_straight",
        "_texts",
        "_writer",
    )

    def __init__(self, exchange: Exchange, writer: ClientStream, protocol: str, straight: StraightReply) -> None:
        self._exchange = exchange
        self._writer = writer
        self._texts = (*ENDS[protocol], *JUDGED[protocol])
        self._straight = straight
        self._kept: list[bytes] = []
        """What was passed on and not decoded."""
        self._size = 0
        self._rest = b""
        """The beginning of a frame."""
        self._fed = 0
        """How much of it was decoded already."""
        self._is_behind = True
        """Whether what comes before the next chunk was decoded without this relay."""
        self._held = b""
        """What is decoded next, before it is passed on."""

    async def pass_on(self, chunk: bytes) -> bytes:
        """Pass the whole frames of a chunk on and keep them, or return what is to be decoded first."""
        tap = self._exchange.tap
        if self._is_behind:
            self._rest = self._straight.take_rest() or self._exchange.take_rest()
            self._fed = len(self._rest)
        data, self._rest = self._rest + chunk, b""
        self._is_behind = len(tap) > 1 or not self._straight.is_calm
        if self._is_behind:
            tap[-1:] = (data,)
            return self._undecoded(data)
        end = _end_of_frames(data, None)
        for text in self._texts:
            if (at := data.find(text, 0, end)) >= 0:
                first = _end_of_frames(data, at)
                end, self._held = first, data[first:end] + self._held
        self._rest = data[end + len(self._held) :]
        tap[:] = (data[:end],) if end else ()
        if end:
            self._kept.append(self._undecoded(tap[0]))
            self._size += end
            await self._writer.write_bytes(self._exchange.take_bytes(), is_last=False)
        if self._held or self._size >= _KEPT:
            return self._take_kept() or self.take_held()
        return b""

    def take_held(self) -> bytes:
        """Return the bytes that are decoded before they are passed on."""
        data, self._held = self._held, b""
        if data:
            self._exchange.tap.append(data)
        return self._undecoded(data) if data else b""

    def flush(self) -> bytes:
        """Return all bytes that were not decoded; those that were not passed on are, with what is decoded of them."""
        self._held, self._rest = self._held + self._rest, b""
        return self._take_kept() + self.take_held()

    def _undecoded(self, data: bytes) -> bytes:
        fed, self._fed = self._fed, 0
        return data[fed:]

    def _take_kept(self) -> bytes:
        data = b"".join(self._kept)
        self._kept.clear()
        self._size = 0
        return data


def _end_of_frames(data: bytes, before: int | None) -> int:
    """Return where the last whole frame ends."""
    end = max(data.rfind(b"\n\n", 0, before) + 2, data.rfind(b"\n\r\n", 0, before) + 3)
    return end if end > 2 else 0
