"""Replies that pass as they are: without a flow while all goes well, and with one that begins where they failed."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

import segue
from gateway.running import make_gateway
from gateway.server_stacks import serving
from protocols.nearly_right import REPAIRED, REPORTED, right_stream
from segue.client.flow.reading import StreamReading
from segue.client.http.shell import Shell
from segue.conversation.context import Context, Options
from segue.conversation.events import StartEvent
from segue.conversation.messages import UserMessage
from segue.framing.writing import frame_encoder
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.gateway.leaving import Connection
from segue.gateway.relaying import ENDS, JUDGED, StreamRelay
from segue.gateway.writing import ClientStream
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol
from segue.testing.emulator.running import serve_in_thread
from servers.script import Break, Phase, Reply
from servers.scripted import Received, ScriptedServer

CONFIG = """
[providers.mine]
base_url = "{url}/mine"
protocol = "openai-chat"
[models."a"]
try = ["mine/a"]
[limits]
retries = 1
[state]
store = "sqlite:{folder}/g.db"
"""
EVENTS = {"content-type": "text/event-stream"}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "a"}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def whole(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "a", "choices": [choice], "usage": USAGE}


def delta(text: str | None, reason: str | None = None) -> bytes:
    given = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": given, "finish_reason": reason}
    return b"data: " + json.dumps({**CHUNK, "choices": [choice]}).encode() + b"\n\n"


USED = b"data: " + json.dumps({**CHUNK, "choices": [], "usage": USAGE}).encode() + b"\n\n"
END = b"data: [DONE]\n\n"


@pytest.fixture
def upstream() -> Iterator[ScriptedServer]:
    def late(_: Received) -> Reply:
        return Reply.json(whole("Late."))

    with ScriptedServer(late) as server:
        yield server


@pytest.fixture
def url(upstream: ScriptedServer, tmp_path: Path) -> Iterator[str]:
    gateway = make_gateway(load_config(CONFIG.format(url=upstream.url, folder=tmp_path)))
    with serve_in_thread(create_app(gateway=gateway)) as address:
        yield address


def ask(url: str, *, stream: bool = False) -> httpx.Response:
    body: dict[str, Any] = {"model": "a", "messages": [{"role": "user", "content": "Hi."}], "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)


def row_of(url: str, answer: httpx.Response) -> dict[str, Any]:
    name = answer.headers["x-segue-request-id"]
    return httpx.get(f"{url}/segue/requests/{name}", timeout=60).json()


@pytest.fixture
def flows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each flow that is made."""
    made: list[str] = []
    init = Shell.__init__

    def noted(self: Shell, *given: Any, **named: Any) -> None:
        made.append("flow")
        init(self, *given, **named)

    monkeypatch.setattr(Shell, "__init__", noted)
    return made


def test_a_whole_reply_passes_without_a_flow(url: str, upstream: ScriptedServer, flows: list[str]) -> None:
    reply = json.dumps(whole("Fine."), indent=1).encode()
    upstream.reply(Reply.json(reply, headers={"x-request-id": "up-1"}))
    answer = ask(url)
    assert (answer.status_code, answer.content, flows) == (200, reply, [])
    row = row_of(url, answer)
    assert (row["outcome"], row["straight"], len(row["attempts"])) == ("done", True, 1)
    assert (row["usage"]["output"], row["figures"]) == (3, "measured")
    assert answer.headers["x-segue-provider-request-id"] == "up-1"


FAILED = {
    "a refusal": Reply.json({"error": {"message": "overloaded", "type": "server_error"}}, status=503),
    "an empty reply": Reply.json(whole("")),
    "no JSON": Reply.json(b"<html>"),
    "an error with status 200": Reply.json({"error": {"message": "overloaded", "type": "server_error"}}),
    "a body that is cut": replace(Reply.json(whole("Cut.")), chunks=(b'{"id": "c", ', b"}")).broken(
        Phase.BODY, "close", 1
    ),
}


