"""A running gateway: fallback, holding, heartbeats, endings, errors, keys, hosts, lists, counts, reload."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import pytest

from gateway.running import KEYS, UPSTREAMS, Running, config_text, make_gateway, running
from segue.client.http.async_streams import AsyncStream
from segue.gateway import exchange
from segue.gateway.app import create_app
from segue.gateway.config import load_config, read_config
from segue.gateway.service import Gateway
from segue.gateway.store.sqlite import SqliteDatabase
from segue.testing.emulator import EmulatedCall, Step, emulate, serve_in_thread

ASK: dict[str, Any] = {"max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
MORE = """
[limits]
hold_seconds = 60
heartbeat_seconds = 60
retries = 0
body_megabytes = 0.05
"""


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Give a gateway that soon sends the head of a stream and fills silence."""
    more = "[limits]\nhold_seconds = 0.3\nheartbeat_seconds = 0.2\nretries = 0"
    with running(store=f"sqlite:{tmp_path_factory.mktemp('h')}/g.db", more=more) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Give a gateway that holds the head of a stream for long, whatever else the machine does."""
    with running(store=f"sqlite:{tmp_path_factory.mktemp('g')}/g.db", more=MORE) as gateway:
        yield gateway


@pytest.fixture
def gateway(shared: Running) -> Iterator[Running]:
    shared.upstream.emulator.requests.clear()
    shared.gateway.runtime.breaker.__init__(5, 30)
    yield shared
    shared.upstream.emulator.script.__init__()


def _post(url: str, path: str, body: object, **headers: str) -> httpx2.Response:
    return httpx2.post(url + path, json=body, headers=headers, timeout=120)


def _events(text: str) -> list[str]:
    return [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]


def _stream(gateway: Running, model: str, **more: object) -> httpx2.Response:
    return _post(gateway.url, "/v1/messages", {**ASK, "model": model, "stream": True, **more})


# -- fallback ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", [Step(status=529), Step(status=500), Step(status=429), Step(cut_after=1)])
def test_the_next_model_answers_before_the_first_content(gateway: Running, fault: Step, stream: bool) -> None:
    if fault.cut_after is not None and not stream:
        pytest.skip("a whole reply cannot be cut")
    gateway.upstream.emulator.script.add(fault, Step(text="from the second"))
    question = [{"role": "user", "content": f"{fault} {stream}"}]
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "auto", "messages": question, "stream": stream})
    assert reply.status_code == 200
    assert "second" in reply.text
    assert reply.headers["x-segue-model"] == "openai/gpt-5.4"
    assert reply.headers["x-segue-attempts"] == "2"
    assert reply.text.count("message_start") == (2 if stream else 0)  # the name and the type of one event


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["m-anthropic", "m-chat", "m-responses", "m-gemini"])
def test_a_text_that_was_cut_inside_an_emoji_reaches_the_client(gateway: Running, model: str, stream: bool) -> None:
    gateway.upstream.emulator.script.add(Step(text="cut \ud83d here"))
    question = [{"role": "user", "content": f"cut \ud83d too {model} {stream}"}]
    body = json.dumps({**ASK, "model": model, "messages": question, "stream": stream})
    reply = httpx2.post(f"{gateway.url}/v1/messages", content=body, timeout=120)
    assert reply.status_code == 200, reply.text
    assert "here" in reply.text
    assert not stream or _events(reply.text)[-1] == "message_stop"


def test_there_is_no_second_answer_after_the_first_content(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(Step(text="one two three four five", cut_after=5), Step(text="never"))
    reply = _stream(gateway, "auto")
    assert reply.status_code == 200
    assert "never" not in reply.text
    assert _events(reply.text)[-1] == "error"
    assert len(gateway.upstream.emulator.requests) == 1


def test_a_conversation_stays_with_the_model_that_answered(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(Step(status=529))
    body = {**ASK, "model": "auto", "messages": [{"role": "user", "content": "stay"}]}
    first = _post(gateway.url, "/v1/messages", body, **{"x-session-id": "s1"})
    second = _post(gateway.url, "/v1/messages", body, **{"x-session-id": "s1"})
    other = _post(gateway.url, "/v1/messages", body, **{"x-session-id": "s2"})
    models = [reply.headers["x-segue-model"] for reply in (first, second, other)]
    assert models == ["openai/gpt-5.4", "openai/gpt-5.4", "anthropic/claude-opus-4-8"]


def test_a_model_that_fails_is_left_out(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(*(Step(status=500, model="claude-opus-4-8") for _ in range(6)))
    for number in range(6):
        body = {**ASK, "model": "auto", "messages": [{"role": "user", "content": f"q{number}"}]}
        assert _post(gateway.url, "/v1/messages", body).status_code == 200
    asked = [request.model for request in gateway.upstream.emulator.requests]
    assert asked.count("claude-opus-4-8") == 5


def test_a_conversation_can_be_sent_to_another_model(gateway: Running) -> None:
    body = {**ASK, "model": "m-anthropic"}
    headers = {"x-session-id": "to-switch"}
    assert _post(gateway.url, "/v1/messages", body, **headers).headers["x-segue-model"].startswith("anthropic/")
    listed = httpx2.get(f"{gateway.url}/segue/conversations").json()["conversations"]
    name = listed[0]["id"]
    assert listed[0]["model"] == "anthropic/claude-opus-4-8"
    assert httpx2.put(f"{gateway.url}/segue/conversations/{name}", json={"model": "openai/gpt-5.4"}).status_code == 200
    assert _post(gateway.url, "/v1/messages", body, **headers).headers["x-segue-model"] == "openai/gpt-5.4"
    assert httpx2.put(f"{gateway.url}/segue/conversations/{name}", json={"model": "no/such"}).status_code == 404
    assert httpx2.put(f"{gateway.url}/segue/conversations/{name}", json={}).status_code == 400
    assert httpx2.put(f"{gateway.url}/segue/conversations/{name}", json={"model": None}).status_code == 200
    assert _post(gateway.url, "/v1/messages", body, **headers).headers["x-segue-model"].startswith("anthropic/")


def test_what_is_new_in_replies_is_counted(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "find_drift", lambda message: (f"{message.protocol}: field brand_new",))
    for number in range(2):
        body = {**ASK, "model": "m-anthropic", "messages": [{"role": "user", "content": f"new {number}"}]}
        reply = _post(gateway.url, "/v1/messages", body)
    listed = httpx2.get(f"{gateway.url}/segue/conversations").json()
    assert listed["drift"] == {"anthropic-messages: field brand_new": 2}
    row = httpx2.get(f"{gateway.url}/segue/requests/{reply.headers['x-segue-request-id']}").json()
    assert row["drift"] == ["anthropic-messages: field brand_new"]


def test_the_page_loads_its_parts_and_nothing_from_elsewhere(gateway: Running) -> None:
    page = httpx2.get(f"{gateway.url}/segue")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    parts = [part for part in re.findall(r'(?:href|src)="([^"]+)"', page.text) if part != "data:,"]
    assert parts
    assert all(part.startswith("/segue/page/") for part in parts)
    assert {httpx2.get(gateway.url + part).status_code for part in parts} == {200}
    assert httpx2.get(f"{gateway.url}/segue/page/..%2fpages.py").status_code == 404
    assert httpx2.get(f"{gateway.url}/segue", headers={"host": "example.org"}).status_code == 404


# -- streams -----------------------------------------------------------------------------------------------------------

PATHS = {
    "anthropic": ("/v1/messages", {**ASK, "model": "m-responses", "stream": True}, "event: ping"),
    "chat": (
        "/v1/chat/completions",
        {"model": "m-responses", "stream": True, "messages": ASK["messages"]},
        '"choices":[]',
    ),
    "responses": ("/v1/responses", {"model": "m-anthropic", "stream": True, "input": "hi"}, "keepalive"),
    "google": (
        "/v1beta/models/m-responses:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        '{"candidates":[]}',
    ),
    "ollama": ("/api/chat", {"model": "m-responses", "messages": ASK["messages"]}, '"content":""'),
}


@pytest.mark.parametrize("wire", PATHS)
def test_silence_is_filled_with_heartbeats_of_the_protocol(hasty: Running, wire: str) -> None:
    path, body, beat = PATHS[wire]
    hasty.upstream.emulator.script.add(Step(text="late answer", first_byte=1.0))
    reply = _post(hasty.url, path, body)
    assert reply.status_code == 200
    assert reply.text.count(beat) >= 2, reply.text
    assert "late" in reply.text


@pytest.mark.parametrize("wire", PATHS)
def test_a_failure_before_the_first_content_is_a_status(gateway: Running, wire: str) -> None:
    path, body, _ = PATHS[wire]
    gateway.upstream.emulator.script.add(Step(status=429, retry_after=7))
    reply = _post(gateway.url, path, body)
    assert reply.status_code == 429
    assert reply.headers["retry-after"] == "7"
    assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("wire", PATHS)
def test_a_broken_stream_has_one_end(gateway: Running, wire: str) -> None:
    path, body, _ = PATHS[wire]
    gateway.upstream.emulator.script.add(Step(text="a b c d e f g h", thinking=None, cut_after=9))
    reply = _post(gateway.url, path, body)
    assert reply.status_code == 200
    assert reply.text.count('"error"') >= 1
    assert reply.text.count("message_stop") == 0
    assert reply.text.count("response.completed") == 0


CUT = Step(text="Once upon a", too_long=True)
CUT_CALL = Step(text="So", calls=(EmulatedCall(name="f", arguments={}),), too_long=True)
CODEX = "codex_exec/0.166.0 (Debian 12.0.0; aarch64)"


@pytest.mark.parametrize(
    ("agent", "step", "event"),
    [
        pytest.param("openai/3.49.0", CUT, "response.incomplete", id="the event of the protocol"),
        pytest.param(CODEX, CUT, "response.completed", id="the event on which codex ends its turn"),
        pytest.param(CODEX, CUT_CALL, "response.incomplete", id="a call that was cut is never run"),
    ],
)
def test_a_reply_cut_at_its_length_has_its_reason_and_an_end(
    gateway: Running, agent: str, step: Step, event: str
) -> None:
    gateway.upstream.emulator.script.__init__((step,))
    body = {"model": "m-anthropic", "input": "hi", "stream": True, "tools": [{"type": "function", "name": "f"}]}
    reply = _post(gateway.url, "/v1/responses", body, **{"user-agent": agent})
    assert _events(reply.text)[-1] == event
    last = json.loads(reply.text.rpartition("data: ")[2])
    assert (last["type"], last["response"]["status"]) == (event, "incomplete")
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_failure_after_the_head_is_an_event(hasty: Running) -> None:
    hasty.upstream.emulator.script.add(Step(status=500, first_byte=0.8))
    reply = _stream(hasty, "m-responses")
    assert reply.status_code == 200
    assert _events(reply.text)[-1] == "error"
    assert "ping" in _events(reply.text)


def test_a_client_that_leaves_ends_the_request_to_the_provider(gateway: Running) -> None:
    # The whole reply would take longer than this test waits.
    gateway.upstream.emulator.script.add(Step(text="word " * 1000, pause=0.3))
    parts = urlsplit(gateway.url)
    body = json.dumps({**ASK, "model": "m-responses", "stream": True}).encode()
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        head = f"POST /v1/messages HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    end = time.monotonic() + 120
    outcomes: list[str] = []
    while "aborted" not in outcomes and time.monotonic() < end:
        time.sleep(0.05)
        rows = httpx2.get(f"{gateway.url}/segue/requests?limit=50", timeout=60).json()["requests"]
        outcomes = [row["outcome"] for row in rows]
    assert outcomes.count("aborted") == 1


# -- errors and limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "where"),
    [
        ("/v1/messages", {**ASK, "model": "no-provider/x"}, 404, ("error", "message")),
        ("/v1/chat/completions", {"model": "nobody/x", "messages": ASK["messages"]}, 404, ("error", "message")),
        ("/v1/messages", {"model": "m-anthropic", "messages": "wrong", "max_tokens": 1}, 400, ("error", "message")),
        ("/nothing/here", {}, 404, ("error", "message")),
        (
            "/v1/messages",
            {**ASK, "model": "m-anthropic", "messages": [{"role": "user", "content": "x" * 60_000}]},
            413,
            ("error",),
        ),
    ],
)
def test_errors_have_the_form_of_the_protocol(
    gateway: Running, path: str, body: object, status: int, where: tuple[str, ...]
) -> None:
    reply = _post(gateway.url, path, body)
    assert reply.status_code == status
    value = reply.json()
    for key in where:
        value = value[key]
    assert value


WRONG: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "an endpoint that no protocol has": ("POST", "/v1/nothing", {}, 404, "correct the base URL"),
    "embeddings": ("POST", "/v1/embeddings", {"input": "x"}, 404, "embeddings are not served here"),
    "a wrong method": ("GET", "/v1/chat/completions", {}, 405, "send a POST request"),
    "a reply that nobody stored": (
        "POST",
        "/v1/responses",
        {"model": "m-anthropic", "input": "x", "previous_response_id": "resp_x"},
        400,
        "'resp_x' not found",
    ),
}


@pytest.mark.parametrize(("method", "path", "body", "status", "text"), WRONG.values(), ids=WRONG.keys())
def test_only_an_unknown_model_is_a_model_that_is_not_found(
    gateway: Running, method: str, path: str, body: dict[str, Any], status: int, text: str
) -> None:
    reply = httpx2.request(method, gateway.url + path, json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (status, None)
    assert text in error["message"]
    anthropic_reply = httpx2.request(method, f"{gateway.url}/v1/nothing", headers={"anthropic-version": "2023-06-01"})
    assert (anthropic_reply.status_code, anthropic_reply.json()["type"]) == (404, "error")


def test_a_body_that_is_no_json_is_refused(gateway: Running) -> None:
    assert httpx2.post(f"{gateway.url}/v1/messages", content=b"{nonsense").status_code == 400
    assert httpx2.post(f"{gateway.url}/v1/messages", content=b"[" * 40_000).status_code == 400


def test_a_wrong_method_is_refused(gateway: Running) -> None:
    reply = httpx2.get(f"{gateway.url}/v1/messages")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_a_websocket_of_a_protocol_without_one_is_answered_with_426(gateway: Running) -> None:
    parts = urlsplit(gateway.url)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        lines = [
            "GET /v1/chat/completions HTTP/1.1",
            f"host: {parts.netloc}",
            "connection: upgrade",
            "upgrade: websocket",
            "sec-websocket-version: 13",
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        answer = connection.recv(1000)
        assert answer.startswith(b"HTTP/1.1 426")
        assert b"model_not_found" not in answer


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "x/#@127.0.0.1", ""])
def test_another_host_is_refused(gateway: Running, host: str) -> None:
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "m-anthropic"}, host=host)
    assert reply.status_code in (400, 403)
    assert httpx2.get(f"{gateway.url}/segue/requests", headers={"host": host}).status_code in (400, 403)


def test_another_origin_is_refused(gateway: Running) -> None:
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "m-anthropic"}, origin="https://evil.example")
    assert reply.status_code == 403


# -- lists, counts, rows -----------------------------------------------------------------------------------------------


def test_lists_have_the_names_of_the_configuration(gateway: Running) -> None:
    names = [*UPSTREAMS, "auto"]
    openai = httpx2.get(f"{gateway.url}/v1/models").json()
    assert [model["id"] for model in openai["data"]] == names
    claude = httpx2.get(f"{gateway.url}/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
    assert [model["id"] for model in claude["data"]] == names
    assert "first_id" in claude
    google = httpx2.get(f"{gateway.url}/v1beta/models").json()
    assert [model["name"] for model in google["models"]] == [f"models/{name}" for name in names]
    ollama = httpx2.get(f"{gateway.url}/api/tags").json()
    assert [model["name"] for model in ollama["models"]] == names
    assert httpx2.get(f"{gateway.url}/api/version").json()["version"]
    assert httpx2.post(f"{gateway.url}/api/show", json={"model": "auto"}).status_code == 200


def test_tokens_are_counted(gateway: Running) -> None:
    body = {"model": "m-responses", "messages": ASK["messages"]}
    assert _post(gateway.url, "/v1/messages/count_tokens", body).json()["input_tokens"] > 0
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    assert _post(gateway.url, "/v1beta/models/m-anthropic:countTokens", contents).json()["totalTokens"] > 0


def test_rows_have_no_content_and_no_keys(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(Step(thinking="planted-thought", text="planted-answer"))
    body = {**ASK, "model": "m-responses", "messages": [{"role": "user", "content": "planted-question"}]}
    reply = _post(gateway.url, "/v1/messages", body, **{"x-api-key": "planted-client-key"})
    name = reply.headers["x-segue-request-id"]
    for _ in range(3000):
        found = httpx2.get(f"{gateway.url}/segue/requests/{name}")
        if found.status_code == 200:
            break
        time.sleep(0.02)
    row = found.json()
    assert (row["status"], row["outcome"], row["model"], row["asked"]) == (200, "done", "openai/gpt-5.4", "m-responses")
    assert row["usage"]["input"] > 0
    assert "planted" not in found.text
    assert httpx2.get(f"{gateway.url}/segue/requests/req_nothing").status_code == 404
    sent = json.dumps([request.headers for request in gateway.upstream.emulator.requests])
    assert "planted-client-key" not in sent


@pytest.mark.parametrize("stream", [True, False])
def test_rows_of_failures_have_no_text_of_the_provider(gateway: Running, stream: bool) -> None:
    message = "Invalid value: 'planted-question' is not one of 'a'"
    gateway.upstream.emulator.script.add(Step(status=400, message=message))
    body = {**ASK, "model": "m-responses", "stream": stream}
    reply = _post(gateway.url, "/v1/messages", body)
    assert "planted-question" in reply.text, "the client itself gets the text"
    row = _row(gateway, reply)
    assert "planted" not in json.dumps(row)
    assert row["error"] == "An option or a field was refused."
    assert (row["attempts"][0]["kind"], row["attempts"][0]["status"]) == ("invalid_request", 400)


def _row(gateway: Running, reply: httpx2.Response) -> dict[str, Any]:
    """Give the row of a request, which is there when the reply has ended."""
    found = httpx2.get(f"{gateway.url}/segue/requests/{reply.headers['x-segue-request-id']}")
    assert found.status_code == 200, found.text
    return found.json()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["m-responses", "claude-opus-4-8"])
@pytest.mark.parametrize("step", [Step(text="a b c"), Step(status=500), Step(text="a b c", fail_after=2)], ids=str)
def test_a_row_is_there_when_the_reply_has_ended(
    gateway: Running, step: Step, model: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway.gateway.store, "put_later", lambda *_: None)  # a store that takes its time
    gateway.upstream.emulator.script.add(step)
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": model, "stream": stream})
    assert _row(gateway, reply)["status"] == reply.status_code


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [200, 429])
def test_the_id_that_a_provider_gave_a_request_is_kept(tmp_path: Path, status: int, stream: bool) -> None:
    async def upstream(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await receive()
        choice = {"index": 0, "delta": {"content": "hi"}, "message": {"content": "hi"}, "finish_reason": "stop"}
        data = json.dumps({"id": "c", "choices": [choice]} if status == 200 else {"error": {"message": "slow"}})
        is_events = stream and status == 200
        kind = b"text/event-stream" if is_events else b"application/json"
        headers = [(b"content-type", kind), (b"x-request-id", b"req_of_the_provider"), (b"retry-after", b"60")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        body = f"data: {data}\n\ndata: [DONE]\n\n" if is_events else data
        await send({"type": "http.response.body", "body": body.encode()})

    with serve_in_thread(upstream) as url:
        gateway = make_gateway(load_config(config_text(url, store=f"sqlite:{tmp_path}/g.db")))
        with serve_in_thread(create_app(gateway=gateway)) as own:
            reply = _post(own, "/v1/messages", {**ASK, "model": "m-chat", "stream": stream})
            assert reply.status_code == status, reply.text
            if not (stream and status == 200):  # the head of a stream is sent before the attempt has ended
                assert reply.headers["x-segue-provider-request-id"] == "req_of_the_provider"
            row = httpx2.get(f"{own}/segue/requests/{reply.headers['x-segue-request-id']}").json()
            assert row["attempts"][0]["requestId"] == "req_of_the_provider"


def test_keys_of_clients_are_needed_where_they_are_configured(tmp_path: Path) -> None:
    key = "sgw-" + "k" * 40
    with emulate() as upstream:
        text = config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more='[listen]\nkeys = ["env:GATEWAY_KEY"]')
        from segue.gateway.service import Gateway

        made = Gateway(load_config(text), environment={**KEYS, "GATEWAY_KEY": key})
        with serve_in_thread(create_app(gateway=made)) as url:
            good = [{"x-api-key": key}, {"authorization": f"Bearer {key}"}, {"x-goog-api-key": key}]
            assert [_post(url, "/v1/messages", {**ASK, "model": "m-chat"}, **each).status_code for each in good] == [
                200
            ] * 3
            hostile = [
                "",
                "x",
                key[:-1],
                key + "x",
                "Bearer",
                "' or 1=1 --",
                "\x7f",
                "a" * 4000,
                "Basic " + key,
                "bearer",
            ]
            for value in hostile:
                reply = _post(url, "/v1/messages", {**ASK, "model": "m-chat"}, authorization=value)
                assert reply.status_code in (400, 401), value
                assert httpx2.get(f"{url}/segue/requests", headers={"authorization": value}).status_code in (400, 401)
            assert len(upstream.emulator.requests) == 3
            assert key not in json.dumps([request.headers for request in upstream.emulator.requests])


def test_a_key_of_the_provider_is_in_no_error(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(Step(status=401, message="Incorrect API key provided: sk-upstream-key"))
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "m-responses"})
    assert reply.status_code == 502
    assert "sk-upstream-key" not in reply.text


_AGENTS = {
    "claude-cli/2.1.325 (external, cli)": 502,
    "codex_cli_rs/0.166.0": 400,
    "GeminiCLI-tui/0.61.0/m (linux; arm64; terminal)": 400,
    "pi (linux 6.18; arm64)": 400,
    "an-api (linux 6.18; arm64)": 502,
}


@pytest.mark.parametrize(("refusal", "stream"), [(401, True), (403, False)])
@pytest.mark.parametrize(("agent", "status"), _AGENTS.items())
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", ASK),
        ("/v1/chat/completions", {"messages": ASK["messages"]}),
        ("/v1/responses", {"input": "hi"}),
        ("/v1beta/models/m-responses:generateContent", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    ],
)
def test_a_refused_key_of_the_gateway_is_not_the_clients(
    gateway: Running, path: str, body: dict[str, Any], agent: str, status: int, refusal: int, stream: bool
) -> None:
    gateway.upstream.emulator.script.add(Step(status=refusal, message="Your project has no access."))
    if "v1beta" in path:
        path, given = path.replace("generate", "streamGenerate") if stream else path, body
    else:
        given = {**body, "model": "m-responses", "stream": stream}
    reply = _post(gateway.url, path, given, **{"user-agent": agent})
    assert (reply.status_code, reply.headers["x-should-retry"]) == (status, "false")
    message = reply.json()["error"]["message"]
    assert "openai did not accept this gateway" in message
    assert "set OPENAI_API_KEY or providers.openai.key" in message
    assert "no access" in message
    assert len(gateway.upstream.emulator.requests) == 1


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("status", "seconds"), [(429, 60), (503, 60), (429, 6)])
def test_no_request_is_sent_before_the_provider_allows_it(
    gateway: Running, status: int, seconds: int, stream: bool
) -> None:
    emulator = gateway.upstream.emulator
    emulator.script.add(Step(status=status, retry_after=seconds), Step(text="too early"))
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "m-responses", "stream": stream})
    assert len(emulator.requests) == 1
    assert reply.status_code in (429, 503, 529)
    assert reply.headers["retry-after"] == str(seconds)


def test_an_sdk_asks_once_where_the_key_of_the_gateway_is_refused(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(*[Step(status=401)] * 3)
    with (
        anthropic.Anthropic(base_url=gateway.url, api_key="any", max_retries=2) as client,
        pytest.raises(anthropic.APIStatusError, match="did not accept this gateway"),
    ):
        client.messages.create(model="m-responses", **ASK)
    assert len(gateway.upstream.emulator.requests) == 1


# -- the configuration -------------------------------------------------------------------------------------------------


def test_a_changed_file_is_read_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    with emulate() as upstream:
        good = config_text(upstream.url, store="none")
        path.write_text(good)
        made = make_gateway(read_config(path), path)
        path.write_text(good + '\n[models."new-name"]\ntry = ["openai/gpt-5.4"]')
        assert made.reload() is None
        assert "new-name" in made.router.listed()
        path.write_text(good + '\n[models."new-name"]\ntyr = ["openai/gpt-5.4"]')
        assert "did you mean try" in (made.reload() or "")
        assert "new-name" in made.router.listed()
        asyncio.run(made.runtime.client.close())


def test_a_running_gateway_reads_a_changed_file(tmp_path: Path) -> None:
    path = tmp_path / "gateway.toml"
    with emulate() as upstream:
        good = config_text(upstream.url, store="none")
        path.write_text(good)
        with serve_in_thread(create_app(gateway=make_gateway(read_config(path), path))) as url:
            assert "new-name" not in httpx2.get(f"{url}/v1/models").text
            path.write_text(good + '\n[models."new-name"]\ntry = ["openai/gpt-5.4"]')
            for _ in range(3000):
                if "new-name" in httpx2.get(f"{url}/v1/models").text:
                    return
                time.sleep(0.05)
            raise AssertionError("the file was not read")


# -- what clients and providers have in common -------------------------------------------------------------------------


def test_betas_are_passed_on_to_the_same_protocol_only(gateway: Running) -> None:
    for model in ("m-anthropic", "m-responses"):
        _post(gateway.url, "/v1/messages", {**ASK, "model": model}, **{"anthropic-beta": "some-beta"})
    claude, gpt = gateway.upstream.emulator.requests
    assert claude.headers["anthropic-beta"] == "some-beta"
    assert "anthropic-beta" not in gpt.headers


def test_the_billing_text_goes_to_anthropic_only(gateway: Running) -> None:
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=1"},
        {"type": "text", "text": "Be kind."},
    ]
    for model in ("m-anthropic", "m-responses"):
        _post(gateway.url, "/v1/messages", {**ASK, "model": model, "system": system})
    claude, gpt = (json.dumps(request.body) for request in gateway.upstream.emulator.requests)
    assert "billing-header" in claude
    assert "billing-header" not in gpt
    assert "Be kind." in gpt


def test_an_sdk_retries_no_more_than_without_a_gateway(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(*(Step(status=500) for _ in range(9)))
    with (
        anthropic.Anthropic(base_url=gateway.url, api_key="k", max_retries=2) as sdk,
        pytest.raises(anthropic.APIError),
    ):
        sdk.messages.create(model="m-anthropic", **ASK)
    assert len(gateway.upstream.emulator.requests) == 3


def test_parallel_calls_keep_their_order(gateway: Running) -> None:
    calls = tuple(EmulatedCall(name=f"tool{n}", arguments={"n": n}) for n in range(4))
    gateway.upstream.emulator.script.add(Step(text="now", calls=calls))
    tools = [{"name": f"tool{n}", "input_schema": {"type": "object"}} for n in range(4)]
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "m-gemini", "tools": tools}).json()
    found = [block for block in reply["content"] if block["type"] == "tool_use"]
    assert [block["name"] for block in found] == ["tool0", "tool1", "tool2", "tool3"]
    assert len({block["id"] for block in found}) == 4


# -- straight through --------------------------------------------------------------------------------------------------

OWN = {
    "/v1/messages": {**ASK, "model": "claude-opus-4-8", "metadata": {"user_id": "kept"}},
    "/v1/responses": {"model": "gpt-5.4", "input": "hi", "store": False},
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", OWN)
def test_bytes_pass_unchanged_where_nothing_has_to_change(gateway: Running, path: str, stream: bool) -> None:
    script = gateway.upstream.emulator.script
    step = Step(thinking="some thought", text="a b c")
    body = json.dumps({**OWN[path], "stream": stream}, indent=3)
    gateway.upstream.emulator.ledger.replies = 7000
    script.add(step)
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    direct = httpx2.post(gateway.upstream.url + path, content=body, headers=headers)
    gateway.upstream.emulator.ledger.replies = 7000
    script.add(step)
    reply = httpx2.post(gateway.url + path, content=body, headers=headers)
    assert reply.status_code == 200, reply.text
    assert reply.content == direct.content
    first, second = gateway.upstream.emulator.requests
    assert first.body == second.body
    for _ in range(3000):
        row = httpx2.get(f"{gateway.url}/segue/requests/{reply.headers['x-segue-request-id']}")
        if row.status_code == 200:
            break
        time.sleep(0.02)
    assert row.json()["straight"] is True
    assert row.json()["usage"]["output"] > 0


def test_a_broken_straight_stream_has_one_end(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(Step(text="a b c d e f g h", cut_after=6, pause=0.03))
    reply = _post(gateway.url, "/v1/messages", {**OWN["/v1/messages"], "stream": True})
    assert reply.text.count("event: message_start") == 1
    assert _events(reply.text)[-1] == "error"
    assert reply.text.count("event: error") == 1
    gateway.upstream.emulator.script.add(Step(text="a b c d e f g h", fail_after=6, pause=0.03))
    reply = _post(gateway.url, "/v1/messages", {**OWN["/v1/messages"], "stream": True})
    assert reply.text.count("event: error") == 1


def test_a_slow_straight_stream_gets_heartbeats_and_one_start(hasty: Running) -> None:
    hasty.upstream.emulator.script.add(Step(text="late answer", first_byte=1.0), Step(text="a b", pause=0.5))
    for _ in range(2):
        reply = _post(hasty.url, "/v1/messages", {**OWN["/v1/messages"], "stream": True})
        assert reply.text.count("event: message_start") == 1
        assert reply.text.count("event: message_stop") == 1
        assert "event: ping" in reply.text


def test_turns_of_another_model_do_not_pass_straight(gateway: Running) -> None:
    gateway.upstream.emulator.script.add(Step(thinking="a thought of gpt", text="from gpt"), Step(text="from claude"))
    first = _post(gateway.url, "/v1/messages", {**ASK, "model": "gpt-5.4"}).json()
    history = [*ASK["messages"], {"role": "assistant", "content": first["content"]}, {"role": "user", "content": "on"}]
    reply = _post(gateway.url, "/v1/messages", {**ASK, "model": "claude-opus-4-8", "messages": history})
    assert reply.status_code == 200
    assert gateway.upstream.emulator.requests[-1].refusal is None
    assert "segueEnv" not in json.dumps(gateway.upstream.emulator.requests[-1].body)


# -- previous_response_id ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["m-anthropic", "m-gemini", "m-responses"])
def test_a_client_names_the_reply_before_instead_of_the_history(gateway: Running, model: str, stream: bool) -> None:
    script = gateway.upstream.emulator.script
    tools = [{"type": "function", "name": "read", "parameters": {"type": "object"}}]
    name: str | None = None
    given: object = "question one"
    steps = (
        Step(thinking="first thought", text="looking", calls=(EmulatedCall(name="read"),)),
        Step(thinking="second thought", text="answer one"),
        Step(text="answer two"),
    )
    for step in steps:
        script.add(step)
        body = {"model": model, "input": given, "tools": tools, "stream": stream, "previous_response_id": name}
        reply = _post(gateway.url, "/v1/responses", body)
        assert reply.status_code == 200, reply.text
        value = reply.json() if not stream else json.loads(reply.text.rpartition("data: ")[2])["response"]
        name = value["id"]
        calls = [item for item in value["output"] if item["type"] == "function_call"]
        outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": "file"} for call in calls]
        given = outputs or "question two"
    last = gateway.upstream.emulator.requests[-1]
    assert last.refusal is None
    text = json.dumps(last.body)
    for piece in ("question one", "looking", "file", "answer one", "question two"):
        assert piece in text
    assert "previous_response_id" not in text
    assert text.count("ZW11") >= 1  # a signature of the emulator


def test_a_reply_that_is_not_stored_cannot_be_continued(gateway: Running) -> None:
    first = _post(gateway.url, "/v1/responses", {"model": "m-anthropic", "input": "hi", "store": False}).json()
    for name in (first["id"], "resp_nothing"):
        body = {"model": "m-anthropic", "input": "on", "previous_response_id": name}
        reply = _post(gateway.url, "/v1/responses", body)
        assert reply.status_code == 400
        assert "not found" in reply.json()["error"]["message"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_the_provider_keeps_is_continued_by_its_own_client_alone(tmp_path: Path, stream: bool) -> None:
    keys = {"KEY_A": "sgw-" + "a" * 40, "KEY_B": "sgw-" + "b" * 40}
    more = '[listen]\nkeys = ["env:KEY_A", "env:KEY_B"]'
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more))
        gateway = Gateway(config, environment={**KEYS, **keys})
        with serve_in_thread(create_app(gateway=gateway)) as url:

            def ask(key: str, text: str, previous: str | None = None) -> httpx2.Response:
                body = {"model": "gpt-5.4", "input": text, "stream": stream, "previous_response_id": previous}
                given = {name: value for name, value in body.items() if value is not None}
                return _post(url, "/v1/responses", given, authorization=f"Bearer {keys[key]}")

            first = ask("KEY_A", "a secret of A")
            assert first.status_code == 200, first.text
            value = first.json() if not stream else json.loads(first.text.rpartition("data: ")[2])["response"]
            asked = len(upstream.emulator.requests)
            for name in (value["id"], "resp_of_another_program"):
                foreign = ask("KEY_B", "what was said?", name)
                assert foreign.status_code == 400
                assert "not found" in foreign.json()["error"]["message"]
            assert len(upstream.emulator.requests) == asked
            ask("KEY_A", "go on", value["id"])
            sent = upstream.emulator.requests[-1].body
            assert isinstance(sent, dict)
            assert sent["previous_response_id"] == value["id"]


@pytest.mark.parametrize("model", ["m-anthropic", "claude-opus-4-8"])
def test_a_request_asks_the_store_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    asked: list[str] = []
    query = SqliteDatabase.query

    def count(database: SqliteDatabase, statement: str, values: Any = (), **named: Any) -> Any:
        if " meta " not in statement:  # which a sweep may read at the same time
            asked.append(statement)
        return query(database, statement, values, **named)

    more = '[models."claude-opus-4-8"]\ntry = ["anthropic/claude-opus-4-8"]'
    with running(store=f"sqlite:{tmp_path}/g.db", more=more) as gateway:
        turns: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]
        for _ in range(2):
            monkeypatch.setattr(SqliteDatabase, "query", count)
            reply = _post(gateway.url, "/v1/messages", {"model": model, "max_tokens": 100, "messages": turns})
            monkeypatch.undo()
            turns += [{"role": "assistant", "content": reply.json()["content"]}, {"role": "user", "content": "on"}]
            assert len(asked) == 1, asked
            asked.clear()


SENT: list[Step] = [
    Step(thinking="hm", calls=(EmulatedCall(name="read", arguments={"n": 1}),)),
    Step(status=529),
    Step(text="Done."),
    Step(status=400),
    Step(fail_after=4),
]
"""Replies, replies that another model has to give, and failures. A connection that breaks leaves a traceback."""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_nothing_of_a_request_waits_for_the_collector(tmp_path: Path, path: str, stream: bool) -> None:
    more = """
