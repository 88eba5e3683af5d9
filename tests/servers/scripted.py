"""A loopback HTTP/1.1 server that does what a test tells it, also what no decent server would do.

    with ScriptedServer() as server:
        server.reply(Reply.json({"error": "busy"}, status=429, headers={"retry-after": "1"}))
        server.reply(Reply.sse(STREAM, split=1, breaks=Break(Phase.BODY, "reset")))
        ...
        assert [request.path for request in server.requests] == ["/v1/messages", "/v1/messages"]

Each request takes the next reply of the script; when the script is empty, `default` is asked. What came in, how many
connections were opened and are open, how many replies were finished and how many the other side broke off is counted.
Everything runs in one thread with one event loop, so that ten thousand streams are no burden; leaving the `with` block
ends all of it.

Facts this file rests on:
- A socket closed with SO_LINGER on and a time of nothing sends RST: the peer sees a reset, not an end.     (socket(7))
- A peer that goes away while we wait is noticed only by reading: so a connection is read from all the time.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from servers.script import Break, Phase, Reply

_RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Received:
    """A request as it came in."""

    method: str
    path: str
    """With the query, as the client wrote it."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    connection: int
    """Which connection brought it, counted from 1."""

    def json(self) -> dict[str, object]:
        """Read the body."""
        return json.loads(self.body)


class _Gone(Exception):
    """The other side has closed or reset the connection."""


class _Connection(asyncio.Protocol):
    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.transport: asyncio.Transport
        self.number = 0
        self.buffer = bytearray()
        self.changed = asyncio.Event()  # bytes came, the peer has gone, or there is room to write again
        self.gone = False
        self.full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self.server.note_opened(self)
        self.server.spawn(self.serve())

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.changed.set()

    def eof_received(self) -> bool:
        self.gone = True
        self.changed.set()
        return True  # `serve` closes

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's word
        self.gone = True
        self.changed.set()
        self.server.note_closed(self)

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self.changed.set()

    async def serve(self) -> None:
        """Answer requests until one side ends it."""
        try:
            lasting = not await self.breaks_early()
            while lasting:
                if not self.buffer:
                    await self.more()
                if await self.breaks_early():
                    return
                received = await self.read_request()
                reply = self.server.take(received)
                try:
                    lasting = await self.answer(reply)
                except _Gone:
                    self.server.aborted += 1
                    raise
        except _Gone:
            pass
        finally:
            self.transport.close()

    async def breaks_early(self) -> bool:
        """Break where the script says that nothing is read; asked when a connection is made and when bytes come."""
        breaks = self.server.take_early_break()
        if breaks is None:
            return False
        if breaks.how == "stall":
            await self.stall()
            return False
        self.end(breaks.how)
        return True

    async def read_request(self) -> Received:
        head = await self.read_until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if headers.get("transfer-encoding", "") == "chunked":
            body = b""
            while size := int((await self.read_until(b"\r\n")).strip(), 16):
                body += (await self.read_exactly(size + 2))[:-2]
            await self.read_until(b"\r\n")
        else:
            body = await self.read_exactly(int(headers.get("content-length", "0")))
        return Received(method, path, headers, body, self.number)

    async def answer(self, reply: Reply) -> bool:
        """Write a reply; gives whether the connection goes on."""
        for position, data in enumerate(reply.steps()):
            if data is None:
                assert reply.breaks is not None
                if reply.breaks.how != "stall":
                    self.end(reply.breaks.how)
                    return False
                await self.stall()
                continue
            if reply.pause and position:
                await asyncio.sleep(reply.pause)
            await self.write(data)
        self.server.served += 1
        return reply.lasting

    def end(self, how: str) -> None:
        if how == "reset":
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
        else:
            self.transport.close()

    async def stall(self) -> None:
        """Wait until the test goes on, or until the peer has gone."""
        signal = self.server.signal
        self.server.stalled += 1
        try:
            while not signal.is_set and not self.gone:
                self.changed.clear()
                signal.waiting.add(self.changed)
                await self.changed.wait()
        finally:
            self.server.stalled -= 1
            signal.waiting.discard(self.changed)
        if self.gone:
            raise _Gone

    async def write(self, data: bytes) -> None:
        if self.gone or self.transport.is_closing():
            raise _Gone
        self.transport.write(data)
        await asyncio.sleep(0)  # a write of its own, and others get their turn
        while self.full and not self.gone:
            self.changed.clear()
            await self.changed.wait()

    async def read_until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            await self.more()
        end = self.buffer.index(mark) + len(mark)
        return self.taken(end)

    async def read_exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            await self.more()
        return self.taken(size)

    def taken(self, size: int) -> bytes:
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    async def more(self) -> None:
        if self.gone:
            raise _Gone
        self.changed.clear()
        await self.changed.wait()


