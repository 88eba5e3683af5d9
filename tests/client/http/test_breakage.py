"""A server that resets, closes, stalls or sends invalid data in every phase: one final event, received data is kept."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product

import pytest

from client.both_clients import AT_ONCE, HELLO, stream_reply
from client.http.test_replies import both_clients, each_wire
from client.wires import TEXT, WIRES, Wire
from segue.client.http.clients import Client
from segue.conversation.messages import StopReason
from segue.errors import RequestFailed
from segue.failures.failure import FailureKind
from servers.script import Break, Phase, Reply
from servers.scripted import ScriptedServer

BREAKS = {f"{how} {phase.value}": Break(phase, how) for phase in Phase for how in ("reset", "close", "stall")}


def patience(breaks: Break, *, needs_end: bool = False) -> float:
    """Seconds without a byte until the client gives up: few only where it has to give up, because the server stalls.

    Even those few are far more than a busy machine needs to deliver what the server has sent.
    """
    waits = breaks.how == "stall" and (needs_end or breaks.phase != Phase.END)
    return 0.8 if waits else 60.0


def broken(wire: Wire, breaks: Break) -> Reply:
    return replace(wire.stream(), breaks=breaks)


@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS.keys())
@both_clients
def test_a_stream_breaks(server: ScriptedServer, breaks: Break, is_async: bool):
    wire = WIRES["anthropic-messages"]
    server.reply(broken(wire, breaks))
    received = stream_reply(
        wire.model(server.url), is_async=is_async, api_key="nobody", timeout=patience(breaks)
    ).check()
    if breaks.phase == Phase.END:  # complete except for the end of the HTTP body
        assert received.events[-1].type == "done"
        assert received.message.text() == TEXT
    else:
        assert received.events[-1].type == "error"
        assert received.message.stop_reason == StopReason.ERROR
        assert received.message.error_message
        assert [attempt.failure and attempt.failure.kind for attempt in received.attempts] == [FailureKind.NETWORK]
    if breaks.phase == Phase.BODY:
        assert received.message.text()
        assert TEXT.startswith(received.message.text())
    server.wait_until(lambda it: it.open == 0)


@each_wire
@pytest.mark.parametrize("how", ["reset", "close"])
def test_every_protocol_keeps_what_arrived_before_the_break(server: ScriptedServer, wire: Wire, how: str):
    for after in range(len(wire.frames)):
        server.reply(broken(wire, Break(Phase.BODY, how, after)))  # pyright: ignore[reportArgumentType]
        received = stream_reply(wire.model(server.url), api_key="nobody").check()
        assert TEXT.startswith(received.message.text())
        assert received.message.stop_reason in (StopReason.ERROR, StopReason.STOP)
    server.wait_until(lambda it: it.open == 0)


@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS.keys())
def test_a_break_before_the_first_event_is_retried(server: ScriptedServer, breaks: Break):
    wire = WIRES["openai-chat"]
    server.reply(replace(wire.stream(), breaks=replace(breaks, after=0)), wire.stream())
    received = stream_reply(wire.model(server.url), retry=AT_ONCE, timeout=patience(breaks)).check()
    assert received.message.text() == TEXT
    assert received.events[-1].type == "done"
    assert len(received.attempts) == (1 if breaks.phase == Phase.END else 2)


@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS.keys())
@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_a_whole_reply_breaks(server: ScriptedServer, breaks: Break, framing: str):
    wire = WIRES["openai-responses"]
    answer = replace(wire.answer(), framing=framing, breaks=breaks)
    server.reply(answer, wire.answer())
    with Client(timeout=patience(breaks, needs_end=True), retry=0) as client:
        with pytest.raises(RequestFailed) as raised:
            client.complete(HELLO, wire.model(server.url))
        assert raised.value.failure.kind == FailureKind.NETWORK
        assert raised.value.message.stop_reason == StopReason.ERROR
        assert client.complete(HELLO, wire.model(server.url)).text() == TEXT


@each_wire
@both_clients
@pytest.mark.parametrize("place", ["first", "in the middle"])
def test_an_error_event_ends_a_stream(server: ScriptedServer, wire: Wire, is_async: bool, place: str):
    before = () if place == "first" else wire.frames[: len(wire.frames) // 2]
    server.reply(Reply(headers={"content-type": wire.content_type}, chunks=(*before, wire.error_frame)))
    received = stream_reply(wire.model(server.url), is_async=is_async, api_key="nobody").check()
    assert received.events[-1].type == "error"
    assert "overloaded" in (received.message.error_message or "").lower()
    kind = received.attempts[0].failure and received.attempts[0].failure.kind
    assert kind in (FailureKind.OVERLOADED, FailureKind.SERVER)


@each_wire
def test_an_unreadable_frame_ends_a_stream(server: ScriptedServer, wire: Wire):
    nonsense = {"text/event-stream": b"data: {not json\n\n", "application/x-ndjson": b"{not json\n"}
    frame = nonsense.get(wire.content_type.partition(";")[0], b"\0\0\0\1nonsense")
    half = len(wire.frames) // 2
    server.reply(Reply(headers={"content-type": wire.content_type}, chunks=(*wire.frames[:half], frame)))
    received = stream_reply(wire.model(server.url), api_key="nobody").check()
    assert received.events[-1].type == "error"
    assert TEXT.startswith(received.message.text())


STATUSES = {
    400: FailureKind.INVALID_REQUEST,
    401: FailureKind.AUTH,
    403: FailureKind.AUTH,
    404: FailureKind.NOT_FOUND,
    413: FailureKind.PAYLOAD_TOO_LARGE,
    429: FailureKind.RATE_LIMIT,
    500: FailureKind.SERVER,
    502: FailureKind.SERVER,
    503: None,
}


BODIES = (b"", b"<html>oops</html>", b'{"error": {"message": "oops"}}')


@each_wire
def test_a_status_is_classified_with_any_body(server: ScriptedServer, wire: Wire):
    for status, body in product(STATUSES, BODIES):
        server.reply(Reply.json(body, status=status))
        received = stream_reply(wire.model(server.url), api_key="nobody").check()
        assert received.types == ["start", "error"], (status, body)
        failure = received.attempts[0].failure
        assert failure is not None, (status, body)
        assert failure.status == status
        assert failure.kind == STATUSES[status] or (status == 503 and failure.kind in ("server", "overloaded")), body


def test_retry_after_is_obeyed_over_a_network(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch):
    from segue.client.http.sending import Wire as Sending

    waits: list[float] = []
    monkeypatch.setattr(Sending, "wait", lambda self, seconds: waits.append(seconds))
    wire = WIRES["openai-chat"]
    limited = {"error": {"message": "Rate limit reached"}}
    server.reply(
        Reply.json(limited, status=429, headers={"retry-after": "7"}),
        Reply.json(limited, status=429, headers={"retry-after-ms": "1500"}),
        wire.stream(),
    )
    received = stream_reply(wire.model(server.url), retry=2).check()
    assert received.message.text() == TEXT
    assert [7.0 <= waits[0] <= 7.7, 1.5 <= waits[1] <= 1.65, len(waits)] == [True, True, 2]


def test_an_endless_error_page_is_cut(server: ScriptedServer):
    page = Reply(status=500, headers={"content-type": "text/html"}, chunks=(b"x" * 65536,) * 200)
    server.reply(page)
    received = stream_reply(WIRES["openai-chat"].model(server.url)).check()
    assert received.attempts[0].failure is not None
    server.wait_until(lambda it: it.open == 0 and it.aborted == 1)


def test_a_refused_connection_is_a_network_failure(server: ScriptedServer):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    received = stream_reply(WIRES["openai-chat"].model(f"http://127.0.0.1:{port}"), retry=AT_ONCE).check()
    assert [attempt.failure and attempt.failure.kind for attempt in received.attempts] == [FailureKind.NETWORK] * 3


ADDRESSES = ["http://127.0.0.1:99999", "ftp://127.0.0.1", "no address", "http://[::1"]


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_invalid_url_is_not_retried(url: str):
    received = stream_reply(WIRES["openai-chat"].model(url), retry=AT_ONCE).check()
    assert [attempt.failure and attempt.failure.kind for attempt in received.attempts] == [FailureKind.INVALID_REQUEST]


def test_a_failed_request_lists_its_attempts(server: ScriptedServer):
    wire = WIRES["anthropic-messages"]
    server.reply(*[Reply.json({"error": {"message": "Overloaded"}}, status=503)] * 3)
    noted: list[object] = []
    message = r"anthropic/a-model: overloaded \(HTTP 503\): Overloaded; 3 attempts"
    client = Client(api_key="nobody", retry=AT_ONCE, on_attempt=noted.append)
    with client, pytest.raises(RequestFailed, match=message) as raised:
        client.complete(HELLO, wire.model(server.url), on_attempt=noted.append)
    assert len(noted) == 6
    again = pickle.loads(pickle.dumps(raised.value))
    assert (again.failure, again.attempts, again.message) == (
        raised.value.failure,
        raised.value.attempts,
        raised.value.message,
    )
