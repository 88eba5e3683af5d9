"""The gateway's own HTTP/1.1 protocol answers as uvicorn's own does, byte for byte, whatever a client sends and when.

Both read the same generated connections: the same pieces after the same turns of the loop. What is compared: all that
is written, whether the connection is closed, whether it is read on, and what the application was given.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import re
import socket
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

httptools_impl: Any = pytest.importorskip("uvicorn.protocols.http.httptools_impl", exc_type=ImportError)
http_protocol: Any = pytest.importorskip("segue.gateway.http_protocol", exc_type=ImportError)

import uvicorn  # noqa: E402 - after the skip
from uvicorn.server import ServerState  # noqa: E402 - after the skip

from segue.gateway.config import load_config  # noqa: E402 - after the skip
from segue.gateway.connections import guarded_protocols  # noqa: E402 - after the skip
from segue.gateway.leaving import LEAVING, Connection  # noqa: E402 - after the skip
from segue.testing.emulator import serve_in_thread  # noqa: E402 - after the skip

_TICKS = 16
"""Turns of the loop in which all that can happen has happened."""


class Reference(httptools_impl.HttpToolsProtocol):
    """uvicorn's protocol; trailers are dropped."""

    def on_message_begin(self) -> None:
        self.heading = None
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.heading is None:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.heading = self.cycle or self.scope

    def _unsupported_upgrade_warning(self) -> None:
        pass


class Own(http_protocol.HttpProtocol):
    def _unsupported_upgrade_warning(self) -> None:
        pass


class Sockets(asyncio.Protocol):
    """Takes the place of a protocol of WebSockets."""

    seen: list[object]

    def __init__(self, **_: object) -> None:
        pass

    def data_received(self, data: bytes) -> None:
        self.seen.append(("websocket", data))


class Wire(asyncio.Transport):
    """A transport that notes what is written."""

    def __init__(self, client: str, scheme: str) -> None:
        super().__init__()
        self.written = b""
        self.is_closed = False
        self.is_paused = False
        self.protocol: Any = None
        self._known = {"peername": (client, 7), "sockname": ("127.0.0.1", 8), "sslcontext": scheme == "https"}

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._known.get(name, default)

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: Any) -> None:
        if not self.is_closed:
            self.written += bytes(data)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol


# -- the application ---------------------------------------------------------------------------------------------------

_KEPT = ("type", "asgi", "http_version", "server", "client", "scheme", "root_path", "headers", "state", "method")
_TEXT = (b"content-type", b"text/plain")


