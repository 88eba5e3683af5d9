"""What the operator's accounts have at a provider: a client names only what it got the id of from this gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from msgspec.structs import replace

from gateway.asgi_client import KEY, OTHER, Client, has_form
from gateway.running import KEYS
from segue.calls.reading import read_call
from segue.client.http.outgoing_request import OutgoingRequest
from segue.conversation.content import NativeContent
from segue.conversation.messages import AssistantMessage
from segue.foundation.json_text import encode_json
from segue.gateway.config import load_config
from segue.gateway.keys import Rights, digest_of, make_key
from segue.gateway.object_places import ObjectPlaces
from segue.gateway.responses import keep_made_ids
from segue.gateway.service import Gateway
from segue.gateway.store.key_table import put_key
from segue.gateway.transport import AiohttpTransport
from segue.models.model import Model
from segue.models.origin import new_assistant_message

HI = {"role": "user", "content": "hi"}
GEMINI = "/v1beta/models/gemini-3.1-pro-preview:generateContent"
NOVA = "/model/amazon.nova-pro-v1:0/converse"
PLACES = {
    "anthropic-messages": ("/v1/messages", {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [HI]}),
    "openai-chat": ("/v1/chat/completions", {"model": "gpt-5.4", "messages": [HI]}),
    "openai-responses": ("/v1/responses", {"model": "gpt-5.4", "input": [HI]}),
    "google-genai": (GEMINI, {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
    "google-interactions": ("/v1beta/interactions", {"model": "gemini-3.1-pro-preview", "input": "hi"}),
    "bedrock-converse": (NOVA, {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}),
    "cohere-chat": ("/v2/chat", {"model": "command-a-03-2025", "messages": [HI]}),
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


def item(**fields: object) -> dict[str, Any]:
    return {"input": [HI, fields]}


def parts(*given: object) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [*given]}]}


FILES_API = "generativelanguage.googleapis.com/v1beta/files/1"
DISGUISED: dict[str, tuple[str, dict[str, Any]]] = {
    # Items that are looked up by their id, in every form that is not a whole item.
    "an item without a type": ("openai-responses", item(id="msg_V")),
    "an item whose type is null": ("openai-responses", item(id="msg_V", type=None)),
    "an item with one more key": ("openai-responses", item(type="item_reference", id="msg_V", note="x")),
    "an item with a role": ("openai-responses", item(id="msg_V", role="assistant", content=[])),
    "an item with another case": ("openai-responses", item(type="Item_Reference", id="msg_V")),
    "a message without content": ("openai-responses", item(type="message", id="msg_V", role="assistant")),
    "an item in a list": ("openai-responses", {"input": [HI, [{"id": "msg_V"}]]}),
    "bare reasoning": ("openai-responses", item(type="reasoning", id="rs_V", summary=[])),
    "reasoning without its content": (
        "openai-responses",
        item(type="reasoning", id="rs_V", summary=[], encrypted_content=""),
    ),
    "a search": ("openai-responses", item(type="web_search_call", id="ws_V", status="completed")),
    "an image": ("openai-responses", item(type="image_generation_call", id="ig_V", result=None)),
    # Ids in places that earlier tables did not have.
    "a skill": ("anthropic-messages", {"container": {"skills": [{"type": "custom", "skill_id": "skill_V"}]}}),
    "a skill of a shell": (
        "openai-responses",
        {
            "tools": [
                {
                    "type": "shell",
                    "environment": {
                        "type": "container_auto",
                        "skills": [{"type": "skill_reference", "skill_id": "skill_V"}],
                    },
                }
            ]
        },
    ),
    "a connector": (
        "openai-responses",
        {"tools": [{"type": "mcp", "server_label": "x", "connector_id": "connector_v"}]},
    ),
    "a variable of a prompt": (
        "openai-responses",
        {"prompt": {"variables": {"any": {"type": "input_file", "file_id": "file-V"}}}},
    ),
    "a conversation as an object": ("openai-responses", {"conversation": {"id": "conv_V", "x": 1}}),
    "a conversation in a list": ("openai-responses", {"conversation": ["conv_V"]}),
    "an earlier response in a list": ("openai-responses", {"previous_response_id": ["resp_V"]}),
    "a compared response": ("openai-responses", {"prompt_cache_options": {"comparison_response_id": "resp_V"}}),
    "a voice": (
        "openai-chat",
        {"modalities": ["text", "audio"], "audio": {"format": "wav", "voice": {"id": "voice_V"}}},
    ),
    "a message of Claude": ("anthropic-messages", {"diagnostics": {"previous_message_id": "msg_V"}}),
    "a profile": ("anthropic-messages", {"user_profile_id": "uprof_V"}),
    "a guardrail": (
        "bedrock-converse",
        {"guardrailConfig": {"guardrailIdentifier": "gr_V", "guardrailVersion": "1"}},
    ),
    "a bucket of Bedrock": (
        "bedrock-converse",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/a.png"}}}}],
                }
            ]
        },
    ),
    "fields of another protocol": ("bedrock-converse", {"additionalModelRequestFields": {"container": "container_V1"}}),
    "an earlier interaction": ("google-interactions", {"cached_content": "cachedContents/V"}),
    "a sandbox": ("google-interactions", {"environment": {"environment_id": "env_V"}}),
    "a file of an interaction": (
        "google-interactions",
        {"input": [{"type": "image", "uri": "gs://b/a.png", "mime_type": "image/png"}]},
    ),
    "a connector of Cohere": ("cohere-chat", {"connectors": [{"id": "connector-v"}]}),
    "an agent": ("mistral-chat", {"agent_id": "ag_V"}),
    "a library": ("mistral-chat", {"tools": [{"type": "document_library", "library_ids": ["lib_V"]}]}),
    "a data source": ("openai-chat", {"data_sources": [{"type": "azure_search", "parameters": {"index_name": "v"}}]}),
    # Addresses.
    "a scheme in capitals": ("google-genai", parts({"fileData": {"fileUri": "GS://bucket/a.png"}})),
    "a host in capitals": ("google-genai", parts({"fileData": {"fileUri": "HTTPS://" + FILES_API.upper()}})),
    "a blank before it": ("google-genai", parts({"fileData": {"fileUri": " gs://bucket/a.png"}})),
    "a line in it": ("google-genai", parts({"fileData": {"fileUri": "https://generative\nlanguage.googleapis.com/1"}})),
    "a user before the host": ("google-genai", parts({"fileData": {"fileUri": f"https://example.com@{FILES_API}"}})),
    "a port": ("google-genai", parts({"fileData": {"fileUri": "https://storage.googleapis.com:443/b/a.png"}})),
    "a dot after the host": ("google-genai", parts({"fileData": {"fileUri": "https://storage.googleapis.com./b/a"}})),
    "an escaped host": ("google-genai", parts({"fileData": {"fileUri": "https://storage.googleapis%2Ecom/b/a"}})),
    "wide letters": ("google-genai", parts({"fileData": {"fileUri": "https://storage.\uff47oogleapis.com/b/a"}})),
    "the other form of a key": ("google-genai", parts({"file_data": {"file_uri": "gs://bucket/a.png"}})),
    "both forms of a key": (
        "google-genai",
        {
            "cachedContent": None,
            **parts({"fileData": {"fileUri": "https://example.com/a", "file_uri": "https://example.com/b"}}),
        },
    ),
    "a name in place of an address": ("google-genai", parts({"fileData": {"fileUri": "files/abc"}})),
    "an address of a chat": (
        "openai-chat",
        user({"type": "image_url", "image_url": {"url": "Gs://bucket/a.png"}}),
    ),
    "an address of Mistral": ("mistral-chat", user({"type": "document_url", "document_url": " s3://bucket/a.pdf"})),
    # Fields that no SDK has.
    "an unknown id": ("openai-chat", {"thing_id": "x"}),
    "an unknown id in camel case": ("openai-chat", {"storedThingId": "x"}),
    "an unknown field": ("openai-responses", {"continue_from": "conv_0123456789abcdef"}),
    "an unknown list": ("anthropic-messages", {"attachments": [["file_0123456789abcdef"]]}),
    "an unknown object": ("google-genai", {"storage": {"place": "gs://bucket/a.png"}}),
    "an unknown part": ("anthropic-messages", user({"type": "memory", "memory": "memstore_01ABC"})),
    # Keys that some servers read as others.
    "a key in capitals": ("openai-responses", {"CONVERSATION": "conv_V"}),
    "a key in camel case": ("openai-responses", {"previousResponseId": "resp_V"}),
    "a key with a blank": ("openai-responses", {" conversation": "conv_V"}),
    "another model": ("openai-chat", {"Model": "gpt-5.4-pro"}),
    "a key with a long s": ("openai-chat", {"me\u017fsages": [HI]}),
    # A text that is read as a name, and items in places of contents.
    "a text that names a file": (
        "openai-chat",
        {"messages": [{"role": "system", "content": "FileID://file-fe-V,fileid://file-fe-W"}, HI]},
    ),
    "a text that names a file, for another wire": ("anthropic-messages", {"system": " fileid://file-fe-V"}),
    "an item in a message": (
        "openai-responses",
        item(type="message", role="user", content=[{"type": "item_reference", "id": "msg_V"}]),
    ),
    "an agent of Google": ("google-interactions", {"agent": "customer-sentinel"}),
    "an agent in place of the model": ("google-interactions", {"model": None, "agent": "agents/V"}),
    # Models that an account made, also next to the one that is asked for.
    "a fine-tuned model": ("openai-chat", {"model": "ft:gpt-5.4:org:name:V"}),
    "a fine-tuned model in capitals": ("openai-chat", {"model": "FT:gpt-5.4:org:name:V"}),
    "a fine-tuned model after a blank": ("openai-chat", {"model": " ft:gpt-5.4:org:name:V"}),
    "a fine-tuned model of Cohere": ("cohere-chat", {"model": "0199-V-ft"}),
    "a deployment": ("openai-chat", {"model": "ep-20260604-v"}),
    "a model to fall back to": ("anthropic-messages", {"fallbacks": [{"model": "ft:gpt-5.4:org:name:V"}]}),
    "models of a router": ("openai-chat", {"models": ["gpt-5.4", "@preset/v"]}),
    "the model of a tool": ("openai-responses", {"tools": [{"type": "image_generation", "model": "ft:V"}]}),
}
AS_MODEL: dict[str, tuple[str, dict[str, Any]]] = {
    "a conversation": ("openai-responses", {"conversation": "NAME"}),
    "a vector store": ("openai-responses", {"tools": [{"type": "file_search", "vector_store_ids": ["NAME"]}]}),
    "a prompt": ("openai-responses", {"prompt": {"id": "NAME"}}),
    "a container": ("openai-responses", {"tools": [{"type": "code_interpreter", "container": "NAME"}]}),
    "an item": ("openai-responses", {"input": [{"type": "item_reference", "id": "NAME"}]}),
    "a file": ("openai-chat", user({"type": "file", "file": {"file_id": "NAME"}})),
    "a container of Claude": ("anthropic-messages", {"container": "NAME"}),
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
    "options that no SDK has": (
        "openai-chat",
        {"new_option": "low", "other": {"mode": "middle-out", "ttl": "5m"}, "n2": 3},
    ),
    "reasoning of a chat": (
        "openai-chat",
        {
            "messages": [
                HI,
                {"role": "assistant", "content": "a", "reasoning_details": [{"type": "x", "data": "gAAA1"}]},
                HI,
            ]
        },
    ),
    "metadata": ("openai-responses", {"metadata": {"file_id": "file-1", "any_url": "gs://bucket"}, "store": False}),
    "whole items": (
        "openai-responses",
        {
            "store": False,
            "input": [
                HI,
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA1"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"file_id": "f"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "gs://bucket"},
                {
                    "type": "message",
                    "id": "msg_1",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "a", "annotations": []}],
                },
                HI,
            ],
        },
    ),
    "a video of the web": ("google-genai", parts({"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}})),
    "options of Claude at Bedrock": (
        "bedrock-converse",
        {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}},
    ),
}


TOOL_SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "url": {"type": "string"}}}
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    # The fields that these programs send, in the forms of their second request.
    "Codex": (
        "openai-responses",
        {
            "instructions": "You are a coding agent.",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "sandbox: /w"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "ls"}]},
                {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAAABo1"},
                {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1", "id": None},
                {"type": "function_call_output", "call_id": "call_1", "output": "a.py"},
                {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "call_2"},
                {"type": "custom_tool_call_output", "call_id": "call_2", "output": "done"},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "x"}],
                    "phase": "z",
                },
            ],
            "tools": [
                {"type": "function", "name": "shell", "description": "d", "strict": False, "parameters": TOOL_SCHEMA},
                {
                    "type": "custom",
                    "name": "apply_patch",
                    "format": {"type": "grammar", "syntax": "lark", "definition": "s"},
                },
                {"type": "web_search", "external_web_access": False},
            ],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "reasoning": {"effort": "high", "summary": "auto"},
            "store": False,
            "stream": True,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "019a-7f3e-4c11",
            "text": {"verbosity": "low"},
            "client_metadata": {"x-codex-installation-id": "0199-aa", "session_id": "0199-bb"},
        },
    ),
    "Claude Code": (
        "anthropic-messages",
        {
            "system": [
                {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "EqQBCkgIBxABGAIiQ"},
                        {
                            "type": "tool_use",
                            "id": "toolu_01A",
                            "name": "Read",
                            "input": {"file_path": "gs://x", "file_id": "1"},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_01A",
                            "content": [{"type": "text", "text": "1"}],
                            "is_error": False,
                            "cache_control": {"type": "ephemeral"},
                        }
                    ],
                },
            ],
            "tools": [{"name": "Read", "description": "d", "input_schema": {**TOOL_SCHEMA, "$schema": "http://x/y#"}}],
            "metadata": {"user_id": "user_1_account_2_session_3"},
            "thinking": {"type": "adaptive"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "high"},
            "stream": True,
        },
    ),
    "Gemini CLI": (
        "google-genai",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "ls"}]},
                {
                    "role": "model",
                    "parts": [
                        {
                            "functionCall": {"id": "c1", "name": "ls", "args": {"dir": "gs://x", "fileId": "1"}},
                            "thoughtSignature": "CpMBAdHtim9Z",
                        }
                    ],
                },
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "files/1"}}}],
                },
            ],
            "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
            "tools": [
                {"functionDeclarations": [{"name": "ls", "description": "d", "parametersJsonSchema": TOOL_SCHEMA}]}
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
            "generationConfig": {"temperature": 1, "topP": 0.95, "thinkingConfig": {"includeThoughts": True}},
        },
    ),
    "opencode": (
        "openai-chat",
        {
            "messages": [
                {"role": "system", "content": "You are an agent."},
                HI,
                {
                    "role": "assistant",
                    "content": "",
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"id": "V"}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "files/1"},
            ],
            "tools": [{"type": "function", "function": {"name": "ls", "description": "d", "parameters": TOOL_SCHEMA}}],
            "tool_choice": "auto",
            "max_completion_tokens": 32000,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    ),
}


def make(folder: Path, more: str = "") -> Gateway:
    text = (
        f'[listen]\nkeys = ["env:KEY", "env:OTHER"]\n{more}\n[models."m-claude"]\ntry = ["anthropic/claude-opus-4-8"]\n'
        f'[state]\nstore = "sqlite:{folder}/g.db"\n'
    )
    keys = {
        **KEYS,
        "MISTRAL_API_KEY": "sk-upstream-key",
        "AWS_BEARER_TOKEN_BEDROCK": "sk-upstream-key",
        "KEY": KEY,
        "OTHER": OTHER,
    }
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


@pytest.mark.parametrize(("protocol", "body"), DISGUISED.values(), ids=DISGUISED.keys())
def test_no_form_of_a_name_reaches_the_provider(
    gateway: Gateway, upstream: Upstream, protocol: str, body: dict[str, Any]
) -> None:
    client = ask(gateway, protocol, body)
    assert client.status == 400
    assert has_form(protocol, client.body)
    assert not upstream.sent


@pytest.mark.parametrize("protocol", ["openai-responses", "openai-chat"])
def test_a_refusal_names_the_place(gateway: Gateway, upstream: Upstream, protocol: str) -> None:
    """It is the same for an object that exists and for one that does not."""
    key = "input" if protocol == "openai-responses" else "messages"
    body = user({"type": "file", "file_id": "file-1"}, key=key)
    client = ask(gateway, protocol, {key: [HI, *body[key]]})
    assert f"{key}[1].content[0].file_id 'file-1' names a file at the provider".encode() in client.body
    assert b"listen.provider_ids" in client.body


@pytest.mark.parametrize(("protocol", "body"), AS_MODEL.values(), ids=AS_MODEL.keys())
def test_an_id_that_is_also_the_name_of_the_model_is_refused(
    gateway: Gateway, upstream: Upstream, protocol: str, body: dict[str, Any]
) -> None:
    text = json.dumps({**PLACES[protocol][1], "model": "NAME", **body})
    for name in ("conv_VICTIM", PLACES[protocol][1]["model"]):
        client = ask(gateway, protocol, text.replace("NAME", name).encode())
        assert client.status == 400
    assert not upstream.sent


@pytest.mark.parametrize(
    "text",
    [
        '{"model": "gpt-5.4", "input": "hi", "conversation": "conv_V", "conversation": null}',
        '{"model": "gpt-5.4", "input": "hi", "conversation": null, "con\\u0076ersation": null}',
        '{"model": "gpt-5.4-pro", "input": "hi", "model": "gpt-5.4"}',
        '{"model": "gpt-5.4", "input": [{"role": "user", "content": [{"text": 1, "text": 2}]}]}',
        '{"model": "gpt-5.4", "input": "hi", "metadata": {"a": "1", "a": "2"}}',
    ],
)
def test_a_key_that_occurs_twice_is_refused(gateway: Gateway, upstream: Upstream, text: str) -> None:
    client = ask(gateway, "openai-responses", text.encode())
    assert client.status == 400
    assert b"two keys" in client.body
    assert not upstream.sent


@pytest.mark.parametrize(
    ("known", "evil"),
    [
        ('"messages":[', '"messages":[NAMING],"messages":['),
        ('"model":', '"model":"gpt-5.4-pro","model":'),
        ('"model":', '"m\\u006fdel":"gpt-5.4-pro","model":'),
        ('"content":"hi"', '"content":"a","content":"hi"'),
        ('"content":"hi"', '"content":[{"type":"text","text":"a","text":"b"}]'),
        ('"type":"object"', '"type":"string","type":"object"'),
    ],
)
@pytest.mark.parametrize("turns", [[], ["ANSWER", "HI"], ["NEXT"]], ids=["known turns", "more turns", "other turns"])
@pytest.mark.parametrize("before", [",", ", "])
def test_a_key_that_occurs_twice_is_refused_after_known_turns(
    tmp_path: Path, upstream: Upstream, known: str, evil: str, turns: list[str], before: str
) -> None:
    """What is known of earlier requests does not hide it, wherever it is and whatever is between the keys."""
    upstream.reply = CLAUDE
    named = {"NAMING": NAMING, "ANSWER": ANSWER, "HI": HI, "NEXT": {"role": "user", "content": "n" * 5_000}}

    def write(messages: list[Any]) -> str:
        tools = [{"name": "Read", "description": "d", "input_schema": TOOL_SCHEMA}]
        body = {"model": "m-claude", "max_tokens": 9, "tools": tools, "messages": messages}
        return json.dumps(body, separators=(",", ":"))

    first = write([LONG, ANSWER, HI])
    last = write([*([] if "NEXT" in turns else [LONG, ANSWER, HI]), *(named[each] for each in turns), ANSWER, HI])
    told = evil.replace("NAMING", json.dumps(NAMING))
    assert known in last

    async def run() -> list[int]:
        gateway = make(tmp_path)
        await gateway.start()
        found: list[int] = []
        for text in (first, first, known.join(last.rsplit(known, 1)), told.join(last.rsplit(known, 1)), last):
            client = Client(gateway, text.replace(",", before).encode(), stays=True)
            await client.ask("/v1/messages", {"x-api-key": KEY})
            found.append(client.status)
        await gateway.close()
        return found

    assert asyncio.run(run()) == [200, 200, 200, 400, 200]
    assert len(upstream.sent) == 4


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize(
    "own",
    [
        {"type": "reasoning", "id": "rs_V", "summary": [{"type": "summary_text", "text": "my own"}]},
        {"type": "web_search_call", "id": "rs_V", "status": "completed", "action": {"type": "search", "query": "q"}},
    ],
    ids=["reasoning", "a search"],
)
def test_an_item_of_another_is_sent_as_its_text_alone(
    tmp_path: Path, upstream: Upstream, own: dict[str, Any], turns: int
) -> None:
    """Reasoning without encrypted content is looked up by its id; what the client sends of it is its own."""
    upstream.reply = GPT
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}

    async def run() -> None:
        gateway = make(tmp_path)
        await gateway.start()
        items: list[Any] = [LONG, own, answer, HI]
        for _ in range(turns):
            client = Client(
                gateway, json.dumps({"model": "gpt-5.4", "input": items, "store": False}).encode(), stays=True
            )
            await client.ask("/v1/responses", {"x-api-key": KEY})
            assert client.status == 200, client.body
            items += [answer, HI]
        await gateway.close()

    asyncio.run(run())
    assert len(upstream.sent) == turns
    assert [each for each in upstream.sent if b"rs_V" in each.content] == []


def test_an_item_that_is_named_often_is_looked_up_once(tmp_path: Path, upstream: Upstream) -> None:
    own = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "my own"}]}
    looked_up: list[str] = []

    async def run() -> int:
        gateway = make(tmp_path)
        await gateway.start()
        store = gateway.store.store
        assert store is not None
        find = store.get_response

        def counting(name: str, tenant: str) -> bytes | None:
            looked_up.append(name)
            return find(name, tenant)

        store.get_response = counting
        body = {"model": "gpt-5.4", "input": [HI, *[own] * 500], "store": False}
        client = Client(gateway, json.dumps(body).encode(), stays=True)
        await client.ask("/v1/responses", {"x-api-key": KEY})
        await gateway.close()
        return client.status

    asyncio.run(run())
    assert looked_up == ["rs_1"]


@pytest.mark.parametrize("stray", [" ", ""])
def test_what_was_checked_is_sent(gateway: Gateway, upstream: Upstream, stray: str) -> None:
    """The body that is passed on is the parsed one, written again."""
    body = {"model": "claude-opus-4-8", "max_tokens": 9, "messages": [HI]}
    ask(gateway, "anthropic-messages", (stray + json.dumps(body, separators=(", ", ":" + stray))).encode())
    assert [bytes(each.content) for each in upstream.sent] == [json.dumps(body, separators=(",", ":")).encode()]


def test_a_body_for_another_model_than_its_path_is_not_passed_on(gateway: Gateway, upstream: Upstream) -> None:
    ask(gateway, "google-genai", {"model": "models/gemini-9-secret"})
    assert [each for each in upstream.sent if b"gemini-9-secret" in each.content] == []


def test_a_count_names_no_reply_of_another(gateway: Gateway, upstream: Upstream) -> None:
    body = {"model": "gpt-5.4", "input": "hi", "previous_response_id": "resp_V"}
    client = Client(gateway, json.dumps(body).encode(), stays=True)
    asyncio.run(client.ask("/v1/responses/input_tokens", {"x-api-key": KEY}))
    assert (client.status, upstream.sent) == (400, [])


@pytest.mark.parametrize(("protocol", "body"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_requests_of_real_programs_are_sent(
    gateway: Gateway, upstream: Upstream, protocol: str, body: dict[str, Any]
) -> None:
    ask(gateway, protocol, body)
    assert upstream.sent


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


@pytest.mark.parametrize("model", ["claude-opus-4-8", "m-claude"])
def test_the_id_of_a_reply_is_of_the_client_that_asks_to_compare_with_it(
    tmp_path: Path, upstream: Upstream, model: str
) -> None:
    upstream.reply = CLAUDE

    async def run() -> list[int]:
        gateway = make(tmp_path)
        await gateway.start()
        statuses: list[int] = []
        name = None
        for key in (KEY, KEY, OTHER):
            body = {**PLACES["anthropic-messages"][1], "model": model, "diagnostics": {"previous_message_id": name}}
            client = Client(gateway, json.dumps(body).encode(), stays=True)
            await client.ask("/v1/messages", {"x-api-key": key})
            statuses.append(client.status)
            name = name or json.loads(client.body)["id"]
        await gateway.close()
        return statuses

    assert asyncio.run(run()) == [200, 200, 400]


GPT = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5.4",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "mcp_list_tools",
            "id": "mcpl_1",
            "server_label": "x",
            "tools": [{"name": "f", "input_schema": {"file_id": "file-V", "id": "msg_V"}}],
        },
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "server_label": "x",
            "name": "f",
            "arguments": '{"id":"mcpr_V"}',
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "ran", "annotations": [], "logprobs": []}],
        },
    ],
    "metadata": {"conversation": "conv_V"},
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}


WAITING = {"type": "mcp_approval_request", "id": "mcpr_2", "server_label": "x", "name": "f", "arguments": "{}"}


def approve(name: object) -> dict[str, Any]:
    return {"type": "mcp_approval_response", "approval_request_id": name, "approve": True}


FILE_OF_GPT = user({"type": "input_file", "file_id": "file-V"}, key="input")
FILE_OF_CLAUDE = user({"type": "document", "source": {"type": "file", "file_id": "file-V"}})
WRITTEN: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    # What a server of the client's choice, or the model itself, writes into a reply.
    "hints of a tool": (
        "openai-responses",
        {"type": "mcp_list_tools", "id": "m1", "server_label": "x", "tools": [{"annotations": {"file_id": "file-V"}}]},
        FILE_OF_GPT,
    ),
    "the id of a tool": (
        "openai-responses",
        {"type": "mcp_list_tools", "id": "m1", "server_label": "x", "tools": [{"name": "f", "id": "msg_V"}]},
        item(id="msg_V"),
    ),
    "a result": (
        "openai-responses",
        {"type": "mcp_call", "id": "m1", "server_label": "x", "name": "f", "output": [{"file_id": "file-V"}]},
        FILE_OF_GPT,
    ),
    "an error": (
        "openai-responses",
        {"type": "mcp_call", "id": "m1", "server_label": "x", "name": "f", "error": {"content": [{"id": "msg_V"}]}},
        item(id="msg_V"),
    ),
    "tools that were searched": (
        "openai-responses",
        {"type": "tool_search_output", "id": "m1", "tools": [{"type": "mcp", "vector_store_ids": ["file-V"]}]},
        FILE_OF_GPT,
    ),
    "a list of tools": (
        "anthropic-messages",
        {"type": "mcp_tool_listing", "server_name": "x", "tools": [{"annotations": {"file_id": "file-V"}}]},
        FILE_OF_CLAUDE,
    ),
    "a block of a result": (
        "anthropic-messages",
        {
            "type": "mcp_tool_result",
            "tool_use_id": "t1",
            "is_error": False,
            "content": [{"type": "image", "source": {"type": "file", "file_id": "file-V"}}],
        },
        FILE_OF_CLAUDE,
    ),
    "arguments": (
        "anthropic-messages",
        {"type": "server_tool_use", "id": "t1", "name": "code_execution", "input": {"file_id": "file-V"}},
        FILE_OF_CLAUDE,
    ),
}


@pytest.mark.parametrize(("protocol", "block", "more"), WRITTEN.values(), ids=WRITTEN.keys())
def test_nobody_writes_a_name_into_a_reply(
    tmp_path: Path, upstream: Upstream, protocol: str, block: dict[str, Any], more: dict[str, Any]
) -> None:
    if protocol == "openai-responses":
        upstream.reply = {**GPT, "output": [block, GPT["output"][-1]]}
    else:
        upstream.reply = {**CLAUDE, "content": [block, *CLAUDE["content"]]}

    async def run() -> list[int]:
        gateway = make(tmp_path)
        await gateway.start()
        path, plain = PLACES[protocol]
        found: list[int] = []
        for given in ({}, more):
            client = Client(gateway, json.dumps({**plain, **given}).encode(), stays=True)
            await client.ask(path, {"x-api-key": KEY})
            found.append(client.status)
        await gateway.close()
        return found

    assert asyncio.run(run()) == [200, 400]
    assert len(upstream.sent) == 1


FURTHER: dict[str, tuple[str, dict[str, Any]]] = {
    "a fallback": ("anthropic-messages", {"fallbacks": [{"model": "claude-fable-5-1"}]}),
    "the default fallback": ("anthropic-messages", {"fallbacks": "default"}),
    "an advisor": (
        "anthropic-messages",
        {"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "claude-fable-5-1"}]},
    ),
    "a router": ("openai-chat", {"models": ["gpt-5.4-pro"]}),
    "images": ("openai-responses", {"tools": [{"type": "image_generation", "model": "gpt-image-9"}]}),
}


@pytest.mark.parametrize(("protocol", "body"), FURTHER.values(), ids=FURTHER.keys())
@pytest.mark.parametrize(
    ("rights", "is_refused"),
    [
        ({"models": ["*/claude-opus-4-8", "*/gpt-5.4"]}, True),
        ({"routes": ["claude-opus-4-8", "gpt-5.4"]}, True),
        ({"budgets": {"day": {"dollars": 1}}}, True),
        ({"tokens_per_minute": 900_000}, False),
    ],
    ids=["models", "routes", "money", "tokens"],
)
def test_a_limited_key_names_no_further_model(
    tmp_path: Path,
    upstream: Upstream,
    protocol: str,
    body: dict[str, Any],
    rights: dict[str, Any],
    is_refused: bool,
) -> None:
    async def run() -> Client:
        gateway = make(tmp_path)
        await gateway.start()
        store = gateway.store.store
        assert store is not None
        secret, key = make_key("alice", msgspec.convert(rights, Rights), 1)
        put_key(store.database, key, digest_of(secret))
        await gateway.load_keys()
        path, plain = PLACES[protocol]
        client = Client(gateway, json.dumps({**plain, **body}).encode(), stays=True)
        await client.ask(path, {"x-api-key": secret})
        await gateway.close()
        return client

    client = asyncio.run(run())
    assert has_form(protocol, client.body)
    assert (client.status == 403) is is_refused, client.body
    assert bool(upstream.sent) is not is_refused


def test_a_name_of_the_catalogue_is_everybodys(gateway: Gateway, upstream: Upstream) -> None:
    """Fireworks has its own public models below an account."""
    text = json.dumps({"model": "fireworks/accounts/fireworks/models/kimi-k3", "messages": [HI]})
    assert b"at the provider made" not in ask(gateway, "openai-chat", text.encode()).body


@pytest.mark.parametrize(
    ("more", "statuses"),
    [
        ({"input": [HI, *GPT["output"], HI]}, (200, 400)),
        ({"input": [{"type": "item_reference", "id": "msg_1"}, HI]}, (200, 400)),
        ({"input": [{"id": "rs_1"}, {"id": "msg_1", "type": None}, HI]}, (200, 400)),
        ({"input": user({"type": "input_file", "file_id": "file-V"}, key="input")["input"]}, (400, 400)),
        ({"input": [{"id": "msg_V"}, HI]}, (400, 400)),
        ({"conversation": "conv_V"}, (400, 400)),
        ({"input": [HI, approve("mcpr_1")]}, (200, 400)),
        ({"input": [HI, approve("mcpr_V")]}, (400, 400)),
        ({"input": [HI, approve(["mcpr_V"])]}, (400, 400)),
        ({"input": [HI, {"approval_request_id": "mcpr_V", "approve": True}]}, (400, 400)),
        ({"input": [HI, WAITING, approve("mcpr_2")]}, (200, 200)),
        ({"input": [HI, approve("mcpr_2"), WAITING]}, (200, 200)),
        ({"input": [HI, WAITING, approve("mcpr_2"), approve("mcpr_V")]}, (400, 400)),
        ({"input": [HI, {**WAITING, "arguments": ""}, approve("mcpr_2")]}, (400, 400)),
        ({"input": [HI, {**WAITING, "type": "mcp_call", "output": "a"}, approve("mcpr_2")]}, (400, 400)),
        ({"input": [HI, {"role": "user", "content": [WAITING]}, approve("mcpr_2")]}, (400, 400)),
    ],
    ids=[
        "a whole reply",
        "a stored item",
        "items without a type",
        "a file in a schema",
        "an id in a schema",
        "metadata",
        "an approval",
        "an approval of another",
        "a list of approvals",
        "an approval without a type",
        "an approval of an item in the body",
        "an approval before its item",
        "an approval next to it",
        "an approval of an item that is looked up",
        "an approval of a call",
        "an approval of an item in a message",
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_items_of_a_reply_are_of_the_client_that_got_them(
    tmp_path: Path, upstream: Upstream, more: dict[str, Any], statuses: tuple[int, int], stream: bool
) -> None:
    """What the provider made counts, and not what a tool or the client itself wrote into the reply."""
    upstream.reply = GPT

    async def run() -> tuple[int, ...]:
        gateway = make(tmp_path)
        await gateway.start()
        found: list[int] = []
        for key, given in ((KEY, {}), (KEY, more), (OTHER, more)):
            body = {"model": "gpt-5.4", "input": [HI], "stream": stream and bool(given), **given}
            client = Client(gateway, json.dumps(body).encode(), stays=True)
            await client.ask("/v1/responses", {"x-api-key": key})
            found.append(client.status)
        await gateway.close()
        return tuple(found)

    assert asyncio.run(run()) == (200, *statuses)


def test_one_operator_names_what_it_likes(tmp_path: Path, upstream: Upstream) -> None:
    """Without keys there are no strangers: nothing is checked, and bodies are passed on unchanged."""
    text = f'[state]\nstore = "sqlite:{tmp_path}/g.db"\n'
    alone = Gateway(load_config(text), environment={**KEYS, "XDG_STATE_HOME": str(tmp_path)})
    client = Client(
        alone, b'{ "model": "gpt-5.4", "input": "hi", "conversation": "conv_1", "new_id": "x" }', stays=True
    )
    asyncio.run(client.ask("/v1/responses", {}))
    assert [bytes(each.content) for each in upstream.sent] == [
        b'{ "model": "gpt-5.4", "input": "hi", "conversation": "conv_1", "new_id": "x" }'
    ]


@pytest.mark.parametrize("more", ["", " ", "\n"])
@pytest.mark.parametrize("content", ['"hi"', '"h\\u0069"', '"\\/"'])
def test_a_body_is_sent_as_it_was_checked(gateway: Gateway, upstream: Upstream, more: str, content: str) -> None:
    """The value that was checked is written again, whatever another reader makes of the bytes."""
    text = f'{{"model":"gpt-5.4","input":[{{"role":"user",{more}"content":{content}}}]}}'
    ask(gateway, "openai-responses", text.encode())
    assert [bytes(each.content) for each in upstream.sent] == [encode_json(json.loads(text))]


LONG = {"role": "user", "content": "read the file " * 400}
ANSWER = {"role": "assistant", "content": "I did."}
FILE = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
NAMING = {"role": "user", "content": [FILE]}


@pytest.mark.parametrize(
    ("container", "last", "statuses"),
    [({}, NAMING, [200, 200, 400]), ({"container": "container_1"}, HI, [400, 400, 400]), ({}, HI, [200, 200, 200])],
    ids=["a new turn names it", "what stays the same names it", "nothing names it"],
)
def test_what_stays_the_same_is_not_checked_again_if_it_names_nothing(
    tmp_path: Path, upstream: Upstream, container: dict[str, Any], last: Any, statuses: list[int]
) -> None:
    upstream.reply = CLAUDE
    searched: list[list[str]] = []
    find = ObjectPlaces.find

    def noted(self: ObjectPlaces, body: Mapping[str, object]) -> Any:
        searched.append(sorted(body))
        return find(self, body)

    async def run() -> list[int]:
        gateway = make(tmp_path)
        await gateway.start()
        found: list[int] = []
        for text, turn in (("a", HI), ("b", HI), ("c", last)):
            messages = [{"role": "user", "content": text * 5_000}, ANSWER, turn]
            tools = [{"name": "Read", "description": "d", "input_schema": TOOL_SCHEMA}]
            body = {"model": "m-claude", "max_tokens": 9, "messages": messages, "tools": tools, **container}
            client = Client(gateway, json.dumps(body).encode(), stays=True)
            await client.ask("/v1/messages", {"x-api-key": KEY})
            found.append(client.status)
        await gateway.close()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ObjectPlaces, "find", noted)
        assert asyncio.run(run()) == statuses
    assert [each == ["messages"] for each in searched] == [False, *[not container] * 2]


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


def twice(text: str, word: str) -> str:
    """Give the object that has a text a second key of the same name before it."""
    at = text.rindex('{"role"', 0, text.index(word))
    return f'{text[:at]}{{"content":[],{text[at + 1 :]}'


@pytest.mark.parametrize(
    ("change", "turns", "status", "searched"),
    [
        (str, [ANSWER, HI], 200, 1),
        (str, [ANSWER, NAMING], 400, 1),
        (str, [{**ANSWER, "content": [FILE]}, HI], 400, 2),
        (str, [ANSWER, HI, ANSWER, HI], 200, 3),
        (lambda text: twice(text, "hi"), [ANSWER, HI], 400, None),
        (lambda text: twice(text, "I did."), [ANSWER, HI], 400, None),
        (lambda text: twice(text, "read the file"), [ANSWER, HI], 400, None),
        (lambda text: text.replace('"messages"', '"messages":[],"messages"'), [ANSWER, HI], 400, None),
        (lambda text: text.replace('"name"', '"name":"Write","name"'), [ANSWER, HI], 400, None),
    ],
    ids=[
        "nothing",
        "a file in the last turn",
        "a file in a turn before it",
        "more turns",
        "two keys in the last turn",
        "two keys in a turn before it",
        "two keys in the first turn",
        "two lists of turns",
        "two keys in a tool",
    ],
)
def test_only_the_turns_after_those_that_were_checked_are_checked(
    tmp_path: Path,
    upstream: Upstream,
    change: Callable[[str], str],
    turns: list[Any],
    status: int,
    searched: int | None,
) -> None:
    """Requests with the same tools often begin with the same turns, also if none of them continues another."""
    upstream.reply = CLAUDE
    found: list[int] = []
    find = ObjectPlaces.find

    def noted(self: ObjectPlaces, body: Mapping[str, Any]) -> Any:
        found.append(len(body["messages"]))
        return find(self, body)

    async def run() -> int:
        gateway = make(tmp_path)
        await gateway.start()
        tools = [{"name": "Read", "description": "d", "input_schema": TOOL_SCHEMA}]
        client = Client(gateway, b"", stays=True)
        for last, changed in ((["a"], str), (["b"], str), ([], change)):
            messages = [LONG, ANSWER, LONG, *([ANSWER, {**HI, "content": last[0]}] if last else turns)]
            body = {"model": "m-claude", "max_tokens": 9, "messages": messages, "tools": tools}
            text = changed(json.dumps(body, separators=(",", ":")))
            client = Client(gateway, text.encode(), stays=True)
            await client.ask("/v1/messages", {"x-api-key": KEY})
            assert not last or client.status == 200
        await gateway.close()
        return client.status

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ObjectPlaces, "find", noted)
        assert asyncio.run(run()) == status
    assert found == [5, 1, *([] if searched is None else [searched])]


def test_the_ids_of_a_reply_and_of_what_its_client_sees_are_kept() -> None:
    call = read_call("POST", "/v1/responses", {}, {"model": "m", "input": "hi", "store": False})
    given, shown = ({"type": "container_upload", "file_id": name} for name in ("file_1", "file_2"))
    model = Model("m", "anthropic", "anthropic-messages")

    def reply(block: Mapping[str, Any]) -> AssistantMessage:
        content = (NativeContent(protocol="anthropic-messages", block=block),)
        return replace(new_assistant_message(model), content=content)

    def ids(message: AssistantMessage, seen: AssistantMessage, by: Model = model) -> list[str]:
        return [each.id for each in keep_made_ids(message, seen, call, "tenant", by, made=0)]

    message, responses = reply(given), Model("m", "openai", "openai-responses")
    assert ids(message, reply(shown)) == ["file_1", "file_2"]
    assert ids(message, reply(shown), responses) == ["file_1", "file_2"]
    assert ids(message, replace(message, response_id="other"), responses) == ["file_1"]
    stores = reply({"type": "file_search", "vector_store_ids": ["vs_1"]})
    assert ids(stores, stores) == ["vs_1"]  # its client's protocol has such names
    later = replace(message, extra={"openai-responses": {"container_id": "cntr_1"}})
    assert ids(message, later, responses) == ["cntr_1", "file_1"]
