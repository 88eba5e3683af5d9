"""Mutated requests to every endpoint, before an upstream that fails in every way: the answer is never a 500."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from collections.abc import AsyncIterator
from copy import deepcopy
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

TOOL = {"name": "read", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
CLAUDE = {
    "model": "claude-opus-4-8",
    "max_tokens": 64,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "thinking": {"type": "adaptive"},
    "tools": [{"name": "read", "description": "d", "input_schema": TOOL["parameters"]}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"a": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "r"}]}],
        },
    ],
}
CHAT = {
    "model": "gpt-5.4",
    "temperature": 0.5,
    "tools": [{"type": "function", "function": TOOL}],
    "response_format": {"type": "json_object"},
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"a": "b"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
    ],
}
RESPONSES = {
    "model": "gpt-5.4",
    "instructions": "s",
    "store": False,
    "reasoning": {"effort": "low"},
    "tools": [{"type": "function", **TOOL}],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "t"}],
            "encrypted_content": "c2ln",
        },
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "r"},
    ],
}
GEMINI = {
    "systemInstruction": {"parts": [{"text": "s"}]},
    "tools": [{"functionDeclarations": [TOOL]}],
    "generationConfig": {"maxOutputTokens": 9, "thinkingConfig": {"thinkingLevel": "low"}},
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "read", "args": {"a": "b"}}, "thoughtSignature": "c2ln"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"result": "r"}}}]},
    ],
}
CONVERSE = {
    "messages": [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "read", "input": {"a": "b"}}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "r"}]}}]},
    ],
    "inferenceConfig": {"maxTokens": 9},
    "toolConfig": {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": TOOL["parameters"]}}}]},
}
INTERACTION = {
    "model": "gemini-3.1-pro-preview",
    "input": [{"type": "user_input", "content": [{"type": "text", "text": "hi"}]}],
}
OLLAMA = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi", "images": ["iVBORw0KGgo="]}],
    "options": {"num_predict": 3},
}

ENDPOINTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "/v1/messages": ("POST", "anthropic-messages", CLAUDE),
    "/v1/messages/count_tokens": ("POST", "anthropic-messages", CLAUDE),
    "/v1/chat/completions": ("POST", "openai-chat", CHAT),
    "/v1/responses": ("POST", "openai-responses", RESPONSES),
    "/v1/responses/compact": ("POST", "openai-responses", RESPONSES),
    "/v1/responses/resp_1": ("GET", "openai-responses", {}),
    "/v1/responses/resp_1/cancel": ("POST", "openai-responses", {}),
    "/v1/models": ("GET", "openai-responses", {}),
    "/v1/models/m": ("GET", "openai-responses", {}),
    "/v1beta/models/gemini-3.1-pro-preview:generateContent": ("POST", "google-genai", GEMINI),
    "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse": ("POST", "google-genai", GEMINI),
    "/v1beta/models/gemini-3.1-pro-preview:countTokens": ("POST", "google-genai", GEMINI),
    "/v1beta/interactions": ("POST", "google-interactions", INTERACTION),
    "/v2/chat": ("POST", "cohere-chat", CHAT),
    "/api/chat": ("POST", "ollama-chat", OLLAMA),
    "/api/tags": ("GET", "ollama-chat", {}),
    "/model/anthropic.claude-opus-4-8/converse": ("POST", "bedrock-converse", CONVERSE),
    "/segue/requests": ("GET", "", {}),
    "/segue/conversations/c": ("PUT", "", {"model": "m"}),
}
SEED = int(os.environ.get("SEGUE_FUZZ_SEED", "20261117"))
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    1e308,
    "",
    "x" * 3000,
    "\x00",
    "\ud800",
    "gs://a",
    [],
    {},
    [[]],
    [None],
    {"type": "x"},
    {"type": ["text"]},
    {"id": "a\x00"},
    [{"type": "text"}],
    "data:;base64,***",
    "segueEnvAAAA",
)
HEADERS = (
    ("anthropic-version", "\xff"),
    ("anthropic-beta", "b\xe9ta,,x"),
    ("content-type", "text/plain"),
    ("content-encoding", "gzip"),
    ("content-encoding", "br"),
    ("accept", "\x01"),
    ("traceparent", "x" * 900),
    ("x-goog-api-key", ""),
    ("authorization", "Basic x"),
    ("session_id", "a\x00b"),
    ("user-agent", "codex/" + "9" * 500),
    ("upgrade", "websocket"),
    ("content-length", "-1"),
    ("content-length", "99"),
    ("x-claude-code-session-id", "\udcff"[:0]),
    ("origin", "http://["),
    ("expect", "100-continue"),
    ("x-segue-conversation", "\xe9" * 300),
)


def mutate(drawn: random.Random, value: Any, steps: int) -> Any:
    """Replace, remove, copy or rename values at random places."""
    root: dict[str, Any] = {"": json.loads(json.dumps(value))}
    for _ in range(steps):
        at: Any = root
        key: Any = ""
        while isinstance(at[key], (dict, list)) and at[key] and drawn.random() < 0.8:
            at = at[key]
            key = drawn.choice(list(at)) if isinstance(at, dict) else drawn.randrange(len(at))
        match drawn.randrange(6):
            case 0 if key != "":
                del at[key]
            case 1 if isinstance(at, list):
                at.insert(int(key), deepcopy(at[drawn.randrange(len(at))]))
            case 2 if isinstance(at, dict) and key != "":
                at[drawn.choice([key + "s", key.upper(), "type", "id", "content"])] = at.pop(key)
            case 3:
                at[key] = [at[key]]
            case 4 if isinstance(at[key], str):
                at[key] = at[key][: drawn.randrange(len(at[key]) + 1)] + drawn.choice(
                    ["", "\x00", "\ud800", "%2e%2e/", '"']
                )
            case _:
                at[key] = deepcopy(drawn.choice(ODD))
        if "" not in root:
            break
    return root.get("")


def damage(drawn: random.Random, data: bytes) -> bytes:
    """Cut bytes, or change some of them."""
    place = drawn.randrange(len(data) + 1)
    kind = drawn.randrange(4)
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + bytes(drawn.choices(range(256), k=4)) + data[place:]
    return (
        data[:place]
        + drawn.choice([b"[" * 3000, b"\xff", b"\\u0000", b"\\ud800", b"1e999", b"NaN"])
        + data[place + 1 :]
    )


def damage_path(drawn: random.Random, path: str) -> str:
    pieces = [
        "/",
        "//",
        "..",
        "%2e%2e",
        "%00",
        "%ff",
        "?key=a&key=%ff",
        ":",
        "%3A",
        "#x",
        "é",
        "a" * 500,
        ";",
        "%",
        "\\",
    ]
    at = drawn.randrange(len(path) + 1)
    return path[:at] + drawn.choice(pieces) + path[at:]


class FailingUpstream:
    """Answers like a provider that fails in every way."""

    def __init__(self, drawn: random.Random) -> None:
        self.drawn = drawn
        self.count = 0

    async def answer(self, outgoing: OutgoingRequest) -> httpx2.Response:
        self.count += 1
        drawn = self.drawn
        kind = drawn.randrange(8)
        if kind == 0:
            raise drawn.choice([httpx2.ConnectError, httpx2.ReadTimeout, httpx2.RemoteProtocolError])("broken")
        if kind == 1:
            status = drawn.choice([400, 401, 403, 404, 409, 413, 429, 500, 503, 529, 302, 204])
            text = drawn.choice([b"", b"<html>", b'{"error": {"message": "\\ud800"}}', b'{"error": []}', b"\xff\xfe"])
            return httpx2.Response(status, headers={"retry-after": "60"}, content=text)
        stream = b'"stream":true' in outgoing.content or "stream" in outgoing.url
        reply = json.dumps(mutate(drawn, drawn.choice(REPLIES), drawn.randrange(4))).encode()
        if kind == 2:
            reply = damage(drawn, reply)
        if not stream:
            return httpx2.Response(200, headers={"content-type": "application/json"}, content=reply)
        events = b"".join(b"event: x\ndata: " + reply + b"\n\n" for _ in range(drawn.randrange(3)))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Pieces(events, kind == 3))


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, data: bytes, breaks: bool) -> None:
        self.data = data
        self.breaks = breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self.data), 97):
            yield self.data[at : at + 97]
        if self.breaks:
            raise httpx2.RemoteProtocolError("cut")


REPLIES: tuple[dict[str, Any], ...] = (
    {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [{"type": "text", "text": "a"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    {
        "id": "c",
        "object": "chat.completion",
        "model": "g",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    },
    {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}],
    },
    {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "g",
        "output": [
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
        ],
    },
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "a"},
)


def make(folder: Path) -> Gateway:
    text = (
        '[listen]\nkeys = ["env:KEY", "env:OTHER"]\n'
        '[models."m"]\ntry = ["anthropic/claude-opus-4-8", "openai/gpt-5.4"]\n'
        '[models."anthropic.claude-opus-4-8"]\ntry = ["openrouter/deepseek/deepseek-v4-pro"]\n'
        f'[state]\nstore = "sqlite:{folder}/g.db"\n'
        "[limits]\nretries = 0\nbody_seconds = 0.2\nbreaker_failures = 1000000\n"
    )
    environment = {**KEYS, "KEY": KEY, "OTHER": OTHER, "XDG_STATE_HOME": str(folder)}
    return Gateway(load_config(text), environment=environment)


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.proof)])
def test_whatever_is_sent_the_answer_has_the_form_of_the_wire(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drawn = random.Random(SEED)
    upstream = FailingUpstream(drawn)
    monkeypatch.setattr(AiohttpTransport, "send_directly", upstream.answer)
    caplog.set_level(logging.ERROR)
    statuses: dict[int, int] = {}

    async def send(gateway: Gateway, number: int) -> None:
        path = drawn.choice(list(ENDPOINTS))
        method, protocol, plain = ENDPOINTS[path]
        body = mutate(drawn, {**plain, "stream": drawn.random() < 0.4} if plain else plain, drawn.randrange(5))
        data = json.dumps(body).encode()
        if drawn.random() < 0.15:
            data = damage(drawn, data)
        headers = {"x-api-key": drawn.choice([KEY, KEY, KEY, OTHER])}
        if drawn.random() < 0.3:
            headers |= dict([drawn.choice(HEADERS)])
        changed = damage_path(drawn, path) if drawn.random() < 0.15 else path
        if drawn.random() < 0.05:
            method = drawn.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "X"])
        client = Client(gateway, data, stays=True)
        shown = f"request {number}: {method} {changed!r} {headers} {data[:3000]!r}"
        before = upstream.count
        try:
            await client.ask(changed, headers, method)
        except BaseException as error:
            raise AssertionError(f"{shown}: {error!r}") from error
        statuses[client.status] = statuses.get(client.status, 0) + 1
        # A failure of a provider may be a 500 in the client's protocol; one of the gateway may not.
        is_own = client.status == 500 and upstream.count == before
        assert client.status != 0, shown
        assert not is_own, f"{shown}: {client.status} {client.body[:2000]!r}"
        assert b"Traceback" not in client.body, shown
        if client.status >= 400 and protocol and changed == path and method != "HEAD":
            assert has_form(protocol, client.body), f"{shown}: {client.status} {client.body[:2000]!r}"

    async def run() -> None:
        gateway = make(tmp_path)
        await gateway.start()
        for number in range(count):
            await send(gateway, number)
        await gateway.close()

    asyncio.run(run())
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert not errors
    assert statuses[200] > count // 20  # most of what is sent would be refused otherwise, and nothing be tested
    assert statuses[400] > count // 20