def make_app(seen: list[object]) -> Callable[..., Any]:
    """Make an application that notes what it gets, and does what the last part of the path says."""

    async def app(scope: Any, receive: Any, send: Any) -> object:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
        seen.append([repr(scope[name]) for name in (*_KEPT, "path", "raw_path", "query_string")])
        what = scope["path"].rpartition("/")[2]

        async def read() -> bytes:
            body, more = b"", True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    seen.append("disconnect")
                    raise ConnectionAbortedError
                body, more = body + message["body"], message["more_body"]
            seen.append(body)
            return body

        async def start(*headers: tuple[bytes, bytes], status: int = 200) -> None:
            await send({"type": "http.response.start", "status": status, "headers": [_TEXT, *headers]})

        async def write(data: bytes, *, more: bool = False) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": more})

        length = (b"Content-Length", b"5")
        match what:
            case "echo":
                body = await read()
                await start((b"content-length", b"%d" % len(body)))
                await write(body)
            case "events":
                await start()
                await write(await read(), more=True)
                await asyncio.sleep(0)
                await write(b"", more=True)
                await write(b"more", more=True)
                await write(b"")
            case "early":  # the body is not read
                await start(length, (b"Connection", b"Close, x"), status=401)
                await write(b"early")
            case "unread":
                await start(length)
                await write(b"early")
            case "late":  # the rest of the body is read after the answer
                await start(length)
                await write(b"early", more=True)
                await read()
                await write(b"")
                seen.append((await receive())["type"])
            case "pieces":
                await start(length)
                await asyncio.sleep(0)
                await write(b"ear", more=True)
                await asyncio.sleep(0)
                await write(b"ly")
            case "empty":
                await start(status=204)
                await write(b"")
            case "same":
                await start((b"etag", b"x"), status=304)
                await send({"type": "http.response.body"})
            case "raise":
                raise ValueError
            case "raise-late":
                await start(length)
                raise ValueError
            case "raise-later":
                await start()
                await write(b"early", more=True)
                raise ValueError
            case "short" | "long":
                await start(length)
                await write(b"early birds" if what == "long" else b"e")
            case "none":
                return None
            case "half":
                await start(length)
                await write(b"ea", more=True)
                return None
            case "value":
                return what
            case "name":
                await start((b"a b", b"c"))
            case "control":
                await start((b"a", b"c\r\nd: e"))
            case "number":
                await start((b"content-length", b"x"))
            case "coding":
                await start((b"transfer-encoding", b"Chunked"), (b"content-length", b"9"))
                await write(b"early")
            case "lengths":
                await start(length, (b"content-length", b"6"))
                await write(b"early")
            case "status":
                await send({"type": "http.response.start", "status": 999})
            case "order":
                await write(b"early")
            case "twice":
                await start(length)
                await start(length)
            case "after":
                await start(length)
                await write(b"early")
                await write(b"early")
            case "wait":
                await start(length)
                await read()
                seen.append((await receive())["type"])
            case "leave":
                two = await asyncio.gather(receive(), receive())
                seen.append([each["type"] for each in two])
                await start(length)
                await write(b"early")
            case _:
                await start((b"content-length", b"3"), status=404)
                await write(b"no\n")
        return None

    return app


_PATHS = (
    *("echo", "events", "unread", "late", "pieces", "empty", "same", "coding", "lengths", "other"),
    *("early", "raise", "raise-late", "raise-later", "short", "long", "none", "half", "value", "name", "control"),
    *("number", "status", "order", "twice", "after", "wait", "leave"),
)
_WELL = 10
"""How many of the paths keep the connection."""

# -- what is sent ------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A connection: pieces that are sent, each with the turns of the loop after it, and how it ends."""

    pieces: Sequence[tuple[bytes, int]]
    end: str
    client: str = "127.0.0.1"
    scheme: str = "http"
    settings: tuple[tuple[str, Any], ...] = ()
    is_slow: bool = False
    """Whether the client reads nothing while a piece arrives."""


