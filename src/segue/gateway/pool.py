"""Connections to providers that stay open, parsed by llhttp: half of the CPU time of aiohttp's client for a request.

What it leaves to aiohttp: proxies, logins in URLs, large bodies, and methods whose replies have no body.

Facts:
- llhttp is not told where a reply ends that ends with its connection: httptools has no call for that.
- `should_keep_alive` is valid until the reply is complete.                                        (httptools 0.9)
- With the leniencies below it reads what aiohttp 3.14 reads: it sets the same.
- A reply may be complete before its request is: what is left of that would be the start of the next one.
- Bytes after a reply would be the reply to the next request of another client: the connection is closed.
- asyncio sets TCP_NODELAY, uvloop too; neither SO_KEEPALIVE.                                       (Python 3.11)
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast, final

import aiohappyeyeballs
import httpx2

from segue.client.http.settings import CONNECT_TIMEOUT

NOT_SENT: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""Headers that who writes a head writes itself."""
_HIGH: Final = 262_144
"""Bytes of a reply that wait for their reader; then no more of it is read from the network."""
_LARGEST_HEAD: Final = 65_536
_IDLE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
"""How often connections are looked at: one timer for all of them."""
_SECOND_ADDRESS: Final = 0.25
"""Seconds until the next address of a host is tried as well.                                       (RFC 8305)"""
_NO_BODY: Final = (204, 304)
_MOST_NAMES: Final = 500
_LONGEST_NAME: Final = 100
"""How many names of headers are kept decoded, and how many bytes they may have."""

_names: Final[dict[bytes, str]] = {}


class PoolAddress(NamedTuple):
    """Where a connection goes: one of them serves all requests there."""

    host: str
    port: int
    is_tls: bool


def find_address(url: httpx2.URL) -> PoolAddress | None:
    """Return where a request for a URL goes; None if this pool cannot send it."""
    if url.scheme not in ("http", "https") or url.userinfo or not url.raw_host:
        return None
    is_tls = url.scheme == "https"
    return PoolAddress(url.raw_host.decode("ascii"), url.port or (443 if is_tls else 80), is_tls)


def _decode_name(name: bytes) -> str:
    """Return the name of a header in lower case; keep it if there is room."""
    text = name.decode("latin-1").lower()
    if len(_names) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
        _names[name] = text
    return text


def write_head(method: str, target: str, headers: Mapping[str, str], size: int) -> bytes:
    """Write the head of a request; `target` are the path with the version, and the line with the host.

    Of the headers, those that say where it goes and where it ends are left out.

    Raises:
        httpx2.LocalProtocolError: a header has a line break, or characters that a header cannot have.
    """
    lines = [f"{name}: {value}" for name, value in headers.items() if name not in NOT_SENT]
    lines.insert(0, f"{method} {target}")
    if size or method not in ("GET", "DELETE"):
        lines.append(f"content-length: {size}")
    text = "\r\n".join((*lines, "", ""))
    ends = len(lines) + 2  # two lines are in the first
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
        raise httpx2.LocalProtocolError("a header has a line break")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise httpx2.LocalProtocolError("a header has characters that a header cannot have") from error


