"""Closing and cancelling, at every event and from anywhere: one aborted message that can be stored, nothing left."""

from __future__ import annotations

import asyncio
import gc
import threading
from dataclasses import replace

import pytest

from client.both_clients import HELLO, ONCE, Received, idle_connections
from client.http.test_replies import CODECS, each_wire
from client.wires import TEXT, WIRES, Wire
from segue.client.flow.backoff import Retry
from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.client.http.streams import Stream
from segue.conversation.events import Event
from segue.conversation.messages import StopReason
from servers.script import Phase, Reply
from servers.scripted import ScriptedServer

SETTINGS: ClientSettings = {"api_key": "a-key-of-nobody", "retry": ONCE, "timeout": 10.0}
PATIENT: ClientSettings = {**SETTINGS, "timeout": 60.0}
COUNTS = {wire.protocol: len(wire.frames) for wire in CODECS}


def stalling(wire: Wire, after: int) -> Reply:
    """Send this many events, then stall until the peer closes."""
    return wire.stream().broken(Phase.BODY, "stall", after)


def check_aborted(events: list[Event], received: Received) -> None:
    received.check()
    assert received.message.stop_reason == StopReason.ABORTED
    assert TEXT.startswith(received.message.text())
    assert received.events[: len(events)] == events


@each_wire
def test_a_stream_is_closed_at_every_event(server: ScriptedServer, wire: Wire):
    impatient: ClientSettings = {**SETTINGS, "timeout": 1.0}  # some protocols end with a frame that gives no event
    with Client(**impatient) as client:
        server.reply(wire.stream())
        whole = len(list(client.stream(HELLO, wire.model(server.url))))
        aborted = 0
        for count in range(whole):
            server.reply(stalling(wire, len(wire.frames)))
            with client.stream(HELLO, wire.model(server.url)) as stream:
                events = [next(stream) for _ in range(count)]
            rest = list(stream)
            received = Received([*events, *rest], stream.message, stream.attempts, idle_connections(client)).check()
            if received.message.stop_reason == StopReason.ABORTED:
                assert TEXT.startswith(received.message.text())
                aborted += 1
            else:  # the last events come together: nothing was left to break off
                assert received.message.text() == TEXT
            assert list(stream) == []
            stream.close()
    assert aborted > whole // 2
    server.wait_until(lambda it: it.open == 0)


@each_wire
def test_a_task_is_cancelled_at_every_event(server: ScriptedServer, wire: Wire):
    async def cancel_after(client: AsyncClient, frames: int) -> None:
        """Cancel a task that waits for what comes after so many frames, and look at what it leaves."""
        server.reply(stalling(wire, frames))
        stream = client.stream(HELLO, wire.model(server.url))
        events: list[Event] = []

        async def collect() -> None:
            async for event in stream:
                events.append(event)

        task = asyncio.create_task(collect())
        await asyncio.to_thread(server.wait_until, lambda it: it.stalled > 0)
        await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = list(events)
        events += [event async for event in stream]
        check_aborted(before, Received(events, stream.message, stream.attempts, idle_connections(client)))
        assert len(asyncio.all_tasks()) == 1

    async def run() -> None:
        async with AsyncClient(**SETTINGS) as client:
            for frames in range(len(wire.frames) - 1):
                await cancel_after(client, frames)
                await asyncio.to_thread(server.wait_until, lambda it: it.stalled == 0)

    asyncio.run(run())
    server.wait_until(lambda it: it.open == 0)