@pytest.mark.parametrize("reply", FAILED.values(), ids=FAILED.keys())
def test_a_first_attempt_that_fails_is_handed_over_and_not_sent_again(
    url: str, upstream: ScriptedServer, flows: list[str], reply: Reply
) -> None:
    upstream.reply(reply)
    answer = ask(url)
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Late."
    assert flows == ["flow"]
    assert len(upstream.requests) == 2  # the one that failed, and its retry
    row = row_of(url, answer)
    assert [attempt.get("kind") is None for attempt in row["attempts"]] == [False, True]


def test_the_first_attempt_of_a_request_that_fails_for_good_is_reported_once(
    url: str, upstream: ScriptedServer, flows: list[str]
) -> None:
    upstream.reply(Reply.json({"error": {"message": "no such field", "type": "invalid_request_error"}}, status=400))
    answer = ask(url)
    assert (answer.status_code, flows, len(upstream.requests)) == (400, ["flow"], 1)
    assert "no such field" in answer.text
    assert len(row_of(url, answer)["attempts"]) == 1


@pytest.mark.parametrize("size", [7, 64, 5_000])
def test_a_stream_passes_unchanged_and_is_counted(url: str, upstream: ScriptedServer, size: int) -> None:
    data = b"".join((*(delta(f"word {at} ") for at in range(200)), delta(None, "stop"), USED, END))
    upstream.reply(Reply.sse(data, split=size))
    answer = ask(url, stream=True)
    assert (answer.status_code, answer.content) == (200, data)
    row = row_of(url, answer)
    assert (row["outcome"], row["usage"]["output"], row["figures"]) == ("done", 3, "measured")


def test_a_stream_that_breaks_ends_with_an_error_and_counts_what_arrived(url: str, upstream: ScriptedServer) -> None:
    data = b"".join(delta(f"word {at} ") for at in range(50))
    upstream.reply(Reply.sse(data, split=200, breaks=Break(Phase.BODY, "close", 50)))
    answer = ask(url, stream=True)
    passed, _, error = answer.content.rpartition(b'data: {"error"')
    assert data.startswith(passed)
    assert error
    row = row_of(url, answer)
    assert (row["outcome"], row["figures"]) == ("error", "estimated")
    assert row["spent"]["output"] > passed.count(b"word") / 2