[models."claude-opus-4-8"]
try = ["anthropic/claude-opus-4-8"]
[limits]
retries = 0
[keys.one]
key = "env:ONE"
tokens_per_minute = 1_000_000
"""
    with emulate() as upstream:
        config = load_config(config_text(upstream.url, store=f"sqlite:{tmp_path}/g.db", more=more))
        gateway = Gateway(config, environment={**KEYS, "ONE": "sgw-" + "a" * 40})
        with serve_in_thread(create_app(gateway=gateway)) as url:

            def ask(model: str) -> None:
                body = {"model": model, "input": "hi"} if path == "/v1/responses" else {"model": model, **ASK}
                _post(url, path, body | {"stream": stream}, authorization="Bearer sgw-" + "a" * 40)

            ask("auto")
            gc.collect()
            gc.disable()
            try:
                for step in SENT:
                    for model in ("auto", "m-chat", "m-anthropic", "claude-opus-4-8", "gpt-5.4"):
                        upstream.emulator.script.add(step)
                        ask(model)
                until = time.monotonic() + 10  # the client has the reply a moment before the request ends
                while left := sum(type(each) in (exchange.Exchange, AsyncStream) for each in gc.get_objects()):
                    assert time.monotonic() < until, left
                    time.sleep(0.05)
            finally:
                gc.enable()
