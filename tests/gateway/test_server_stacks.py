"""What clients see of the server itself, on what is shipped and on the fallback: packets, heads, kept connections."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

import pytest

from gateway.asgi_client import ECHO, KEY, make
from gateway.server_stacks import hide_shipped, is_shipped, serving
from segue.cli.listening import listen
from segue.gateway import connections
from segue.gateway.connections import guarded_protocols

_SEGMENTS_IN = 152
"""The place of `tcpi_data_segs_in` in `struct tcp_info` of Linux."""


@pytest.fixture(params=["shipped", "fallback"])
def stack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "fallback":
        hide_shipped(monkeypatch)
    elif not is_shipped():
        pytest.skip("the shipped server (no uvloop here)")
    return request.param


def ask(connection: socket.socket, head: str, body: bytes = b"") -> bytes:
    """Send a request and read the whole reply, which has a length."""
    connection.settimeout(30)
    connection.sendall(f"{head} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n".encode())
    connection.sendall(f"x-api-key: {KEY}\r\nContent-Type: application/json\r\n\r\n".encode() + body)
    found = b""
    while b"\r\n\r\n" not in found or len(found) < length_of(found):
        data = connection.recv(65536)
        assert data, found
        found += data
    return found


def length_of(reply: bytes) -> int:
    head, _, _ = reply.partition(b"\r\n\r\n")
    lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    return len(head) + 4 + int(lines[b"content-length"])


def segments(connection: socket.socket) -> int:
    """Count the packets with data that arrived."""
    data = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SEGMENTS_IN + 4)
    return int.from_bytes(data[_SEGMENTS_IN:], sys.byteorder)


def test_the_tests_run_on_what_is_shipped() -> None:
    with serving(make()) as (_, loop):
        bases = {base.__module__ for base in guarded_protocols(lambda: make().config.limits)["http"].__mro__}
    assert ("segue.gateway.http_protocol" in bases) is is_shipped()
    assert ("uvicorn.protocols.http.h11_impl" in bases) is not is_shipped()
    assert loop.__module__ == "uvloop" or not is_shipped()


def test_accepted_sockets_send_at_once() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.skipif(sys.platform != "linux", reason="packets of a connection (Linux counts them)")
def test_a_small_whole_reply_is_one_packet(stack: str) -> None:
    body = json.dumps(ECHO).encode()
    with serving(make()) as (port, loop), socket.create_connection(("127.0.0.1", port)) as connection:
        assert (loop.__module__ == "uvloop") is (stack == "shipped")
        for number, (head, sent, status) in enumerate(
            [
                ("GET /health", b"", b"200"),
                ("POST /v1/messages", body, b"200"),
                ("POST /v1/messages", b"[]", b"400"),
                ("GET /v1/models", b"", b"200"),
                ("GET /segue/requests", b"", b"200"),
            ],
            1,
        ):
            reply = ask(connection, head, sent)
            assert reply.startswith(b"HTTP/1.1 " + status), reply
            assert segments(connection) == number, head


@pytest.mark.skipif(sys.platform != "linux", reason="packets of a connection (Linux counts them)")
def test_two_writes_are_two_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count sees the fault: without the transport that joins them, head and body are sent apart."""
    hide_shipped(monkeypatch)
    monkeypatch.setattr(connections, "_OneWrite", lambda transport, _: transport)
    with serving(make()) as (port, _), socket.create_connection(("127.0.0.1", port)) as connection:
        ask(connection, "GET /health")
        assert segments(connection) == 2


class Written:
    """A transport that notes what is written."""

    def __init__(self) -> None:
        self.calls: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append("close")

    def is_closing(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([b"HTTP/1.1 200 OK\r\n\r\n", b"body"], [b"HTTP/1.1 200 OK\r\n\r\nbody"]),
        ([b"HTTP/1.1 200 OK\r\n\r\n", b"body", b"more"], [b"HTTP/1.1 200 OK\r\n\r\nbody", b"more"]),
        ([b"HTTP/1.1 200 OK\r\n\r\n", None, b"body"], [b"HTTP/1.1 200 OK\r\n\r\n", b"body"]),
        ([b"HTTP/1.1 204 No Content\r\n\r\n", "close"], [b"HTTP/1.1 204 No Content\r\n\r\n", "close"]),
        ([b"data", b"HTTP/1.1 100 Continue\r\n\r\n", None], [b"data", b"HTTP/1.1 100 Continue\r\n\r\n"]),
    ],
    ids=["head and body", "pieces", "a body in a later turn", "closed", "no body"],
)
def test_a_head_waits_for_its_body_in_the_same_turn(written: list[Any], expected: list[Any]) -> None:
    async def run() -> list[Any]:
        below = Written()
        transport: Any = connections._OneWrite(below, asyncio.get_running_loop())  # pyright: ignore[reportArgumentType, reportPrivateUsage]
        for data in written:
            if data is None:
                await asyncio.sleep(0)
            elif data == "close":
                transport.close()
            else:
                transport.write(data)
        assert transport.is_closing() is False
        return below.calls

    assert asyncio.run(run()) == expected


def test_connections_that_wait_are_accepted_together() -> None:
    """Whatever a turn of the loop takes, a new client does not wait for as many turns as others came before it."""
    made: list[int] = []
    turns = 0

    async def run(listener: socket.socket) -> None:
        nonlocal turns
        lost: list[object] = []

        class Closing(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                made.append(turns)
                transport.close()

            def connection_lost(self, _: Exception | None) -> None:
                lost.append(self)

        accepting = connections._Listener(listener, Closing)  # pyright: ignore[reportPrivateUsage]
        while len(lost) < len(many):
            turns += 1
            await asyncio.sleep(0)
        accepting.close()
        await accepting.wait_closed()

    listener = listen("127.0.0.1", 0)
    many = [socket.create_connection(listener.getsockname()) for _ in range(40)]
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(asyncio.wait_for(run(listener), 30))
    finally:
        for connection in many:
            connection.close()
    assert made[-1] - made[0] <= 3, made


def _loop_factory() -> Any:
    if sys.platform == "win32":
        return asyncio.SelectorEventLoop  # the other one has no `add_reader`
    return pytest.importorskip("uvloop").new_event_loop if is_shipped() else None


def test_a_large_head_is_refused(stack: str) -> None:
    with serving(make()) as (port, _), socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(30)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 90_000)
        data = connection.recv(65536)
    assert data == b"" or data.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("first", ["Content-Length", "Transfer-Encoding"])
@pytest.mark.parametrize("path", ["/v1/messages", "/segue/requests", "/health"])
def test_a_request_with_two_lengths_is_the_last_of_its_connection(first: str, path: str) -> None:
    body = json.dumps(ECHO).encode()
    chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    lengths = {"Content-Length": str(len(chunked)), "Transfer-Encoding": "chunked"}
    names = sorted(lengths, reverse=first == "Transfer-Encoding")
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"x-api-key: {KEY}"]
    head = "\r\n".join((*lines, *(f"{name}: {lengths[name]}" for name in names), "", "")).encode()
    next_one = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with serving(make()) as (port, _), socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(head + chunked + next_one)
        found = b""
        while data := connection.recv(65536):
            found += data
    assert found.count(b"HTTP/1.1 ") == 1
    assert b'"version"' not in found
