"""Writes a streamed reply to a client: holds the head back, fills silence with heartbeats, and writes one end.

Until the first content nothing is sent, so that a failure can still be a status and another model can answer. After
`hold` seconds the head and a heartbeat are sent. Later, a heartbeat follows each silence of `beat` seconds. A client
that does not read is given up after `slow` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, TypeAlias

from segue.conversation.events import StartEvent
from segue.framing.writing import FrameEncoder
from segue.protocols.kit.stream_writing import StreamEncoder, StreamFrame

Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

_SLOW_SECONDS: Final = 120.0


class ClientStream:
    """One streamed reply to a client, which begins with `start`.

    `head` gives the headers when they are sent; `give_up` ends the exchange.
    """

    def __init__(
        self,
        send: Send,
        encoder: StreamEncoder,
        framer: FrameEncoder,
        *,
        start: StartEvent,
        head: Callable[[], Headers],
        give_up: Callable[[], None],
        hold: float,
        beat: float,
    ) -> None:
        self._send = send
        self._encoder = encoder
        self._framer = framer
        self._start = start
        self._head = head
        self._give_up = give_up
        self._beat = beat
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._sending: asyncio.Task[None] | None = None
        self._sends_since: float | None = None
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(hold, self._on_silence)
        self.has_begun: bool = False
        """Whether the head was sent."""
        self.has_encoded: bool = False
        """Whether anything that the encoder wrote was sent: then the provider's bytes cannot follow."""
        self.is_over: bool = False

    def _on_silence(self) -> None:
        now = self._loop.time()
        wait = self._last + self._beat - now
        if self._sends_since is not None:
            if now - self._sends_since > _SLOW_SECONDS:
                self._give_up()
                return
            wait = self._beat
        elif wait <= 0 or not self.has_begun:
            self._sending = self._loop.create_task(self._write_beat())
            wait = self._beat
        self._timer = self._loop.call_later(wait, self._on_silence)

    async def _write_beat(self) -> None:
        # Before the first content, the reply begins with its id here: it has one id throughout. After bytes of the
        # provider, it has begun.
        start = self._encoder.feed(self._start)
        frames = [*(() if self.has_begun else start), *self._encoder.heartbeat()]
        await self._send_bytes(self._frame(frames))

    async def settle(self) -> None:
        """Wait for a heartbeat that is being written."""
        if self._sending is not None:
            await self._sending
            self._sending = None

    async def write(self, frames: Sequence[StreamFrame], *, is_last: bool = False) -> None:
        """Write frames in one piece; with the last ones, end the reply."""
        await self.settle()
        await self._send_bytes(self._frame(frames, is_last=is_last), is_last=is_last)

    async def write_bytes(self, data: bytes, *, is_last: bool) -> None:
        """Write bytes of the provider unchanged."""
        await self.settle()
        await self._send_bytes(data, is_last=is_last)

    def _frame(self, frames: Sequence[StreamFrame], *, is_last: bool = False) -> bytes:
        self.has_encoded = self.has_encoded or not self.has_begun
        feed = self._framer.feed
        data = feed(frames[0]) if len(frames) == 1 else b"".join([feed(frame) for frame in frames])
        return data + self._framer.finish() if is_last else data

    async def _send_bytes(self, data: bytes, *, is_last: bool = False) -> None:
        if data or is_last:
            self._sends_since = self._last = self._loop.time()
            if not self.has_begun:
                self.has_begun = True
                await self._send({"type": "http.response.start", "status": 200, "headers": self._head()})
            await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})
            self._sends_since = None
        if is_last:
            self.close()

    def close(self) -> None:
        """Stop the heartbeats."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
