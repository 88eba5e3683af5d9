"""The connections of the gateway's transport: their read timeout, and what they do for each piece of a reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from unittest.mock import Mock

import httpx2
import pytest

from segue.client.http.outgoing_request import OutgoingRequest
from segue.gateway import transport as module
from segue.gateway.transport import AiohttpTransport

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PIECES = [b"data: %d\n\n" % number for number in range(20)]
END = b"0\r\n\r\n"


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


@asynccontextmanager
async def _upstream(*, is_silent: bool = False) -> AsyncIterator[str]:
    """Send the pieces one after another, each when the loop is free; after the first one nothing if `is_silent`."""

    ended: list[asyncio.Task[None] | None] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + _chunk(PIECES[0]))
        for piece in () if is_silent else PIECES[1:]:
            await asyncio.sleep(0.001)
            writer.write(_chunk(piece))
        if is_silent:
            await reader.read()  # until the other side gives up
        else:
            writer.write(END)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()
        await asyncio.gather(*(task for task in ended if task is not None))


async def _read(transport: AiohttpTransport, url: str, got: list[bytes]) -> None:
    outgoing = OutgoingRequest(url=url, headers={}, content=b"", secrets=())
    reply = await transport.send_directly(outgoing)
    try:
        async for piece in reply.stream:
            got.append(piece)  # noqa: PERF401 - also those before a timeout
    finally:
        await reply.aclose()
        await transport.aclose()


def test_silence_ends_a_reply() -> None:
    got: list[bytes] = []

    async def run() -> None:
        async with _upstream(is_silent=True) as url:
            with pytest.raises(httpx2.ReadTimeout):
                await _read(AiohttpTransport(read_timeout=0.2), url, got)

    asyncio.run(run())
    assert got == PIECES[:1]


def test_a_reply_has_one_timer_whatever_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[Callable[..., object]] = []
    got: list[bytes] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def note(delay: float, call: Callable[..., object], *given: object) -> asyncio.TimerHandle:
            if getattr(call, "__name__", "") == "_on_read_timeout":
                timers.append(call)
            return call_later(delay, call, *given)

        monkeypatch.setattr(loop, "call_later", note)
        async with _upstream() as url:
            await _read(AiohttpTransport(read_timeout=600), url, got)

    asyncio.run(run())
    assert b"".join(got) == b"".join(PIECES)
    assert len(got) > 1
    assert len(timers) == 1


class _Clock:
    """What a connection uses of an event loop; the time passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> object:
        self.timers.append((when, call))
        return Mock()

    def call_later(self, delay: float, call: Callable[[], None]) -> object:
        return self.call_at(self.now + delay, call)


def test_pieces_that_arrive_prolong_the_timeout() -> None:
    clock = _Clock()
    connection = module._Connection(clock)  # pyright: ignore[reportPrivateUsage, reportArgumentType]
    connection.read_timeout = 10.0
    connection.start_timeout()
    clock.now = 107.0
    connection.start_timeout()  # as for each piece
    (when, call) = clock.timers.pop()
    assert when == 110.0
    assert not clock.timers
    clock.now = when
    call()
    assert connection.exception() is None
    ((when, call),) = clock.timers
    assert when == 117.0
    clock.now = when
    call()
    assert isinstance(connection.exception(), TimeoutError)
