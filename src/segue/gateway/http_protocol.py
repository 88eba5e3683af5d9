"""HTTP/1.1 of one connection: uvicorn's protocol on httptools, with requests and replies of the gateway's own.

uvicorn keeps sockets, errors of the parser, WebSockets and the end of the server. With settings that are not covered
here (`_is_covered`) requests and replies are uvicorn's, too. `tests/gateway/test_http_protocol.py` compares the two.

Facts (uvicorn 0.54, `protocols/http/httptools_impl.py`):
- For a request of 1 KB uvicorn runs 181,000 instructions with the limits of the gateway, this protocol 100,000, one
  without any rules 66,000. What uvicorn does for each: a timer, an event, a call at the end of its task, two writes,
  a parsed URL, copies of names, the middleware for proxies.                            (callgrind, 2026-11-19, uvloop)
- httptools gives trailers like headers. Nobody reads them, and their size has no limit.
- The middleware for proxies passes on a request without `x-forwarded-for` and `x-forwarded-proto` unchanged.
- A server may keep the head of a reply until the first part of its body.                (ASGI 3.0: response start)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast, final
from urllib.parse import unquote

import httptools
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HEADER_RE, STATUS_LINE, HttpToolsProtocol

from segue.gateway.leaving import LEAVING, Connection

if TYPE_CHECKING:
    from uvicorn import Config

_CONTROLS: Final = bytes({*range(32), 127} - {9})
"""What the value of a header cannot have. The end of a line has two of them."""
_FORWARDED: Final = frozenset({b"x-forwarded-for", b"x-forwarded-proto"})
_RARE: Final = _FORWARDED | {b"expect"}
"""Headers of requests that the server follows itself, next to those that the parser follows."""
_DROPPED: Final = deque[tuple[bytes, bytes]](maxlen=0)
_MOST_NAMES: Final = 500
_NO_BODY: Final = (204, 304)
_LONGEST_KEPT: Final = 200
"""Bytes of a path that is kept parsed, and of the name of a header."""
_FAILED: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"21"),
    (b"connection", b"close"),
)

_name_of: Final = itemgetter(0)
_beginnings: Final[dict[bytes, bytes]] = {}
"""What is before the value of a header, by its name, but for those that `_frame` follows."""


def _is_covered(config: Config) -> bool:
    given = (config.limit_concurrency is not None, config.headers, getattr(config, "reset_contextvars", False))
    return not any(given)


def _split(url: bytes) -> tuple[str, bytes, bytes]:
    """Return the path of a URL, decoded and verbatim, and its query."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


_split_path: Final = lru_cache(maxsize=256)(_split)