_HEADERS = (
    *(b"Connection: close", b"connection: Keep-Alive", b"Connection: x, close", b"Expect: 100-continue"),
    *(b"Expect: 100-Continue", b"Expect: other", b"X-Forwarded-For: 192.0.2.9", b"X-Forwarded-Proto: https"),
    *(b"x-forwarded-for: 192.0.2.1, 127.0.0.1", b"X-Forwarded-For:", b"X-Forwarded-Proto: ftp", b"X: " + b"y" * 3_000),
    *(b"Cookie: a", b"cookie: b", b"X-Empty:", b"X-Spaces:   a b  \t", b"x: \xe9\xff", b"Upgrade: h2c"),
    *(b"Connection: upgrade", b"TE: trailers"),
)
_BROKEN = (
    *(
        b"Name : x",
        b" folded",
        b"\tfolded",
        b": x",
        b"x",
        b"N\x00: x",
        b"x: \x00",
        b"x: a\rb",
        b"x: a\nb: c",
        b"x\x80: y",
    ),
    *(
        b"Content-Length: 5",
        b"Content-Length: 0",
        b"Content-Length: -1",
        b"Content-Length: +5",
        b"Content-Length: 5, 5",
    ),
    *(
        b"Content-Length: 99999999999999999999",
        b"Content-Length: 0x5",
        b"Content-Length:",
        b"Transfer-Encoding: chunked",
    ),
    *(b"Transfer-Encoding: CHUNKED", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, gzip"),
    *(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding:\x0bchunked"),
    *(b"Transfer-Encoding: xchunked", b"Transfer-Encoding : chunked", b"Upgrade: websocket", b"Host: a\r\nHost: b"),
)
_TARGETS = (
    b"/v1/%s?a=b&%%20c",
    b"/%%C3%%A9/%s",
    b"/a%%2Fb/%s",
    b"http://h:80/%s",
    b"//x/%s",
    b"/%s#f",
    b"/a b/%s",
    b"%s",
)
_LINES = (
    b"GET %s HTTP/1.0",
    b"GET %s HTTP/2.0",
    b"GET %s",
    b"GET %s HTTP/1.1 ",
    b"get %s HTTP/1.1",
    b"BREW %s HTTP/1.1",
)


def make_request(source: random.Random) -> bytes:
    """Make a request, most often a valid one."""
    rare = source.random() < 0.2
    path = source.choice(_PATHS if source.random() < 0.5 else _PATHS[:_WELL]).encode()
    target = source.choice(_TARGETS) % path if source.random() < 0.15 else b"/v1/" + path
    method = source.choice(
        (b"POST", b"POST", b"POST", b"GET", b"HEAD", b"PUT", b"OPTIONS", b"CONNECT" if rare else b"GET")
    )
    line = source.choice(_LINES) % target if rare and source.random() < 0.3 else b"%s %s HTTP/1.1" % (method, target)
    if source.random() < 0.05:
        line = line.replace(b"HTTP/1.1", b"HTTP/1.0")
    lines = [line, b"Host: 127.0.0.1", *source.sample(_HEADERS, source.randrange(4))]
    body = bytes(source.choices(b"abc\r\n0", k=source.choice((0, 1, 5, 300, 70_000 if source.random() < 0.2 else 9))))
    match source.randrange(4):
        case 0:
            body = b""
        case 1:
            lines.append(b"Content-Length: %d" % len(body))
        case 2:
            lines.append(b"Transfer-Encoding: chunked")
            body = make_chunks(source, body)
        case _:
            lines.append(b"content-length: %d" % (len(body) + (source.choice((-1, 1)) if rare and body else 0)))
    if source.random() < 0.03:
        lines += (b"Connection: Upgrade", b"Upgrade: WebSocket")
    if rare:
        lines.insert(source.randrange(1, len(lines) + 1), source.choice(_BROKEN))
    end = b"\n" if rare and source.random() < 0.1 else b"\r\n"
    return end.join((*lines, b"", b"")) + body


def make_chunks(source: random.Random, body: bytes) -> bytes:
    """Write a body in chunks, with trailers; sometimes not well."""
    parts: list[bytes] = []
    while body:
        size = source.randrange(1, len(body) + 1)
        extension = source.choice((b"", b";a=b")) if source.random() < 0.1 else b""
        parts.append(b"%x%s\r\n%s\r\n" % (size, extension, body[:size]))
        body = body[size:]
    last = b"0\r\n\r\n"
    if source.random() < 0.2:
        last = source.choice((b"0\r\nx: y\r\nCookie: c\r\n\r\n", b"00\r\n\r\n"))
    elif source.random() < 0.05:
        last = source.choice((b"-1\r\n\r\n", b"0\n\n", b"g\r\n", b"0 \r\n\r\n"))
    return b"".join((*parts, last))


def make_case(seed: int) -> Case:
    """Make a connection: one request or several, split anywhere, in any rhythm."""
    source = random.Random(seed)
    data = b"".join(make_request(source) for _ in range(source.choice((1, 1, 2, 3))))
    if source.random() < 0.05:
        data = data[: source.randrange(len(data))]
    if source.random() < 0.05:
        at = source.randrange(len(data) + 1)
        data = data[:at] + bytes([source.randrange(256)]) + data[at + 1 :]
    count = 1 if source.random() < 0.4 else source.randrange(1, 9)
    if len(data) < 600 and source.random() < 0.1:
        count = len(data)
    cuts = sorted(source.choices(range(1, len(data)), k=count - 1)) if len(data) > 1 else []
    pieces = [data[start:end] for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True)]
    pauses = (0, 0, 1, 2, 3, _TICKS)
    settings: tuple[tuple[str, Any], ...] = ()
    if source.random() < 0.1:
        given: list[tuple[str, Any]] = [("root_path", "/below"), ("proxy_headers", False), ("limit_concurrency", 1)]
        given += [("headers", [("Connection", "close")]), ("server_header", True), ("forwarded_allow_ips", "*")]
        settings = (source.choice(given),)
    return Case(
        [(piece, source.choice(pauses)) for piece in pieces],
        source.choice(("", "", "", "eof", "reset", "shutdown")),
        source.choice(("127.0.0.1", "127.0.0.1", "198.51.100.7")),
        source.choice(("http", "http", "http", "https")),
        settings,
        source.random() < 0.2,
    )


class Outcome(NamedTuple):
    """What a client and the application see of a connection."""

    written: bytes
    is_closed: bool
    is_paused: bool
    requests: int
    tasks: int
    connections: int
    seen: list[object]
    slow: list[bytes]
    """What had been written when the client began to read again."""


def written_by(protocol: Any, wire: Wire) -> bytes:
    """Return what was written, with a head that waits for its body."""
    return wire.written + (b"" if wire.is_closed else getattr(protocol, "head", b""))


async def observe(make: Callable[..., Any], case: Case) -> Outcome:
    """Serve a connection."""
    seen: list[object] = []
    slow: list[bytes] = []
    given: dict[str, Any] = {"server_header": False, **dict(case.settings)}
    config = uvicorn.Config(make_app(seen), log_level="critical", access_log=False, **given)
    config.load()
    config.ws_protocol_class = type("Noting", (Sockets,), {"seen": seen})
    state = ServerState()
    state.default_headers = [(b"date", b"today"), *config.encoded_headers]
    protocol = make(config=config, server_state=state, app_state={"a": 1}, _loop=asyncio.get_running_loop())
    wire = Wire(case.client, case.scheme)
    wire.protocol = protocol
    protocol.connection_made(wire)
    for piece, pause in case.pieces:
        for _ in range(_TICKS):
            if not wire.is_paused:
                break
            await asyncio.sleep(0)
        if wire.is_closed or wire.is_paused:
            break
        is_slow = case.is_slow and wire.protocol is protocol
        if is_slow:
            protocol.pause_writing()
        wire.protocol.data_received(piece)
        for _ in range(pause):
            await asyncio.sleep(0)
        slow.append(written_by(protocol, wire))
        if is_slow:
            protocol.resume_writing()
    if case.end == "shutdown" and protocol in state.connections:
        protocol.shutdown()
    elif case.end and not wire.is_closed:
        wire.is_closed = True
        wire.protocol.connection_lost(None if case.end == "eof" else ConnectionResetError())
    for _ in range(2 * _TICKS):
        await asyncio.sleep(0)
    found = (wire.is_closed, wire.is_paused, state.total_requests, len(state.tasks), len(state.connections))
    result = Outcome(written_by(protocol, wire), *found, seen, slow if case.is_slow else [])
    if not wire.is_closed:
        wire.close()
    for _ in range(_TICKS):
        await asyncio.sleep(0)
    for task in tuple(state.tasks):  # of a request before the last one that was read: it does not learn of the end
        task.cancel()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    return result


async def find_differences(cases: Sequence[Case], own: Callable[..., Any]) -> list[tuple[Case, Outcome, Outcome]]:
    """Return the connections that the two do not serve alike."""
    different: list[tuple[Case, Outcome, Outcome]] = []
    for case in cases:
        expected, found = await observe(Reference, case), await observe(own, case)
        written = found.written
        if case.end in ("eof", "reset") and expected.written.startswith(written):
            written = expected.written  # a head waited for its body when the client left
        if found._replace(written=written) != expected:
            different.append((case, expected, found))
    return different


def compare(seeds: range, own: Callable[..., Any] = Own) -> list[tuple[Case, Outcome, Outcome]]:
    """Return the generated connections that the two do not serve alike, up to the first."""

    async def run() -> list[tuple[Case, Outcome, Outcome]]:
        for seed in seeds:
            if found := await find_differences([make_case(seed)], own):
                return found
        return []

    return asyncio.run(run())


@pytest.mark.parametrize("start", range(0, 2_000, 500))
def test_it_answers_as_uvicorn_does(start: int) -> None:
    assert compare(range(start, start + 500)) == []


# -- the comparison finds faults ---------------------------------------------------------------------------------------


class KeepsTrailers(Own):
    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))


