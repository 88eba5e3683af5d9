"""Names and headers of clients: none of them reaches another method of a provider, and none breaks the gateway."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from gateway.running import Running, running

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
