"""Memory is what the reply is, and is given back: long streams, many requests, replies that nobody reads."""

from __future__ import annotations

import gc
import json
import tracemalloc

from client.both_clients import HELLO, ONCE
from client.wires import TEXT, WIRES
from segue.client.http.clients import Client
from servers.script import Reply
from servers.scripted import ScriptedServer

CHAT = WIRES["openai-chat"]
WORD = "twenty-five letters long "


def frame(text: str) -> bytes:
    chunk = {"id": "c", "model": "a-model", "choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def test_a_long_stream_takes_a_few_times_its_text(server: ScriptedServer):
    count = 8_000
    server.reply(CHAT.stream(), Reply(headers={"content-type": CHAT.content_type}, chunks=[frame(WORD)] * count))
    with Client(retry=ONCE, timeout=30.0) as client:
        client.stream(HELLO, CHAT.model(server.url)).result()  # whatever is made once is made now
        gc.collect()
        tracemalloc.start()
        try:
            for event in client.stream(HELLO, CHAT.model(server.url)):
                last = event
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert last.type == "error"  # there is no stop reason; the text is kept
    assert last.message.text() == WORD * count
    text = len(WORD) * count
    assert peak < 12 * text, f"{peak:,} bytes for a text of {text:,}"


def test_many_requests_leak_no_memory():
    with ScriptedServer(CHAT.stream()) as server, Client(retry=ONCE, timeout=30.0) as client:

        def ask(times: int) -> None:
            for number in range(times):
                with client.stream(HELLO, CHAT.model(server.url)) as stream:
                    if number % 3:  # every third is broken off before it began
                        assert stream.result().text() == TEXT
                server.requests.clear()
            gc.collect()

        ask(20)
        tracemalloc.start()
        try:
            ask(20)
            before, _ = tracemalloc.get_traced_memory()
            ask(200)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert after - before < 200 * 500, f"{after - before:,} bytes more after 200 requests"