class ForgetsProxies(Own):
    def _read_rare(self) -> Any:
        super()._read_rare()
        return self._direct_app


class ForgetsToContinue(Own):
    def _read_rare(self) -> Any:
        app = super()._read_rare()
        self.expect_100_continue = False
        return app


class KeepsOldConnections(Own):
    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.keep_alive = True


class TurnsThePipeline(Own):
    def on_response_complete(self) -> None:
        self.pipeline.reverse()
        super().on_response_complete()


class RunsPipelinedRequestsAtOnce(Own):
    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        while self.pipeline:
            self._start(*self.pipeline.pop())


class CountsNothing(Own):
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.server_state.total_requests -= 1


class StopsTheLastBody(Own):
    def on_message_complete(self) -> None:
        pass


class CoversAll(Own):
    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._is_covered = True


CLASSES = (
    *(KeepsTrailers, ForgetsProxies, ForgetsToContinue, KeepsOldConnections, TurnsThePipeline),
    *(RunsPipelinedRequestsAtOnce, CountsNothing, StopsTheLastBody, CoversAll),
)
CONSTANTS: dict[str, object] = {
    "_CONTROLS": b"",
    "_NO_BODY": (),
    "HIGH_WATER_LIMIT": 10**9,
    "unquote": lambda text: text,
    "STATUS_LINE": dict.fromkeys(range(100, 1_000), b"HTTP/1.1 200 OK\r\n"),
}


