"""Connections of the gateway's own to providers: when they are used again, and what servers may do wrong on them."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias, cast

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from segue.client.http.outgoing_request import OutgoingRequest
from segue.gateway import pool
from segue.gateway.transport import AiohttpTransport, DirectReply, PooledReply

pytest.importorskip("httptools", reason="the pool needs httptools")

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve, *, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """Serve connections; at the end, each is closed, and what serves it has ended."""
    ended: list[asyncio.Task[None] | None] = []

    async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.current_task())
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await serve(reader, writer)
                await reader.read()
        finally:
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    server = await asyncio.start_server(tracked, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat?x=%2F"
    finally:
        server.close()
        await asyncio.gather(*(task for task in ended if task is not None))


class Upstream:
    """A server that reads requests and answers each with what `answer` returns; None closes the connection."""

    def __init__(self, answer: Callable[[int], bytes | None]) -> None:
        self.answer = answer
        self.connections = 0
        self.requests: list[bytes] = []
        self.ended = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                data = self.answer(len(self.requests))
                if data is None:
                    writer.close()
                    return
                writer.write(data)
        finally:
            self.ended += 1


@asynccontextmanager
async def served(
    answer: Callable[[int], bytes | None] = lambda _: OK, *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[tuple[Upstream, AiohttpTransport]]:
    upstream, transport = Upstream(answer), AiohttpTransport(read_timeout=30)
    async with listening(upstream.serve, tls=tls) as upstream.url:
        try:
            yield upstream, transport
        finally:
            await transport.aclose()


def _request(url: str, *, content: bytes = b"{}", headers: dict[str, str] | None = None) -> OutgoingRequest:
    return OutgoingRequest(url=url, headers=headers or {}, content=content, secrets=())


async def fetch(transport: AiohttpTransport, url: str, **given: bytes | dict[str, str]) -> tuple[int, bytes]:
    reply = await transport.send_directly(_request(url, **given))  # pyright: ignore[reportArgumentType]
    assert isinstance(reply, PooledReply)
    try:
        return reply.status_code, b"".join([piece async for piece in reply.stream])
    finally:
        await reply.aclose()


def connections_of(transport: AiohttpTransport) -> set[pool.PoolConnection]:
    """Return the open connections, as they change."""
    assert transport._pool is not None
    return transport._pool._all


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - many conditions
            await asyncio.sleep(0.001)


def run(work: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(work())


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
TRAILED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nstatus: 500\r\n\r\n"
CONTINUED = b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" + OK


@pytest.mark.parametrize("reply", [OK, CHUNKED, TRAILED, CONTINUED])
def test_a_connection_is_used_again(reply: bytes) -> None:
    async def work() -> None:
        async with served(lambda _: reply) as (upstream, transport):
            for _ in range(3):
                assert await fetch(transport, upstream.url) == (200, b"ok")
            assert upstream.connections == 1
            assert upstream.requests[0].startswith(b"POST /v1/chat?x=%2F HTTP/1.1\r\nhost: 127.0.0.1:")

    run(work)


@pytest.mark.parametrize(
    "reply",
    [
        OK + b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother",  # the reply of another client, in one read
        OK + b"HTTP/1.1 200 OK\r\ncontent-le",
        OK + b"\0",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
)
def test_a_connection_with_more_than_a_reply_is_not_used_again(reply: bytes) -> None:
    async def work() -> None:
        async with served(lambda at: reply if at == 1 else OK) as (upstream, transport):
            for _ in range(3):
                assert await fetch(transport, upstream.url) == (200, b"ok")
            assert upstream.connections == 2

    run(work)


def test_headers_are_read_whatever_their_names_and_few_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[bytes, str] = {}
    monkeypatch.setattr(pool, "_names", kept)
    long, many = b"L" * 101, b"".join(b"N-%d: %d\r\n" % (at, at) for at in range(600))
    first = b"HTTP/1.1 200 OK\r\nX-Kind: \xe9\r\nx-kind: B\r\nX-KIND:\r\n%b: a\r\ncontent-length: 2\r\n\r\nok" % long
    second = b"HTTP/1.1 200 OK\r\n%bX-Kind: C\r\ncontent-length: 2\r\n\r\nok" % many

    async def work() -> None:
        async with served(lambda number: second if number == 2 else first) as (upstream, transport):
            found: list[dict[str, str]] = []
            for _ in range(3):
                reply = await transport.send_directly(_request(upstream.url))
                found.append(dict(reply.headers))
                assert b"".join([piece async for piece in reply.stream]) == b"ok"
                await reply.aclose()
            expected = {"x-kind": "é, B, ", long.decode().lower(): "a", "content-length": "2"}
            assert found[0] == found[2] == expected
            assert found[1] == {f"n-{at}": str(at) for at in range(600)} | {"x-kind": "C", "content-length": "2"}
            assert upstream.connections == 1

    run(work)
    assert (len(kept), long in kept) == (500, False)


def test_what_says_where_a_request_goes_and_ends_is_written_once() -> None:
    given = {"host": "other", "content-length": "99", "transfer-encoding": "chunked", "connection": "close", "a": "b"}

    async def work() -> None:
        async with served() as (upstream, transport):
            await fetch(transport, upstream.url, headers=given)
            host = upstream.url.split("/")[2]
            lines = ["POST /v1/chat?x=%2F HTTP/1.1", f"host: {host}", "a: b", "content-length: 2", "", "{}"]
            assert upstream.requests == ["\r\n".join(lines).encode()]

    run(work)


def test_bytes_that_come_while_a_connection_is_idle_close_it() -> None:
    async def work() -> None:
        writers: list[asyncio.StreamWriter] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            await reader.readuntil(b"{}")
            writer.write(OK)

        transport = AiohttpTransport()
        async with listening(serve) as url:
            assert await fetch(transport, url) == (200, b"ok")
            writers[0].write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother")
            open_connections = connections_of(transport)
            await until(lambda: not open_connections)
            assert await fetch(transport, url) == (200, b"ok")
            assert len(writers) == 2
            await transport.aclose()

    run(work)


def test_a_connection_whose_request_was_not_sent_whole_is_not_used_again() -> None:
    """A reply that comes before the body was read: the next request would wait for the rest of it."""

    async def work() -> None:
        opened: list[asyncio.StreamWriter] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            opened.append(writer)
            while size := int((await reader.readuntil(b"\r\n\r\n")).rpartition(b":")[2]):
                if size > 2:  # nothing more is read of it
                    cast("asyncio.ReadTransport", writer.transport).pause_reading()
                writer.write(OK)
                if size > 2:
                    await is_checked.wait()
                    writer.transport.abort()
                    return
                await reader.readexactly(size)

        is_checked = asyncio.Event()
        transport = AiohttpTransport()
        async with listening(serve) as url:
            assert await fetch(transport, url) == (200, b"ok")
            (connection,) = connections_of(transport)
            assert connection._transport is not None
            connection._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            assert await fetch(transport, url, content=b"x" * 499_999) == (200, b"ok")
            assert not connection.is_open
            is_checked.set()
            assert await fetch(transport, url) == (200, b"ok")
            assert len(opened) == 2
            await transport.aclose()

    run(work)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok", httpx2.RemoteProtocolError),
        (b"nonsense\r\n\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 400_000, httpx2.RemoteProtocolError),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            httpx2.RemoteProtocolError,
        ),
    ],
)
def test_a_reply_that_is_cut_or_wrong_is_an_error(reply: bytes, error: type[Exception]) -> None:
    async def work() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"{}")
            writer.write(reply)
            writer.close()

        transport = AiohttpTransport()
        async with listening(serve) as url:
            with pytest.raises(error):
                await fetch(transport, url)
            await transport.aclose()

    run(work)


def test_a_reply_may_end_with_its_connection() -> None:
    async def work() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"{}")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
            writer.close()

        transport = AiohttpTransport()
        async with listening(serve) as url:
            assert await fetch(transport, url) == (200, b"all of it")
            assert await fetch(transport, url) == (200, b"all of it")
            await transport.aclose()

    run(work)


def test_closing_a_reply_ends_a_task_that_reads_it() -> None:
    async def work() -> None:
        part = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"
        async with served(lambda _: part) as (upstream, transport):
            reply = await transport.send_directly(_request(upstream.url))

            async def read() -> list[bytes]:
                return [piece async for piece in reply.stream]

            reading = asyncio.create_task(read())
            await until(lambda: isinstance(reply, PooledReply) and reply.stream.is_read is False)
            await asyncio.sleep(0.01)
            await reply.aclose()
            with pytest.raises(httpx2.ReadError):
                await reading
            await until(lambda: upstream.ended == 1)

    run(work)


def test_a_cancelled_request_closes_its_connection() -> None:
    async def work() -> None:
        async with served(lambda _: b"") as (upstream, transport):
            sending = asyncio.create_task(transport.send_directly(_request(upstream.url)))
            await until(lambda: bool(upstream.requests))
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await until(lambda: upstream.ended == 1)

    run(work)


def test_a_reply_that_nobody_closes_is_closed_from_any_thread() -> None:
    async def work() -> None:
        async with served(lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok") as (upstream, transport):
            held = [await transport.send_directly(_request(upstream.url))]
            collecting = threading.Thread(target=lambda: (held.clear(), gc.collect()))
            collecting.start()
            await asyncio.to_thread(collecting.join)
            await until(lambda: upstream.ended == 1)

    run(work)


def test_a_reply_that_is_not_read_waits_at_its_server() -> None:
    size = 30_000_000

    async def work() -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size
        async with served(lambda _: head + b"x" * size) as (upstream, transport):
            reply = await transport.send_directly(_request(upstream.url))
            assert isinstance(reply, PooledReply)
            connection = reply.stream._connection
            assert connection is not None
            await until(lambda: connection._is_paused)
            assert connection._size < 2_000_000
            assert sum([len(piece) async for piece in reply.stream]) == size
            await reply.aclose()
            assert await fetch(transport, upstream.url, content=b"") is not None
            assert upstream.connections == 1

    run(work)


@pytest.mark.parametrize("headers", [{"a": "b\r\nc: d"}, {"a": "b\nc"}, {"a\r\nb": "c"}, {"a": "b\0"}, {"a": "\u20ac"}])
def test_headers_cannot_be_smuggled(headers: dict[str, str]) -> None:
    async def work() -> None:
        async with served() as (upstream, transport):
            with pytest.raises(httpx2.LocalProtocolError):
                await fetch(transport, upstream.url, headers=headers)
            assert not upstream.requests

    run(work)


def test_a_connection_that_was_closed_while_idle_is_not_used() -> None:
    async def work() -> None:
        async with served(lambda at: OK if at == 1 else None) as (upstream, transport):
            assert await fetch(transport, upstream.url) == (200, b"ok")
            with pytest.raises(httpx2.RemoteProtocolError):
                await fetch(transport, upstream.url)
            upstream.answer = lambda _: OK
            assert await fetch(transport, upstream.url) == (200, b"ok")
            assert upstream.connections == 2

    run(work)


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(pool, "_LOOK_SECONDS", 0.01)

    async def work() -> None:
        async with served() as (upstream, transport):
            assert await fetch(transport, upstream.url) == (200, b"ok")
            await until(lambda: upstream.ended == 1)
            assert not connections_of(transport)

    run(work)


@pytest.mark.parametrize("content", [b"x" * 600_000])
def test_large_bodies_go_over_aiohttp(content: bytes) -> None:
    async def work() -> None:
        async with served() as (upstream, transport):
            reply = await transport.send_directly(_request(upstream.url, content=content))
            assert isinstance(reply, DirectReply)
            assert b"".join([piece async for piece in reply.stream]) == b"ok"
            await reply.aclose()
            assert upstream.requests[0].endswith(content)

    run(work)


def test_a_host_that_cannot_be_reached_is_named_as_such() -> None:
    async def work() -> None:
        transport = AiohttpTransport()
        with pytest.raises(httpx2.ConnectError):
            await fetch(transport, "http://127.0.0.1:1/")
        await transport.aclose()

    run(work)


# -- TLS ---------------------------------------------------------------------------------------------------------------


def _certificate(folder: Path, name: str, *, host: str = "127.0.0.1") -> tuple[Path, ssl.SSLContext]:
    """Make a certificate of an own authority, and the context of a server with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    title = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(title)
        .issuer_name(title)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return path, context


def _trust(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Trust an authority as if the machine did; in these tests the machine's own are not read."""

    def load(self: ssl.SSLContext, _: object = None) -> None:
        self.load_verify_locations(path)

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", load)


def test_tls_is_verified_and_its_connections_are_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, context = _certificate(tmp_path, "right")
    _trust(monkeypatch, path)

    async def work() -> None:
        body = b"x" * 400_000
        reply = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        async with served(lambda _: reply, tls=context) as (upstream, transport):
            for _ in range(3):
                assert await fetch(transport, upstream.url, content=body) == (200, body)
            assert upstream.connections == 1
            assert upstream.requests[2].endswith(body)

    run(work)


@pytest.mark.parametrize("fault", ["unknown authority", "another host"])
def test_a_certificate_that_is_not_right_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    path, context = _certificate(tmp_path, "served", host="127.0.0.2" if fault == "another host" else "127.0.0.1")
    trusted = path if fault == "another host" else _certificate(tmp_path, "trusted")[0]
    _trust(monkeypatch, trusted)

    async def work() -> None:
        async with served(tls=context) as (upstream, transport):
            with pytest.raises(httpx2.ConnectError):
                await fetch(transport, upstream.url)
            assert not upstream.requests

    run(work)
