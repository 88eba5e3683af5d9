"""One HTTP client for each event loop, because a connection works only in the loop that opened it.

Facts:
- A connection that is used in another loop fails with a `RuntimeError`. Programs and tests that call `asyncio.run` more
  than once with the same client do that.                                        (httpx2 2.16.0, asyncio; 2026-11-15)
- Closing a loop does not close its connections; they are closed when they are garbage-collected.        (asyncio)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import httpx2


class HttpByLoop:
    """The HTTP clients of one `AsyncClient`, one for each event loop."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[object, httpx2.AsyncClient] = WeakKeyDictionary()
        self._is_closed = False

    def here(self) -> httpx2.AsyncClient:
        """Return the HTTP client of the running loop; all callers without an asyncio loop share one.

        Raises:
            RuntimeError: the client was closed.
        """
        if self._is_closed:
            raise RuntimeError("the AsyncClient was closed; make a new one")
        loop = find_loop() or self
        made = self._made.get(loop)
        if made is None:
            made = self._made[loop] = self._make()
        return made

    async def close(self) -> None:
        """Close the connections of the running loop; those of other loops cannot be closed here."""
        self._is_closed = True
        made = self._made.pop(find_loop() or self, None)
        self._made.clear()
        if made is not None:
            await made.aclose()


def find_loop() -> asyncio.AbstractEventLoop | None:
    """Return the asyncio event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
