"""Upstreams that break their protocol: clients of the gateway get valid streams, and a fallback if there is nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import segue
from gateway.running import make_gateway
from protocols.nearly_right import REPAIRED, REPORTED, right_stream
from protocols.test_nearly_right import TOOLS, assert_valid
from segue.conversation.context import Context, Options
from segue.conversation.messages import UserMessage
from segue.framing.writing import frame_encoder
from segue.gateway.app import create_app
from segue.gateway.config import load_config
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import get_protocol
from segue.testing.emulator.running import serve_in_thread
from segue.testing.frames import split_stream
from servers.script import Reply
from servers.scripted import Received, ScriptedServer

PATHS = {
    "anthropic-messages": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "google-genai": "/v1beta/models/auto:streamGenerateContent?alt=sse",
    "ollama-chat": "/api/chat",
    "cohere-chat": "/v2/chat",
}
CONFIG = """
[providers.mine]
base_url = "{url}/mine"
protocol = "{protocol}"
[providers.spare]
base_url = "{url}/spare"
protocol = "openai-chat"
[models."auto"]
try = ["mine/a", "spare/b"]
[state]
store = "none"
"""
EVENTS = {"content-type": "text/event-stream"}
of_every_client = pytest.mark.parametrize("client", PATHS)


def empty_or_spare(request: Received) -> Reply:
    """Answer what no script is for: the first model says nothing, the other one something."""
    text = "from the spare" if "spare" in request.path else ""
    chunk = {"id": "c", "created": 0, "model": "a"}
    choice = {"index": 0, "finish_reason": "stop"}
    if not json.loads(request.body).get("stream"):
        message = {"role": "assistant", "content": text}
        return Reply.json({**chunk, "object": "chat.completion", "choices": [{**choice, "message": message}]})
    frame = {**chunk, "object": "chat.completion.chunk", "choices": [{**choice, "delta": {"content": text}}]}
    return reply_of(get_protocol("openai-chat"), [frame, "[DONE]"])


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedServer]:
    with ScriptedServer(empty_or_spare) as server:
        yield server


@pytest.fixture(scope="module")
def urls(upstream: ScriptedServer) -> Iterator[dict[str, str]]:
    """Serve one gateway for each protocol of the upstream."""
    gateways = {
        name: make_gateway(load_config(CONFIG.format(url=upstream.url, protocol=name)))
        for name in ("openai-chat", "anthropic-messages")
    }
    with (
        serve_in_thread(create_app(gateway=gateways["openai-chat"])) as chat,
        serve_in_thread(create_app(gateway=gateways["anthropic-messages"])) as messages,
    ):
        yield {"openai-chat": chat, "anthropic-messages": messages}


def reply_of(record: Protocol, frames: list[Any]) -> Reply:
    encoder = frame_encoder(record.framing)
    return Reply(headers=EVENTS, chunks=(b"".join(map(encoder.feed, frames)) + encoder.finish(),))


def parsed(frame: Any) -> Any:
    text = frame.decode() if isinstance(frame, bytes) else frame
    return text if text == "[DONE]" else json.loads(text)


def ask(url: str, client: str, *, stream: bool = True) -> httpx.Response:
    record = get_protocol(client)
    model = segue.Model("auto", record.provider, client)
    context = Context(messages=(UserMessage.of("Read both."),), tools=TOOLS)
    body = segue.prepare(context, model, options=Options(stream=stream, max_tokens=500)).body
    path = PATHS[client] if stream else PATHS[client].replace(":streamGenerateContent?alt=sse", ":generateContent")
    headers = {"anthropic-version": "2023-06-01", "authorization": "Bearer k", "x-api-key": "k"}
    return httpx.post(f"{url}{path}", content=json.dumps(body), headers=headers, timeout=60)


@pytest.mark.parametrize("server", ["openai-chat", "anthropic-messages"])
@of_every_client
def test_every_client_of_the_gateway_gets_a_valid_stream(
    upstream: ScriptedServer, urls: dict[str, str], server: str, client: str
):
    record, wanted = get_protocol(server), get_protocol(client)
    for fault, change in {**REPAIRED, **REPORTED}.items():
        upstream.reply(reply_of(record, change(right_stream(record), server)))
        answer = ask(urls[server], client)
        assert answer.status_code == 200, fault
        assert_valid(wanted, [parsed(frame) for frame in split_stream(wanted.framing, answer.content, 4096)], fault)


@of_every_client
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_reply_without_content_leads_to_the_next_model_of_the_route(
    upstream: ScriptedServer, urls: dict[str, str], client: str, stream: bool
):
    before = len(upstream.requests)
    answer = ask(urls["openai-chat"], client, stream=stream)
    assert answer.status_code == 200
    assert "spare" in upstream.requests[-1].path
    assert len(upstream.requests) > before
    assert "from the spare" in answer.text
