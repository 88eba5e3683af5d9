"""Takes requests in: how many run at once, how much of them is held, how long a body may take, where it is parsed.

Facts:
- A server that closes a connection with unread bytes resets it, and the client may lose the answer. So the rest of a
  small body is read and dropped after the answer.                                                      (RFC 9112, 9.6)
- `msgspec` holds the interpreter's lock while it decodes; plain Python code gives it up every 5 ms. (measured, 2026-11)
"""

from __future__ import annotations

import asyncio
import gzip
import io
import sys
import zlib
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain
from typing import Any, Final, ParamSpec, Self, TypeAlias, TypeVar, cast

from segue.calls.reading import Call, count_values, find_protocol, parse_body, read_call
from segue.failures.failure import Failure, FailureKind
from segue.gateway.board import Board, Tally
from segue.gateway.config import LimitsTable
from segue.gateway.gate import GateTurn
from segue.gateway.keys import ANYONE, ClientKey
from segue.gateway.leaving import Connection
from segue.gateway.runtime import Runtime
from segue.gateway.store.accounts import Lease
from segue.models.catalogue import Catalogue

P = ParamSpec("P")
T = TypeVar("T")
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

_LARGE: Final = 256_000
"""Bytes of a body that is read in a thread. Requests of agents are smaller for most of a session."""
_LIGHT: Final = 4_000
"""Bytes of a body that is never looked at for how many values it has."""
_MANY: Final = 700
"""Commas of a body that is read in a thread: about 5 ms of work; a thread costs 0.2 ms. (measured 2026-11-18)"""
_MANY_TURNS: Final = 500
"""Turns of a history that is read in a thread, whatever the client sends of it."""
_MIDDLE: Final = 8_000
"""Bytes of a body that is read in a thread if its client used much CPU time of late."""
_DROPPED: Final = 1_000_000
"""Bytes of a body that are read and dropped after a refusal."""
_DROP_SECONDS: Final = 2.0
_MEGA: Final = 1_000_000
_HEAVY: Final = 1_000_000
"""Bytes of a large body; few of a tenant arrive at once: each of them takes the event loop's time as it arrives."""
_PAUSE_SECONDS: Final = 0.05
"""How long a piece of a large body waits for heavy work: a body of 30 MB comes in some hundred pieces."""
_WINDOW: Final = 2**23
"""The largest window of zstd over HTTP, in bytes (RFC 9659): a larger one fills the memory by its head alone."""


class Refused(Exception):
    """A request that the gateway does not serve. Without a status, the kind decides it, in the client's protocol."""

    def __init__(
        self,
        text: str,
        status: int | None,
        kind: FailureKind = FailureKind.INVALID_REQUEST,
        protocol: str | None = None,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text)
        self.retry_after: float | None = retry_after
        self.status: int | None = status
        self.kind: FailureKind = kind
        self.protocol: str | None = protocol

    @property
    def failure(self) -> Failure:
        """The same for the encoders of errors."""
        return Failure(kind=self.kind, status=self.status, message=str(self), retry_after=self.retry_after)