@pytest.mark.parametrize("fault", CLASSES, ids=[each.__name__ for each in CLASSES])
def test_the_comparison_finds_a_fault(fault: Callable[..., Any]) -> None:
    assert compare(range(3_000), fault)


@pytest.mark.parametrize("name", CONSTANTS)
def test_the_comparison_finds_a_wrong_constant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, name, CONSTANTS[name])
    http_protocol._split_path.cache_clear()
    try:
        assert compare(range(3_000))
    finally:
        http_protocol._split_path.cache_clear()


# -- what is better than uvicorn's -------------------------------------------------------------------------------------

HEAD = b"POST /v1/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
ECHO = HEAD % b"echo" + b"Content-Length: 5\r\n\r\nhello"


class Connected(NamedTuple):
    """A connection to an application, and what was written to it, piece by piece."""

    protocol: Any
    wire: Wire
    pieces: list[bytes]

    async def send(self, data: bytes, ticks: int = _TICKS) -> None:
        self.protocol.data_received(data)
        for _ in range(ticks):
            await asyncio.sleep(0)


def connect(app: Callable[..., Any] | None = None, make: Callable[..., Any] = Own, **settings: Any) -> Connected:
    given = {"log_level": "critical", "access_log": False, "server_header": False, **settings}
    config = uvicorn.Config(app or make_app([]), **given)
    config.load()
    protocol = make(config=config, server_state=ServerState(), app_state={})
    pieces: list[bytes] = []
    wire = Wire("127.0.0.1", "http")
    wire.write = pieces.append  # pyright: ignore[reportAttributeAccessIssue]
    wire.protocol = protocol
    protocol.connection_made(wire)
    return Connected(protocol, wire, pieces)


def run(work: Callable[[], Any]) -> None:
    asyncio.run(work())


def test_a_whole_reply_is_one_write() -> None:
    async def work() -> None:
        for path in (b"echo", b"pieces", b"empty", b"same", b"raise", b"other"):
            made = connect()
            await made.send(HEAD % path + b"Content-Length: 0\r\n\r\n")
            assert len(made.pieces) == (2 if path == b"pieces" else 1), path
            assert b"\r\n\r\n" in made.pieces[0]
        made = connect(make=Reference)
        await made.send(ECHO)
        assert len(made.pieces) == 2

    run(work)


def test_the_head_of_a_stream_does_not_wait_for_its_first_event() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(3600)

    async def work() -> None:
        made = connect(app)
        await made.send(ECHO, 3)
        assert made.pieces == [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]
        for task in made.protocol.tasks:
            task.cancel()

    run(work)


