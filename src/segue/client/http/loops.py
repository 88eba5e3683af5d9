"""Connections belong to the event loop they were made in, so each loop gets connections of its own.

Facts this file rests on:
- A connection that is used in another loop than its own fails with a `RuntimeError`; programs that call `asyncio.run`
  more than once, and tests, do that with a client they keep.                    (httpx2 2.16.0, asyncio; 2026-11-15)
- A loop that is closed has closed nothing; its connections are gone when nobody holds them any more.   (asyncio)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import httpx2


class HttpByLoop:
    """The transports of one client, one for each loop that it is used in."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[object, httpx2.AsyncClient] = WeakKeyDictionary()
        self._is_closed = False

    def here(self) -> httpx2.AsyncClient:
        """Give the transport of the loop that is running; where none is, one for whoever has no loop.

        Raises:
            RuntimeError: it was closed.
        """
        if self._is_closed:
            raise RuntimeError("the client has been closed")
        loop = find_loop() or self
        made = self._made.get(loop)
        if made is None:
            made = self._made[loop] = self._make()
        return made

    async def close(self) -> None:
        """Close the connections of the loop that is running; those of others cannot be closed from here."""
        self._is_closed = True
        made = self._made.pop(find_loop() or self, None)
        self._made.clear()
        if made is not None:
            await made.aclose()


def find_loop() -> asyncio.AbstractEventLoop | None:
    """Find the loop that is running here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
