"""The server of a gateway on what is shipped (httptools, uvloop), and on the fallback (h11, asyncio's loop), for tests.

With SEGUE_SERVER=fallback in the environment, all tests of the gateway run on the fallback.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from segue.cli.listening import listen
from segue.gateway.app import create_app
from segue.gateway.connections import draining_server, guarded_protocols
from segue.gateway.service import Gateway

_CHOSEN = ("segue.gateway.http_protocol", "uvicorn.protocols.http.auto", "uvicorn.protocols.http.httptools_impl")
_WAIT_SECONDS = 20.0


def hide_shipped(patch: pytest.MonkeyPatch) -> None:
    """Hide httptools and uvloop, as if they were not installed."""
    for name in ("httptools", "uvloop"):
        patch.setitem(sys.modules, name, None)
    for name in _CHOSEN:
        patch.delitem(sys.modules, name, raising=False)


def is_shipped() -> bool:
    """Whether the tests run on what is shipped; there is no uvloop for Windows."""
    return os.environ.get("SEGUE_SERVER") != "fallback" and sys.platform != "win32"


@contextmanager
def serving(gateway: Gateway) -> Generator[tuple[int, type[asyncio.AbstractEventLoop]]]:
    """Serve a gateway as `segue serve` does, in a thread; gives the port and the class of the event loop."""
    loops: list[type[asyncio.AbstractEventLoop]] = []
    app = create_app(gateway=gateway)

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        loops.append(type(asyncio.get_running_loop()))
        await app(scope, receive, send)

    listener = listen("127.0.0.1", 0)
    protocols = guarded_protocols(lambda: gateway.config.limits)
    config = uvicorn.Config(noted, log_level="critical", lifespan="on", access_log=False, **protocols)
    server = draining_server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    end = time.monotonic() + _WAIT_SECONDS
    while not (server.started and loops):
        assert time.monotonic() < end, "the server does not start"
        time.sleep(0.002)
    try:
        yield listener.getsockname()[1], loops[0]
    finally:
        server.should_exit = True
        thread.join(_WAIT_SECONDS)
        assert not thread.is_alive()
