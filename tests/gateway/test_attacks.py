"""What a client may cost: keys before bodies, limits on heads, bodies, connections, messages and envelopes."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import socket
import threading
import time
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import pytest
import zstandard

from gateway.asgi_client import ECHO, KEY, OTHER, PATHS, Client, ask, has_form, make
from segue.calls import reading as calls
from segue.calls.reading import read_call
from segue.conversation.context import Context
from segue.conversation.messages import AssistantMessage
from segue.envelope.conversation import find_states, restore
from segue.envelope.envelopes import MARK, Envelopes
from segue.gateway.app import create_app
from segue.gateway.connections import guarded_protocol
from segue.gateway.keys import digest_of, tenant_of
from segue.gateway.service import Gateway
from segue.testing.emulator import serve_in_thread

# -- keys before bodies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("key", [{}, {"x_api_key": "wrong"}, {"authorization": "Bearer wrong"}], ids=str)
def test_without_a_key_no_body_is_read(protocol: str, key: dict[str, str]) -> None:
    client = ask(Client(make(), b"x" * 64_000, more=True), PATHS[protocol], content_length="29000000", **key)
    assert (client.status, client.reads) == (401, 0)
    assert client.headers["connection"] == "close"
    assert has_form(protocol, client.body)


def test_the_rest_of_a_small_body_is_dropped_after_the_answer() -> None:
    client = ask(Client(make(), b"x" * 500, b"y" * 500), "/v1/messages", content_length="1000")
    assert (client.status, client.reads_before_the_answer, client.reads) == (401, 0, 2)


def test_a_key_in_the_query_is_found_without_the_body() -> None:
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).encode()
    path = PATHS["google-genai"]
    assert ask(Client(make(), body), f"{path}?alt=json&key={KEY}").status == 200
    assert ask(Client(make(), body), f"{path}?alt=json&key=wrong").reads == 0


@pytest.mark.parametrize("path", ["/v1/messages", "/segue/requests", "/segue/conversations"])
def test_clients_of_other_machines_need_a_key_whatever_the_file_says(path: str) -> None:
    refused = Client(make(keys=False), json.dumps(ECHO).encode(), client="192.0.2.7")
    asyncio.run(refused.ask(path, {}, "POST" if path == "/v1/messages" else "GET"))
    assert (refused.status, refused.reads_before_the_answer) == (403, 0)


def test_an_application_that_knows_its_clients_may_serve_other_machines() -> None:
    gateway = make(keys=False)
    gateway.authenticated = True
    assert ask(Client(gateway, json.dumps(ECHO).encode(), client="192.0.2.7"), "/v1/messages").status == 200


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize(
    ("limits", "headers", "pieces", "status"),
    [
        ("body_megabytes = 0.001", {"content_length": "2000"}, [b""], 413),
        ("body_megabytes = 0.001", {}, [b"x" * 600, b"x" * 600], 413),
        ("held_megabytes_per_key = 0.001", {}, [b"x" * 2000], 429),
        ("body_seconds = 0.01", {}, [b"{"], 408),
        ("headers = 5", {f"x_{at}": "1" for at in range(6)}, [b"{}"], 431),
        ("header_kilobytes = 1", {"x_long": "x" * 1000}, [b"{}"], 431),
        ("", {"host": "evil.example"}, [b"{}"], 403),
    ],
    ids=["declared size", "size", "bytes of a key", "time", "headers", "bytes of headers", "host"],
)
def test_limits_answer_in_the_form_of_the_client(
    protocol: str, limits: str, headers: dict[str, str], pieces: list[bytes], status: int
) -> None:
    gateway = make(limits)
    client = Client(gateway, *pieces, more="seconds" in limits)
    ask(client, PATHS[protocol], x_api_key=KEY, **headers)
    assert client.status == status
    assert has_form(protocol, client.body)
    assert client.headers["connection"] == "close"
    assert gateway.intake.held == 0


def test_bodies_of_all_clients_are_limited_together() -> None:
    client = ask(Client(make("held_megabytes = 0.001"), b"x" * 2000), "/v1/chat/completions", x_api_key=KEY)
    assert (client.status, "retry-after" in client.headers) == (503, True)


def test_requests_of_a_key_are_limited_and_other_keys_are_not() -> None:
    async def run() -> None:
        gateway = make("requests_per_key = 2")
        waiting = [Client(gateway, b"{", more=True) for _ in range(2)]
        tasks = [asyncio.create_task(each.ask("/v1/messages", {"x-api-key": KEY})) for each in waiting]
        await asyncio.sleep(0)
        assert gateway.intake.held == 2
        third = Client(gateway, json.dumps(ECHO).encode())
        await third.ask("/v1/messages", {"x-api-key": KEY})
        assert (third.status, third.headers["retry-after"] > "", third.reads_before_the_answer) == (429, True, 0)
        other = Client(gateway, json.dumps(ECHO).encode())
        await other.ask("/v1/messages", {"x-api-key": OTHER})
        assert other.status == 200
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        again = Client(gateway, json.dumps(ECHO).encode())
        await again.ask("/v1/messages", {"x-api-key": KEY})
        assert again.status == 200
        assert gateway.intake.held == 0

    asyncio.run(run())


@pytest.mark.parametrize("length", [{"content-length": "1500000"}, {}], ids=["declared", "not declared"])
def test_few_large_bodies_of_a_key_arrive_at_once(length: dict[str, str]) -> None:
    async def run() -> None:
        gateway = make("large_bodies_per_key = 1\nbody_seconds = 30")
        large = json.dumps({**ECHO, "messages": [{"role": "user", "content": "x" * 1_499_920}]}).encode()
        first = Client(gateway, large[:-1], more=True)
        begun = asyncio.create_task(first.ask("/v1/messages", {"x-api-key": KEY, **length}))
        for _ in range(20):
            await asyncio.sleep(0)
        assert first.reads == 2
        second = Client(gateway, large[:1_100_000], large[1_100_000:], stays=True)
        waiting = asyncio.create_task(second.ask("/v1/messages", {"x-api-key": KEY, **length}))
        small, other = Client(gateway, json.dumps(ECHO).encode()), Client(gateway, large, stays=True)
        await small.ask("/v1/messages", {"x-api-key": KEY})
        await other.ask("/v1/messages", {"x-api-key": OTHER, **length})
        assert (small.status, other.status, second.status) == (200, 200, 0)
        assert second.reads == (0 if length else 1)
        begun.cancel()
        await asyncio.gather(begun, return_exceptions=True)
        await waiting
        assert second.status == 200
        assert gateway.intake.held == 0

    asyncio.run(run())


def test_a_large_body_does_not_wait_for_ever_for_others_of_its_key() -> None:
    async def run() -> None:
        gateway = make("large_bodies_per_key = 1\nbody_seconds = 0.2")
        places = await gateway.intake.arrive(tenant_of(digest_of(KEY)), gateway.config.limits)
        client = Client(gateway, b"x" * 2_000_000)
        await client.ask("/v1/messages", {"x-api-key": KEY, "content-length": "2000000"})
        assert (client.status, client.reads_before_the_answer) == (429, 0)
        places.release()

    asyncio.run(run())


@pytest.mark.parametrize(("seconds", "reads"), [(600.0, 0), (0.0, 1)], ids=["pauses", "goes on"])
def test_large_bodies_pause_while_a_thread_works_on_one(
    seconds: float, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But they go on: the heavy work of one key does not stop the body of another."""
    monkeypatch.setattr("segue.gateway.intake._PAUSE_SECONDS", seconds)

    async def run() -> None:
        gateway, work = make(), threading.Event()
        working = asyncio.create_task(gateway.intake.in_thread("another", work.wait))
        body = json.dumps({**ECHO, "messages": [{"role": "user", "content": "x" * 1_499_920}]}).encode()
        large, small = Client(gateway, body, stays=True), Client(gateway, json.dumps(ECHO).encode())
        waiting = asyncio.create_task(large.ask("/v1/messages", {"x-api-key": KEY, "content-length": str(len(body))}))
        for _ in range(20):
            await asyncio.sleep(0)
        await small.ask("/v1/messages", {"x-api-key": KEY})
        before = (small.status, large.reads)
        work.set()
        await asyncio.gather(working, waiting)
        assert (before, large.status) == ((200, reads), 200)

    asyncio.run(run())


