"""Names and headers of clients: none of them reaches another method of a provider, and none breaks the gateway."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest

from gateway.asgi_client import KEY, PATHS, Client, has_form, make
from gateway.running import Running, running
from segue.calls.reading import LONGEST_NAME, read_call
from segue.errors import CallError, UnknownModel
from segue.models import family
from segue.models.catalogue import packaged_catalogue

GEMINI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
ASK = {"max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
METHODS = (":generateContent", ":streamGenerateContent?alt=sse")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(store=f"sqlite:{tmp_path_factory.mktemp('gateway') / 'gateway.db'}") as server:
        yield server


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "name",
    [
        "veo-3.1%3ApredictLongRunning%23",
        "google%2Fveo-3.1%3ApredictLongRunning%23",
        "google%2F%2e%2e%2FcachedContents%23",
        "google/%2e%2e/cachedContents%23",
        "google%2Fa%00b",
        "google%2F" + "x" * 5000,
    ],
)
def test_a_name_reaches_no_other_method_or_resource(gateway: Running, name: str, method: str) -> None:
    gateway.upstream.emulator.requests.clear()
    reply = httpx2.post(f"{gateway.url}/v1beta/models/{name}{method}", json=GEMINI)
    assert reply.status_code in (400, 404), reply.text
    assert reply.json()["error"]["message"]
    assert not gateway.upstream.emulator.requests
    assert all(len(value) <= 1024 for value in reply.headers.values())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "name", ["anthropic/clé", "anthropic/x\u2028y", "anthropic/" + "x" * 200_000, "openai/\U0001d11e"]
)
def test_an_odd_name_gives_short_headers(gateway: Running, name: str, stream: bool) -> None:
    reply = httpx2.post(f"{gateway.url}/v1/messages", json={**ASK, "model": name, "stream": stream})
    assert reply.status_code < 500, reply.text
    assert all(len(value) <= 1024 and value.isascii() for value in reply.headers.values())


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("value", ["b\u00e9ta", "x" * 9000])
def test_a_beta_header_that_cannot_be_sent_is_refused(gateway: Running, value: str, stream: bool) -> None:
    body = {**ASK, "model": "m-anthropic", "stream": stream}
    headers = httpx2.Headers([(b"anthropic-beta", value.encode("latin-1")), (b"anthropic-version", b"2023-06-01")])
    reply = httpx2.post(f"{gateway.url}/v1/messages", json=body, headers=headers)
    assert reply.status_code == 400, reply.text
    assert "anthropic-beta" in reply.text


# -- long names --------------------------------------------------------------------------------------------------------

TOO_LONG = "x" * (LONGEST_NAME + 1)
_PARAMETERS = {"type": "object", "properties": {}}
_CHAT_CALL = {"id": "c", "type": "function", "function": {"name": TOO_LONG, "arguments": "{}"}}
LONG_NAMES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "model, Anthropic": ("anthropic-messages", "/v1/messages", {**ASK, "model": TOO_LONG}),
    "model, Chat": ("openai-chat", "/v1/chat/completions", {**ASK, "model": TOO_LONG}),
    "model, Responses": ("openai-responses", "/v1/responses", {"model": TOO_LONG, "input": "hi"}),
    "model, Ollama": ("ollama-chat", "/api/chat", {**ASK, "model": TOO_LONG}),
    "model in the path": ("google-genai", f"/v1beta/models/{TOO_LONG}:generateContent", GEMINI),
    "counted": ("anthropic-messages", "/v1/messages/count_tokens", {**ASK, "model": TOO_LONG}),
    "counted, in the path": ("google-genai", f"/v1beta/models/{TOO_LONG}:countTokens", GEMINI),
    "one model": ("openai-chat", f"/v1/models/{TOO_LONG}", {}),
    "one model of Ollama": ("ollama-chat", "/api/show", {"model": TOO_LONG}),
    "tool, Anthropic": (
        "anthropic-messages",
        "/v1/messages",
        {**ASK, "model": "m", "tools": [{"name": TOO_LONG, "input_schema": _PARAMETERS}]},
    ),
    "tool, Responses": (
        "openai-responses",
        "/v1/responses",
        {"model": "m", "input": "hi", "tools": [{"type": "function", "name": TOO_LONG, "parameters": _PARAMETERS}]},
    ),
    "call, Chat": (
        "openai-chat",
        "/v1/chat/completions",
        {"model": "m", "messages": [*ASK["messages"], {"role": "assistant", "tool_calls": [_CHAT_CALL]}]},
    ),
    "earlier reply": (
        "openai-responses",
        "/v1/responses",
        {"model": "m", "input": "hi", "previous_response_id": TOO_LONG},
    ),
}


@pytest.mark.parametrize("case", LONG_NAMES)
def test_a_long_name_is_refused_in_the_form_of_the_client(case: str) -> None:
    protocol, path, body = LONG_NAMES[case]
    client = Client(make(), json.dumps(body).encode())
    asyncio.run(client.ask(path, {"x-api-key": KEY}, "POST" if body else "GET"))
    assert client.status == 400, client.body
    assert has_form(protocol, client.body)
    assert f"{len(TOO_LONG)} characters; send at most {LONGEST_NAME}" in client.body.decode()
    assert len(client.body) < 1000


@pytest.mark.parametrize("protocol", PATHS)
def test_a_name_of_the_longest_length_is_served(protocol: str) -> None:
    turns = {"google-genai": GEMINI, "openai-responses": {"input": "hi"}}.get(protocol, ASK)
    body = {**turns, "model": "x" * LONGEST_NAME}
    path = PATHS[protocol].replace("gemini-3.1-pro-preview", "x" * LONGEST_NAME)
    client = Client(make(), json.dumps(body).encode())
    asyncio.run(client.ask(path, {"x-api-key": KEY}))
    assert client.status == 200, client.body


def test_no_pattern_is_looked_for_in_a_long_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Counted:
        def __init__(self, pattern: str) -> None:
            self._pattern = re.compile(pattern)

        def search(self, text: str, start: int = 0, end: int = 2**31) -> object:
            seen.append(min(len(text), end))
            return self._pattern.search(text, start, end)

    monkeypatch.setattr(family, "_compiled", Counted)
    for length in (3_000_000, LONGEST_NAME + 1):
        with pytest.raises(CallError):
            read_call("POST", "/v1/messages", {}, {**ASK, "model": "y" * length})
    assert seen == []
    read_call("POST", "/v1/messages", {}, {**ASK, "model": "y" * LONGEST_NAME}, catalogue=packaged_catalogue())
    assert seen
    assert max(seen) <= 300


@pytest.mark.parametrize("provider", ["openai/", "nobody/", ""])
def test_the_similar_names_of_a_long_name_are_few_comparisons(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[int, int]] = []
    likeness = "segue.models.catalogue._likeness"

    def count(wanted: str, plain: str, _: object) -> float:
        compared.append((len(wanted), len(plain)))
        return 0.0

    monkeypatch.setattr(likeness, count)
    for name in (provider + "gpt-claude-gemini-" * 5_000, provider + "gpt-5-nonsense"):
        compared.clear()
        with pytest.raises(UnknownModel):
            packaged_catalogue().get(name)
        assert len(compared) <= 2 * 60
        assert all(length <= 300 for length, _ in compared)


@pytest.mark.parametrize(("method", "path"), [("PUT", "/segue/conversations/c"), ("POST", "/segue/conversations/c")])
@pytest.mark.parametrize("model", [TOO_LONG, "", 7])
def test_the_console_refuses_a_long_name(method: str, path: str, model: object) -> None:
    client = Client(make(), json.dumps({"model": model}).encode())
    asyncio.run(client.ask(path, {"x-api-key": KEY}, method))
    data: Mapping[str, str] = json.loads(client.body)
    assert (client.status, f"at most {LONGEST_NAME} characters" in data["error"]) == (400, True)