@final
class _Cycle:
    """A request and its reply. What is public has the names of uvicorn's cycles: its protocol uses them."""

    __slots__ = (
        *("protocol", "scope", "task", "keep_alive", "disconnected", "response_complete", "body", "more_body"),
        *("is_continued", "has_news", "news", "has_started", "is_head", "is_closed", "is_chunked", "left"),
    )

    def __init__(self, protocol: HttpProtocol, scope: Any) -> None:  # noqa: ANN401 - of uvicorn
        self.protocol: HttpProtocol = protocol
        self.scope: Any = scope
        self.task: asyncio.Task[None] | None = None
        self.disconnected: bool = False
        self.response_complete: bool = False
        self.body: bytes | bytearray = b""
        self.more_body: bool = True
        self.is_continued: bool = not protocol.expect_100_continue
        """Whether the client does not wait before it sends the body."""
        self.has_news: bool = False
        self.news: asyncio.Event | None = None
        """For those who wait for news; made by the first of them."""
        self.has_started: bool = False
        self.is_head: bool = False
        self.is_chunked: bool | None = None
        self.left: int = 0
        """Bytes of the reply that have to follow."""
        self.is_closed: bool = False
        self.keep_alive: bool = True

    @property
    def message_event(self) -> Self:
        """What has the method `set`."""
        return self

    def set(self) -> None:
        """Wake those who receive."""
        self.has_news = True
        if self.news is not None:
            self.news.set()

    async def run_asgi(self, app: Callable[..., Any]) -> None:
        """Call the application, and end the connection if it fails."""
        try:
            result = await app(self.scope, self.receive, self.send)
            if result is not None:
                await self._fail(f"ASGI callable should return None, but returned '{result}'.", is_over=True)
            elif not self.response_complete and not self.disconnected:
                what = "completing" if self.has_started else "starting"
                await self._fail(f"ASGI callable returned without {what} response.")
        except BaseException as error:  # noqa: BLE001 - nobody else gets it
            await self._fail("Exception in ASGI application\n", error)
        finally:
            self.protocol.tasks.discard(self.task)  # pyright: ignore[reportArgumentType] - it has begun

    async def _fail(self, text: str, error: BaseException | None = None, *, is_over: bool = False) -> None:
        self.protocol.logger.error(text, exc_info=error)
        if self.has_started or is_over:
            self.protocol.write(b"")
            self.protocol.transport.close()
            return
        await self.send({"type": "http.response.start", "status": 500, "headers": _FAILED})
        await self.send({"type": "http.response.body", "body": b"Internal Server Error"})

    async def receive(self) -> dict[str, Any]:
        """Return what arrived of the body, or that the client left or has its reply."""
        protocol = self.protocol
        if not self.is_continued and not protocol.transport.is_closing():
            self.is_continued = True
            protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self.disconnected and not self.response_complete:
            if protocol.flow.read_paused:
                protocol.flow.resume_reading()
            if not self.has_news:
                self.news = self.news or asyncio.Event()
                await self.news.wait()
            self.has_news = False
            if self.news is not None:
                self.news.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = self.body, b""
        return {"type": "http.request", "body": bytes(body), "more_body": self.more_body}

    async def send(self, message: Any) -> None:  # noqa: ANN401 - of ASGI
        """Send the head of the reply, or a part of its body."""
        protocol = self.protocol
        if protocol.flow.write_paused and not self.disconnected:
            await protocol.flow.drain()
        if self.disconnected:
            return
        kind: str = message["type"]
        if not self.has_started:
            if kind != "http.response.start":
                raise RuntimeError(f"Expected ASGI message 'http.response.start', but got '{kind}'.")
            self.has_started = self.is_continued = True
            protocol.head = self._make_head(message["status"], message.get("headers", ()))
            if self.is_chunked:
                protocol.loop.call_soon(protocol.write, b"")
            return
        if self.response_complete:
            raise RuntimeError(f"Unexpected ASGI message '{kind}' sent, after response already completed.")
        if kind != "http.response.body":
            raise RuntimeError(f"Expected ASGI message 'http.response.body', but got '{kind}'.")
        body, is_last = message.get("body", b""), not message.get("more_body", False)
        if self.is_head:
            body, self.left = b"", 0
        elif self.is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            body = chunk + b"0\r\n\r\n" if is_last else chunk
        else:
            self.left -= len(body)
            if self.left < 0:
                raise RuntimeError("Response content longer than Content-Length")
        protocol.write(body)
        if is_last:
            if self.left:
                raise RuntimeError("Response content shorter than Content-Length")
            self.response_complete = True
            if self.news is not None:
                self.news.set()
            if not self.keep_alive:
                protocol.transport.close()
            protocol.on_response_complete()

    def _make_head(self, status: int, headers: Any) -> bytes:  # noqa: ANN401 - of ASGI
        parts: list[bytes] = []
        for name, value in headers:
            begin = _beginnings.get(name)
            parts.append((begin or self._frame(name, value)) + value)
        parts.append(b"")
        lines = b"\r\n".join(parts)
        if len(lines) - len(lines.translate(None, _CONTROLS)) != 2 * len(parts) - 2:
            raise RuntimeError("Invalid HTTP header value.")
        if not self.keep_alive and not self.is_closed:
            lines += b"connection: close\r\n"
        self.is_head = self.scope["method"] == "HEAD"
        if self.is_chunked is None and not self.is_head and status not in _NO_BODY:
            self.is_chunked = True
            lines += b"transfer-encoding: chunked\r\n"
        return b"".join((STATUS_LINE[status], self.protocol.default_lines(), lines, b"\r\n"))

    def _frame(self, name: bytes, value: bytes) -> bytes:
        """Return what is before the value of a header, and follow the headers that say where the reply ends."""
        if HEADER_RE.search(name):
            raise RuntimeError("Invalid HTTP header name.")
        begin = name.lower() + b": "
        if begin == b"content-length: ":
            if self.is_chunked is None:
                self.left, self.is_chunked = int(value.decode()), False
        elif begin == b"transfer-encoding: ":
            if value.lower() == b"chunked":
                self.left, self.is_chunked = 0, True
        elif begin == b"connection: ":
            if b"close" in map(bytes.strip, value.lower().split(b",")):
                self.keep_alive, self.is_closed = False, True
        elif len(_beginnings) < _MOST_NAMES and len(name) < _LONGEST_KEPT:
            _beginnings[name] = begin
        return begin