def test_a_head_that_waits_is_before_the_refusal_of_what_follows() -> None:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while (await receive())["type"] != "http.disconnect":
            pass

    async def work() -> None:
        made = connect(app)
        await made.send(ECHO)
        assert made.pieces == []
        await made.send(b"no request\r\n\r\n")
        assert [piece[:12] for piece in made.pieces] == [b"HTTP/1.1 200", b"HTTP/1.1 400"]
        assert made.wire.is_closed

    run(work)


def test_a_connection_is_closed_when_it_was_idle_for_its_time() -> None:
    """One timer serves many requests, and each of them extends the time."""

    async def work() -> None:
        made = connect(timeout_keep_alive=0.3)
        timers = count_timers(asyncio.get_running_loop())
        for _ in range(4):
            await made.send(ECHO)
            await asyncio.sleep(0.1)
        assert (made.wire.is_closed, len(timers) <= 3) == (False, True)
        await made.send(HEAD % b"echo")
        await asyncio.sleep(0.7)
        assert not made.wire.is_closed  # half a head: not idle
        await made.send(b"Content-Length: 5\r\n\r\nhello")
        await asyncio.sleep(0.1)
        assert not made.wire.is_closed
        await asyncio.sleep(0.6)
        assert made.wire.is_closed

    run(work)


def count_timers(loop: asyncio.AbstractEventLoop) -> list[object]:
    """Note the timers of the protocol from now on."""
    made: list[object] = []
    real = loop.call_later

    def noted(seconds: float, call: Any, *given: Any, **named: Any) -> Any:
        if getattr(call, "__name__", "") == "_look":
            made.append(call)
        return real(seconds, call, *given, **named)

    loop.call_later = noted  # pyright: ignore[reportAttributeAccessIssue]
    return made


def test_a_connection_that_ended_leaves_no_timer_and_no_garbage() -> None:
    async def work() -> None:
        gc.collect()
        gc.disable()
        try:
            limits = load_config("").limits
            made = connect(make=guarded_protocols(lambda: limits)["http"])
            for _ in range(2):
                await made.send(ECHO)
            timer = made.protocol._idle_timer
            made.wire.close()
            await asyncio.sleep(0)
            assert timer.cancelled()
            left = weakref.ref(made.protocol)
            made.wire.protocol = None
            del made
            await asyncio.sleep(0)
            assert left() is None
        finally:
            gc.enable()

    run(work)


def test_the_application_learns_when_the_client_leaves() -> None:
    scopes: list[Any] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        scopes.append(scope)
        await asyncio.sleep(3600)

    async def work() -> None:
        made = connect(app)
        await made.send(ECHO + ECHO)
        (scope,) = scopes
        connection = scope[LEAVING]
        assert isinstance(connection, Connection)
        called: list[bool] = []
        connection.add(lambda: called.append(True))
        made.wire.close()
        await asyncio.sleep(0)
        assert (called, connection.is_gone) == ([True], True)
        for task in made.protocol.tasks:
            task.cancel()

    run(work)


def test_with_an_access_log_requests_are_uvicorns(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("uvicorn.access")
    logger.addHandler(caplog.handler)
    try:

        async def work() -> None:
            made = connect(access_log=True, log_config=None)
            logger.setLevel(logging.INFO)
            await made.send(ECHO)
            assert b"".join(made.pieces).endswith(b"\r\n\r\nhello")

        run(work)
    finally:
        logger.removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records if record.name == logger.name] == [
        '127.0.0.1:7 - "POST /v1/echo HTTP/1.1" 200'
    ]