class _Written:
    """Takes what a relay passes on."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.tap: list[bytes] = []
        self.is_calm = True

    def take_rest(self) -> bytes:
        return b""

    def take_bytes(self) -> bytes:
        taken = b"".join(self.tap)
        self.tap.clear()
        return taken

    async def write_bytes(self, data: bytes, *, is_last: bool) -> None:
        assert not is_last
        self.data.append(data)


def relayed(chunks: list[bytes]) -> tuple[bytes, bytes]:
    """Give what a relay passes on at once, and what it holds back to be decoded first."""
    written: Any = _Written()
    relay = StreamRelay(written, written, "openai-chat", written)

    async def run() -> bytes:
        held = b""
        for chunk in chunks:
            written.tap.append(chunk)
            held = await relay.pass_on(chunk)
        return held

    held = asyncio.run(run())
    return b"".join(written.data), held


@pytest.mark.parametrize("at", range(1, len(END)))
def test_an_end_that_arrives_in_two_pieces_is_held_back(at: int) -> None:
    passed, held = relayed([delta("a"), END[:at], END[at:]])
    assert held
    assert not passed.endswith(END)


def streams_of(record: Protocol) -> Iterator[list[Any]]:
    """Give the frames of sample streams, of such with an error, and of servers that break the protocol."""
    for sample in record.samples():
        frames = [*(sample.stream or ()), *([sample.stream_end] if sample.stream_end else [])]
        yield frames
        if sample.stream_error is not None:
            yield [*frames[:1], sample.stream_error]
    for change in {**REPAIRED, **REPORTED}.values():
        yield change(right_stream(record), record.name)


@pytest.mark.parametrize("name", JUDGED)
def test_the_frame_that_begins_a_call_has_one_of_the_texts(name: str) -> None:
    record, begun = get_protocol(name), 0
    request = segue.prepare(Context(messages=(UserMessage.of("-"),)), record.example, options=Options(stream=True))
    for frames in streams_of(record):
        reading, framer = StreamReading(request), frame_encoder(record.framing)
        for data in map(framer.feed, frames):
            if any(event.type == "toolcall_start" for event in reading.feed(data)):
                begun += 1
                assert any(text in data for text in JUDGED[name]), data
                break
    assert begun > 2


_CALL = {"index": 0, "id": "", "type": "function", "function": {"name": "f", "arguments": ""}}
CALL = b"data: " + json.dumps({**CHUNK, "choices": [{"index": 0, "delta": {"tool_calls": [_CALL]}}]}).encode() + b"\n\n"


@pytest.mark.parametrize("at", [1, 30, 60, 90, len(CALL) - 1])
def test_a_call_is_held_back_from_its_first_frame_on(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = [delta("a"), delta("b") + CALL[:at], CALL[at:]]
    passed, decoded = relayed(chunks)
    assert passed == delta("a") + delta("b")
    assert decoded == passed  # first; the frame itself is decoded next, before more is read
    monkeypatch.setitem(cast("dict[str, object]", JUDGED), "openai-chat", ())
    assert relayed(chunks)[0] == b"".join(chunks), "without its texts it would be passed on"


@pytest.mark.parametrize("name", ENDS)
def test_the_frame_that_ends_a_stream_has_one_of_the_texts(name: str) -> None:
    record, ended = get_protocol(name), 0
    request = segue.prepare(Context(messages=(UserMessage.of("-"),)), record.example, options=Options(stream=True))
    for frames in streams_of(record):
        reading, framer = StreamReading(request), frame_encoder(record.framing)
        for data in map(framer.feed, frames):
            events = reading.feed(data)
            if events and events[-1].type in ("done", "error"):
                ended += 1
                assert any(end in data for end in ENDS[name]), data
                break
    assert ended > 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_ends_the_request_to_the_provider(
    upstream: ScriptedServer, tmp_path: Path, stream: bool
) -> None:
    reply = Reply.sse(delta("a") * 3, split=300) if stream else Reply.json(whole("Never."))
    upstream.reply(reply.broken(Phase.BODY, "stall", 0))
    gateway = make_gateway(load_config(CONFIG.format(url=upstream.url, folder=tmp_path)))
    body = json.dumps({"model": "a", "messages": [{"role": "user", "content": "Hi."}], "stream": stream}).encode()
    with serving(gateway) as (port, _):
        with socket.create_connection(("127.0.0.1", port)) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            wait_until(lambda: upstream.stalled > 0)
        wait_until(lambda: upstream.open == 0)


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_connection_that_ended_calls_at_once_and_each_only_once() -> None:
    connection, called = Connection(), list[str]()
    connection.add(lambda: called.append("a"))

    def removed() -> None:
        called.append("b")

    connection.add(removed)
    connection.remove(removed)
    connection.end()
    connection.end()
    connection.add(lambda: called.append("c"))
    assert called == ["a", "c"]


def test_a_heartbeat_does_not_begin_a_reply_again_that_passes_as_it_is() -> None:
    sent: list[bytes] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message.get("body", b""))

    async def run() -> None:
        encoder = segue.stream_encoder(protocol="anthropic-messages", model="anthropic/claude-opus-5-5")
        writer = ClientStream(
            send,
            encoder,
            frame_encoder("sse"),
            start=StartEvent(id="msg_1", model="a"),
            head=list,
            give_up=lambda: None,
            hold=60,
            beat=60,
        )
        await writer.write_bytes(b"event: message_start\n\n", is_last=False)
        await writer._write_beat()  # pyright: ignore[reportPrivateUsage]
        writer.close()

    asyncio.run(run())
    assert b"".join(sent).count(b"message_start") == 1
    assert b"ping" in sent[-1]
