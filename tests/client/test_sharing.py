"""One client, one stream, one conversation, and several who use it: threads, tasks, event loops, hooks."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import threading
from dataclasses import replace

import pytest

from client.both_clients import HELLO, ONCE, Received, idle_connections, stream_reply
from client.http.test_replies import both_clients
from client.wires import TEXT, WIRES
from segue.client.flow.backoff import Retry
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.conversation.messages import StopReason
from segue.errors import RequestFailed
from servers.script import Phase, Reply
from servers.scripted import ScriptedServer

CHAT = WIRES["openai-chat"]
SETTINGS: ClientSettings = {"api_key": "a-key-of-nobody", "retry": ONCE, "timeout": 10.0}


def test_a_stream_that_is_read_and_closed_at_the_same_moment_ends_once(server: ScriptedServer):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that the two meet everywhere
    try:
        with Client(**SETTINGS) as client:
            for _ in range(60):
                server.reply(CHAT.stream(split=5))
                stream = client.stream(HELLO, CHAT.model(server.url))
                events = [next(stream)]
                reader = threading.Thread(target=lambda events=events, stream=stream: events.extend(stream))
                reader.start()
                stream.close()
                reader.join(60)
                assert not reader.is_alive()
                Received([*events, *stream], stream.message, stream.attempts, idle_connections(client)).check()
    finally:
        sys.setswitchinterval(before)


def test_two_threads_may_read_one_stream(server: ScriptedServer):
    server.reply(CHAT.stream(split=3))
    with Client(**SETTINGS) as client:
        stream = client.stream(HELLO, CHAT.model(server.url))
        events = []
        readers = [threading.Thread(target=lambda: events.extend(stream)) for _ in range(2)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert sum(event.type in ("done", "error") for event in events) == 1
    assert stream.message.text() == TEXT


def test_closing_in_a_hook_sends_nothing(server: ScriptedServer):
    streams = []

    def close(request: object) -> None:
        streams[0].close()

    with Client(retry=ONCE, on_request=close) as client:
        streams.append(client.stream(HELLO, CHAT.model(server.url)))
        assert [event.type for event in streams[0]] == ["start", "error"]
        assert streams[0].message.stop_reason == StopReason.ABORTED
    assert server.requests == []


@both_clients
def test_an_error_in_on_attempt_is_raised_and_ends_the_reply(server: ScriptedServer, is_async: bool):
    def fail(attempt: object) -> None:
        raise ZeroDivisionError

    server.reply(CHAT.stream(), CHAT.stream())
    with pytest.raises(ZeroDivisionError):
        stream_reply(CHAT.model(server.url), is_async=is_async, on_attempt=fail)
    with Client(retry=ONCE, on_attempt=fail) as client:
        stream = client.stream(HELLO, CHAT.model(server.url))
        with pytest.raises(ZeroDivisionError):
            list(stream)
        assert stream.message.text() == TEXT  # it was whole before anyone failed
        assert idle_connections(client) == [True]


def test_a_cancellation_in_on_attempt_stays_a_cancellation(server: ScriptedServer):
    async def run() -> None:
        down = Reply.json({"error": {"message": "unavailable"}}, status=503)
        server.reply(down, down)
        reported: list[asyncio.Task[object]] = []
        retry = Retry(first_wait=30.0, longest_wait=30.0)
        async with AsyncClient(timeout=10.0, retry=retry, on_attempt=lambda _: reported[0].cancel()) as client:
            stream = client.stream(HELLO, CHAT.model(server.url))
            reported.append(asyncio.create_task(stream.result()))
            with pytest.raises(asyncio.CancelledError):
                await reported[0]
            assert stream.message.stop_reason == StopReason.ABORTED
            assert len(stream.attempts) == 2  # the one that failed, and the one that was given up while waiting
            assert all(idle_connections(client))

    asyncio.run(run())


def test_a_task_cancelled_while_connecting_leaks_nothing():
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as busy, contextlib.ExitStack() as others:
            for _ in range(4):  # fill the accept backlog, so no further connection is accepted
                waiting = others.enter_context(socket.socket())
                waiting.settimeout(0)
                waiting.connect_ex(busy.getsockname())
            await ask(f"http://127.0.0.1:{busy.getsockname()[1]}")

    async def ask(url: str) -> None:
        async with AsyncClient(**SETTINGS) as client:
            stream = client.stream(HELLO, CHAT.model(url))
            task = asyncio.create_task(stream.result())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert stream.message.stop_reason == StopReason.ABORTED
            assert idle_connections(client) == []
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


@pytest.mark.parametrize("wait", [0.0, 0.02], ids=["at once", "in the middle"])
def test_a_task_cancelled_twice_still_ends(server: ScriptedServer, wait: float):
    async def run() -> None:
        server.reply(CHAT.stream().broken(Phase.BODY, "stall", 3))
        async with AsyncClient(**SETTINGS) as client:
            async with client.stream(HELLO, CHAT.model(server.url)) as stream:
                task = asyncio.create_task(stream.result())
                await asyncio.to_thread(server.wait_until, lambda it: it.stalled == 1)
                task.cancel()
                await asyncio.sleep(wait)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert stream.message.stop_reason == StopReason.ABORTED
            assert idle_connections(client) == []

    asyncio.run(run())


def test_an_unreferenced_async_stream_releases_its_connection(server: ScriptedServer):
    async def run() -> None:
        server.reply(CHAT.stream().broken(Phase.BODY, "stall", 3))
        ended: list[str] = []
        async with AsyncClient(**SETTINGS) as client:
            stream = client.stream(
                HELLO, CHAT.model(server.url), on_end=lambda message, _: ended.append(message.stop_reason)
            )
            await anext(stream)
            del stream
            gc.collect()
            await asyncio.to_thread(server.wait_until, lambda it: it.open == 0)
            for _ in range(10_000):  # what is left to do is done in the loop's next turns
                if not idle_connections(client) and len(asyncio.all_tasks()) == 1:
                    break
                await asyncio.sleep(0.001)
            assert idle_connections(client) == []
            assert len(asyncio.all_tasks()) == 1
        assert ended == [StopReason.ABORTED]

    asyncio.run(run())


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a loop that ends does not close what is open in it
def test_a_client_works_in_several_event_loops(server: ScriptedServer):
    server.reply(*[CHAT.answer()] * 6)
    client = AsyncClient(**SETTINGS)

    async def ask() -> str:
        both = await asyncio.gather(*(client.complete(HELLO, CHAT.model(server.url)) for _ in range(2)))
        return both[0].text()

    assert [asyncio.run(ask()) for _ in range(3)] == [TEXT] * 3

    async def close() -> None:
        await client.close()
        with pytest.raises(RuntimeError, match="closed"):
            await client.complete(HELLO, CHAT.model(server.url))

    asyncio.run(close())
    gc.collect()


def test_a_client_that_is_closed_ends_its_streams(server: ScriptedServer):
    server.reply(CHAT.stream().broken(Phase.BODY, "stall", 3), CHAT.stream().broken(Phase.BODY, "stall", 3))
    client = Client(**SETTINGS)
    stream = client.stream(HELLO, CHAT.model(server.url))
    events = [next(stream)]
    client.close()
    events += stream
    Received(events, stream.message, stream.attempts, []).check()
    assert stream.message.stop_reason == StopReason.ERROR
    assert TEXT.startswith(stream.message.text())
    with pytest.raises(RuntimeError, match="closed"):
        client.complete(HELLO, CHAT.model(server.url))
    server.wait_until(lambda it: it.open == 0)

    async def run() -> None:
        client = AsyncClient(**SETTINGS)
        stream = client.stream(HELLO, CHAT.model(server.url))
        events = [await anext(stream)]
        await client.close()
        events += [event async for event in stream]
        Received(events, stream.message, stream.attempts, []).check()

    asyncio.run(run())
    server.wait_until(lambda it: it.open == 0)


@both_clients
def test_a_stale_connection_is_replaced_without_a_failure(server: ScriptedServer, is_async: bool):
    """It is closed at the very moment it is used again, which no look at it before can show."""
    server.reply(CHAT.answer(), CHAT.stream().broken(Phase.ASKED, "close"), CHAT.answer())

    async def ask() -> None:
        async with AsyncClient(**SETTINGS) as client:
            for _ in range(2):
                assert (await client.complete(HELLO, CHAT.model(server.url))).text() == TEXT

    if is_async:
        asyncio.run(ask())
    else:
        with Client(**SETTINGS) as client:
            for _ in range(2):
                assert client.complete(HELLO, CHAT.model(server.url)).text() == TEXT
    assert server.opened == 2
    server.reply(CHAT.stream().broken(Phase.ASKED, "close"), CHAT.answer())  # a new one is another matter
    with Client(**SETTINGS) as client, pytest.raises(RequestFailed):
        client.complete(HELLO, CHAT.model(server.url))


def test_an_open_reply_does_not_shorten_the_next_wait(server: ScriptedServer):
    server.reply(replace(Reply.sse(CHAT.error_frame)).broken(Phase.END, "stall"), CHAT.stream())
    retry = Retry(first_wait=1.2, longest_wait=1.2)
    received = stream_reply(CHAT.model(server.url), retry=retry, timeout=10.0).check()
    assert received.message.text() == TEXT
    first, second = received.attempts
    assert second.started - first.started >= 1000 * second.waited


def test_requests_go_through_the_proxy_of_the_environment(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch):
    server.reply(CHAT.answer(), CHAT.answer())
    monkeypatch.setenv("http_proxy", server.url)
    for transport in (None, {}):
        with Client(retry=ONCE, transport=transport) as client:
            assert client.complete(HELLO, CHAT.model("http://nowhere.invalid/v1")).text() == TEXT
            assert client.stream(HELLO, "echo").result().text() == "hello"
    assert {request.path for request in server.requests} == {"http://nowhere.invalid/v1/chat/completions"}