def test_what_is_kept_of_requests_and_replies_is_bounded_and_has_no_keys() -> None:
    names = [b"x-%d" % number for number in range(1_000)]
    names += [b"x" * 500]

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        headers = [(name, b"") for name in names]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": scope["raw_path"]})

    async def work() -> None:
        kept = http_protocol._split_path
        kept.cache_clear()
        made = connect(app)
        for path in (b"/a?key=secret", b"/a?key=secret", b"/" + b"a" * 300, b"/a%20b", b"/a%20b"):
            await made.send(b"GET %s HTTP/1.1\r\n\r\n" % path)
        assert made.pieces[-1].endswith(b"\r\n0\r\n\r\n")
        assert (kept.cache_info().currsize, kept.cache_info().hits) == (1, 1)
        assert len(http_protocol._beginnings) <= http_protocol._MOST_NAMES
        assert names[-1] not in http_protocol._beginnings

    before = dict(http_protocol._beginnings)
    try:
        run(work)
    finally:
        http_protocol._beginnings.clear()
        http_protocol._beginnings.update(before)


# -- on sockets --------------------------------------------------------------------------------------------------------


def exchange(port: int, pieces: Sequence[bytes]) -> bytes:
    """Send pieces in packets of their own, and read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = b""
        with suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(0.001)
            while data := connection.recv(65536):
                found += data
    return re.sub(rb"(?m)^date: .*$", b"date:", found)


LAST = b"Connection: close\r\n"
SOCKETS = {
    "split at every byte": [bytes([each]) for each in ECHO.replace(b"\r\n\r\n", b"\r\n" + LAST + b"\r\n", 1)],
    "three requests in one packet": [ECHO + ECHO + HEAD % b"events" + LAST + b"\r\n"],
    "a body after HEAD": [
        b"HEAD /v1/echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello" + HEAD % b"echo" + LAST + b"\r\n"
    ],
    "a large body in pieces": [HEAD % b"echo" + LAST + b"Content-Length: 600000\r\n\r\n", *[b"x" * 60_000] * 10],
    "chunks and trailers": [
        HEAD % b"events" + LAST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"0\r\na: b\r\n\r\n",
    ],
    "a body that waits": [HEAD % b"echo" + LAST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", b"ab"],
    "HTTP/1.0": [b"GET /v1/pieces HTTP/1.0\r\n\r\n"],
    "not HTTP": [b"\x16\x03\x01\x02\x00\x01\r\n\r\n"],
    "two lengths": [HEAD % b"echo" + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + ECHO],
    "a space before the colon": [HEAD % b"echo" + b"Content-Length : 5\r\n\r\nhello"],
    "a folded line": [HEAD % b"echo" + b"X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"],
    "lines that end with LF": [ECHO.replace(b"\r\n", b"\n")],
    "half a head": [ECHO[:30], b""],
    "an application that fails late": [HEAD % b"raise-later" + b"\r\n" + ECHO],
}


@pytest.fixture(scope="module")
def servers() -> Any:
    """Both protocols behind the guards of the gateway, which end what a client does not."""
    limits = load_config("[limits]\nhead_seconds = 0.5").limits
    own = guarded_protocols(lambda: limits)["http"]
    guard = own.__mro__[1]
    given = {"limits": staticmethod(lambda: limits), "counts": own.counts, "feed": Reference.data_received}
    assert issubclass(own, http_protocol.HttpProtocol)
    reference = type("GuardedReference", (guard, Reference), given)
    with serve_in_thread(make_app([]), protocol=own) as one, serve_in_thread(make_app([]), protocol=reference) as two:
        yield [int(url.rpartition(":")[2]) for url in (one, two)]


@pytest.mark.parametrize("pieces", SOCKETS.values(), ids=SOCKETS)
def test_clients_on_sockets_get_the_same(pieces: Sequence[bytes], servers: list[int]) -> None:
    own, reference = (exchange(port, pieces) for port in servers)
    assert own == reference
    assert bool(own) is (pieces != SOCKETS["half a head"])


def test_a_client_that_closes_its_side_or_leaves_ends_its_connection_alone(servers: list[int]) -> None:
    for port in servers:
        for pieces in ([ECHO], [ECHO[:40]], [HEAD % b"echo" + b"Content-Length: 9\r\n\r\nabc"]):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(b"".join(pieces))
                connection.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):
                    while connection.recv(65536):
                        pass
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"".join(pieces))
        assert exchange(port, SOCKETS["three requests in one packet"]).count(b"HTTP/1.1 200") == 3
