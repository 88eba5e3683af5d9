"""Limits on connections, in the server itself: an application does not see a request before its head is complete.

Facts (uvicorn 0.54, `protocols/http`):
- With httptools `http_protocol` reads and writes: it drops trailers and writes a reply at once. Without, it is h11.
- There is no limit on the time to the first byte or to the end of a head; the time of an idle connection ends with the
  first byte of the next head.
- With httptools the size of a head, and of the trailers of a body, is not limited; h11 has its own limit.
- `cycle` is the request that was read last; it is set when its head is complete.
- At its end, the server closes every connection on which no request has been read, also one that was opened just now.
- The head and the body of a reply are two writes, and two packets: also with uvloop (0.23, counted 2026-11-18).
- A request with a Content-Length and a Transfer-Encoding may be two requests for a proxy before the gateway; the
  connection is closed after the answer (RFC 9112, 6.1). llhttp refuses it, h11 0.16 goes on. (tried 2026-11-18)
- uvloop accepts one connection in each turn of its loop, asyncio all that wait. (uvloop 0.23, measured 2026-11-18)
- A WebSocket replaces the protocol of its connection, which then does not learn of its end: the new one counts it. A
  message is held whole before the application gets it, up to a size that is fixed when the server starts, and no other
  one is read before the application wants it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from segue.gateway.board import Board, Tally
from segue.gateway.config import LimitsTable

_LARGE: Final = 256_000
"""Bytes of a body that are not read before the application wants it; smaller ones come with the head."""
_ARRIVING: Final = 0.5
"""Seconds at the end of a server in which the requests of connections that were opened before arrive."""
_ACCEPTED: Final = 128
"""Connections that are accepted in one turn of the loop."""
_ACCEPT_AGAIN: Final = 1.0
"""Seconds until connections are accepted again after the process ran out of files or memory."""
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\ncontent-length: 26\r\n"
    b"connection: close\r\n\r\nThe headers are too large\n"
)

_CLOSE: Final = (b"connection", b"close")


def _declared_size(headers: list[tuple[bytes, bytes]]) -> int:
    length = next((value for name, value in headers if name == b"content-length"), b"0")
    return int(length) if length.isdigit() and len(length) < 16 else 0


def _has_two_lengths(headers: list[tuple[bytes, bytes]]) -> bool:
    names = {name for name, _ in headers}
    return b"content-length" in names and b"transfer-encoding" in names


class _OneWrite:
    """The transport of a connection; the head of a reply is sent with what is written next in the same turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self.is_closing: Callable[[], bool] = transport.is_closing
        self._loop = loop
        self._head: bytes = b""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the transport's own
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send data, with the head that waits; keep a head until the next write, at most until the next turn."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1."):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def _flush(self) -> None:
        if self._head:
            data, self._head = self._head, b""
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after everything was sent."""
        self._flush()
        self._transport.close()


class _Counts:
    """Open connections, in all and by address."""

    def __init__(self, board: Board | None) -> None:
        self._all = Tally("connections", board)
        self._by_address = Tally("addresses", board)

    @property
    def all(self) -> int:
        """The connections of this process."""
        return self._all.of("")

    def take(self, address: str, limits: LimitsTable) -> bool:
        """Count a connection; False if there are too many."""
        if not self._all.take("", 1, limits.connections):
            return False
        if self._by_address.take(address, 1, limits.connections_per_address):
            return True
        self._all.add("", -1)
        return False

    def add(self, address: str, change: int) -> None:
        self._all.add("", change)
        self._by_address.add(address, change)


if TYPE_CHECKING:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Base
else:
    _Base = object


class _Guard(_Base):
    """Added to a protocol of uvicorn. `limits` gives the limits of now, `counts` are those of the server."""

    limits: Callable[[], LimitsTable]
    counts: _Counts
    feed: Callable[[bytes], None]
    """What the protocol does with data that arrived."""
    is_lenient: bool = False
    """Whether it goes on after a request with two lengths."""
    _address: str = ""
    _is_counted: bool = False
    _timer: asyncio.TimerHandle | None = None
    _begun: object = None
    _size: int = 0
    _is_replaced: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        limits = self.limits()
        self._address = self.client[0] if self.client else ""
        if not self.counts.take(self._address, limits):
            transport.abort()
            return
        self._is_counted = True
        self._await_head(limits)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_counted:
            self.counts.add(self._address, -1)
            self._is_counted = False
        self._stop_timer()
        self._begun = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.feed(data)
        cycle: Any = self.cycle
        if cycle is not self._begun:  # a head is complete
            self._begun = cycle
            self._size = 0
            if self._timer is not None:
                self._stop_timer()
            if self.is_lenient and _has_two_lengths(cycle.scope["headers"]):
                cycle.scope["headers"].append(_CLOSE)  # of the request: the server closes after its answer
            if not cycle.more_body or cycle.response_complete or self.transport.is_closing():
                return
            if _declared_size(cycle.scope["headers"]) > _LARGE:
                self.flow.pause_reading()  # until the application asks for the body: it may refuse the request
        elif (cycle is None or cycle.response_complete) and not (self.transport.is_closing() or self._is_replaced):
            limits = self.limits()
            self._size += len(data)
            if self._size > limits.header_kilobytes * 1000:
                self._refuse()
            elif self._timer is None:
                self._await_head(limits)

    def handle_websocket_upgrade(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - of h11 or of httptools
        """Leave the connection to the protocol of WebSockets, which counts it from now on."""
        self._stop_timer()
        self._is_replaced = True
        if self._is_counted:
            self.counts.add(self._address, -1)
            self._is_counted = False
        super().handle_websocket_upgrade(*given, **named)

    def _await_head(self, limits: LimitsTable) -> None:
        self._timer = self.loop.call_later(limits.head_seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.abort()

    def _refuse(self) -> None:
        self._stop_timer()
        if self._begun is None:
            self.transport.write(_TOO_LARGE)
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the application answers."""


