"""The servers of the tests do what they promise: what a client is judged by has to be right itself."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from protocols.every_protocol import all_codecs
from segue import AssistantMessage, Event, Model, NdjsonDecoder, SseDecoder, StopReason, decode_error, decode_response
from segue.framing.aws_event_stream import AwsEventStreamDecoder
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import PROTOCOLS
from servers.crowd import allow_many_files
from servers.emulate_replies import ARGUMENTS, BUSY, THINKING, TOOL, WORDS
from servers.replies import EMULATED, replies
from servers.script import Phase, Reply
from servers.scripted import ScriptedServer

BODY = b"data: one\n\ndata: two\n\ndata: three\n\ndata: four\n\n"
CODECS = [codec for codec in all_codecs() if codec.name in EMULATED]
SPEECHLESS = {"vscode-lm": ("text", "toolCall"), "plain-text": ("text",)}
"""What the two without a wire can tell; the others can tell all."""


def frames_of(codec: Protocol, body: bytes) -> Sequence[bytes | tuple[str, bytes]]:
    """Split a stream as its wire does."""
    if codec.framing == "ndjson":
        lines = NdjsonDecoder()
        return lines.feed(body) + lines.finish()
    decoder = AwsEventStreamDecoder() if codec.framing == "aws-event-stream" else SseDecoder()
    return [event.data for event in [*decoder.feed(body), *decoder.finish()]]


def ask(server: ScriptedServer) -> socket.socket:
    """Send a request and give the connection, from which nothing was read."""
    raw = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
    raw.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    return raw


def model_of(codec: Protocol) -> Model:
    return Model("m", PROTOCOLS[codec.name].provider, codec.name, reasoning=True)


def listen(codec: Protocol, body: bytes) -> tuple[list[Event], AssistantMessage]:
    """Read a stream."""
    decoder, events = codec.stream_decoder(resolve_endpoint(model_of(codec)), {}), list[Event]()
    for frame in frames_of(codec, body):
        events += decoder.feed(frame)
    return events + decoder.finish(), decoder.message


def result(message: AssistantMessage) -> list[tuple[str, object]]:
    """Give what a message says, without what only its provider needs."""
    parts = {"text": "text", "thinking": "thinking", "toolCall": "arguments", "native": "block"}
    return [(piece.kind, getattr(piece, parts[piece.kind])) for piece in message.content]


# -- what the wires answer ---------------------------------------------------------------------------------------------


def test_replies_are_those_of_registered_protocols():
    assert [replies(name).protocol for name in EMULATED] == list(EMULATED)
    assert EMULATED.keys() <= PROTOCOLS.keys()


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_stream_and_a_whole_reply_say_the_same(codec: Protocol):
    wire = replies(codec.name)
    given: list[tuple[str, object]] = [
        ("thinking", "".join(THINKING)),
        ("text", "".join(WORDS)),
        ("toolCall", ARGUMENTS),
    ]
    expected = [piece for piece in given if piece[0] in SPEECHLESS.get(codec.name, ("thinking", "text", "toolCall"))]
    events, streamed = listen(codec, wire.streamed)
    whole = decode_response(httpx2.Response(200, content=wire.whole).json(), model=model_of(codec))
    assert result(streamed) == expected
    assert result(whole) == expected
    assert streamed.stop_reason == whole.stop_reason
    assert streamed.stop_reason == (StopReason.STOP if codec.name == "plain-text" else StopReason.TOOL_USE)
    assert [call.name for call in whole.tool_calls()] == [TOOL] * len(whole.tool_calls())
    assert [event.type for event in events if event.type in ("done", "error")] == ["done"]
    assert (streamed.usage is None) == (codec.name in SPEECHLESS)
    assert streamed.usage == whole.usage


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_an_error_in_mid_stream_keeps_the_words(codec: Protocol):
    events, message = listen(codec, replies(codec.name).broken)
    assert [event.type for event in events if event.type in ("done", "error")] == ["error"]
    assert message.stop_reason == StopReason.ERROR
    assert message.text() == "".join(WORDS)
    assert message.error_message


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_an_error_body_is_read(codec: Protocol):
    body = httpx2.Response(429, content=replies(codec.name).error).json()
    error = decode_error(body, protocol=codec.name, status=429)
    assert (error.status, error.message) == (429, BUSY)


# -- the scripted server -----------------------------------------------------------------------------------------------


def test_requests_are_answered_in_the_order_of_the_script_and_recorded():
    with ScriptedServer(default=Reply.json({"last": True})) as server, httpx2.Client(timeout=60) as client:
        server.reply(Reply.json({"first": True}, status=429, headers={"retry-after": "7"}), Reply.sse(BODY, split=1))
        refused = client.post(server.url + "/v1/a?b=c", json={"n": 1}, headers={"X-Key": "k"})
        assert (refused.status_code, refused.headers["retry-after"], refused.json()) == (429, "7", {"first": True})
        assert client.post(server.url + "/v1/b", content=iter([b"one", b"two"])).content == BODY
        assert client.get(server.url + "/v1/c").json() == {"last": True}
        assert [(seen.method, seen.path, seen.body) for seen in server.requests] == [
            ("POST", "/v1/a?b=c", b'{"n":1}'),
            ("POST", "/v1/b", b"onetwo"),
            ("GET", "/v1/c", b""),
        ]
        assert server.requests[0].headers["x-key"] == "k"
        assert {seen.connection for seen in server.requests} == {1}
        server.wait_until(lambda server: server.served == 3)
        assert (server.opened, server.open, server.aborted) == (1, 1, 0)
    assert server.open == 0


def test_a_request_beyond_the_script_gets_an_error():
    with ScriptedServer() as server, httpx2.Client(timeout=60) as client:
        reply = client.get(server.url + "/x")
        assert reply.status_code == 500
        assert "GET /x" in reply.text


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("keep_alive", [True, False])
def test_a_body_may_end_in_three_ways(framing, keep_alive: bool):
    with ScriptedServer(default=replace(Reply.sse(BODY, split=3), framing=framing, keep_alive=keep_alive)) as server:
        with httpx2.Client(timeout=60) as client:
            assert [client.get(server.url).content for _ in range(3)] == [BODY] * 3
        assert server.opened == (1 if keep_alive and framing != "close" else 3)


def read_into(got: bytearray, client: httpx2.Client, url: str) -> None:
    with client.stream("GET", url) as reply:
        for piece in reply.iter_raw():
            got += piece


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("phase", Phase)
def test_an_exchange_breaks_at_the_scripted_place(phase: Phase, how, framing):
    script = replace(Reply.sse(BODY, split=12), framing=framing).broken(phase, how)
    with ScriptedServer() as server, httpx2.Client(timeout=60) as client:
        server.reply(Reply.json({}), script)
        client.get(server.url)  # the connection is there and idle: the worst moment
        got = bytearray()
        with pytest.raises((httpx2.NetworkError, httpx2.RemoteProtocolError)) as failure:
            read_into(got, client, server.url)
        early = phase in (Phase.CONNECTED, Phase.ASKED, Phase.HEADERS)
        assert got == (b"" if early else BODY[: len(got)])
        if how == "close" and not early:
            assert got == (BODY if phase == Phase.END else BODY[:24])
        if how == "reset":
            assert isinstance(failure.value, httpx2.NetworkError)
        assert len(server.requests) == (1 if phase == Phase.CONNECTED else 2)
        server.wait_until(lambda server: server.open == 0)


@pytest.mark.parametrize("phase", Phase)
def test_a_stalled_reply_continues_when_released(phase: Phase):
    with ScriptedServer() as server, httpx2.Client(timeout=60) as client:
        server.reply(Reply.sse(BODY, split=12).broken(phase, "stall"))
        bodies: list[bytes] = []
        reading = threading.Thread(target=lambda: bodies.append(client.get(server.url).content))
        reading.start()
        server.wait_until(lambda server: server.stalled == 1)
        assert bodies == []
        server.go_on()
        reading.join()
        assert bodies == [BODY]


@pytest.mark.parametrize("phase", Phase)
def test_a_stalled_reply_ends_when_the_client_disconnects(phase: Phase):
    with ScriptedServer() as server:
        server.reply(Reply.sse(BODY).broken(phase, "stall"))
        with ask(server):
            server.wait_until(lambda server: server.stalled == 1)
        server.wait_until(lambda server: server.stalled == 0 and server.open == 0)
    # Only a closed server has certainly counted: `stalled` changes a moment before `aborted`, in another thread.
    assert server.aborted == (0 if phase == Phase.CONNECTED else 1)


def test_a_stall_can_follow_any_chunk():
    for after in range(5):
        with ScriptedServer() as server, httpx2.Client(timeout=60) as client:
            server.reply(Reply.sse(BODY, split=12).broken(Phase.BODY, "stall", after))
            with client.stream("GET", server.url) as reply:
                pieces = reply.iter_raw()
                got = b""
                while len(got) < min(12 * after, len(BODY)):
                    got += next(pieces)
                server.wait_until(lambda server: server.stalled == 1)
            assert got == BODY[: 12 * after]
            server.wait_until(lambda server: server.aborted == 1)


def test_a_reset_by_the_client_is_recorded():
    with ScriptedServer() as server:
        server.reply(Reply.sse(BODY).broken(Phase.BODY, "stall"))
        raw = ask(server)
        server.wait_until(lambda server: server.stalled == 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        raw.close()
        server.wait_until(lambda server: (server.aborted, server.open) == (1, 0))


def test_closing_the_server_ends_running_replies():
    before = threading.active_count()
    with ScriptedServer(default=Reply.sse(BODY).broken(Phase.BODY, "stall")) as server:
        raw = ask(server)
        server.wait_until(lambda server: server.stalled == 1)
    assert threading.active_count() <= before
    with raw:
        raw.settimeout(60)
        assert b"".join(iter(lambda: raw.recv(1000), b"")).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("streams", [500, pytest.param(10_000, marks=pytest.mark.proof)])
def test_many_streams_run_at_once(streams: int):
    reply = replies("openai-chat").stream().broken(Phase.BODY, "stall")
    processes = max(1, streams // 2500)
    command = [sys.executable, str(Path(__file__).with_name("crowd.py"))]
    allow_many_files()
    with ScriptedServer(default=reply) as server, ExitStack() as running:
        started = [
            running.enter_context(
                subprocess.Popen([*command, server.url, str(streams // processes)], stdout=subprocess.PIPE)
            )
            for _ in range(processes)
        ]
        for process in started:
            running.callback(process.kill)
        server.wait_until(lambda server: server.stalled == streams, seconds=60)
        assert (server.opened, server.open, len(server.requests)) == (streams, streams, streams)
        server.go_on()
        lengths = [line.split() for process in started for line in process.communicate()[0].splitlines()]
        assert len({length for length, _ in lengths}) == 1
        assert sum(int(times) for _, times in lengths) == streams
        server.wait_until(lambda server: (server.served, server.open) == (streams, 0))
