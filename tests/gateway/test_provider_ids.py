"""What the operator's accounts have at a provider: a client names only what it got the id of from this gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.asgi_client import KEY, OTHER, Client, has_form
from gateway.running import KEYS
from segue.client.http.outgoing_request import OutgoingRequest
from segue.gateway.config import load_config
from segue.gateway.service import Gateway
from segue.gateway.transport import AiohttpTransport

HI = {"role": "user", "content": "hi"}
GEMINI = "/v1beta/models/gemini-3.1-pro-preview:generateContent"
PLACES = {
    "anthropic-messages": ("/v1/messages", {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [HI]}),
    "openai-chat": ("/v1/chat/completions", {"model": "gpt-5.4", "messages": [HI]}),
    "openai-responses": ("/v1/responses", {"model": "gpt-5.4", "input": [HI]}),
    "google-genai": (GEMINI, {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    "mistral-chat": ("/v1/chat/completions", {"model": "mistral-large-latest", "messages": [HI]}),
}


def user(*parts: object, key: str = "messages") -> dict[str, Any]:
    return {key: [{"role": "user", "content": [*parts]}]}


FOREIGN: dict[str, tuple[str, dict[str, Any]]] = {
    "a file of Claude": (
        "anthropic-messages",
        user({"type": "document", "source": {"type": "file", "file_id": "file_1"}}),
    ),
    "an upload to a container": ("anthropic-messages", user({"type": "container_upload", "file_id": "file_1"})),
    "a container": ("anthropic-messages", {"container": "container_1"}),
    "a container with skills": ("anthropic-messages", {"container": {"id": "container_1", "skills": []}}),
    "a bucket": ("anthropic-messages", user({"type": "image", "source": {"type": "url", "url": "gs://bucket/a.png"}})),
    "a file of OpenAI": ("openai-responses", user({"type": "input_file", "file_id": "file-1"}, key="input")),
    "a stored conversation": ("openai-responses", {"conversation": "conv_1"}),
    "a stored prompt": ("openai-responses", {"prompt": {"id": "pmpt_1"}}),
    "a stored item": ("openai-responses", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
    "a vector store": ("openai-responses", {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}),
    "the container of a tool": ("openai-responses", {"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}),
    "files for a container": (
        "openai-responses",
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["file-1"]}}]},
    ),
    "a file of a chat": ("openai-chat", user({"type": "file", "file": {"file_id": "file-1"}})),
    "earlier audio": ("openai-chat", {"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}, HI]}),
    "a cache of Gemini": ("google-genai", {"cachedContent": "cachedContents/1"}),
    "a cache in the other form": ("google-genai", {"cached_content": "cachedContents/1"}),
    "an uploaded file": (
        "google-genai",
        {
            "contents": [
                {"parts": [{"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/1"}}]}
            ]
        },
    ),
    "a file store": ("google-genai", {"tools": [{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/1"]}}]}),
}
OWN: dict[str, tuple[str, dict[str, Any]]] = {
    "arguments of a call": (
        "anthropic-messages",
        {
            "messages": [
                HI,
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t1", "name": "open", "input": {"file_id": "file_1"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "gs://a"}]},
            ]
        },
    ),
    "a schema": (
        "anthropic-messages",
        {"tools": [{"name": "open", "input_schema": {"type": "object", "properties": {"file_id": {"id": "x"}}}}]},
    ),
    "a text": ("openai-chat", user({"type": "text", "text": "s3://bucket/file and file_id"})),
    "an image of the web": (
        "openai-chat",
        user({"type": "image_url", "image_url": {"url": "https://example.com/files/1.png"}}),
    ),
}


def make(folder: Path, more: str = "") -> Gateway:
    text = (
        f'[listen]\nkeys = ["env:KEY", "env:OTHER"]\n{more}\n[models."m-claude"]\ntry = ["anthropic/claude-opus-4-8"]\n'
        f'[state]\nstore = "sqlite:{folder}/g.db"\n'
    )
    keys = {**KEYS, "MISTRAL_API_KEY": "sk-upstream-key", "KEY": KEY, "OTHER": OTHER}
    return Gateway(load_config(text), environment={**keys, "XDG_STATE_HOME": str(folder)})


class Upstream:
    """Answers every request in the place of a provider, and counts them."""

    def __init__(self, reply: Mapping[str, object] | None = None) -> None:
        self.reply = reply
        self.sent: list[OutgoingRequest] = []

    async def answer(self, outgoing: OutgoingRequest) -> httpx2.Response:
        self.sent.append(outgoing)
        if self.reply is None:
            return httpx2.Response(400, json={"error": {"message": "no"}})
        return httpx2.Response(200, json=dict(self.reply))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    return make(tmp_path_factory.mktemp("gateway"))


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Upstream:
    made = Upstream()
    monkeypatch.setattr(AiohttpTransport, "send_directly", made.answer)
    return made


def ask(gateway: Gateway, protocol: str, body: dict[str, Any] | bytes, key: str = KEY) -> Client:
    path, plain = PLACES[protocol]
    data = body if isinstance(body, bytes) else json.dumps({**plain, **body}).encode()
    client = Client(gateway, data, stays=True)
    asyncio.run(client.ask(path, {"x-api-key": key}))
    return client


@pytest.mark.parametrize(("protocol", "body"), FOREIGN.values(), ids=FOREIGN.keys())
def test_an_id_that_a_client_did_not_get_is_refused(
    gateway: Gateway, upstream: Upstream, protocol: str, body: dict[str, Any]
) -> None:
    client = ask(gateway, protocol, body)
    assert client.status == 400
    assert has_form(protocol, client.body)
    assert b"listen.provider_ids" in client.body
    assert not upstream.sent


@pytest.mark.parametrize(("protocol", "body"), OWN.values(), ids=OWN.keys())
def test_data_of_the_client_is_no_id(gateway: Gateway, upstream: Upstream, protocol: str, body: dict[str, Any]) -> None:
    ask(gateway, protocol, body)
    assert upstream.sent


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "image", "source": {"type": "file", "file\\u005fid": "file_1"}}',
        '{"type": "image", "source": {"type": "url", "url": "gs:\\/\\/bucket/a.png"}}',
        '{"type": "image", "source": {"type": "url", "url": "\\u0067s://bucket/a.png"}}',
    ],
)
def test_an_id_in_an_escaped_form_is_found(gateway: Gateway, upstream: Upstream, text: str) -> None:
    body = f'{{"model": "claude-opus-4-8", "max_tokens": 9, "messages": [{{"role": "user", "content": [{text}]}}]}}'
    assert ask(gateway, "anthropic-messages", body.encode()).status == 400
    assert not upstream.sent


def test_the_operator_may_share_what_accounts_have(tmp_path: Path, upstream: Upstream) -> None:
    shared = make(tmp_path, "provider_ids = true")
    for at, (protocol, body) in enumerate(FOREIGN.values(), 1):
        ask(shared, protocol, body)
        assert len(upstream.sent) == at


CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-8",
    "content": [{"type": "text", "text": "ran"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "container": {"id": "container_1", "expires_at": "2027-01-01T00:00:00Z"},
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.mark.parametrize("model", ["claude-opus-4-8", "m-claude"])
def test_an_id_in_a_reply_is_of_the_client_that_got_it(tmp_path: Path, upstream: Upstream, model: str) -> None:
    upstream.reply = CLAUDE

    async def run() -> tuple[list[int], int]:
        gateway = make(tmp_path)
        await gateway.start()
        statuses: list[int] = []
        for key, more in ((KEY, {}), (KEY, {"container": "container_1"}), (OTHER, {"container": "container_1"})):
            path, plain = PLACES["anthropic-messages"]
            client = Client(gateway, json.dumps({**plain, "model": model, **more}).encode(), stays=True)
            await client.ask(path, {"x-api-key": key})
            statuses.append(client.status)
        await gateway.close()
        return statuses, len(upstream.sent)

    assert asyncio.run(run()) == ([200, 200, 400], 2)


LONG = {"role": "user", "content": "read the file " * 400}
ANSWER = {"role": "assistant", "content": "I did."}
FILE = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
NAMING = {"role": "user", "content": [FILE]}


@pytest.mark.parametrize(
    ("first", "second", "statuses"),
    [
        ([LONG], [LONG, ANSWER, NAMING], [200, 400]),
        ([LONG, ANSWER, NAMING], [LONG, ANSWER, NAMING, ANSWER, HI], [400, 400]),
        ([LONG], [LONG, ANSWER, HI], [200, 200]),
    ],
    ids=["a new turn names it", "a refused request named it", "nothing names it"],
)
def test_only_what_was_accepted_is_not_checked_again(
    tmp_path: Path, upstream: Upstream, first: list[Any], second: list[Any], statuses: list[int]
) -> None:
    upstream.reply = CLAUDE

    async def run() -> list[int]:
        gateway = make(tmp_path)
        await gateway.start()
        found: list[int] = []
        for messages in (first, second):
            body = {"model": "m-claude", "max_tokens": 9, "messages": messages}
            client = Client(gateway, json.dumps(body).encode(), stays=True)
            await client.ask("/v1/messages", {"x-api-key": KEY})
            found.append(client.status)
        await gateway.close()
        return found

    assert asyncio.run(run()) == statuses
