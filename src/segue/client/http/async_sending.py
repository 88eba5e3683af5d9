"""HTTP for the async client: the same as `sending`, with anyio, which httpx2 is built on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from segue.client.flow.steps import Broken, Head
from segue.client.http.faults import CONNECTING, explain_fault, is_stale, list_faults
from segue.client.http.keys import conceal
from segue.client.http.loops import find_loop
from segue.client.http.outgoing_request import OutgoingRequest
from segue.client.http.sending import DRAIN_SECONDS
from segue.conversation.events import Event

if TYPE_CHECKING:
    import anyio
    import httpx2


_SCHEDULED_CLOSES: Final[set[asyncio.Task[None]]] = set()
"""Tasks that close unread streams. An event loop holds only weak references to its tasks."""


class AsyncWire:
    """Sends the HTTP requests of one call and reads the replies, one at a time."""

    def __init__(self, find_http: Callable[[], httpx2.AsyncClient]) -> None:
        self._find_http = find_http
        self._loop: asyncio.AbstractEventLoop | None = None
        self._faults = list_faults()
        self._secrets: tuple[str, ...] = ()
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._scope: anyio.CancelScope | None = None

    def __repr__(self) -> str:
        return "AsyncWire()"

    def conceal(self, text: str) -> str:
        """Remove the keys that were sent from a text."""
        return conceal(text, self._secrets)

    async def send(self, outgoing: OutgoingRequest) -> Head | Broken:
        """Send an HTTP request and wait for the status and headers of the reply."""
        import anyio

        self._secrets = (*outgoing.secrets, *self._secrets)
        self._loop = find_loop()
        http = self._find_http()
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                response = await self._post(outgoing, http)
            except self._faults as error:
                return explain_fault(error, self._secrets, outgoing.url)
            finally:
                self._scope = None
            self._response = response
            is_compressed = "content-encoding" in response.headers
            self._chunks = response.aiter_bytes() if is_compressed else _iterate(response)
            return Head(response.status_code, dict(response.headers))
        return Broken("the request was interrupted")

    async def _post(self, outgoing: OutgoingRequest, http: httpx2.AsyncClient) -> httpx2.Response:
        connecting: list[str] = []

        async def note(step: str, _info: object) -> None:
            if step.startswith(CONNECTING):
                connecting.append(step)

        async def post() -> httpx2.Response:
            request = http.build_request(
                outgoing.method,
                outgoing.url,
                headers=outgoing.headers,
                content=outgoing.content,
                extensions={"trace": note},
            )
            return await http.send(request, stream=True)

        try:
            return await post()
        except self._faults as error:
            if not is_stale(error, is_new=bool(connecting)):
                raise
        return await post()

    async def read(self) -> bytes | Broken | None:
        """Return the next bytes of the reply; None at its end."""
        if self._chunks is None:
            return None
        try:
            return await self._chunks.__anext__()
        except StopAsyncIteration:
            return None
        except self._faults as error:
            return explain_fault(error, self._secrets)

    async def read_events(self, feed: Callable[[bytes], list[Event]]) -> list[Event] | Broken | None:
        """Read until `feed` returns events; None at the end of the reply."""
        if self._chunks is None:
            return None
        try:
            async for chunk in self._chunks:
                if events := feed(chunk):
                    return events
        except self._faults as error:
            return explain_fault(error, self._secrets)
        return None

    async def drain(self) -> None:
        """Read a complete reply to its end, if that comes soon, and release it."""
        import anyio

        with anyio.move_on_after(DRAIN_SECONDS), suppress(*self._faults):
            while isinstance(await self.read(), bytes):
                pass
        await self.close()

    async def close(self) -> None:
        """Release the reply; its connection is reused only if the reply was read to its end."""
        import anyio

        response, chunks = self._response, self._chunks
        self._response = self._chunks = None
        if response is not None and chunks is not None:
            with anyio.CancelScope(shield=True), suppress(*self._faults):
                if isinstance(chunks, AsyncGenerator):
                    await chunks.aclose()  # otherwise asyncio would finish it in a separate task
                await response.aclose()

    def schedule_close(self, close: Callable[[], Coroutine[None, None, None]]) -> None:
        """Let the event loop close an unread stream, if its reply is still open and the loop still runs."""
        loop = self._loop
        if self._response is None or loop is None or loop.is_closed():
            return

        def begin() -> None:
            task = loop.create_task(close())
            _SCHEDULED_CLOSES.add(task)
            task.add_done_callback(_SCHEDULED_CLOSES.discard)

        with suppress(RuntimeError):  # the loop was closed at this moment
            loop.call_soon_threadsafe(begin)

    async def wait(self, seconds: float) -> None:
        """Wait until the time is over or `interrupt` is called."""
        import anyio

        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                await anyio.sleep(seconds)
            finally:
                self._scope = None

    async def interrupt(self) -> None:
        """End a running `wait`, `send` or `read`, from another task."""
        if self._scope is not None:
            self._scope.cancel()
        elif self._response is not None:
            import anyio

            with anyio.CancelScope(shield=True), suppress(*self._faults):
                await self._response.aclose()


def _iterate(response: httpx2.Response) -> AsyncIterator[bytes]:
    import httpx2

    assert isinstance(response.stream, httpx2.AsyncByteStream), "an async client returns async streams"
    return aiter(response.stream)
