"""Refusals that threads report, each with a small body that shows it: `check` names the place."""

from __future__ import annotations

import base64
from typing import Any

import pytest

import segue
from segue.models.model import Model

HI = {"role": "user", "content": "hi"}
TURN = {"role": "user", "content": [{"text": "hi"}]}
MARK = {"cache_control": {"type": "ephemeral"}}
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"


def function(**parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": {"type": "object", **parameters}}}


def chat(**rest: Any) -> dict[str, Any]:
    return {"messages": [HI], **rest}


def image(data: bytes, kind: str = "image/png") -> dict[str, Any]:
    source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
    return {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image", "source": source}]}


def responses(**rest: Any) -> dict[str, Any]:
    return {"input": [HI], **rest}


def claude(*messages: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"max_tokens": 100, "messages": list(messages or (HI,)), **rest}


CODEX: dict[str, Any] = {"instructions": "", "store": False, "stream": True}
CHAT, RESPONSES, MESSAGES, CONVERSE, OLLAMA, GEMINI = (
    *("openai-chat", "openai-responses", "anthropic-messages", "bedrock-converse", "ollama-chat", "google-genai"),
)
SPEC = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object", "properties": {}}}}}

REPORTED: dict[str, tuple[str, str, dict[str, Any], tuple[Any, ...]]] = {
    "DeepSeek-Reasonix #1906": (
        "deepseek/deepseek-v4-flash",
        CHAT,
        {"messages": [{"role": "user", "content": "x \ud83d"}]},
        (),
    ),
    "R2R #1990": (
        "deepseek/deepseek-reasoner",
        CHAT,
        {"messages": [HI, {"role": "assistant", "content": "x"}]},
        ("messages", 1, "role"),
    ),
    "claude-code #12293": (
        "anthropic/claude-sonnet-4-5",
        MESSAGES,
        claude(image(PNG.replace(b"\n", b"\r\n"))),
        ("messages", 0, "content", 1, "source", "data"),
    ),
    "sub2api #2013": (
        "anthropic/claude-opus-4-6",
        MESSAGES,
        claude(
            {"role": "user", "content": [{"type": "text", "text": "x", **MARK}] * 2},
            HI,
            system=[{"type": "text", "text": "x", **MARK}] * 2,
            **MARK,
        ),
        ("cache_control",),
    ),
    "opencode #36305": ("github-copilot/gpt-5.6-sol", CHAT, chat(), ("messages",)),
    "openclaude #1950": ("nvidia/z-ai/glm-5.2", CHAT, chat(tool_stream=True), ("tool_stream",)),
    "nvidia-nim-provider #2": ("nvidia/mistralai/mixtral-8x22b", CHAT, chat(tools=[function()]), ("tools",)),
    "openclaw #12910": ("xai/grok-4", RESPONSES, responses(include=["inline_citations"]), ("include", 0)),
    "spiceai #4734": (
        "xai/grok-4",
        CHAT,
        {
            "messages": [
                HI,
                {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}]},
                {"role": "tool", "tool_call_id": "a", "content": "x"},
            ]
        },
        ("messages", 1, "tool_calls", 0, "function", "arguments"),
    ),
    "ollama #6027": ("ollama/stablelm2:latest", OLLAMA, chat(tools=[function()]), ("tools",)),
    "continue #10539": ("ollama/qwen2.5-coder:1.5b-base", OLLAMA, chat(tools=[function()]), ("tools",)),
    "ollama #17301": ("ollama/glm-5.2:cloud", MESSAGES, claude(image(PNG)), ("messages", 0, "content", 1)),
    "lmstudio-bug-tracker #1120": (
        "lmstudio/qwen2.5-vl-7b",
        RESPONSES,
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}]}]},
        ("input", 0, "content", 0, "image_url"),
    ),
    "just-every/code #147": (
        "openai-codex/gpt-5",
        RESPONSES,
        responses(tools=[{"type": "web_search_preview"}], **CODEX),
        ("tools", 0, "type"),
    ),
    "hermes-agent #26599": (
        "openai-codex/gpt-5.5",
        RESPONSES,
        responses(extra_headers={}, **CODEX),
        ("extra_headers",),
    ),
    "hermes-agent #17426": ("google/gemma-4-31b-it", CHAT, chat(thinking_config={}), ("thinking_config",)),
    "copilot-api #273": (
        "github-copilot/gemini-3.6-flash",
        CHAT,
        {"messages": [HI, {"role": "assistant", "content": "x"}]},
        ("messages", 1, "role"),
    ),
    "LibreChat #13838": (
        "amazon-bedrock/us.amazon.nova-pro-v1:0",
        CONVERSE,
        {"messages": [TURN], "toolConfig": {"tools": [SPEC, {"cachePoint": {"type": "default"}}]}},
        ("toolConfig", "tools", 1, "cachePoint"),
    ),
    "litellm #13959": (
        "amazon-bedrock/openai.gpt-oss-120b-1:0",
        CONVERSE,
        {"messages": [TURN], "additionalModelRequestFields": {"thinking": {"type": "enabled"}}},
        ("additionalModelRequestFields", "thinking"),
    ),
    "dify #12340": (
        "amazon-bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0",
        CONVERSE,
        {"messages": [{"role": "assistant", "content": [{"text": "x"}]}, TURN]},
        ("messages", 0),
    ),
    "Dokploy/mcp #74": (
        "anthropic/claude-opus-4-6",
        MESSAGES,
        claude(
            tools=[
                {
                    "name": "f",
                    "input_schema": {"type": "object", "properties": {"a": {"minimum": 0, "exclusiveMinimum": True}}},
                }
            ]
        ),
        ("tools", 0, "input_schema", "properties", "a", "exclusiveMinimum"),
    ),
    "dotnet/extensions #6302": (
        "openai/gpt-4o",
        CHAT,
        chat(
            tools=[
                {
                    "type": "function",
                    "function": {
                        "name": "f",
                        "strict": True,
                        "parameters": {
                            "type": "object",
                            "properties": {},
                            "required": ["recipe"],
                            "additionalProperties": False,
                        },
                    },
                }
            ]
        ),
        ("tools", 0, "function", "parameters", "required"),
    ),
    "opencode #11889": (
        "google/gemini-3-flash-preview",
        GEMINI,
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "f",
                            "description": "d",
                            "parameters": {"type": "object", "properties": {"a": {"type": "string", "required": []}}},
                        }
                    ]
                }
            ],
        },
        ("tools", 0, "functionDeclarations", 0, "parameters", "properties", "a", "required"),
    ),
}


@pytest.mark.parametrize(("target", "protocol", "body", "path"), REPORTED.values(), ids=REPORTED.keys())
def test_a_reported_refusal_is_named(target, protocol, body, path):
    provider, _, name = target.partition("/")
    found = segue.check(body, protocol=protocol, model=Model(name, provider, protocol))
    assert path in [one.path for one in found]


def test_a_model_that_several_hosts_list_differently_is_not_judged_by_them():
    """What a host that is not listed reads is known only where all others agree."""
    known = {model.id.rpartition("/")[2]: model.input for model in segue.find_models()}
    name = next(name for name, read in known.items() if "image" in read and ":" not in name)
    body = claude(image(PNG))
    assert segue.check(body, protocol=MESSAGES, model=Model(name, "someone", MESSAGES)) == []
