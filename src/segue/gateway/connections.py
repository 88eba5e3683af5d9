"""Limits on connections, in the server itself: an application does not see a request before its head is complete.

Facts this file relies on (uvicorn 0.54, `protocols/http`):
- There is no limit on the time to the first byte or to the end of a head; the time of an idle connection ends with the
  first byte of the next head.
- With httptools the size of a head, and of the trailers of a body, is not limited; h11 has a limit of its own.
- `cycle` is the request that was read last; it is set when its head is complete.
- At its end, the server closes every connection on which no request has been read, also one that was opened just now.
- A WebSocket replaces the protocol of its connection, which then does not learn of its end: the new one counts it. A
  message is held whole before the application gets it, up to a size that is fixed when the server starts, and no other
  one is read before the application wants it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from segue.gateway.config import LimitsTable

_LARGE: Final = 256_000
"""Bytes of a body of which nothing is read before the application wants it; smaller ones come with the head."""
_ARRIVING: Final = 0.5
"""Seconds at the end of a server in which the requests of connections that were opened before arrive."""
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\ncontent-length: 26\r\n"
    b"connection: close\r\n\r\nThe headers are too large\n"
)


def _declared_size(headers: list[tuple[bytes, bytes]]) -> int:
    length = next((value for name, value in headers if name == b"content-length"), b"0")
    return int(length) if length.isdigit() and len(length) < 16 else 0


class _Counts:
    """Open connections, in all and by address."""

    def __init__(self) -> None:
        self.all: int = 0
        self.by_address: dict[str, int] = {}

    def add(self, address: str, change: int) -> None:
        self.all += change
        count = self.by_address.get(address, 0) + change
        if count:
            self.by_address[address] = count
        else:
            self.by_address.pop(address, None)


if TYPE_CHECKING:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol as _Base
else:
    _Base = object


class _Guard(_Base):
    """Added to a protocol of uvicorn. `limits` gives the limits of now, `counts` are those of the server."""

    limits: Callable[[], LimitsTable]
    counts: _Counts
    _address: str = ""
    _is_counted: bool = False
    _timer: asyncio.TimerHandle | None = None
    _begun: object = None
    _size: int = 0
    _heading: object = None
    _is_replaced: bool = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        limits = self.limits()
        self._address = self.client[0] if self.client else ""
        is_full = self.counts.all >= limits.connections
        if is_full or self.counts.by_address.get(self._address, 0) >= limits.connections_per_address:
            transport.abort()
            return
        self.counts.add(self._address, 1)
        self._is_counted = True
        self._await_head(limits)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_counted:
            self.counts.add(self._address, -1)
            self._is_counted = False
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing() or self._is_replaced:
            return
        cycle: Any = self.cycle
        if cycle is not self._begun:  # a head is complete
            self._begun = cycle
            self._size = 0
            self._stop_timer()
            if cycle.more_body and not cycle.response_complete and _declared_size(cycle.scope["headers"]) > _LARGE:
                self.flow.pause_reading()  # until the application asks for the body: it may refuse the request
        elif cycle is None or cycle.response_complete:
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

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; after the body it is a trailer, which nobody reads."""
        if self._heading is None:
            super().on_header(name, value)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    def on_message_begin(self) -> None:
        self._heading = None
        super().on_message_begin()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    def on_headers_complete(self) -> None:
        super().on_headers_complete()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        self._heading = self.cycle

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


def draining_server(config: uvicorn.Config) -> uvicorn.Server:
    """Make a server that answers, before it ends, what was sent to it before: a load balancer may not send it again."""
    import uvicorn

    class DrainingServer(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await asyncio.sleep(0)  # connections that wait are accepted
            for listener in (*self.servers, *(sockets or ())):
                listener.close()
            await asyncio.sleep(_ARRIVING)
            await super().shutdown(None)

    return DrainingServer(config)


def guarded_protocols(limits: Callable[[], LimitsTable]) -> dict[str, Any]:
    """Give the settings of `uvicorn.Config` that keep to the limits. Without websockets there are no WebSockets."""
    counts = _Counts()
    given = {"limits": staticmethod(limits), "counts": counts}
    try:
        base: Any = import_module("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol
    except ModuleNotFoundError:
        base = import_module("uvicorn.protocols.http.h11_impl").H11Protocol
    try:
        sockets: Any = import_module("uvicorn.protocols.websockets.websockets_sansio_impl").WebSocketsSansIOProtocol
    except ModuleNotFoundError:
        sockets = None
    return {
        "http": type("GuardedProtocol", (_Guard, base), given),
        "ws": "none" if sockets is None else type("CountedProtocol", (_Counted, sockets), {"counts": counts}),
        "ws_max_size": round(limits().body_megabytes * 1_000_000),
        "ws_per_message_deflate": False,  # a small message could hold gigabytes
    }


def guarded_protocol(limits: Callable[[], LimitsTable]) -> type[asyncio.Protocol]:
    """Give the protocol for HTTP alone, for servers without WebSockets (`ws="none"`)."""
    return guarded_protocols(limits)["http"]