class _Signal:
    """What stalled replies wait for; a new one is made each time it was given."""

    def __init__(self) -> None:
        self.is_set = False
        self.waiting = set[asyncio.Event]()

    def tell(self) -> None:
        self.is_set = True
        for event in self.waiting:
            event.set()


class ScriptedServer:
    """A server and what it saw; see the top of this file."""

    def __init__(self, default: Callable[[Received], Reply] | Reply | None = None) -> None:
        self.requests: list[Received] = []
        self.opened = 0
        """How many connections were ever made."""
        self.served = 0
        """How many replies were written to their end."""
        self.aborted = 0
        """How many replies the other side did not want to its end."""
        self.stalled = 0
        """How many replies are silent right now."""
        self.signal = _Signal()
        self._default = default
        self._script: deque[Reply] = deque()
        self._connections = set[_Connection]()
        self._tasks = set[asyncio.Task[None]]()
        self._failures: list[BaseException] = []
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._thread = threading.Thread(target=self._run, name="scripted server", daemon=True)
        self._closing = asyncio.Event()
        self._deserted = asyncio.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        """Where it listens; no slash at the end."""

    @property
    def open(self) -> int:
        """How many connections are open right now."""
        return len(self._connections)

    def reply(self, *replies: Reply) -> None:
        """Add to the script: one reply for each request to come."""
        self._script.extend(replies)

    def go_on(self) -> None:
        """Let every reply that is silent now go on."""
        self._loop.call_soon_threadsafe(self._go_on)

    def wait_until(self, holds: Callable[[ScriptedServer], bool], *, seconds: float = 60.0) -> None:
        """Wait until something can be said of this server; what the network does takes its time."""
        deadline = time.monotonic() + seconds
        while not holds(self):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {seconds} seconds in vain: {self!r}")
            time.sleep(0.002)

    def __repr__(self) -> str:
        counts = ("opened", "open", "served", "aborted", "stalled")
        counters = ", ".join(f"{name}={getattr(self, name)}" for name in counts)
        return f"ScriptedServer({self.url}, requests={len(self.requests)}, {counters})"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        if self._failures and exc_info[0] is None:
            raise self._failures[0]

    # -- what the connections ask and tell; in the thread of the loop --------------------------------------------------

    def take(self, received: Received) -> Reply:
        """Note a request and give its reply."""
        self.requests.append(received)
        if self._script:
            return self._script.popleft()
        if isinstance(self._default, Reply):
            return self._default
        if self._default is not None:
            return self._default(received)
        return Reply.json({"error": f"the script has no reply for {received.method} {received.path}"}, status=500)

    def take_early_break(self) -> Break | None:
        """Give the next reply's break where it comes before the request is read.

        One that only stalls has an answer for afterwards, which stays in the script.
        """
        breaks = self._script[0].breaks if self._script else None
        if breaks is None or breaks.phase != Phase.CONNECTED:
            return None
        answer = self._script.popleft()
        if breaks.how == "stall":
            self._script.appendleft(replace(answer, breaks=None))
        return breaks

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Run what serves a connection."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_done)

    def note_opened(self, connection: _Connection) -> int:
        """Count a connection."""
        self._connections.add(connection)
        self._deserted.clear()
        self.opened += 1
        return self.opened

    def note_closed(self, connection: _Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        if not self._connections:
            self._deserted.set()

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failures.append(failure)

    def _go_on(self) -> None:
        self.signal.tell()
        self.signal = _Signal()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        server = await self._loop.create_server(lambda: _Connection(self), sock=self._listener, backlog=4096)
        await self._closing.wait()
        server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in tuple(self._connections):
            connection.transport.abort()
        if self._connections:
            await self._deserted.wait()