@final
class PoolConnection(asyncio.Protocol):
    """A connection, and the reply that arrives on it."""

    def __init__(self, pool: Pool, address: PoolAddress, make_parser: Any) -> None:  # noqa: ANN401 - a class of httptools
        self._pool = pool
        self.address: PoolAddress = address
        self._parser = make_parser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False
        self.since: float = 0.0
        """Since when it waits: for the other side, or for its next request."""
        self.is_idle: bool = True
        self._begin()

    def _begin(self) -> None:
        self.status: int = 0
        """The status of the reply; 0 until its head is complete."""
        self.headers: dict[str, str] = {}
        self._fault: Exception | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._is_kept = False
        """Whether the connection may be used again after the reply."""
        self._has_end = False
        """Whether the reply says where it ends."""

    # -- asyncio -------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes of the reply; those after it end the connection."""
        if self.is_idle or self._is_over:
            self.abort()
            return
        if not self.status:
            self._size += len(data)
        try:
            self._parser.feed_data(data)
        except Exception as error:  # noqa: BLE001 - all that httptools raises; of a callback too
            self._is_kept = False
            if not self._is_over:
                self.fail(httpx2.RemoteProtocolError(str(error) or type(error).__name__))
            return
        if self._size > _LARGEST_HEAD and not self.status:
            self.fail(httpx2.RemoteProtocolError("the head of the reply is too large"))
        elif self._size > _HIGH and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the reply: complete, if it ends with its connection."""
        self._transport = None
        self._pool.forget(self)
        if self.is_idle or self._is_over:
            return
        if self.status and not self._has_end and exc is None:
            self._is_over = True
            self._wake()
        else:
            text = "the server closed the connection" if not self.status else "the reply is not complete"
            self.fail(httpx2.RemoteProtocolError(text))

    # -- httptools -----------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Note bytes after the end of the reply."""
        if self._is_over:
            self._is_kept = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; after the body it is a trailer, which nobody reads."""
        if not self.status:
            key, headers = _names.get(name) or _decode_name(name), self.headers
            text = value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        """Take the status; one below 200 is not the reply yet."""
        status: int = self._parser.get_status_code()
        if self._is_over:
            return
        if status < 200:
            self.headers = {}
            return
        self.status, self._size = status, 0
        self._is_kept = self._parser.should_keep_alive()
        self._has_end = status in _NO_BODY or "content-length" in self.headers or "transfer-encoding" in self.headers
        self._wake()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        if not self._is_over:
            self._pieces.append(body)
            self._size += len(body)
            if self._waiter is not None:
                self._wake()

    def on_message_complete(self) -> None:
        """Note the end of the reply."""
        if self.status:
            self._is_over = True
            if self._waiter is not None:
                self._wake()

    # -- one request ---------------------------------------------------------------------------------------------------

    async def send(self, head: bytes, content: bytes) -> None:
        """Send a request and wait for the head of its reply."""
        transport = self._transport
        assert transport is not None, "it is open"
        self.is_idle = False
        transport.write(head + content)
        try:
            while not self.status:
                await self._wait()
        except BaseException:
            self.abort()
            raise

    async def read(self) -> bytes:
        """Return the bytes that arrived; none at the end of the reply."""
        while not self._pieces:
            if self._is_over and self._fault is None:
                return b""
            if self._is_paused and self._transport is not None:
                self._is_paused = False
                self._transport.resume_reading()
            await self._wait()
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces, self._size = [], 0
        return data

    async def _wait(self) -> None:
        if self._fault is not None:
            raise self._fault
        loop = self._pool.loop
        self.since = loop.time()
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    @property
    def is_read(self) -> bool:
        """Whether nothing is left of the reply."""
        return self._is_over and self._fault is None and not self._pieces

    def is_late(self, now: float, seconds: float | None) -> bool:
        """Whether it has waited too long for the other side."""
        return self._waiter is not None and seconds is not None and now - self.since > seconds

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def fail(self, fault: Exception) -> None:
        """End the reply with a failure, and the connection."""
        if not self._is_over:
            self._fault, self._is_over = fault, True
        self._wake()
        self.abort()

    def release(self) -> None:
        """End the reply: the connection is used again if nothing is left of it, nor of the request."""
        transport = self._transport
        if transport is None:
            return
        if self.is_read and self._is_kept and not transport.is_closing() and not transport.get_write_buffer_size():
            if self._is_paused:
                self._is_paused = False
                transport.resume_reading()
            self._begin()
            self.is_idle = True
            self._pool.keep(self)
        else:
            self.fail(httpx2.ReadError("the reply was closed"))

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()


@final
class Pool:
    """The connections of one event loop."""

    def __init__(self, make_parser: Any, read_timeout: float | None) -> None:  # noqa: ANN401 - a class of httptools
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._make_parser = make_parser
        self._read_timeout = read_timeout
        self._all: set[PoolConnection] = set()
        self._idle: dict[PoolAddress, list[PoolConnection]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._context: ssl.SSLContext | None = None

    async def send(self, address: PoolAddress, head: bytes, content: bytes) -> PoolConnection:
        """Send a request, and wait for the head of its reply. Raises the exceptions of httpx2."""
        idle, connection = self._idle.get(address), None
        while idle and connection is None:
            newest = idle.pop()
            connection = newest if newest.is_open else None
        if connection is None:
            connection = await self._connect(address)
        await connection.send(head, content)
        return connection

    async def _connect(self, address: PoolAddress) -> PoolConnection:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._open(address)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error) or "timeout") from error
        except OSError as error:
            raise httpx2.ConnectError(str(error) or type(error).__name__) from error

    async def _open(self, address: PoolAddress) -> PoolConnection:
        loop, host = self.loop, address.host
        found = await loop.getaddrinfo(host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        if address.is_tls and self._context is None:
            self._context = await asyncio.to_thread(_make_context)  # it reads files
        connect = cast("Any", aiohappyeyeballs).start_connection
        opened: socket.socket = await connect(found, happy_eyeballs_delay=_SECOND_ADDRESS, interleave=1)
        connection = PoolConnection(self, address, self._make_parser)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.create_connection(
                lambda: connection,
                sock=opened,
                ssl=self._context if address.is_tls else None,
                server_hostname=host if address.is_tls else None,
            )
        except BaseException:
            opened.close()
            raise
        self._all.add(connection)
        if self._timer is None:
            self._look_later()
        return connection

    def keep(self, connection: PoolConnection) -> None:
        """Keep a connection for the next request."""
        connection.since = self.loop.time()
        self._idle.setdefault(connection.address, []).append(connection)

    def forget(self, connection: PoolConnection) -> None:
        """Drop a connection that was closed."""
        self._all.discard(connection)
        idle = self._idle.get(connection.address)
        if idle is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[connection.address]

    def _look_later(self) -> None:
        seconds = _LOOK_SECONDS if self._read_timeout is None else min(_LOOK_SECONDS, self._read_timeout)
        self._timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Close connections that nobody used for a while, and end replies that stopped."""
        now, self._timer = self.loop.time(), None
        for connection in tuple(self._all):
            if connection.is_idle:
                if now - connection.since > _IDLE_SECONDS:
                    connection.abort()
            elif connection.is_late(now, self._read_timeout):
                connection.fail(httpx2.ReadTimeout("the server sent nothing within the timeout"))
        if self._all:
            self._look_later()

    def close(self) -> None:
        """Close all connections."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in tuple(self._all):
            connection.fail(httpx2.ReadError("the client was closed"))


def _make_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(("http/1.1",))
    return context
