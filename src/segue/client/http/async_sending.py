"""HTTP for the async client: the same as `sending`, with anyio, which httpx2 is built on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Protocol, cast, runtime_checkable
from urllib.parse import urlsplit

from segue.client.flow.steps import Broken, Head
from segue.client.http.faults import CONNECTING, explain_fault, is_stale, list_faults
from segue.client.http.keys import conceal
from segue.client.http.loops import find_loop
from segue.client.http.outgoing_request import OutgoingRequest
from segue.client.http.reply_bytes import ACCEPTED, LARGEST_REPLY, TOO_LARGE, decompressed_async
from segue.client.http.sending import DRAIN_SECONDS
from segue.conversation.events import Event
from segue.models.built_in import ECHO_HOST, LOCAL_HOST

if TYPE_CHECKING:
    import anyio
    import httpx2


_SCHEDULED_CLOSES: Final[set[asyncio.Task[None]]] = set()
"""Tasks that close unread streams. An event loop holds only weak references to its tasks."""


_INTERRUPTED: Final = Broken("the request was interrupted")


class HttpReply(Protocol):
    """The used part of a reply: an `httpx2.Response`, or the reply of a transport that needs no HTTP client."""

    @property
    def status_code(self) -> int:
        """The status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case."""
        ...

    @property
    def stream(self) -> object:
        """The bytes as they arrive."""
        ...

    async def aclose(self) -> None:
        """Release the connection."""
        ...


@runtime_checkable
class DirectTransport(Protocol):
    """A transport that sends without an HTTP client above it: no cookies, no redirects, fewer objects."""

    async def send_directly(self, outgoing: OutgoingRequest) -> HttpReply:
        """Send a request, and wait for the head of the reply. Raises the exceptions of httpx2."""
        ...


class ChunkRelay(Protocol):
    """Passes the bytes of a streamed reply on before they are decoded."""

    async def pass_on(self, chunk: bytes) -> bytes:
        """Take a chunk; return the bytes that are to be decoded now, with those that were kept before."""
        ...

    def take_held(self) -> bytes:
        """Return the bytes that are to be decoded before more is read."""
        ...

    def flush(self) -> bytes:
        """Return the bytes that were kept and not decoded."""
        ...


def find_direct(transport: object) -> DirectTransport | None:
    """Return the transport of a client, or the one among its transports for all URLs, if it needs no HTTP client."""
    given = cast("Mapping[str, object]", transport).get("all://") if isinstance(transport, Mapping) else transport
    return given if isinstance(given, DirectTransport) else None


class AsyncWire:
    """Sends the HTTP requests of one call and reads the replies, one at a time.

    `direct` is used instead of the HTTP client for every URL but those of segue's own models.
    """

    def __init__(self, find_http: Callable[[], httpx2.AsyncClient], direct: DirectTransport | None = None) -> None:
        self._find_http = find_http
        self._direct = direct
        self._loop: asyncio.AbstractEventLoop | None = None
        self._secrets: tuple[str, ...] = ()
        self._response: HttpReply | None = None
        self._chunks: AsyncIterator[bytes] | None = None
        self._left = LARGEST_REPLY
        self._scope: anyio.CancelScope | None = None
        self._sending: asyncio.Task[object] | None = None
        self._is_interrupted = False
        self._sent: Head | Broken | None = None
        self._fault: Exception | None = None
        self.relay: ChunkRelay | None = None
        """Gets the bytes of a streamed reply first."""

    def __repr__(self) -> str:
        return "AsyncWire()"

    def conceal(self, text: str) -> str:
        """Remove the keys that were sent from a text."""
        return conceal(text, self._secrets)

    async def send(self, outgoing: OutgoingRequest) -> Head | Broken:
        """Send an HTTP request and wait for the status and headers of the reply; after `rewind`, return those."""
        if self._sent is not None:
            head, self._sent = self._sent, None
            return head
        self._secrets = (*outgoing.secrets, *self._secrets)
        self._loop = find_loop()
        if self._direct is not None and not _is_own(outgoing.url):
            return await self._send_directly(outgoing, self._direct)
        import anyio

        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                return self._begin(await self._post(outgoing))
            except list_faults() as error:
                return explain_fault(error, self._secrets, outgoing.url)
            finally:
                self._scope = None
        return _INTERRUPTED

    def _begin(self, response: HttpReply) -> Head:
        self._response = response
        encodings = response.headers.get("content-encoding")
        chunks = _iterate(response)
        self._chunks = chunks if encodings is None else decompressed_async(chunks, encodings)
        self._left = LARGEST_REPLY
        return Head(response.status_code, dict(response.headers))

    async def _send_directly(self, outgoing: OutgoingRequest, direct: DirectTransport) -> Head | Broken:
        """Send without the scope of anyio, which costs as much as a small request: `interrupt` cancels the task."""
        self._find_http()  # the client of this loop closes the transport
        self._sending = asyncio.current_task()
        try:
            try:
                response = await direct.send_directly(outgoing)
            except list_faults() as error:
                if not is_stale(error, is_new=False):
                    raise
                response = await direct.send_directly(outgoing)
        except list_faults() as error:
            return explain_fault(error, self._secrets, outgoing.url)
        except asyncio.CancelledError:
            task = self._sending
            if self._is_interrupted and task is not None and task.uncancel() == 0:
                return _INTERRUPTED
            raise
        finally:
            self._sending = None
        return self._begin(response)

    async def _post(self, outgoing: OutgoingRequest) -> HttpReply:
        connecting: list[str] = []

        async def note(step: str, _info: object) -> None:
            if step.startswith(CONNECTING):
                connecting.append(step)

        async def post() -> HttpReply:
            http = self._find_http()
            request = http.build_request(
                outgoing.method,
                outgoing.url,
                headers=ACCEPTED | outgoing.headers,
                content=outgoing.content,
                extensions={"trace": note},
            )
            return await http.send(request, stream=True)

        try:
            return await post()
        except list_faults() as error:
            if not is_stale(error, is_new=bool(connecting)):
                raise
        return await post()

    def rewind(self, head: Head | Broken | None, data: bytes) -> None:
        """Let the next `send` return what was received, if anything: `head`, and a reply that begins with `data`."""
        self._sent = head
        if self._chunks is not None:
            self._chunks = _read_again(data, self._chunks, self._fault)
            self._left = LARGEST_REPLY

    async def read(self) -> bytes | Broken | None:
        """Return the next bytes of the reply; None at its end."""
        if self._chunks is None:
            return None
        try:
            chunk = await self._chunks.__anext__()
        except StopAsyncIteration:
            return None
        except list_faults() as error:
            self._fault = error
            return explain_fault(error, self._secrets)
        self._left -= len(chunk)
        return chunk if self._left >= 0 else TOO_LARGE

    async def read_events(self, feed: Callable[[bytes], list[Event]]) -> list[Event] | Broken | None:
        """Read until `feed` returns events; None at the end of the reply."""
        if self.relay is not None:
            return await self._read_relayed(self.relay, feed)
        if self._chunks is None:
            return None
        try:
            async for chunk in self._chunks:
                self._left -= len(chunk)
                if self._left < 0:
                    return TOO_LARGE
                if events := feed(chunk):
                    return events
        except list_faults() as error:
            return explain_fault(error, self._secrets)
        return None

    async def _read_relayed(
        self, relay: ChunkRelay, feed: Callable[[bytes], list[Event]]
    ) -> list[Event] | Broken | None:
        """Read like `read_events`; what was passed on is decoded before the end or the failure of the reply is."""
        try:
            while True:
                ready = relay.take_held()
                if not ready:
                    chunk = await self.read()
                    if not isinstance(chunk, bytes):
                        break
                    ready = await relay.pass_on(chunk)
                if ready and (events := feed(ready)):
                    return events
        except BaseException:
            feed(relay.flush())  # the message has what arrived
            raise
        if (rest := relay.flush()) and (events := feed(rest)):
            if isinstance(chunk, Broken) and self._chunks is not None:  # it is read again, with the same outcome
                self._chunks = _read_again(b"", self._chunks, self._fault)
            return events
        return chunk

    async def drain(self) -> None:
        """Read a complete reply to its end, if that comes soon, and release it."""
        import anyio

        if not _is_read(self._response):
            with anyio.move_on_after(DRAIN_SECONDS), suppress(*list_faults()):
                while isinstance(await self.read(), bytes):
                    pass
        await self.close()

    async def close(self) -> None:
        """Release the reply; its connection is reused only if the reply was read to its end."""
        response, chunks = self._response, self._chunks
        self._response = self._chunks = None
        if response is not None and chunks is response.stream and _is_read(response):
            await response.aclose()  # nothing waits, and nothing could fail
        elif response is not None and chunks is not None:
            import anyio

            with anyio.CancelScope(shield=True), suppress(*list_faults()):
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
        if self._sending is not None:
            self._is_interrupted = True
            self._sending.cancel()
        elif self._scope is not None:
            self._scope.cancel()
        elif self._response is not None:
            import anyio

            with anyio.CancelScope(shield=True), suppress(*list_faults()):
                await self._response.aclose()


@lru_cache(maxsize=256)
def _is_own(url: str) -> bool:
    """Whether a URL is that of a model that has its own transport."""
    return urlsplit(url).hostname in (ECHO_HOST, LOCAL_HOST)


def _is_read(response: HttpReply | None) -> bool:
    """Whether a reply is known to be read to its end."""
    return response is not None and getattr(response.stream, "is_read", False)


async def _read_again(data: bytes, rest: AsyncIterator[bytes], fault: Exception | None) -> AsyncGenerator[bytes]:
    """Yield what was read, then the rest, or the failure that was in its place."""
    try:
        if data:
            yield data
        if fault is not None:
            raise fault
        async for chunk in rest:
            yield chunk
    finally:
        if isinstance(rest, AsyncGenerator):
            await rest.aclose()


def _iterate(response: HttpReply) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, _stream_class()), "an async client returns async streams"
    return aiter(response.stream)


@cache
def _stream_class() -> type[httpx2.AsyncByteStream]:
    import httpx2

    return httpx2.AsyncByteStream
