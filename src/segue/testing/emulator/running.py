"""Runs an ASGI application on a free port of this machine, in a thread, for tests."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from segue.errors import MissingExtra

if TYPE_CHECKING:
    import uvicorn

_START_SECONDS: Final = 20.0
_SHORT_WAITS: Final = 20
"""How often to look whether the connections have ended before uvicorn's own, slower wait begins."""


@contextmanager
def serve_in_thread(
    app: Callable[..., object],
    *,
    port: int = 0,
    protocol: type[asyncio.Protocol] | None = None,
    sockets: type[asyncio.Protocol] | None = None,
) -> Generator[str]:
    """Serve an application while the block runs; yields its base URL, such as `http://127.0.0.1:54321`.

    `protocol` reads requests in place of uvicorn's own, `sockets` WebSockets.

    Raises:
        MissingExtra: uvicorn is not installed.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise MissingExtra("serving needs uvicorn, which is not installed", extra="ui") from error
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a stream cut by a script is not an error
    listener = socket.create_server(("127.0.0.1", port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # for loops that do not set it, see cli/listening.py
    config = uvicorn.Config(
        cast("Any", app),
        http=protocol or "auto",
        ws=sockets or ("none" if protocol else "auto"),
        log_level="critical",
        lifespan="on",
        timeout_graceful_shutdown=1,
        access_log=False,
    )
    server = _server_class()(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        _wait(server, thread)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        thread.join(_START_SECONDS)
        listener.close()


class _Server(Protocol):
    started: bool

    def run(self, sockets: list[socket.socket] | None = None) -> None: ...

    def stop(self) -> None: ...


@cache
def _server_class() -> Callable[[uvicorn.Config], _Server]:
    """Make the class when the first server starts, because uvicorn is optional."""
    import uvicorn

    class Server(uvicorn.Server):
        """A server that stops at once: uvicorn looks ten times a second whether to stop, and then waits as long."""

        _loop: asyncio.AbstractEventLoop
        _stopping: asyncio.Event

        def stop(self) -> None:
            self.should_exit = True
            if self.started:
                self._loop.call_soon_threadsafe(self._stopping.set)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
            await super().startup(sockets)

        async def main_loop(self) -> None:
            while not await self.on_tick(0):  # it also renews the date, which has seconds
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), 1)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:
                server.close()
            for connection in list(self.server_state.connections):
                connection.shutdown()
            for _ in range(_SHORT_WAITS):
                if not self.server_state.connections and not self.server_state.tasks:
                    await self.lifespan.shutdown()
                    return
                await asyncio.sleep(0.002)
            await super().shutdown(sockets)

    return Server


def _wait(server: _Server, thread: threading.Thread) -> None:
    end = time.monotonic() + _START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise RuntimeError("the server did not start")
        time.sleep(0.005)