class Intake:
    """What the requests that run take up, in all and for each tenant. `peak` is the most that was held at once."""

    def __init__(self, board: Board | None = None) -> None:
        self.held: int = 0
        self.peak: int = 0
        self._held_of_all = Tally("held of all", board)
        self._held_by = Tally("held", board)
        self._running = Tally("running", board)
        self._sockets = Tally("sockets", board)
        self._turns: dict[str, asyncio.Lock] = {}
        self._arriving: dict[str, asyncio.Semaphore] = {}
        self._parsing: asyncio.Lock | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> int:
        """How many requests are being answered."""
        return self._running.sum()

    def admitted(self, tenant: str, runtime: Runtime, key: ClientKey = ANYONE, *, turn: GateTurn) -> Admission:
        """Count a request until the end of the `with` block; `turn` is that of the gate.

        Raises:
            Refused: too many requests of the tenant run.
        """
        most = runtime.config.limits.requests_per_key
        if not self._running.take(tenant, 1, most):
            raise Refused(
                f"{most} requests with this key run already, the limit of this gateway; wait until one has ended",
                None,
                FailureKind.RATE_LIMIT,
            )
        return Admission(self, tenant, runtime, key, turn)

    def end(self, tenant: str, size: int) -> None:
        """Count a request no more."""
        self._drop(tenant, size)
        self._running.add(tenant, -1)
        if not self._running.of(tenant):
            self._turns.pop(tenant, None)
            self._arriving.pop(tenant, None)

    @contextmanager
    def connected(self, tenant: str, limits: LimitsTable) -> Generator[None]:
        """Count a WebSocket while it is open.

        Raises:
            Refused: too many of the tenant are.
        """
        if not self._sockets.take(tenant, 1, limits.sockets_per_key):
            raise Refused(
                f"{limits.sockets_per_key} WebSockets with this key are open already, the limit of this gateway;"
                " close one",
                None,
                FailureKind.RATE_LIMIT,
            )
        try:
            yield
        finally:
            self._sockets.add(tenant, -1)

    def release(self, tenant: str, size: int) -> None:
        """Count bytes no more that `hold` counted."""
        if size:
            self._drop(tenant, size)

    def hold(self, tenant: str, size: int, limits: LimitsTable) -> None:
        """Count bytes of a body.

        Raises:
            Refused: the bodies that are held would be larger than the limits.
        """
        if not self._held_by.take(tenant, size, limits.held_megabytes_per_key * _MEGA):
            raise Refused(
                f"requests with this key that run have more than {limits.held_megabytes_per_key:g} MB, the limit of"
                " this gateway; wait until one has ended",
                None,
                FailureKind.RATE_LIMIT,
            )
        if not self._held_of_all.take("", size, limits.held_megabytes * _MEGA):
            self._held_by.add(tenant, -size)
            raise Refused(
                "the requests that run have more bytes than this gateway holds; wait until one has ended",
                None,
                FailureKind.OVERLOADED,
            )
        self.held += size
        self.peak = max(self.peak, self.held)

    def _drop(self, tenant: str, size: int) -> None:
        self.held -= size
        self._held_of_all.add("", -size)
        self._held_by.add(tenant, -size)

    async def arrive(self, tenant: str, limits: LimitsTable) -> asyncio.Semaphore:
        """Wait until another large body of a tenant may arrive; nothing is read of it before. It ends with `release`.

        Raises:
            Refused: others did not end in time.
        """
        places = self._arriving.setdefault(tenant, asyncio.Semaphore(limits.large_bodies_per_key))
        try:
            async with asyncio.timeout(limits.body_seconds):
                await places.acquire()
        except TimeoutError as error:
            raise Refused(
                f"{limits.large_bodies_per_key} large requests with this key arrive already, the limit of this gateway;"
                " wait until one has ended",
                None,
                FailureKind.RATE_LIMIT,
            ) from error
        return places

    async def in_thread(self, tenant: str, work: Callable[[], T]) -> T:
        """Run heavy work in a thread, one piece at a time; tenants take turns, whatever one of them sends."""
        if self._parsing is None:
            self._parsing = asyncio.Lock()
        async with self._turns.setdefault(tenant, asyncio.Lock()), self._parsing:
            self._idle.clear()
            try:
                return await asyncio.to_thread(work)
            finally:
                self._idle.set()

    async def pause(self) -> None:
        """Wait until no heavy work runs, but not for long: what one tenant sends must not stop another's body.

        Each read from a socket gives up the interpreter's lock, and waits for it.
        """
        if not self._idle.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_SECONDS):
                    await self._idle.wait()


