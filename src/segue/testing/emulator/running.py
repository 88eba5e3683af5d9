"""Runs an ASGI application on a free port of this machine, in a thread, for tests."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from segue.errors import MissingExtra

if TYPE_CHECKING:
    import uvicorn

_START_SECONDS: Final = 20.0


@contextmanager
def serve_in_thread(
    app: Callable[..., object],
    *,
    port: int = 0,
    protocol: type[asyncio.Protocol] | None = None,
    sockets: type[asyncio.Protocol] | None = None,
) -> Generator[str]:
    """Serve an application while the block runs; gives its base URL, such as `http://127.0.0.1:54321`.

    `protocol` reads requests in place of uvicorn's own, `sockets` WebSockets.

    Raises:
        MissingExtra: uvicorn is not installed.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise MissingExtra("serving needs uvicorn, which is not installed", extra="ui") from error
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a stream that a script cuts is no error
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(
        cast("Any", app),
        http=protocol or "auto",
        ws=sockets or ("none" if protocol else "auto"),
        log_level="critical",
        lifespan="on",
        timeout_graceful_shutdown=1,
        access_log=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        _wait(server, thread)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(_START_SECONDS)
        listener.close()


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + _START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise RuntimeError("the server did not start")
        time.sleep(0.005)