PHASES = [Phase.CONNECTED, Phase.ASKED, Phase.HEADERS, Phase.BODY]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("emits", [True, False], ids=["streamed", "whole"])
def test_a_task_is_cancelled_in_every_phase(server: ScriptedServer, phase: Phase, emits: bool):
    wire = WIRES["openai-chat"]
    server.reply((wire.stream() if emits else wire.answer()).broken(phase, "stall"))

    async def run() -> None:
        async with AsyncClient(**SETTINGS) as client:
            reply = client.begin(HELLO, wire.model(server.url), emits=emits)
            task = asyncio.create_task(reply.result())
            await asyncio.to_thread(server.wait_until, lambda it: it.stalled > 0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert idle_connections(client) == []
            assert len(asyncio.all_tasks()) == 1
            await asyncio.to_thread(server.wait_until, lambda it: it.stalled == 0)
            assert reply.message.stop_reason == StopReason.ABORTED

    asyncio.run(run())


def test_a_timeout_around_a_stream_ends_it(server: ScriptedServer):
    wire = WIRES["anthropic-messages"]
    server.reply(stalling(wire, 4))

    async def run() -> None:
        async with AsyncClient(**SETTINGS) as client:
            stream = client.stream(HELLO, wire.model(server.url))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await stream.result()
            assert stream.message.stop_reason == StopReason.ABORTED
            assert idle_connections(client) == []

    asyncio.run(run())
    server.wait_until(lambda it: it.open == 0)


def test_a_stream_is_closed_from_another_thread(server: ScriptedServer):
    wire = WIRES["anthropic-messages"]
    server.reply(stalling(wire, 4))
    with Client(**SETTINGS) as client:
        stream = client.stream(HELLO, wire.model(server.url))
        events: list[Event] = []
        reader = threading.Thread(target=lambda: events.extend(stream))
        reader.start()
        server.wait_until(lambda it: it.stalled == 1)
        stream.close()
        reader.join(60)
        assert not reader.is_alive()
        check_aborted([], Received(events, stream.message, stream.attempts, idle_connections(client)))


def test_a_stream_is_closed_from_another_task(server: ScriptedServer):
    wire = WIRES["anthropic-messages"]

    async def run() -> None:
        async with AsyncClient(**SETTINGS) as client:
            for phase in (Phase.ASKED, Phase.BODY):
                server.reply(wire.stream().broken(phase, "stall"))
                stream = client.stream(HELLO, wire.model(server.url))
                events: list[Event] = []

                async def stream_reply(stream=stream, events=events) -> None:
                    events.extend([event async for event in stream])

                task = asyncio.create_task(stream_reply())
                await asyncio.to_thread(server.wait_until, lambda it: it.stalled == 1)
                await asyncio.sleep(0.01)
                await stream.close()
                await task
                check_aborted([], Received(events, stream.message, stream.attempts, idle_connections(client)))
                await asyncio.to_thread(server.wait_until, lambda it: it.stalled == 0)

    asyncio.run(run())


def test_closing_ends_the_wait_between_attempts(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    patient = Retry(first_wait=60.0, longest_wait=60.0)
    down = Reply.json({"error": {"message": "unavailable"}}, status=503)
    server.reply(down, down)
    noted = threading.Event()
    with Client(timeout=10.0, retry=patient, on_attempt=lambda _: noted.set()) as client:
        stream = client.stream(HELLO, wire.model(server.url))
        events: list[Event] = []
        reader = threading.Thread(target=lambda: events.extend(stream))
        reader.start()
        assert noted.wait(60)
        stream.close()
        reader.join(60)
        assert [event.type for event in events] == ["start", "error"]
        assert stream.message.stop_reason == StopReason.ABORTED

    async def run() -> None:
        reported = asyncio.Event()
        async with AsyncClient(timeout=10.0, retry=patient, on_attempt=lambda _: reported.set()) as client:
            stream = client.stream(HELLO, wire.model(server.url))
            task = asyncio.create_task(stream.result())
            await reported.wait()
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert stream.message.stop_reason == StopReason.ABORTED

    asyncio.run(run())


def test_an_exception_in_the_block_closes_the_stream(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(stalling(wire, 3))

    def fail_on_the_way(stream: Stream) -> None:
        with stream:
            next(stream)
            raise ZeroDivisionError

    with Client(**SETTINGS) as client:
        stream = client.stream(HELLO, wire.model(server.url))
        with pytest.raises(ZeroDivisionError):
            fail_on_the_way(stream)
        assert stream.message.stop_reason == StopReason.ABORTED
        assert idle_connections(client) == []


def test_a_hook_that_fails_ends_the_request(server: ScriptedServer):
    def fail() -> str:
        raise ZeroDivisionError

    model = WIRES["openai-chat"].model(server.url)
    with Client(auth=fail) as client:
        stream = client.stream(HELLO, model)
        with pytest.raises(ZeroDivisionError):
            next(stream)
        assert [event.type for event in stream] == ["start", "error"]
        with pytest.raises(ZeroDivisionError):
            client.complete(HELLO, model)
    assert server.requests == []


def test_an_unreferenced_stream_releases_its_connection(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(stalling(wire, 3))
    with Client(**SETTINGS) as client:
        stream = client.stream(HELLO, wire.model(server.url))
        next(stream)
        del stream
        gc.collect()
        assert idle_connections(client) == []


def test_an_unread_stream_sends_nothing(server: ScriptedServer):
    with Client(**SETTINGS) as client:
        with client.stream(HELLO, WIRES["openai-chat"].model(server.url)) as stream:
            pass
        assert stream.message.stop_reason == StopReason.ABORTED
    assert server.requests == []


def test_a_server_that_keeps_the_reply_open_does_not_block(server: ScriptedServer):
    wire = WIRES["anthropic-messages"]
    server.reply(replace(wire.stream()).broken(Phase.END, "stall"))
    threads = threading.active_count()
    with Client(**PATIENT) as client:
        assert client.stream(HELLO, wire.model(server.url)).result().text() == TEXT
        assert idle_connections(client) == []
        assert threading.active_count() <= threads


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [100, pytest.param(500, marks=pytest.mark.proof)])
def test_many_streams_at_once(server: ScriptedServer, many: int):
    wire = WIRES["anthropic-messages"]
    server.reply(*[wire.stream(split=40) for _ in range(many)])

    async def stream_reply(client: AsyncClient) -> tuple[list[Event], str]:
        async with client.stream(HELLO, wire.model(server.url)) as stream:
            events = [event async for event in stream]
        return events, stream.message.text()

    async def run() -> list[tuple[list[Event], str]]:
        async with AsyncClient(**PATIENT) as client:
            received = await asyncio.gather(*(stream_reply(client) for _ in range(many)))
            assert all(idle_connections(client))
            assert len(asyncio.all_tasks()) == 1
            return received

    for events, text in asyncio.run(run()):
        assert text == TEXT
        assert [event.type for event in events if event.type in ("done", "error")] == ["done"]
    server.wait_until(lambda it: it.open == 0)
    assert server.served == many


def test_many_threads_share_a_client(server: ScriptedServer):
    wire = WIRES["openai-chat"]
    server.reply(*[wire.stream(split=40) for _ in range(64)])
    texts: list[str] = []
    with Client(**PATIENT) as client:

        def stream_reply() -> None:
            texts.extend(client.stream(HELLO, wire.model(server.url)).result().text() for _ in range(4))

        threads = [threading.Thread(target=stream_reply) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(idle_connections(client))
    assert texts == [TEXT] * 64