class _LenientGuard(_Guard):
    """Added to the protocol on h11."""

    is_lenient = True

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(cast("asyncio.Transport", _OneWrite(transport, self.loop)))


class _Counted:
    """Added to a protocol of uvicorn for WebSockets: counts open connections together with those of HTTP."""

    counts: _Counts
    client: tuple[str, int] | None
    _address: str = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._address = self.client[0] if self.client else ""
        self.counts.add(self._address, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.counts.add(self._address, -1)
        super().connection_lost(exc)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


class _Listener:
    """Accepts all connections that wait, in each turn of the loop; `make` makes the protocol of one."""

    def __init__(self, listening: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        listening.setblocking(False)  # noqa: FBT003 - it has no name
        self._listening = listening
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._loop.add_reader(listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED):
            try:
                connection, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._loop.remove_reader(self._listening.fileno())
                self._timer = self._loop.call_later(_ACCEPT_AGAIN, self._again)
                return
            task = self._loop.create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _again(self) -> None:
        self._timer = None
        if not self._is_closed:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    async def _open(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError:  # the client is gone
            connection.close()

    def close(self) -> None:
        """Accept the connections that wait, and no more."""
        if self._is_closed:
            return
        self._accept()
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()

    async def wait_closed(self) -> None:
        """Wait until the connections that were accepted have their protocol."""
        await asyncio.gather(*self._opening)


def draining_server(config: uvicorn.Config) -> uvicorn.Server:
    """Make a server that answers, before it ends, what was sent to it before: a load balancer may not send it again."""
    import uvicorn

    class DrainingServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            loop = asyncio.get_running_loop()
            if sockets is None or isinstance(loop, asyncio.BaseEventLoop):
                await super().startup(sockets)
                return
            await super().startup([])

            def make() -> asyncio.Protocol:
                protocol: Any = self.config.http_protocol_class
                state = self.lifespan.state
                return protocol(config=self.config, server_state=self.server_state, app_state=state, _loop=loop)

            servers: list[Any] = self.servers
            servers += [_Listener(each, make) for each in sockets]

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await asyncio.sleep(0)  # connections that wait are accepted
            for listener in (*self.servers, *(sockets or ())):
                listener.close()
            await asyncio.sleep(_ARRIVING)
            await super().shutdown(None)

    return DrainingServer(config)


def guarded_protocols(limits: Callable[[], LimitsTable], board: Board | None = None) -> dict[str, Any]:
    """Return the settings of `uvicorn.Config` that keep to the limits, with a board together with the other workers.

    Without websockets there are no WebSockets.
    """
    counts = _Counts(board)
    given = {"limits": staticmethod(limits), "counts": counts}
    try:
        guard, base = _Guard, cast("Any", import_module("segue.gateway.http_protocol")).HttpProtocol
    except ModuleNotFoundError:
        guard, base = _LenientGuard, cast("Any", import_module("uvicorn.protocols.http.h11_impl")).H11Protocol
    try:
        sockets: Any = import_module("uvicorn.protocols.websockets.websockets_sansio_impl").WebSocketsSansIOProtocol
    except ModuleNotFoundError:
        sockets = None
    return {
        "http": type("GuardedProtocol", (guard, base), {**given, "feed": base.data_received}),
        "ws": "none" if sockets is None else type("CountedProtocol", (_Counted, sockets), {"counts": counts}),
        "ws_max_size": round(limits().body_megabytes * 1_000_000),
        "ws_per_message_deflate": False,  # a small message could hold gigabytes
    }


def guarded_protocol(limits: Callable[[], LimitsTable]) -> type[asyncio.Protocol]:
    """Return the protocol for HTTP alone, for servers without WebSockets (`ws="none"`)."""
    return guarded_protocols(limits)["http"]