class Admission:
    """One request that runs: its tenant, and the runtime that it uses from its beginning to its end."""

    def __init__(self, intake: Intake, tenant: str, runtime: Runtime, key: ClientKey, turn: GateTurn) -> None:
        self._intake = intake
        self.turn: GateTurn = turn
        self.tenant: str = tenant
        self.key: ClientKey = key
        self.lease: Lease | None = None
        """What the request may cost, if its key is counted."""
        self.connection: Connection | None = None
        """The connection of the client, if its server tells when the client leaves."""
        self.runtime: Runtime = runtime
        self.limits: LimitsTable = runtime.config.limits
        self.held: int = 0
        self.is_large: bool = False
        """Whether the work on the body belongs in a thread."""
        self.is_written: bool = False
        """Whether the bytes of the body are those that segue writes for its value."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.lease is not None:
            self.lease.end()
        self._intake.end(self.tenant, self.held)

    async def read_body(self, receive: Receive, headers: Mapping[str, str]) -> bytes:
        """Read the body; wait for another turn if it took long.

        Raises:
            Refused: it is too large, too slow, or there is no room for it.
        """
        limits = self.limits
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 15 or int(length) > limits.body_megabytes * _MEGA):
            raise self._too_large()
        if length.isdecimal() and int(length) > _HEAVY:
            body = await self._read_heavy(receive, [])
        else:
            first = await _receive_within(receive, limits.body_seconds)
            body = self._take(first)
            if first.get("more_body"):
                body = await self._read_rest(receive, body)
        if not self.turn.has_place:
            await self.turn.renew()
        self.weigh(body)
        return body

    def weigh(self, body: bytes) -> None:
        """Estimate the work that a body makes: what takes time are its values, and of those with texts, the bytes."""
        if len(body) >= _LIGHT:
            self.is_large = self.is_large or len(body) >= _LARGE or body.count(b",") >= _MANY

    def weigh_history(self, turns: int, *, is_large: bool = False) -> None:
        """Estimate the work that a history makes which the body names; `is_large`: it came in a body that made much."""
        self.is_large = self.is_large or is_large or turns >= _MANY_TURNS

    async def _read_rest(self, receive: Receive, body: bytes) -> bytes:
        pieces, limits = [body], self.limits
        try:
            async with asyncio.timeout(limits.body_seconds):
                while self.held <= _HEAVY:
                    message = await receive()
                    pieces.append(self._take(message))
                    if not message.get("more_body"):
                        return b"".join(pieces)
        except TimeoutError as error:
            raise _too_slow(limits.body_seconds) from error
        return await self._read_heavy(receive, pieces)

    async def _read_heavy(self, receive: Receive, pieces: list[bytes]) -> bytes:
        """Read the rest of a large body, when it is its turn; put it together in a thread, without a lock."""
        places = await self._intake.arrive(self.tenant, self.limits)
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    await self._intake.pause()
                    message = await receive()
                    pieces.append(self._take(message))
                    if not message.get("more_body"):
                        break
            return await self.in_thread(lambda: b"".join(pieces))
        except TimeoutError as error:
            raise _too_slow(self.limits.body_seconds) from error
        finally:
            places.release()

    def _take(self, message: MutableMapping[str, Any]) -> bytes:
        if message["type"] == "http.disconnect":
            raise Refused("the client left before its body was complete", 400)
        body: bytes = message.get("body", b"")
        self.hold(len(body))
        return body

    def hold(self, size: int) -> None:
        """Count bytes of the body.

        Raises:
            Refused: it is too large, or there is no room for it.
        """
        if self.held + size > self.limits.body_megabytes * _MEGA:
            raise self._too_large()
        self._intake.hold(self.tenant, size, self.limits)
        self.held += size

    async def decompress(self, body: bytes, encoding: str) -> bytes:
        """Return the content of a body that a client compressed, within the limits of a body.

        Raises:
            Refused: the encoding is not supported, the content is too large, or it cannot be read.
        """
        name = encoding.strip().lower()
        if name in ("", "identity"):
            return body
        most = round(self.limits.body_megabytes * _MEGA)
        content = await self.in_thread(lambda: _decompress(body, name, most + 1))
        if len(content) > most:
            raise self._too_large()
        self._intake.hold(self.tenant, len(content), self.limits)
        self.held += len(content)
        self.weigh(content)
        return content

    def _too_large(self) -> Refused:
        text = f"the body is larger than {self.limits.body_megabytes:g} MB, the limit of this gateway"
        return Refused(text, 413, FailureKind.PAYLOAD_TOO_LARGE)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work on the body: in a thread if it may take long, so that other requests do not wait for it."""
        if not self.is_large and not (self.held > _MIDDLE and self.turn.works_apart):
            return work(*args, **kwargs)
        return await self.in_thread(lambda: work(*args, **kwargs))

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work in a thread, when it is the tenant's turn there."""
        tenant, run = self.tenant, self._intake.in_thread
        return await self.turn.in_thread(lambda measured: run(tenant, measured), work)


