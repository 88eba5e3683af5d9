"""The providers' own clients take `sdk_arguments()`, send what segue would have sent, and segue reads what they give.

Each client speaks to the scripted server, whole and streamed. What arrives there is compared with the body that segue
itself would send; what a client is known to do to it on the way stands in the table. A protocol that segue cannot speak
yet is skipped, by the registry.

Facts this file rests on (read and tried 2026-11-15):
- openai 3.49.0 and anthropic 2.8.0 send what they are given; `extra_body` is merged into the body.
- google-genai 3.1.0 takes `config` beside `contents`; it spells some keys with underscores and base64 for URLs, both of
  which the server reads; the model stands in the path.
- mistralai 3.7.0 adds the index of a call and `prefix` of an assistant's message.
- ollama 0.6.3 drops the ids of calls and of their results.
- boto3 1.44.0 puts the model into the path and takes blobs as bytes; it gives events as `{kind: payload}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from segue import (
    AssistantMessage,
    Context,
    ImageContent,
    Model,
    Options,
    StopReason,
    TextContent,
    ToolResultMessage,
    UserMessage,
    decode_response,
    prepare,
)
from servers.emulate_replies import ARGUMENTS, THINKING, TOOL, WORDS
from servers.llama import WEATHER
from servers.replies import replies
from servers.scripted import ScriptedServer

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
Arguments = dict[str, Any]


def with_openai_chat(url: str, arguments: Arguments) -> object:
    from openai import OpenAI

    with OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        return _told(client.chat.completions.create(**arguments))


def with_openai_responses(url: str, arguments: Arguments) -> object:
    from openai import OpenAI

    with OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        return _told(client.responses.create(**arguments))


def with_anthropic(url: str, arguments: Arguments) -> object:
    from anthropic import Anthropic

    with Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        return _told(client.messages.create(**arguments))


def with_google(url: str, arguments: Arguments, *, stream: bool) -> object:
    from google.genai import Client

    with closing(Client(api_key="k", http_options={"base_url": url})) as client:
        respond = client.models.generate_content_stream if stream else client.models.generate_content
        return _told(respond(**arguments))


def with_interactions(url: str, arguments: Arguments) -> object:
    from google.genai import Client

    with closing(Client(api_key="k", http_options={"base_url": url})) as client:
        return _told(client.interactions.create(**arguments))


def with_mistral(url: str, arguments: Arguments, *, stream: bool) -> object:
    from mistralai.client import Mistral

    with Mistral(server_url=url, api_key="k") as client:
        return _told((client.chat.stream if stream else client.chat.complete)(**arguments))


def with_ollama(url: str, arguments: Arguments) -> object:
    from ollama import Client

    client = Client(host=url)
    with client._client:
        return _told(client.chat(**arguments))


def with_boto3(url: str, arguments: Arguments, *, stream: bool) -> object:
    import boto3

    client: Any = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="eu-central-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
    )
    with closing(client):
        if stream:
            return list(client.converse_stream(**arguments)["stream"])
        return client.converse(**arguments)


def with_cohere(url: str, arguments: Arguments, *, stream: bool) -> object:
    from cohere import ClientV2
    from httpx import Client

    with Client() as transport:
        client = ClientV2(api_key="k", base_url=url, httpx_client=transport)
        return _told((client.chat_stream if stream else client.chat)(**arguments))


def _told(reply: Any) -> object:
    """Give a whole reply, or all the chunks of a stream, read to its end."""
    whole = isinstance(reply, Mapping) or hasattr(reply, "model_dump")
    return reply if whole else list(reply)


@dataclass(frozen=True)
class Official:
    """One client: how it is called, for which model, and what it does to a body that it was given."""

    model: Model
    respond: Callable[..., object]
    two_calls: bool = False
    """Whether streams have their own function, which needs its own arguments."""
    repair: Callable[[Arguments], Arguments] = dict


def by_google(body: Any) -> Any:
    """Spell what google-genai spells otherwise."""
    if isinstance(body, list):
        return [by_google(item) for item in body]
    if not isinstance(body, dict):
        return body
    encoded = {
        "mimeType": "mime_type",
        "parametersJsonSchema": "parameters_json_schema",
        "includeThoughts": "include_thoughts",
        "thinkingLevel": "thinking_level",
    }
    repaired = {encoded.get(key, key): by_google(value) for key, value in body.items()}
    if "mime_type" in repaired:
        repaired["data"] = repaired["data"].replace("+", "-").replace("/", "_")
    return repaired


def by_mistral(body: Arguments) -> Arguments:
    """Say what mistralai says besides."""
    for message in body["messages"]:
        if message["role"] == "assistant":
            message["prefix"] = False
            for call in message["tool_calls"]:
                call["index"] = 0
    return body


def by_ollama(body: Arguments) -> Arguments:
    """Leave out what ollama does not know."""
    for message in body["messages"]:
        message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            del call["id"]
    return body


CLIENTS = {
    "openai, chat": Official(Model("deepseek-v4", "deepseek", "openai-chat", reasoning=True), with_openai_chat),
    "openai, responses": Official(
        Model("gpt-5.4", "openai", "openai-responses", reasoning=True), with_openai_responses
    ),
    "anthropic": Official(Model("claude-sonnet-5", "anthropic", "anthropic-messages", reasoning=True), with_anthropic),
    "google-genai": Official(
        Model("gemini-3-pro", "google", "google-genai", reasoning=True), with_google, two_calls=True, repair=by_google
    ),
    "google-genai, interactions": Official(
        Model("gemini-3-pro", "google", "google-interactions", reasoning=True), with_interactions
    ),
    "mistralai": Official(
        Model("magistral-medium-latest", "mistral", "mistral-chat", reasoning=True),
        with_mistral,
        two_calls=True,
        repair=by_mistral,
    ),
    "ollama": Official(Model("qwen3", "ollama", "ollama-chat", reasoning=True), with_ollama, repair=by_ollama),
    "boto3": Official(
        Model("anthropic.claude-sonnet-5", "amazon-bedrock", "bedrock-converse", reasoning=True),
        with_boto3,
        two_calls=True,
    ),
    "cohere": Official(
        Model("command-a-reasoning", "cohere", "cohere-chat", reasoning=True), with_cohere, two_calls=True
    ),
}
OPTIONS = {
    "asked for little": Options(max_tokens=2000),
    "asked for much": Options(
        max_tokens=20_000,
        temperature=0.5,
        top_p=0.9,
        stop=("END",),
        thinking="low",
        tool_choice="auto",
        parallel_tool_calls=False,
        cache_retention="short",
        session_id="s-1",
        user_id="u-1",
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
def test_a_client_sends_what_segue_would_and_segue_reads_what_it_gives(
    client: Official, options: Options, stream: bool
):
    wire = replies(client.model.protocol)
    request = prepare(history(client.model), client.model, options=replace(options, stream=stream))
    more = {"stream": stream} if client.two_calls else {}
    with ScriptedServer() as server:
        server.reply(wire.stream() if stream else wire.complete())
        reply: Any = client.respond(server.url, request.sdk_arguments(), **more)
    (seen,) = server.requests
    assert seen.json() == client.repair(json.loads(request.content))
    message = read_stream(request.stream_decoder(), reply) if stream else request.decode(reply)
    assert_complete(message)


def history(model: Model) -> Context:
    """Make a conversation in which this very model has thought, spoken and called."""
    called = decode_response(json.loads(replies(model.protocol).whole), model=model)
    (call,) = called.tool_calls()
    result = ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent(text="20 degrees"),))
    asked = UserMessage(content=(TextContent(text="Where is it?"), ImageContent(data=PIXEL, mime_type="image/png")))
    return Context(system_prompt="Be brief.", messages=(asked, called, result), tools=(WEATHER,))


def read_stream(decoder: Any, chunks: Iterable[object]) -> AssistantMessage:
    """Read the chunks of a client."""
    for chunk in chunks:
        decoder.feed(chunk)
    decoder.finish()
    return decoder.message


def assert_complete(message: AssistantMessage) -> None:
    assert message.error_message is None
    assert message.stop_reason == StopReason.TOOL_USE
    assert message.text() == "".join(WORDS)
    assert "".join(piece.thinking for piece in message.content if piece.kind == "thinking") == "".join(THINKING)
    assert [(call.name, call.arguments) for call in message.tool_calls()] == [(TOOL, ARGUMENTS)]
