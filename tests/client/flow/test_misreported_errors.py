"""Replies that are not what their headers declare: documents, streams, HTML pages, redirects, invalid data."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_fields

import segue
from client.both_clients import AT_ONCE, HELLO, stream_reply
from client.http.test_replies import CODECS, both_clients, each_wire
from client.wires import TEXT, WIRES, Wire
from segue.client.flow.misreported_errors import EMPTY_REPLY, is_empty_reply
from segue.client.http.clients import Client
from segue.conversation.content import NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import AssistantMessage, StopReason, ToolResultMessage, Usage
from segue.conversation.replayed import message_events
from segue.errors import RequestFailed
from segue.failures.failure import FailureKind
from segue.framing.writing import frame_encoder
from segue.protocols.registry import get_protocol
from segue.testing.stream_laws import encode_events
from servers.script import Phase, Reply
from servers.scripted import ScriptedServer

CHAT = WIRES["openai-chat"]
EVENTS = {"content-type": "text/event-stream"}
PAGE = b"<!doctype html><html><head><title>Welcome to the portal</title></head></html>"
SSE = [wire for wire in CODECS if wire.content_type.startswith("text/event-stream")]
LINES = [wire for wire in CODECS if wire.content_type == "application/x-ndjson"]
"""In these protocols every line is a frame, and lines without content are skipped."""
each_sse = pytest.mark.parametrize("wire", SSE, ids=lambda wire: wire.protocol)


@each_sse
@both_clients
@pytest.mark.parametrize("headers", [EVENTS, {}, {"content-type": "text/plain"}], ids=["events", "nothing", "text"])
def test_a_json_document_with_another_content_type_is_read(server: ScriptedServer, wire: Wire, is_async, headers):
    document = wire.answer().chunks
    for chunks in (document, (b"\n\n", *document), (b"\xef\xbb\xbf" + document[0], *document[1:])):
        server.reply(replace(wire.answer(), headers=headers, chunks=chunks))
        received = stream_reply(wire.model(server.url), is_async=is_async, api_key="nobody").check()
        assert received.types == ["start", "done"]
        assert received.message.text() == TEXT


@each_sse
@both_clients
def test_a_stream_is_read_even_if_none_was_requested(server: ScriptedServer, wire: Wire, is_async: bool):
    server.reply(wire.stream(split=7))
    with Client(api_key="nobody", retry=0) as client:
        assert client.complete(HELLO, wire.model(server.url)).text() == TEXT


WITH_STATUS_200 = {
    "a provider's own": {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}},
    "a gateway's": {"message": "Too many requests, please wait"},
    "MiniMax's": {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}},
}


@pytest.mark.parametrize("wire", [wire for wire in CODECS if wire not in LINES], ids=lambda wire: wire.protocol)
@pytest.mark.parametrize("body", WITH_STATUS_200.values(), ids=WITH_STATUS_200.keys())
@pytest.mark.parametrize("headers", [EVENTS, {"content-type": "application/json"}], ids=["events", "JSON"])
def test_an_error_with_a_good_status_leads_to_the_fallback_model(server: ScriptedServer, wire: Wire, body, headers):
    server.reply(replace(Reply.json(body), headers=headers), CHAT.stream())
    received = stream_reply(wire.model(server.url), api_key="nobody", fallback_models=[CHAT.model(server.url)]).check()
    assert [attempt.failure and attempt.failure.kind for attempt in received.attempts] == [FailureKind.RATE_LIMIT, None]
    assert received.message.text() == TEXT


@pytest.mark.parametrize("wire", [wire for wire in CODECS if wire not in LINES], ids=lambda wire: wire.protocol)
def test_an_unknown_error_with_a_good_status_keeps_its_text(server: ScriptedServer, wire: Wire):
    unreadable = dict.fromkeys(("candidates", "choices", "content", "message", "output"), 5)
    server.reply(Reply.json({"error": "gremlins", **unreadable}))
    received = stream_reply(wire.model(server.url), api_key="nobody").check()
    [attempt] = received.attempts
    assert attempt.failure is not None
    assert "gremlins" in (received.message.error_message or "")


def test_an_incomplete_document_is_a_network_failure(server: ScriptedServer):
    server.reply(replace(CHAT.answer(), headers=EVENTS).broken(Phase.END, "reset"), CHAT.stream())
    received = stream_reply(CHAT.model(server.url), retry=AT_ONCE).check()
    assert [attempt.failure and attempt.failure.kind for attempt in received.attempts] == [FailureKind.NETWORK, None]


@pytest.mark.parametrize("emits", [True, False], ids=["streamed", "whole"])
def test_a_web_page_is_reported_as_a_wrong_base_url(server: ScriptedServer, emits: bool):
    server.reply(Reply(headers={"content-type": "text/html; charset=utf-8"}, chunks=(PAGE,)))
    with Client(retry=AT_ONCE) as client, pytest.raises(RequestFailed, match="Welcome to the portal") as raised:
        client.begin(HELLO, CHAT.model(server.url), emits=emits).result()
    assert raised.value.failure.kind == FailureKind.NOT_FOUND
    assert "base_url" in str(raised.value)
    assert len(raised.value.attempts) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_and_not_followed(server: ScriptedServer, status: int):
    there = f"{server.url}/elsewhere"
    server.reply(Reply(status=status, headers={"location": there}, framing="length"))
    with Client(api_key="sk-never-sent-on", retry=AT_ONCE) as client, pytest.raises(RequestFailed) as raised:
        client.complete(HELLO, CHAT.model(server.url))
    assert raised.value.failure.kind == FailureKind.NOT_FOUND
    assert there in str(raised.value)
    assert [request.path for request in server.requests] == ["/chat/completions"]


EMPTY = {
    "no content": Reply(status=204, framing="length"),
    "an empty stream": Reply(headers=EVENTS),
    "an empty document": Reply.json(b""),
    "comments alone": Reply.sse(b": ping\n\n: ping\n\n"),
}


@each_wire
@pytest.mark.parametrize("reply", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_reply_is_retried(server: ScriptedServer, wire: Wire, reply: Reply):
    if wire.content_type.startswith("application/vnd"):
        reply = replace(reply, chunks=())
    server.reply(reply, wire.stream())
    received = stream_reply(wire.model(server.url), api_key="nobody", retry=AT_ONCE).check()
    assert len(received.attempts) == 2
    assert received.message.text() == TEXT


@each_wire
def test_bytes_that_are_not_frames_are_a_server_failure(server: ScriptedServer, wire: Wire):
    server.reply(Reply(headers={"content-type": wire.content_type}, chunks=(b"\x00\x00\x00\x20nonsense" * 9, b"\n\n")))
    received = stream_reply(wire.model(server.url), api_key="nobody").check()
    assert received.attempts[0].failure is not None
    assert received.attempts[0].failure.kind in (FailureKind.SERVER, FailureKind.NETWORK)


PACKED = {
    "deflate": (zlib.compress, None),
    "gzip cut off": (lambda body: gzip.compress(body)[:60], FailureKind.NETWORK),
    "gzip": (lambda body: b"not packed at all", FailureKind.SERVER),
}


@pytest.mark.parametrize(("encoding", "row"), PACKED.items(), ids=PACKED.keys())
def test_a_compressed_reply_is_read_and_a_corrupt_one_fails(server: ScriptedServer, encoding: str, row):
    pack, kind = row
    headers = {**EVENTS, "content-encoding": encoding.partition(" ")[0]}
    server.reply(Reply(headers=headers, chunks=(pack(CHAT.body),)))
    received = stream_reply(CHAT.model(server.url)).check()
    assert (received.attempts[0].failure and received.attempts[0].failure.kind) == kind


def test_a_reply_in_the_first_version_of_the_protocol():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while b"hello" not in connection.recv(65536):
                    pass
                connection.sendall(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + CHAT.body)

        thread = threading.Thread(target=serve)
        thread.start()
        received = stream_reply(CHAT.model(f"http://127.0.0.1:{listener.getsockname()[1]}")).check()
        thread.join()
    assert received.message.text() == TEXT


def test_one_event_of_many_megabytes(server: ScriptedServer):
    long = "ü" * 5_000_000
    frame = {"id": "c", "choices": [{"index": 0, "delta": {"content": long}}]}
    event = b"data: " + json.dumps(frame, ensure_ascii=False).encode() + b"\n\n"
    server.reply(Reply.sse(event + CHAT.body, split=65_521))  # cuts characters in half
    assert stream_reply(CHAT.model(server.url), timeout=60.0).check().message.text() == long + TEXT


DEEP = b'{"a":' * 300 + b"1" + b"}" * 300
UNSTORABLE = {"no number": b"NaN", "no end": b"-Infinity", "too deep": DEEP}


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE.keys())
def test_values_that_json_cannot_store_become_text(server: ScriptedServer, value: bytes):
    choice = b'{"index": 0, "delta": {"content": "hm "}, "logprobs": {"content": [{"logprob": %s}]}}' % value
    first = b'data: {"id": "c", "choices": [%s], "more": %s}\n\n' % (choice, value)
    failing = b'data: {"error": {"message": "oops", "code": 500, "more": %s}}\n\n' % value
    server.reply(Reply.sse(first + CHAT.body), Reply.sse(first + failing))
    whole = stream_reply(CHAT.model(server.url)).check()
    assert whole.message.text() == f"hm {TEXT}"
    assert [note.type for note in whole.message.diagnostics] == ["unstorable"]
    broken = stream_reply(CHAT.model(server.url)).check()
    assert (broken.message.text(), broken.message.error_message) == ("hm ", "oops")


def without_content(wire: Wire, *, streamed: bool) -> Reply:
    """Give a reply that is complete and has nothing in it."""
    record = get_protocol(wire.protocol)
    nothing = AssistantMessage(content=(), protocol=wire.protocol, provider=wire.provider, model="a-model")
    if not streamed:
        return Reply.json(segue.wire.encode_response(nothing, protocol=wire.protocol))
    encoder = frame_encoder(record.framing)
    frames = encode_events(record, message_events(nothing))
    body = b"".join(map(encoder.feed, frames)) + encoder.finish()
    return Reply(headers={"content-type": wire.content_type}, chunks=(body,))


@each_wire
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_complete_reply_without_content_leads_to_the_fallback_model(
    server: ScriptedServer, wire: Wire, streamed: bool
):
    server.reply(without_content(wire, streamed=streamed), CHAT.stream() if streamed else CHAT.answer())
    with Client(api_key="nobody", retry=0) as client:
        models = (wire.model(server.url), CHAT.model(server.url))
        stream = client.begin(HELLO, models[0], emits=streamed, fallback_models=models[1:])
        types = [event.type for event in stream]
        assert stream.result().text() == TEXT
    assert [attempt.failure and attempt.failure.evidence for attempt in stream.attempts] == [EMPTY_REPLY, None]
    assert types.count("start") == streamed


def test_a_reply_that_stays_empty_is_given_with_a_diagnostic(server: ScriptedServer):
    for streamed in (True, False):
        server.reply(*[without_content(CHAT, streamed=streamed)] * 3)
        received = stream_reply(CHAT.model(server.url), retry=AT_ONCE).check()
        assert len(received.attempts) == 3
        assert received.message.stop_reason == StopReason.STOP
        assert "empty_reply" in [note.type for note in received.message.diagnostics]


def test_a_model_may_have_nothing_to_add_to_a_tool_result():
    silent = AssistantMessage(
        content=(), protocol="p", provider="v", model="m", usage=Usage(input=9, output=3), stop_reason=StopReason.STOP
    )
    called = HELLO.add(
        replace_fields(silent, content=(ToolCall(id="c1", name="f", arguments={}),)),
        ToolResultMessage(tool_call_id="c1", tool_name="f", content=(TextContent(text="done"),)),
    )
    assert not is_empty_reply(silent, called)
    assert is_empty_reply(replace_fields(silent, usage=None), called)
    assert is_empty_reply(silent, HELLO)
    assert not is_empty_reply(replace_fields(silent, stop_reason=StopReason.LENGTH), HELLO)


CONTENTS = {
    "nothing": ((), True),
    "an empty text": ((TextContent(text=""),), True),
    "empty thinking and an empty text": ((ThinkingContent(thinking=""), TextContent(text="")), True),
    "a text": ((TextContent(text=""), TextContent(text="a")), False),
    "thinking": ((ThinkingContent(thinking="a"),), False),
    "a signature": ((ThinkingContent(thinking="", thinking_signature="s"),), False),
    "a signature of a text": ((TextContent(text="", text_signature="s"),), False),
    "a call": ((ToolCall(id="c1", name="f", arguments={}),), False),
    "a native block": ((NativeContent(protocol="p", block={"type": "x"}),), False),
}


@pytest.mark.parametrize(("content", "is_empty"), CONTENTS.values(), ids=CONTENTS.keys())
def test_a_reply_is_empty_without_any_content(content, is_empty):
    for reason in (StopReason.STOP, StopReason.TOOL_USE):
        assert is_empty_reply(AssistantMessage(content=content, stop_reason=reason), HELLO) is is_empty
    assert not is_empty_reply(AssistantMessage(content=content, stop_reason=StopReason.LENGTH), HELLO)


def test_an_error_after_the_start_of_a_stream_leads_to_the_fallback_model(server: ScriptedServer):
    claude = WIRES["anthropic-messages"]
    began = Reply(headers={"content-type": claude.content_type}, chunks=(claude.frames[0], claude.error_frame))
    server.reply(began, CHAT.stream())
    models = [CHAT.model(server.url)]
    received = stream_reply(claude.model(server.url), api_key="nobody", retry=0, fallback_models=models).check()
    assert [attempt.failure and attempt.failure.kind for attempt in received.attempts] == [FailureKind.OVERLOADED, None]
    assert received.message.text() == TEXT