def test_too_many_messages_are_refused() -> None:
    body = {**ECHO, "messages": ECHO["messages"] * 11}  # pyright: ignore[reportOperatorIssue]
    client = ask(Client(make("messages = 10"), json.dumps(body).encode()), "/v1/messages", x_api_key=KEY)
    assert client.status == 413
    assert has_form("anthropic-messages", client.body)


def test_too_many_values_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segue.gateway.intake.parse_body", None)
    body = b'{"messages": [' + b"1," * 60 + b"1]}"
    client = ask(Client(make("values = 50\nmessages = 50"), body), "/v1/messages", x_api_key=KEY)
    assert client.status == 413
    assert "JSON values" in client.body.decode()


def test_a_large_body_is_not_parsed_in_the_thread_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    def noted(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return read_call(*args, **kwargs)

    monkeypatch.setattr("segue.gateway.intake.read_call", noted)
    small = json.dumps(ECHO).encode()
    large = json.dumps({**ECHO, "messages": [{"role": "user", "content": "x" * 300_000}]}).encode()
    for body in (small, large):
        assert ask(Client(make(), body, stays=True), "/v1/messages", x_api_key=KEY).status == 200
    assert threads == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "é\\ud83d" * 9}]}] * 6000}),
        json.dumps({"messages": [{"role": "user", "content": "x" * 300_000}], "stream": True, "n": [1, 2.5, None]}),
        '{"messages": [{"role": "user", "content": "' + "x" * 300_000 + '\\ud83d"}], "stream": false, "stream": true}',
        " \n" * 40_000 + '{"messages": [' + ", ".join(['{"role": "user", "content": "a"}'] * 12_000) + "]}",
        json.dumps({"messages": [], "metadata": {f"a,{number}": [number, {}, []] for number in range(60_000)}}),
        json.dumps(
            {"messages": [], "n": [[["é", 1.5, None, True] * 60, {"a": ["x" * 70_000, -1]}] * 300, {}]}, indent=1
        ),
    ],
    ids=["many blocks", "a long text", "half a surrogate and a repeated key", "blanks", "many fields", "wide and deep"],
)
def test_large_bodies_are_read_like_small_ones(text: str) -> None:
    read = read_call("POST", "/v1/chat/completions", {}, text.encode())
    assert read.body == json.loads(text)
    assert read_call("POST", "/v1/chat/completions", {}, text).body == read.body