class HttpProtocol(HttpToolsProtocol):
    """A connection. The head of a reply waits for the first part of its body, without a length to the end of a turn."""

    _default_lines: ClassVar[tuple[object, bytes]] = (None, b"")
    cycle: Any
    expect_100_continue: bool

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as uvicorn gives it
        super().__init__(*given, **named)
        self._is_covered = not self.access_log and _is_covered(self.config)
        app = cast("Any", self.app)  # pyright: ignore[reportUnknownMemberType]
        self._direct_app: Any = app.app if isinstance(app, ProxyHeadersMiddleware) else app
        self._connection = Connection()
        self._is_upgraded = False
        self.head: bytes = b""
        """The head of a reply that is not written yet."""
        self._idle_since: float | None = None
        self._idle_timer: asyncio.TimerHandle | None = None

    # -- asyncio -------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Take the transport, and note what all requests have in common."""
        super().connection_made(transport)
        super().on_message_begin()
        self._common: dict[str, Any] = {**self.scope, LEAVING: self._connection}
        self._common |= dict.fromkeys(("method", "path", "raw_path", "query_string"))

    def connection_lost(self, exc: Exception | None) -> None:
        """End what waits for the client, and the references to this connection."""
        super().connection_lost(exc)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self.cycle = None
        self.pipeline.clear()
        self._connection.end()

    # -- httptools -----------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        self.url = b""
        self.expect_100_continue = False
        headers: list[tuple[bytes, bytes]] = []
        self.headers = headers
        self._take: Callable[[tuple[bytes, bytes]], object] = headers.append
        scope: Any = self._common.copy()
        scope["headers"], scope["state"] = headers, self.app_state.copy()
        self.scope = scope

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; drop a trailer."""
        self._take((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Start a request, or note it until those before it are answered."""
        self._take = _DROPPED.append
        app = self._direct_app
        if not _RARE.isdisjoint(map(_name_of, self.headers)):
            app = self._read_rare()
        parser: Any = self.parser
        url = self.url
        self._is_upgraded = parser.should_upgrade() and self._should_upgrade()
        if self._is_upgraded or not self._is_covered:
            super().on_headers_complete()
            return
        scope: Any = self.scope
        split = _split if len(url) > _LONGEST_KEPT or url.find(b"?") >= 0 else _split_path  # a query may have a key
        path, raw, scope["query_string"] = split(url)
        if self.root_path:
            path, raw = self.root_path + path, self.root_path.encode("ascii") + raw
        scope["path"], scope["raw_path"] = path, raw
        scope["method"] = parser.get_method().decode("ascii")
        scope["http_version"] = version = parser.get_http_version()
        before: Any = self.cycle
        cycle: Any = _Cycle(self, scope)
        cycle.keep_alive = version != "1.0" and parser.should_keep_alive()
        self.cycle = cycle
        if before is None or before.response_complete:
            self._start(cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, app))

    def _read_rare(self) -> Any:  # noqa: ANN401 - an application
        """Follow headers that few requests have; return what answers: the middleware for proxies, or what it wraps."""
        lowered = [(name, value.lower()) for name, value in self.headers]
        self.expect_100_continue = (b"expect", b"100-continue") in lowered
        return self._direct_app if _FORWARDED.isdisjoint(map(_name_of, self.headers)) else self.app  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _start(self, cycle: _Cycle, app: Any) -> None:  # noqa: ANN401 - an application
        cycle.task = asyncio.Task(cycle.run_asgi(app), loop=self.loop, name="request")
        self.tasks.add(cycle.task)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body; read no more of it before the application has taken much of it."""
        cycle: Any = self.cycle
        if not self._is_covered:
            super().on_body(body)
        elif not self._is_upgraded and not cycle.response_complete:
            held: bytes | bytearray = cycle.body
            if not held:
                cycle.body = held = body
            elif isinstance(held, bytearray):
                held += body
            else:
                cycle.body = held = bytearray(held) + body
            if len(held) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.has_news = True
            if cycle.news is not None:
                cycle.news.set()

    def on_message_complete(self) -> None:
        """Note that a body is complete."""
        cycle: Any = self.cycle
        if not self._is_covered:
            super().on_message_complete()
        elif not self._is_upgraded and not cycle.response_complete:
            cycle.more_body = False
            cycle.has_news = True
            if cycle.news is not None:
                cycle.news.set()

    # -- replies -------------------------------------------------------------------------------------------------------

    def default_lines(self) -> bytes:
        """Return the headers that all replies have; uvicorn makes them each second."""
        given = self.server_state.default_headers
        known, lines = HttpProtocol._default_lines
        if known is not given:
            lines = b"".join([b"%b: %b\r\n" % each for each in given])
            HttpProtocol._default_lines = (given, lines)
        return lines

    def write(self, data: bytes) -> None:
        """Write the head that waits, and data."""
        if self.head:
            data, self.head = self.head + data, b""
        if data:
            self.transport.write(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self.write(b"")
        super().send_400_response(msg)

    def on_response_complete(self) -> None:
        """Start the next request, or wait for it."""
        if not self._is_covered:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.flow.resume_reading()
        if self.pipeline:
            self._start(*cast("tuple[_Cycle, Any]", self.pipeline.pop()))
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look)

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = None
        if self.timeout_keep_alive_task is not None:
            super()._unset_keepalive_if_required()

    def _look(self) -> None:
        """Close the connection if it was idle for long; look again if for less."""
        self._idle_timer = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look)
        else:
            self.timeout_keep_alive_handler()
