"""An httpx2 transport over aiohttp: half the CPU time of httpx2's own for a request, a third for a stream.

The client of the gateway uses `send_directly`, without the HTTP client of httpx2 above it. Most of these requests go
over connections of the gateway's own (`pool`), where httptools is installed.

Facts:
- httpx2's transport parses with h11, in Python; aiohttp parses with llhttp, in C.         (measured; docs/decisions)
- aiohttp raises its own exceptions; callers of httpx2 expect those of httpx2.                    (httpx2: exceptions)
- With `trust_env` aiohttp looks for a proxy and for a netrc file in a thread, for each request. So proxies of the
  environment are looked up here, once for each host.                                                  (aiohttp 3.14)
- An unread reply holds its connection until it is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from io import BytesIO
from typing import Any, Final, NamedTuple, Self, final
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from yarl import URL

from segue.client.http.outgoing_request import OutgoingRequest
from segue.client.http.settings import CONNECT_TIMEOUT
from segue.gateway.pool import NOT_SENT, Pool, PoolAddress, PoolConnection, find_address, write_head

TAP: Final[ContextVar[Callable[[bytes], object] | None]] = ContextVar("segue_gateway_tap", default=None)
"""Gets the bytes of the replies that this task reads: for clients that get them as they are, or for the store."""
_IN_PIECES: Final = 500_000
"""Bytes of a body that aiohttp writes in pieces: as one it would take the event loop for long (aiohttp 3.14)."""
_MOST_ADDRESSES: Final = 1_000
"""URLs that are kept parsed: most requests go to one of a few."""
_POOLED: Final = frozenset({"POST", "GET", "DELETE"})
"""Methods whose replies have a body."""


class _Place(NamedTuple):
    """A URL as it is written, parsed, the proxy for it, and where the pool connects to; None if it cannot.

    `target` are the first two lines of a request to it, without the method.
    """

    url: httpx2.URL
    proxy: str | None
    address: PoolAddress | None
    target: str

    @property
    def quoted(self) -> URL:
        """The URL for aiohttp: quoted already; yarl would decode some of it again."""
        return URL(str(self.url), encoded=True)


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of an httpx2 client with aiohttp. Redirects are not followed, and cookies are not kept."""

    def __init__(self, *, read_timeout: float | None = None) -> None:
        self._read_timeout = read_timeout
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._places: dict[str, _Place] = {}  # by the URL as it is written
        self._make_parser = _find_parser()
        self._pool: Pool | None = None

    def _find_proxy(self, url: httpx2.URL) -> str | None:
        """Return the proxy that the environment names for a host."""
        key = (url.scheme, url.host)
        if key not in self._proxies:
            self._proxies[key] = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
        return self._proxies[key]

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=60),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=self._read_timeout),
                auto_decompress=False,
                skip_auto_headers=("user-agent", "accept-encoding", "content-type"),
            )
        return self._session

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request and wait for the head of the reply."""
        headers = [(name, value) for name, value in request.headers.items() if name not in NOT_SENT]
        address = URL(str(request.url), encoded=True)  # quoted already; yarl would decode some of it again
        proxy = self._find_proxy(request.url)
        reply = await self._send(request.method, address, proxy, headers, await request.aread())
        given = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in reply.raw_headers]
        return httpx2.Response(reply.status, headers=given, stream=_Body(reply), request=request)

    async def send_directly(self, outgoing: OutgoingRequest) -> DirectReply | PooledReply:
        """Send one request and wait for the head of the reply."""
        place = self._places.get(outgoing.url) or self._find_place(outgoing.url)
        method, content, address = outgoing.method, outgoing.content, place.address
        if address is not None and method in _POOLED and len(content) < _IN_PIECES:
            if self._pool is None:
                self._pool = Pool(self._make_parser, self._read_timeout)
            head = write_head(method, place.target, outgoing.headers, len(content))
            return PooledReply(await self._pool.send(address, head, content), self._pool.loop)
        headers = [(name, value) for name, value in outgoing.headers.items() if name not in NOT_SENT]
        return DirectReply(await self._send(method, place.quoted, place.proxy, headers, content))

    def _find_place(self, text: str) -> _Place:
        url = httpx2.URL(text)
        proxy = self._find_proxy(url)
        address = find_address(url) if proxy is None and self._make_parser is not None else None
        if len(self._places) >= _MOST_ADDRESSES:
            self._places.clear()
        host, path = url.netloc.decode("ascii"), url.raw_path.decode("ascii")
        place = self._places[text] = _Place(url, proxy, address, f"{path} HTTP/1.1\r\nhost: {host}")
        return place

    async def _send(
        self, method: str, url: URL, proxy: str | None, headers: Sequence[tuple[str, str]], content: bytes
    ) -> aiohttp.ClientResponse:
        data = content if len(content) < _IN_PIECES else BytesIO(content)
        try:
            return await self._open().request(
                method, url, headers=headers, data=data, allow_redirects=False, proxy=proxy
            )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(_text(error)) from error
        except aiohttp.ClientConnectionError as error:
            raise _explain_connecting(error) from error
        except aiohttp.ClientError as error:
            raise httpx2.RemoteProtocolError(_text(error)) from error

    async def aclose(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.close()
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()


@final
class DirectReply:
    """A reply without the objects of httpx2."""

    __slots__ = ("headers", "status_code", "stream")

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self.status_code: int = reply.status
        self.stream: _Body = _Body(reply)
        headers: dict[str, str] = {}
        for raw, value in reply.raw_headers:
            name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        self.headers: Mapping[str, str] = headers

    async def aclose(self) -> None:
        """Release the connection."""
        await self.stream.aclose()


@final
class _Body(httpx2.AsyncByteStream):
    """The body of a reply, in the pieces in which it arrives."""

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self._reply = reply
        self._read = reply.content.readany
        self._tap = TAP.get()

    @property
    def is_read(self) -> bool:
        """Whether nothing is left of it."""
        return self._reply.content.at_eof()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._read()
        except TimeoutError as error:
            raise httpx2.ReadTimeout(_text(error)) from error
        except aiohttp.ClientError as error:
            raise httpx2.RemoteProtocolError(_text(error)) from error
        if not chunk:
            raise StopAsyncIteration
        if self._tap is not None:
            self._tap(chunk)
        return chunk

    async def aclose(self) -> None:
        if self.is_read:
            self._reply.release()  # the connection is used again
        else:
            self._reply.close()


@final
class PooledReply(httpx2.AsyncByteStream):
    """A reply that arrives on a connection of the pool, and its body, in the pieces in which it arrives."""

    def __init__(self, connection: PoolConnection, loop: asyncio.AbstractEventLoop) -> None:
        self.status_code: int = connection.status
        self.headers: Mapping[str, str] = connection.headers
        self._connection: PoolConnection | None = connection
        self._loop = loop
        self._tap = TAP.get()

    @property
    def stream(self) -> Self:
        """The body."""
        return self

    def __del__(self) -> None:
        """Close the connection of a reply that nobody closed, from whichever thread collects it."""
        if self._connection is not None:
            with suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(self._connection.release)

    @property
    def is_read(self) -> bool:
        """Whether nothing is left of it."""
        return self._connection is None or self._connection.is_read

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = b"" if self._connection is None else await self._connection.read()
        if not chunk:
            raise StopAsyncIteration
        if self._tap is not None:
            self._tap(chunk)
        return chunk

    async def aclose(self) -> None:
        """Release the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release()


def _find_parser() -> Any:  # noqa: ANN401 - a class of httptools
    """Return the parser of replies, if it is installed."""
    try:
        return import_module("httptools").HttpResponseParser
    except ModuleNotFoundError:
        return None


def _explain_connecting(error: aiohttp.ClientConnectionError) -> httpx2.TransportError:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return httpx2.RemoteProtocolError(_text(error))
    if isinstance(error, aiohttp.ClientConnectorError):
        return httpx2.ConnectError(_text(error))
    return httpx2.ReadError(_text(error))


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