@pytest.mark.parametrize("end", ["", "]", "]}}", '"'])
def test_a_large_body_that_is_not_json_is_refused(end: str) -> None:
    text = '{"messages": [' + '{"role": "user", "content": "a"}, ' * 12_000 + end
    client = ask(Client(make(), text.encode()), "/v1/messages", x_api_key=KEY)
    assert client.status == 400
    assert has_form("anthropic-messages", client.body)


@pytest.mark.parametrize("given", [0.0, 0.5], ids=["whole", "damaged"])
def test_json_is_read_item_by_item_as_by_the_standard_library(given: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_WINDOW", 40)
    chance = random.Random(5)

    def make_value(depth: int) -> object:
        match chance.randrange(9 if depth < 5 else 6):
            case 6 | 7:
                return [make_value(depth + 1) for _ in range(chance.randrange(8))]
            case 8:
                return {f'k{number},:"': make_value(depth + 1) for number in range(chance.randrange(8))}
            case number:
                return (1, -2.5e3, 'x\\"\ud800é,]}', True, None, "y" * chance.randrange(60))[number]

    refused = 0
    for _ in range(3000):
        text = json.dumps(make_value(0), indent=chance.choice((None, 1)), ensure_ascii=chance.random() < 0.5)
        if chance.random() < given:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(("", *',]}[{":1\\\n')) + text[at + chance.randrange(2) :]
        try:
            expected = json.loads(text)
        except ValueError:
            refused += 1
            with pytest.raises(ValueError):  # noqa: PT011 - of the standard library, or of segue
                calls._ByItem(text).decode()  # pyright: ignore[reportPrivateUsage]
        else:
            assert calls._ByItem(text).decode() == expected  # pyright: ignore[reportPrivateUsage]
    assert (refused > 500) is (given > 0)


# -- envelopes ---------------------------------------------------------------------------------------------------------


class CountingEnvelopes(Envelopes):
    """Counts what is read."""

    __slots__ = ("reads",)

    def __init__(self) -> None:
        super().__init__([b"k" * 32])
        self.reads = 0

    def read(self, text: str, tenant: str = "") -> Any:
        self.reads += 1
        return super().read(text, tenant)


@pytest.mark.parametrize(("most", "most_bytes", "reads"), [(50, 10**6, 50), (10**6, 400, 40)], ids=["count", "bytes"])
def test_envelopes_beyond_the_limit_are_not_read_and_reported(most: int, most_bytes: int, reads: int) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
    for at in range(3):
        fake = " ".join(f"{MARK}{one:02}" for one in range(30 * at, 30 * at + 30))
        turns.append({"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": fake}]})
        turns.append({"role": "user", "content": "go on"})
    call = read_call("POST", "/v1/messages", {}, {**ECHO, "messages": turns})
    assert call.prompt is not None
    context: Context = call.prompt.context
    envelopes = CountingEnvelopes()
    found = find_states(context, envelopes, most=most, most_bytes=most_bytes)
    assert envelopes.reads == reads
    places = [at for at, message in enumerate(context.messages) if isinstance(message, AssistantMessage)]
    assert found.unread == set(places[:2])  # the newest turn is read first
    details = [change.detail for change in restore(context, found, {}).report.changes]
    assert sum("more state of replies than this gateway reads" in detail for detail in details) == 2