def _decompress(body: bytes, encoding: str, most: int) -> bytes:
    """Decompress at most so many bytes: a few kilobytes may hold gigabytes."""
    zstd = _find_zstd() if encoding == "zstd" else None
    damaged = (OSError, EOFError, zlib.error) if zstd is None else (OSError, EOFError, zstd.ZstdError)
    try:
        if encoding in ("gzip", "x-gzip"):
            return gzip.GzipFile(fileobj=io.BytesIO(body)).read(most)
        if encoding == "deflate":
            return zlib.decompressobj().decompress(body, most)
        if zstd is not None and hasattr(zstd, "ZstdFile"):
            limits = {zstd.DecompressionParameter.window_log_max: _WINDOW.bit_length() - 1}
            return cast("bytes", zstd.ZstdFile(io.BytesIO(body), "rb", options=limits).read(most))
        if zstd is not None:
            return cast("bytes", zstd.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(body).read(most))
    except damaged as error:
        raise Refused(f"the body cannot be read as {encoding}: {error}", 400) from error
    supported = "gzip or deflate" if _find_zstd() is None else "gzip, deflate or zstd"
    raise Refused(f"the content-encoding {encoding[:40]!r} is not supported; send {supported}, or none", 415)


def _find_zstd() -> Any:  # noqa: ANN401 - either of two modules
    try:
        return import_module("compression.zstd" if sys.version_info >= (3, 14) else "zstandard")
    except ModuleNotFoundError:
        return None


def check_values(body: bytes, limits: LimitsTable) -> None:
    """Check the number of JSON values of a body.

    Raises:
        Refused: it has too many.
    """
    if len(body) > limits.values and count_values(body, limits.values) > limits.values:
        text = f"the body has more than {limits.values} JSON values, the limit of this gateway"
        raise Refused(text, 413, FailureKind.PAYLOAD_TOO_LARGE)


def read_limited(
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | Mapping[str, object],
    *,
    catalogue: Catalogue,
    limits: LimitsTable,
) -> Call:
    """Read a request whose body may be made to be costly: many small values cost a hundred times their bytes.

    Raises:
        Refused: it has too many values or messages.
        CallError: it cannot be read.
    """
    if isinstance(body, bytes):
        if len(body) < limits.values and len(body) < limits.messages:
            return read_call(method, path, headers, body, catalogue=catalogue)
        check_values(body, limits)
    plain = parse_body(body, find_protocol(method, path, headers))
    lists = (cast("list[object]", value) for value in (plain or {}).values() if isinstance(value, list))
    if any(len(each) > limits.messages for each in lists):
        text = f"the request has more than {limits.messages} messages, the limit of this gateway"
        raise Refused(text, 413, FailureKind.PAYLOAD_TOO_LARGE)
    return read_call(method, path, headers, plain, catalogue=catalogue)


async def _receive_within(receive: Receive, seconds: float) -> MutableMapping[str, Any]:
    """Receive the next message; no timer is set for one that is there already."""
    waiting = receive().__await__()
    try:
        first = next(waiting)
    except StopIteration as ended:
        return ended.value
    try:
        async with asyncio.timeout(seconds):
            return await _Resumed(waiting, first)
    except TimeoutError as error:
        raise _too_slow(seconds) from error


class _Resumed:
    """Awaits something that has begun: `first` is what it waits for."""

    __slots__ = ("_first", "_waiting")

    def __init__(self, waiting: Generator[Any, Any, Any], first: object) -> None:
        self._waiting = waiting
        self._first = first

    def __await__(self) -> Generator[Any, Any, Any]:
        waits_for = self._first
        while True:
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever it is, what waits gets it
                given: BaseException | None = error
            else:
                given = None
            try:
                waits_for = next(self._waiting) if given is None else self._waiting.throw(given)
            except StopIteration as ended:
                return ended.value


def _too_slow(seconds: float) -> Refused:
    return Refused(f"the body did not arrive within {seconds:g} seconds, the limit of this gateway", 408)


async def drop_body(receive: Receive, headers: Mapping[str, str]) -> None:
    """Read and drop the rest of a small body, after the answer: a large one is not worth it."""
    length = headers.get("content-length", "")
    if not length.isdecimal() or len(length) > 9 or int(length) > _DROPPED:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_DROP_SECONDS):
            while (await receive()).get("more_body"):
                pass


def check_head(headers: list[tuple[bytes, bytes]], target: int, limits: LimitsTable) -> None:
    """Check the size and number of the headers; `target` is the length of the path and the query.

    Raises:
        Refused: there are too many, or they are too large.
    """
    if len(headers) > limits.headers:
        raise Refused(f"the request has more than {limits.headers} headers, the limit of this gateway", 431)
    size = target + sum(map(len, chain.from_iterable(headers)))
    if size > limits.header_kilobytes * 1000:
        raise Refused(f"the headers are larger than {limits.header_kilobytes:g} KB, the limit of this gateway", 431)
