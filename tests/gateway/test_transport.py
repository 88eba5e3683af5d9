"""The gateway's transport: replies are read to their end, and silence ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from segue.client.http.outgoing_request import OutgoingRequest
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


def test_a_reply_is_read_to_its_end() -> None:
    got: list[bytes] = []

    async def run() -> None:
        async with _upstream() as url:
            await _read(AiohttpTransport(read_timeout=600), url, got)

    asyncio.run(run())
    assert b"".join(got) == b"".join(PIECES)
    assert len(got) > 1