# -- connections -------------------------------------------------------------------------------------------------------


@contextmanager
def served(gateway: Gateway) -> Generator[tuple[str, int]]:
    protocol = guarded_protocol(lambda: gateway.config.limits)
    with serve_in_thread(create_app(gateway=gateway), protocol=protocol) as url:
        yield "127.0.0.1", int(url.rpartition(":")[2])


def read_all(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionError:
        pass
    return found


HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("first", "sent"),
    [
        (b"", b""),
        (b"", b"GET /health HT"),
        (b"", HEALTH + b"X: "),
        (HEALTH + b"\r\n", b"GET /hea"),
        (HEALTH + b"Content-Length: 9\r\n\r\n", b"x"),
    ],
    ids=["nothing", "half a line", "half a header", "half of the second head", "half of a body that nobody reads"],
)
def test_a_connection_that_sends_no_whole_head_ends(first: bytes, sent: bytes) -> None:
    with served(make("head_seconds = 0.05")) as place, socket.create_connection(place) as connection:
        if first:
            connection.sendall(first)
            assert b"200 OK" in connection.recv(65536)
        connection.sendall(sent)
        assert b"HTTP" not in read_all(connection)


def test_a_slow_body_ends_with_408() -> None:
    head = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {KEY}\r\nContent-Length: 99\r\n\r\n{{"
    with served(make("body_seconds = 0.05")) as place, socket.create_connection(place) as connection:
        connection.sendall(head.encode())
        assert read_all(connection).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("piece", [b"x" * 50_000, b"x: y\r\n" * 10_000], ids=["one header", "many headers"])
def test_a_head_without_end_is_refused(piece: bytes) -> None:
    with served(make()) as place, socket.create_connection(place) as connection:
        sent = 0
        try:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nx: ")
            while sent < 50_000_000:
                connection.sendall(piece)
                sent += len(piece)
        except ConnectionError:
            pass
        assert sent < 50_000_000
        assert httpx2.get(f"http://{place[0]}:{place[1]}/health").status_code == 200


def test_connections_of_one_address_are_limited() -> None:
    gateway = make("connections_per_address = 3")
    with served(gateway) as place:
        open_ones = [socket.create_connection(place) for _ in range(3)]
        for connection in open_ones:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with socket.create_connection(place) as refused:
            assert read_all(refused) == b""
        for connection in open_ones:
            connection.close()
        for _ in range(1000):  # the server notices that they are closed
            with socket.create_connection(place) as again:
                with suppress(ConnectionError):
                    again.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if read_all(again).startswith(b"HTTP/1.1 200"):
                    return
            time.sleep(0.01)
        raise AssertionError("connections are never free again")


def test_an_unread_body_is_not_the_next_request() -> None:
    hidden = f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {KEY}\r\n\r\n"
    head = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(hidden)}\r\n\r\n"
    with served(make()) as place, socket.create_connection(place) as connection:
        connection.sendall((head + hidden).encode())
        answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 401")
        assert answer.count(b"HTTP/1.1") == 1


def test_a_large_body_of_a_valid_request_is_read_whole() -> None:
    body = json.dumps({**ECHO, "messages": [{"role": "user", "content": "x" * 3_000_000}]}).encode()
    with served(make()) as place:
        url = f"http://{place[0]}:{place[1]}/v1/messages"
        with httpx2.Client() as client:
            for _ in range(2):  # over one connection
                reply = client.post(url, content=body, headers={"x-api-key": KEY})
                assert (reply.status_code, len(reply.content) > 3_000_000) == (200, True)


def test_a_websocket_is_answered_without_a_hint_to_install_one(caplog: pytest.LogCaptureFixture) -> None:
    request = (
        f"GET /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {KEY}\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with served(make("head_seconds = 1")) as place, socket.create_connection(place) as connection:
        connection.sendall(request.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 426")
    assert "install" not in caplog.text


# -- pages -------------------------------------------------------------------------------------------------------------


def test_the_root_says_what_this_is_and_pages_are_in_no_frame() -> None:
    with served(make()) as place:
        url = f"http://{place[0]}:{place[1]}"
        root = httpx2.get(url)
        assert (root.status_code, "segue gateway" in root.text) == (200, True)
        assert "frame-ancestors 'none'" in httpx2.get(f"{url}/segue").headers["content-security-policy"]


# -- compressed bodies -------------------------------------------------------------------------------------------------

_QUESTION = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()
ENCODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_compressed_body_is_read(encoding: str) -> None:
    body = ENCODINGS[encoding](_QUESTION)
    client = ask(Client(make(), body[:20], body[20:]), "/v1/messages", x_api_key=KEY, content_encoding=encoding.upper())
    assert client.status == 200, client.body


BAD_BODIES = {
    "an encoding that is not supported": ("br", b"x", 415, b"send gzip"),
    "two encodings": ("gzip, gzip", b"x", 415, b"send gzip"),
    "a body that is not compressed": ("gzip", _QUESTION, 400, b"cannot be read as gzip"),
    "a body that was cut": ("gzip", gzip.compress(_QUESTION)[:-20], 400, b"cannot be read as gzip"),
    "zstd that is not zstd": ("zstd", _QUESTION, 400, b"cannot be read as zstd"),
    "much more content than bytes, gzip": ("gzip", gzip.compress(b"x" * 3_000_000), 413, b"larger than 1 MB"),
    "much more content than bytes, deflate": ("deflate", zlib.compress(b"x" * 3_000_000), 413, b"larger than 1 MB"),
    "much more content than bytes, zstd": (
        "zstd",
        zstandard.ZstdCompressor().compress(b"x" * 3_000_000),
        413,
        b"larger than 1 MB",
    ),
    "a window that fills the memory": (
        "zstd",
        b"\x28\xb5\x2f\xfd\x00\x88" + b"\x01\x00\x00",
        400,
        b"cannot be read as zstd",
    ),
}


@pytest.mark.parametrize(("encoding", "body", "status", "text"), BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_a_compressed_body_is_bounded(encoding: str, body: bytes, status: int, text: bytes) -> None:
    app = make("body_megabytes = 1")
    client = ask(Client(app, body), "/v1/messages", x_api_key=KEY, content_encoding=encoding)
    assert (client.status, text in client.body) == (status, True), client.body
    assert has_form("anthropic-messages", client.body)
