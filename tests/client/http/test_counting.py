"""Counting at the provider: what is asked, what the answer means, and when the estimate answers instead."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from segue.client.http.clients import AsyncClient, Client
from segue.client.http.settings import ClientSettings
from segue.conversation.context import Context, Options, Prompt, ToolDefinition
from segue.conversation.messages import UserMessage
from segue.errors import UnknownModel
from segue.models.model import Model
from segue.models.providers import PROVIDERS
from segue.protocols.registry import all_protocols, get_protocol
from segue.requests.tokens import estimate_tokens
from servers.script import Reply
from servers.scripted import ScriptedServer

TOOL = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})
ASKED = Context(system_prompt="Be kind.", messages=(UserMessage.of("hello"),), tools=(TOOL,))
OPTIONS = Options(max_tokens=64, temperature=0.5)
SETTINGS: ClientSettings = {"api_key": "a-key-of-nobody", "timeout": 10.0}
both_clients = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])


@dataclass(frozen=True)
class Counted:
    """A target with an endpoint: where it is, what it answers, and which keys are sent."""

    provider: str
    protocol: str
    model: str
    path: str
    answer: Mapping[str, object]
    keys: set[str]
    inner: tuple[str, ...] = field(default=())

    def target(self, url: str) -> Model:
        return Model(self.model, self.provider, self.protocol, base_url=url, max_tokens=1000)


CLAUDE = Counted(
    "anthropic",
    "anthropic-messages",
    "claude-opus-4-5",
    "/v1/messages/count_tokens",
    {"input_tokens": 16},
    {"messages", "model", "system", "tools"},
)
COUNTED = {
    "Anthropic": CLAUDE,
    "OpenAI Responses": Counted(
        "openai",
        "openai-responses",
        "gpt-5",
        "/responses/input_tokens",
        {"object": "response.input_tokens", "input_tokens": 16},
        {"input", "model", "tools"},
    ),
    "the Gemini API": Counted(
        "google",
        "google-genai",
        "gemini-3-pro",
        "/models/gemini-3-pro:countTokens",
        {"totalTokens": 16, "promptTokensDetails": []},
        {"contents", "generationConfig", "model", "systemInstruction", "tools"},
        ("generateContentRequest",),
    ),
    "Vertex": Counted(
        "google-vertex",
        "google-genai",
        "gemini-2.5-pro",
        "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:countTokens",
        {"totalTokens": 16, "totalBillableCharacters": 40},
        {"contents", "generationConfig", "systemInstruction", "tools"},
    ),
    "Bedrock": Counted(
        "amazon-bedrock",
        "bedrock-converse",
        "anthropic.claude-sonnet-4-5-v1:0",
        "/model/anthropic.claude-sonnet-4-5-v1%3A0/count-tokens",
        {"inputTokens": 16},
        {"messages", "system", "toolConfig"},
        ("input", "converse"),
    ),
    "an inference profile of Bedrock": Counted(
        "amazon-bedrock",
        "bedrock-converse",
        "us.anthropic.claude-sonnet-4-5-v1:0",
        "/model/anthropic.claude-sonnet-4-5-v1%3A0/count-tokens",
        {"inputTokens": 16},
        {"messages", "system", "toolConfig"},
        ("input", "converse"),
    ),
    "llama.cpp": Counted(
        "llama.cpp",
        "openai-chat",
        "tiny",
        "/chat/completions/input_tokens",
        {"object": "response.input_tokens", "input_tokens": 16},
        {"messages", "model", "tools"},
    ),
}
ENVIRONMENT = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}
each_target = pytest.mark.parametrize("target", COUNTED.values(), ids=COUNTED.keys())


def count(model: Model | str, *, is_async: bool, context: Context = ASKED, **settings: object) -> int:
    given: ClientSettings = {**SETTINGS, "environment": ENVIRONMENT, **settings}  # pyright: ignore[reportAssignmentType]
    if not is_async:
        with Client(**given) as client:
            return client.count_tokens(context, model, options=OPTIONS)

    async def ask() -> int:
        async with AsyncClient(**given) as client:
            return await client.count_tokens(context, model, options=OPTIONS)

    return asyncio.run(ask())


def estimated(model: Model) -> int:
    return estimate_tokens(Prompt(context=ASKED, options=OPTIONS), model)


@each_target
@both_clients
def test_the_provider_counts(server: ScriptedServer, target: Counted, is_async: bool):
    server.reply(Reply.json(target.answer))
    assert count(target.target(server.url), is_async=is_async) == 16
    [request] = server.requests
    assert (request.method, request.path) == ("POST", target.path)
    body: object = request.json()
    for key in target.inner:
        assert isinstance(body, dict)
        assert set(body) == {key}
        body = body[key]
    assert isinstance(body, dict)
    assert set(body) >= target.keys
    assert not {"max_tokens", "max_output_tokens", "temperature", "stream", "inferenceConfig", "store"} & set(body)
    assert "a-key-of-nobody" in " ".join(request.headers.values())


NO_ANSWER = {
    "an error": Reply.json({"error": {"message": "The provided model doesn't support counting tokens."}}, status=400),
    "no such endpoint": Reply.json({"detail": "Not Found"}, status=404),
    "a server that is down": Reply.json({}, status=503),
    "a web page": Reply(headers={"content-type": "text/html"}, chunks=(b"<html>hello</html>",)),
    "another answer": Reply.json({"tokens": [1, 2]}),
    "a list": Reply.json([16]),
    "a number that is text": Reply.json({"input_tokens": "16"}),
    "a number that is none": Reply.json({"input_tokens": True}),
}


@pytest.mark.parametrize("reply", NO_ANSWER.values(), ids=NO_ANSWER.keys())
@both_clients
def test_the_estimate_answers_after(server: ScriptedServer, reply: Reply, is_async: bool):
    server.reply(reply)
    model = CLAUDE.target(server.url)
    assert count(model, is_async=is_async) == estimated(model)
    assert len(server.requests) == 1


@both_clients
def test_the_estimate_answers_where_nobody_listens(is_async: bool):
    model = CLAUDE.target("http://127.0.0.1:9")
    assert count(model, is_async=is_async) == estimated(model)


@both_clients
def test_the_estimate_answers_where_a_provider_has_no_endpoint(server: ScriptedServer, is_async: bool):
    model = Model("mistral-large", "mistral", "mistral-chat", base_url=server.url)
    assert count(model, is_async=is_async) == estimated(model)
    other = Model("a-model", "a-vendor", "anthropic-messages", base_url=server.url)
    assert count(other, is_async=is_async) == estimated(other)
    assert not server.requests


@both_clients
def test_the_estimate_answers_without_a_key_or_anything_to_count(server: ScriptedServer, is_async: bool):
    missing = Model("claude-opus-4-5", "anthropic", "anthropic-messages")
    assert count(missing, is_async=is_async, api_key=None) == estimated(missing)
    signed = COUNTED["Bedrock"].target(server.url)
    assert count(signed, is_async=is_async, api_key=None) == estimated(signed)
    assert count(CLAUDE.target(server.url), is_async=is_async, context=Context()) > 0
    assert not server.requests


@both_clients
def test_a_history_longer_than_the_window_is_counted_whole(server: ScriptedServer, is_async: bool):
    server.reply(Reply.json({"input_tokens": 5000}))
    model = Model("claude-opus-4-5", "anthropic", "anthropic-messages", base_url=server.url, context_window=2000)
    long = Context(messages=tuple(UserMessage.of("word " * 100) for _ in range(50)))
    assert count(model, is_async=is_async, context=long) == 5000
    assert len(server.requests[0].body) > 25_000


@both_clients
def test_the_token_of_an_auth_function_is_sent(server: ScriptedServer, is_async: bool):
    server.reply(Reply.json({"input_tokens": 16}))
    assert count(CLAUDE.target(server.url), is_async=is_async, auth=lambda: "a-fresh-token") == 16
    assert server.requests[0].headers["authorization"] == "Bearer a-fresh-token"


def test_an_unknown_model_raises():
    with Client(**SETTINGS) as client, pytest.raises(UnknownModel):
        client.count_tokens(ASKED, "no-such-model")


def test_every_provider_that_counts_speaks_a_protocol_that_can():
    for row in PROVIDERS.values():
        for protocol, dialect in row.dialect.items():
            if dialect.get("count_tokens"):
                assert get_protocol(protocol).token_count is not None, row.name
    assert {record.name for record in all_protocols() if record.token_count} == {
        target.protocol for target in COUNTED.values()
    }
