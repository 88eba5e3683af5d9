"""What a model or a wire cannot do is found, for every provider that was seen to refuse it, and for no other.

Each case is a quoted refusal of a public thread or a provider's documentation, as the smallest body that shows it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import segue
import segue.protocols
from segue.models.catalogue import find_models
from segue.models.model import Model
from segue.models.rule import PLACES
from segue.models.rules import Rules

HI = {"role": "user", "content": "hi"}
OPEN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CLOSED = {**OPEN, "additionalProperties": False}
NUMBER = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"]}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRgAAAAA=", "format": "wav"}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
CHOICE = {"type": "function", "function": {"name": "f"}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "done"}


def chat(provider: str, model: str, *, message: Any = HI, **more: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "openai-chat", provider, model, {"model": model, "messages": [message], **more}


def loop(provider: str, model: str, *, call: Any = CALL, **more: Any) -> tuple[str, str, str, dict[str, Any]]:
    messages = [HI, {"role": "assistant", "content": "", "tool_calls": [call]}, RESULT]
    return "openai-chat", provider, model, {"model": model, "messages": messages, **more}


def responses(model: str, provider: str = "openai", **more: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "openai-responses", provider, model, {"model": model, "input": "hi", **more}


def claude(model: str = "claude-sonnet-4-5", **more: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "anthropic-messages", "anthropic", model, {"model": model, "max_tokens": 99, "messages": [HI], **more}


def gemini(
    model: str = "gemini-2.5-pro", provider: str = "google", **more: Any
) -> tuple[str, str, str, dict[str, Any]]:
    return "google-genai", provider, model, {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], **more}


def mistral(*, message: Any = HI, **more: Any) -> tuple[str, str, str, dict[str, Any]]:
    model = "mistral-large-latest"
    return "mistral-chat", "mistral", model, {"model": model, "messages": [message], **more}


def cohere(**more: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "cohere-chat", "cohere", "command-a-03-2025", {"model": "command-a-03-2025", "messages": [HI], **more}


def function(schema: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema, **more}}]


def output(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **more}}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def converse(
    model: str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0", **more: Any
) -> tuple[str, str, str, dict[str, Any]]:
    messages = [{"role": "user", "content": [{"text": "hi"}]}]
    return "bedrock-converse", "amazon-bedrock", model, {"messages": messages, **more}


def ollama(model: str, **more: Any) -> tuple[str, str, str, dict[str, Any]]:
    return "ollama-chat", "ollama", model, {"model": model, "messages": [HI], **more}


TOOL = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}

REFUSED: dict[str, tuple[tuple[str, str, str, dict[str, Any]], str]] = {
    # -- media that a model does not read
    "OpenAI: sound for a text model": (chat("openai", "gpt-4o", message=user(SOUND)), "media_type_unsupported"),
    "OpenAI: an image for gpt-4": (chat("openai", "gpt-4", message=user(PICTURE)), "media_unsupported"),
    "DeepSeek: sound": (chat("deepseek", "deepseek-chat", message=user(SOUND)), "media_type_unsupported"),
    "Groq: sound": (chat("groq", "llama-3.3-70b-versatile", message=user(SOUND)), "media_type_unsupported"),
    "Groq: an image for a text model": (
        chat("groq", "openai/gpt-oss-120b", message=user(PICTURE)),
        "media_unsupported",
    ),
    "Mistral: sound for another model than Voxtral": (mistral(message=user(SOUND)), "media_unsupported"),
    # -- types of tools
    "Mistral: web search": (mistral(tools=[{"type": "web_search"}]), "value_unknown"),
    "Groq: web search": (
        chat("groq", "llama-3.3-70b-versatile", tools=[{"type": "web_search"}]),
        "tool_type_unsupported",
    ),
    "DeepSeek: web search": (
        chat("deepseek", "deepseek-chat", tools=[{"type": "web_search"}]),
        "tool_type_unsupported",
    ),
    "OpenAI chat: web search": (chat("openai", "gpt-4o", tools=[{"type": "web_search_preview"}]), "value_unknown"),
    "OpenAI chat: a tool of Claude": (
        chat("openai", "gpt-4o", tools=[{"name": "f", "input_schema": {}}]),
        "field_unknown",
    ),
    # -- parameters of a model
    "OpenAI: log probabilities of a reasoning model": (chat("openai", "o4-mini", logprobs=True), "option_unsupported"),
    "OpenAI: a penalty for a reasoning model": (chat("openai", "gpt-5", presence_penalty=0.5), "option_unsupported"),
    "Responses: log probabilities of a reasoning model": (responses("gpt-5", top_logprobs=2), "option_unsupported"),
    "OpenAI: an effort for gpt-4o": (chat("openai", "gpt-4o", reasoning_effort="low"), "option_unsupported"),
    "Groq: an effort for Llama": (chat("groq", "llama-3.1-8b-instant", reasoning_effort="low"), "option_unsupported"),
    "Groq: log probabilities": (chat("groq", "llama-3.1-8b-instant", logprobs=True), "option_unsupported"),
    "DeepSeek: the content of a result as a list": (
        (
            "openai-chat",
            "deepseek",
            "deepseek-chat",
            {
                "messages": [
                    {"role": "user", "content": "x"},
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                    },
                    {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "x"}]},
                ]
            },
        ),
        "type_wrong",
    ),
    "Gemini: a required property that is not defined": (
        (
            "google-genai",
            "google",
            "gemini-2.5-flash",
            {
                "contents": [{"role": "user", "parts": [{"text": "x"}]}],
                "tools": [
                    {
                        "functionDeclarations": [
                            {"name": "f", "parameters": {"type": "object", "properties": {}, "required": ["a"]}}
                        ]
                    }
                ],
            },
        ),
        "schema_invalid",
    ),
    "MiniMax: a schema of the output": (
        (
            "anthropic-messages",
            "minimax",
            "MiniMax-M2.7",
            {
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "x"}],
                "output_config": {"format": {"type": "x"}},
            },
        ),
        "option_unsupported",
    ),
    "Claude: the highest effort while thinking is disabled": (
        (
            "anthropic-messages",
            "anthropic",
            "claude-sonnet-5",
            {
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "x"}],
                "thinking": {"type": "disabled"},
                "output_config": {"effort": "max"},
            },
        ),
        "effort_unsupported",
    ),
    "xAI: a penalty of zero": (chat("xai", "grok-4.6", presence_penalty=0), "option_unsupported"),
    "xAI: an effort for Grok 4": (chat("xai", "grok-4-0709", reasoning_effort="low"), "option_unsupported"),
    "DeepSeek: log probabilities of the reasoner": (
        chat("deepseek", "deepseek-reasoner", logprobs=True),
        "option_unsupported",
    ),
    "Gemini 2.5 Pro: log probabilities": (gemini(generationConfig={"responseLogprobs": True}), "option_unsupported"),
    "DeepSeek: a forced call while thinking": (
        chat("deepseek", "deepseek-v4", tools=function(CLOSED), tool_choice=CHOICE, thinking={"type": "enabled"}),
        "tool_choice_with_thinking",
    ),
    "DeepSeek: a forced call where thinking is on by default": (
        chat("deepseek", "deepseek-v4-pro", tools=function(CLOSED), tool_choice="required"),
        "tool_choice_with_thinking",
    ),
    "DeepSeek: a call without its reasoning where thinking is on by default": (
        loop("deepseek", "deepseek-v4-flash", tools=function(CLOSED)),
        "reasoning_missing",
    ),
    "Gemini over Chat: a call without its signature": (loop("google", "gemini-3.5-flash"), "signature_missing"),
    "Qwen: thinking by default in a reply that is not streamed": (chat("alibaba", "qwen3-8b"), "stream_required"),
    "xAI: an effort for Grok 4.1 over Responses": (
        responses("grok-4-1-fast", "xai", reasoning={"effort": "medium"}),
        "option_unsupported",
    ),
    "Copilot: functions beside an effort": (
        chat("github-copilot", "gpt-5.6-terra", tools=function(CLOSED), reasoning_effort="high"),
        "option_with_thinking",
    ),
    "Copilot: the older name of the limit": (chat("github-copilot", "gpt-5.4", max_tokens=9), "option_renamed"),
    "OpenAI: a limit above the model's": (chat("openai", "gpt-4o", max_tokens=100_000), "max_tokens_too_large"),
    "Gemini: a limit above the model's": (gemini(generationConfig={"maxOutputTokens": 10**6}), "max_tokens_too_large"),
    # -- schemas
    "OpenAI: an open strict output": (
        chat("openai", "gpt-4o", response_format=output(OPEN, strict=True)),
        "schema_not_strict",
    ),
    "OpenAI: a keyword that strict mode lacks": (
        chat("openai", "gpt-4o", response_format=output({**CLOSED, "allOf": [CLOSED]}, strict=True)),
        "schema_keyword_unsupported",
    ),
    "OpenAI: a strict list": (
        chat("openai", "gpt-4o", response_format=output({"type": "array", "items": CLOSED}, strict=True)),
        "schema_root_invalid",
    ),
    "OpenAI: no schema at all": (chat("openai", "gpt-4o", response_format={"type": "json_schema"}), "field_missing"),
    "OpenAI: a schema in the wrong place": (
        chat("openai", "gpt-4o", response_format={"type": "json_schema", "schema": OPEN}),
        "field_unknown",
    ),
    "OpenAI: an optional property of a strict function": (
        chat("openai", "gpt-4o", tools=function({**CLOSED, "required": []}, strict=True)),
        "schema_not_strict",
    ),
    "OpenAI: a list without items": (
        chat("openai", "gpt-4o", tools=function({"type": "object", "properties": {"a": {"type": "array"}}})),
        "schema_invalid",
    ),
    "OpenAI: a type that does not exist": (
        chat("openai", "gpt-4o", tools=function({"type": "object", "properties": {"a": {"type": "str"}}})),
        "schema_invalid",
    ),
    "Responses: an open strict output": (
        responses("gpt-5", text={"format": {"type": "json_schema", "name": "x", "schema": OPEN, "strict": True}}),
        "schema_not_strict",
    ),
    "OpenAI: JSON mode without the word": (
        chat("openai", "gpt-4o", response_format={"type": "json_object"}),
        "json_word_missing",
    ),
    "DeepSeek: a schema": (chat("deepseek", "deepseek-chat", response_format=output(CLOSED)), "option_unsupported"),
    "Claude: an open output": (
        claude(output_config={"format": {"type": "json_schema", "schema": OPEN}}),
        "schema_not_strict",
    ),
    "Claude: a limit of a number in the output": (
        claude(output_config={"format": {"type": "json_schema", "schema": {**NUMBER, "additionalProperties": False}}}),
        "schema_keyword_unsupported",
    ),
    "Claude: a schema that refers to itself": (
        claude(
            output_config={
                "format": {
                    "type": "json_schema",
                    "schema": {
                        "$ref": "#/$defs/a",
                        "$defs": {"a": {**CLOSED, "properties": {"a": {"$ref": "#/$defs/a"}}}},
                    },
                }
            }
        ),
        "schema_recursive",
    ),
    "Claude: many strict tools": (
        claude(tools=[{"name": f"f{n}", "input_schema": CLOSED, "strict": True} for n in range(21)]),
        "tools_too_many",
    ),
    "Claude: many optional properties": (
        claude(
            tools=[
                {
                    "name": "f",
                    "strict": True,
                    "input_schema": {
                        "type": "object",
                        "properties": {f"p{n}": {"type": "string"} for n in range(25)},
                        "additionalProperties": False,
                    },
                }
            ]
        ),
        "schema_too_large",
    ),
    "Gemini: a keyword that its dialect lacks": (
        gemini(
            tools=[
                {
                    "functionDeclarations": [
                        {
                            "name": "f",
                            "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "const": "x"}}},
                        }
                    ]
                }
            ]
        ),
        "field_unknown",
    ),
    # -- keys and values of other wires
    "Mistral: the newer name of the limit": (mistral(max_completion_tokens=9), "field_unknown"),
    "Mistral: a name of a user message": (mistral(message={**HI, "name": "Ada"}), "field_unknown"),
    "Mistral's own endpoint over OpenAI's protocol": (
        chat("mistral", "mistral-large-latest", max_completion_tokens=9),
        "option_unsupported",
    ),
    "Groq: a key of OpenAI": (chat("groq", "llama-3.1-8b-instant", store=True), "option_unsupported"),
    "Groq: a key of vLLM": (chat("groq", "qwen/qwen3-32b", chat_template_kwargs={}), "field_unknown"),
    "Claude: an index in a block": (
        claude(messages=[{"role": "user", "content": [{"type": "text", "text": "hi", "index": 0}]}]),
        "field_unknown",
    ),
    "Claude: a key of OpenAI": (claude(response_format={"type": "json_object"}), "field_unknown"),
    "Cohere: a parameter of another wire": (cohere(top_p=0.5), "field_unknown"),
    "OpenAI: a system message that is a list of blocks of Claude": (
        chat("openai", "gpt-4o", message={"role": "user", "content": {"text": "hi"}}),
        "type_wrong",
    ),
    "DeepSeek: the role of OpenAI's instructions": (
        chat("deepseek", "deepseek-chat", message={"role": "developer", "content": "hi"}),
        "role_unknown",
    ),
    # -- limits and choices of one that the service model of Bedrock states
    "Bedrock: two choices of a tool": (
        converse(toolConfig={"tools": [TOOL], "toolChoice": {"auto": {}, "any": {}}}),
        "fields_exclusive",
    ),
    "Bedrock: no choice of a tool": (converse(toolConfig={"tools": [TOOL], "toolChoice": {}}), "fields_exclusive"),
    "Bedrock: a pattern": (converse(guardrailConfig={"guardrailVersion": "latest"}), "value_malformed"),
    "Bedrock: letters of a key": (converse(requestMetadata={"a|b": "x"}), "value_malformed"),
    "Bedrock: a long list": (converse(additionalModelResponseFieldPaths=["/a"] * 11), "value_out_of_range"),
    "Bedrock: a key that Claude does not have": (
        converse(additionalModelRequestFields={"reasoning": {"effort": "low"}}),
        "field_unknown",
    ),
    "Bedrock: a cache point of a model without a cache": (
        converse("us.meta.llama3-3-70b-instruct-v1:0", system=[{"text": "a"}, {"cachePoint": {"type": "default"}}]),
        "cache_marks_too_many",
    ),
    "Bedrock: a key of Claude's own wire": (
        ("anthropic-messages", "amazon-bedrock", "claude-sonnet-4-5", {**claude()[3], "speculation": 1}),
        "field_unknown",
    ),
    "Bedrock: a cache mark of the whole body": (
        (
            "anthropic-messages",
            "amazon-bedrock",
            "claude-sonnet-4-5",
            {**claude()[3], "cache_control": {"type": "ephemeral"}},
        ),
        "field_unknown",
    ),
    "Gemini: two kinds of data in a part": (
        gemini(
            contents=[
                {"role": "user", "parts": [{"text": "a", "fileData": {"fileUri": "gs://a/b", "mimeType": "image/png"}}]}
            ]
        ),
        "fields_exclusive",
    ),
    "Gemini: a file without its address": (
        gemini(contents=[{"role": "user", "parts": [{"fileData": {"mimeType": "image/png"}}]}]),
        "field_missing",
    ),
    "Vertex: results beside a text": (
        gemini(
            "gemini-3.7-flash",
            provider="google-vertex",
            contents=[
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}, {"text": "b"}]},
            ],
        ),
        "result_misplaced",
    ),
    # -- keys of the body
    "OpenAI: metadata that is no text": (chat("openai", "gpt-4o", store=True, metadata={"a": 1}), "type_wrong"),
    "OpenAI: two limits": (chat("openai", "gpt-4o", max_tokens=9, max_completion_tokens=9), "options_conflict"),
    "OpenAI: a search in JSON mode": (
        responses("gpt-4.1", input="json", tools=[{"type": "web_search"}], text={"format": {"type": "json_object"}}),
        "options_conflict",
    ),
    "Azure: a key that OpenAI has": (
        responses("o4-mini", "azure", reasoning={"generate_summary": "auto"}),
        "field_unknown",
    ),
    "Cerebras: a key": (chat("cerebras", "gpt-oss-120b", maxTokens=9), "field_unknown"),
    "Cerebras: a key of a message": (
        chat("cerebras", "gpt-oss-120b", message={"role": "assistant", "content": "a", "reasoning_content": "b"}),
        "field_unknown",
    ),
    "Fireworks: a key": (
        chat("fireworks", "accounts/fireworks/models/glm-5p3", vl_high_resolution_images=True),
        "field_unknown",
    ),
    "Mistral in OpenAI's format": (chat("mistral", "mistral-large-latest", top_a=1), "field_unknown"),
    # -- what a model does not have
    "Ollama: tools": (ollama("gemma3:4b", tools=function(OPEN)), "tools_unsupported"),
    "Ollama: thinking": (ollama("llama3.2", think=True), "option_unsupported"),
    "Ollama: no duration": (ollama("llama3.2", keep_alive="5 minutes"), "type_wrong"),
    "Bedrock: documents for GPT": (
        converse(
            "openai.gpt-5.6-terra",
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"text": "a"},
                        {"document": {"name": "a", "format": "pdf", "source": {"bytes": "JVBERi0xLjQK"}}},
                    ],
                }
            ],
        ),
        "media_unsupported",
    ),
    "Bedrock: tools of Llama in a stream": (
        converse("us.meta.llama3-3-70b-instruct-v1:0", stream=True, toolConfig={"tools": [TOOL]}),
        "options_conflict",
    ),
    "Bedrock: stops of Qwen": (
        converse("qwen.qwen3-235b-a22b-2507-v1:0", inferenceConfig={"stopSequences": ["a"]}),
        "option_unsupported",
    ),
    "Bedrock: a temperature of Kimi": (
        converse("moonshot.kimi-k2-thinking", inferenceConfig={"temperature": 0.5}),
        "option_unsupported",
    ),
    "Bedrock: a type of thinking": (
        converse(
            "us.anthropic.claude-opus-4-8",
            additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 2000}},
        ),
        "thinking_mode_unsupported",
    ),
    "Bedrock: top_k of a Claude without sampling": (
        converse("us.anthropic.claude-opus-4-8", additionalModelRequestFields={"top_k": 5}),
        "option_unsupported",
    ),
    "Claude: a tool of another generation": (
        claude(tools=[{"type": "bash_20241022", "name": "bash"}]),
        "option_unsupported",
    ),
    "Claude: thinking of a model without it": (
        claude("claude-3-5-haiku-20241022", max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 2000}),
        "thinking_mode_unsupported",
    ),
    "Claude: an output schema of a model without them": (
        claude("claude-sonnet-4-20250514", output_config={"format": {"type": "json_schema", "schema": CLOSED}}),
        "option_unsupported",
    ),
    "Ollama: a call without a name in Anthropic's format": (
        (
            "anthropic-messages",
            "ollama",
            "kimi-k2.6:cloud",
            {
                "model": "kimi-k2.6:cloud",
                "max_tokens": 9,
                "messages": [
                    HI,
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "b"}]},
                ],
            },
        ),
        "tool_name_invalid",
    ),
    "any vendor: a tool without a name": (
        chat("together", "x/y", tools=[{"type": "function", "function": {"parameters": OPEN}}]),
        "tool_name_invalid",
    ),
    "Gemini: what only Vertex has": (gemini(labels={"a": "b"}), "field_unknown"),
    "Gemini: a key that only Vertex has": (gemini(generationConfig={"audioTimestamp": True}), "field_unknown"),
    "Vertex: a tool that only the Gemini API has": (
        gemini(provider="google-vertex", tools=[{"fileSearch": {"fileSearchStoreNames": ["a"]}}]),
        "field_unknown",
    ),
    "Gemini: a tool that the model does not have": (
        gemini("gemini-2.0-flash", tools=[{"urlContext": {}}]),
        "option_unsupported",
    ),
    "Gemini: a level that the model does not have": (
        gemini("gemini-3-pro-preview", generationConfig={"thinkingConfig": {"thinkingLevel": "minimal"}}),
        "effort_unsupported",
    ),
    "OpenAI: a retention of the cache": (responses("gpt-5.5", prompt_cache_retention="in_memory"), "value_unknown"),
    "OpenAI: a summary": (responses("gpt-5", reasoning={"summary": "concise"}), "option_unsupported"),
    "OpenAI: a tool of newer models": (responses("gpt-4.1", tools=[{"type": "shell"}]), "option_unsupported"),
    "Codex: a stored reply": (
        responses("gpt-5.5", "openai-codex", instructions="a", store=True, stream=True),
        "value_unknown",
    ),
    "Codex: instructions as a message": (
        responses(
            "gpt-5.5",
            "openai-codex",
            instructions="a",
            store=False,
            stream=True,
            input=[{"role": "system", "content": "a"}],
        ),
        "option_unsupported",
    ),
    "Groq: functions of a compound system": (chat("groq", "groq/compound", tools=function(OPEN)), "tools_unsupported"),
    "Perplexity: tools": (chat("perplexity", "sonar", tools=function(OPEN)), "tools_unsupported"),
    "Kimi: a forced call while it thinks unasked": (
        chat("moonshotai", "kimi-k2.6", tools=function(OPEN), tool_choice="required"),
        "tool_choice_with_thinking",
    ),
    "Kimi: thinking off": (chat("moonshotai", "kimi-k2.7-code", thinking={"type": "disabled"}), "option_unsupported"),
}


@pytest.mark.parametrize(("given", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_a_target_cannot_do_is_found(given, code):
    assert code in {found.code for found in check(*given)}


UNSURE: dict[str, tuple[tuple[str, str, str, dict[str, Any]], str]] = {
    "Responses: a function of chat": (responses("gpt-5", tools=function(CLOSED)), "field_unknown"),
    "Cohere: a schema under the name of another wire": (
        cohere(response_format={"type": "json_schema"}),
        "value_unknown",
    ),
    "Cohere: an unknown value": (cohere(safety_mode="HIGH"), "value_unknown"),
}
"""What was answered in recorded traffic all the same."""


@pytest.mark.parametrize(("given", "code"), UNSURE.values(), ids=UNSURE.keys())
def test_what_was_answered_is_found_only_by_a_strict_check(given, code):
    assert code not in {found.code for found in check(*given)}
    assert code in {found.code for found in check(*given, strict=True) if found.grade != "refused"}


def check(
    protocol: str, provider: str, model_id: str, body: dict[str, Any], *, strict: bool = False
) -> list[segue.Violation]:
    listed = [one for one in find_models(provider=provider) if one.id == model_id]
    model = Model(model_id, provider, protocol)
    if listed:
        model = Model(model_id, provider, protocol, input=listed[0].input, max_tokens=listed[0].max_tokens)
    return segue.check(body, protocol=protocol, model=model, strict=strict)


ACCEPTED: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "OpenAI: what clients return of a reply": (
        "openai-chat",
        "openai",
        "gpt-4o",
        {
            "model": "gpt-4o",
            "messages": [
                HI,
                {"role": "assistant", "content": "hi", "annotations": []},
                {"role": "assistant", "content": None, "tool_calls": [{**CALL, "index": 0}]},
                {**RESULT, "name": "f"},
            ],
            "tools": function(OPEN, type="function"),
        },
    ),
    "DeepSeek: a forced call with thinking off": chat(
        "deepseek", "deepseek-v4-pro", tools=function(CLOSED), tool_choice="required", thinking={"type": "disabled"}
    ),
    "DeepSeek: an answer without its reasoning": (
        "openai-chat",
        "deepseek",
        "deepseek-v4-pro",
        {"model": "deepseek-v4-pro", "messages": [HI, {"role": "assistant", "content": "hi"}, HI]},
    ),
    "Gemini over Chat: a call with its signature": loop(
        "google", "gemini-3.5-flash", call={**CALL, "extra_content": {"google": {"thought_signature": "aGk="}}}
    ),
    "Qwen: thinking by default in a stream": chat("alibaba", "qwen3-8b", stream=True),
    "Qwen: no thinking": chat("alibaba", "qwen3-8b", enable_thinking=False),
    "sound for a model that hears": chat("openai", "gpt-4o-audio-preview", message=user(SOUND)),
    "sound for Voxtral": (
        "mistral-chat",
        "mistral",
        "voxtral-small-latest",
        {"messages": [user(SOUND)]},
    ),
    "what codex sends besides the fields of the SDK": responses(
        "gpt-5.4",
        client_metadata={"thread_id": "t"},
        stream=True,
        stream_options={"reasoning_summary_delivery": "sequential_cutoff"},
    ),
    "log probabilities of a model that does not reason": chat("openai", "gpt-4o", logprobs=True, top_logprobs=2),
    "log probabilities with effort none": chat("openai", "gpt-5.2", logprobs=True, reasoning_effort="none"),
    "default values of refused parameters": chat("openai", "gpt-5", presence_penalty=0, logprobs=False),
    "an effort for a Grok that has it": chat("xai", "grok-4.3", reasoning_effort="low"),
    "a closed strict output": chat("openai", "gpt-4o", response_format=output(CLOSED, strict=True)),
    "an open output that is not strict": chat("openai", "gpt-4o", response_format=output(OPEN)),
    "a limit of a number in a strict output": chat(
        "openai", "gpt-4o", response_format=output({**NUMBER, "additionalProperties": False}, strict=True)
    ),
    "JSON mode with the word": chat(
        "openai",
        "gpt-4o",
        message={"role": "user", "content": "Answer in JSON"},
        response_format={"type": "json_object"},
    ),
    "a closed output of Claude": claude(output_config={"format": {"type": "json_schema", "schema": CLOSED}}),
    "an optional property of a strict tool of Claude": claude(
        tools=[{"name": "f", "input_schema": {**CLOSED, "required": []}, "strict": True}]
    ),
    "an open tool of Claude": claude(tools=[{"name": "f", "input_schema": OPEN}]),
    "keys of another wire at a vendor that takes them": chat("openrouter", "x/y", top_k=5, reasoning={"effort": "low"}),
    "a choice of Cohere in small letters": cohere(tools=function(OPEN), tool_choice="required"),
    "encrypted reasoning beside its format": chat(
        "openrouter",
        "x/y",
        message={"role": "user", "content": "hi"},
        reasoning={"format": "a", "type": "reasoning.encrypted", "data": "abc"},
    ),
    "arguments that are null": (
        "openai-chat",
        "openai",
        "gpt-4o",
        {
            "messages": [
                HI,
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "null"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": "x"},
            ]
        },
    ),
    "two user turns of Nova": (
        "bedrock-converse",
        "amazon-bedrock",
        "us.amazon.nova-lite-v1:0",
        {"messages": [{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"text": "b"}]}]},
    ),
    "Bedrock: one choice of a tool": converse(toolConfig={"tools": [TOOL], "toolChoice": {"any": {}}}),
    "Bedrock: keys of Claude": converse(
        inferenceConfig={"maxTokens": 4000},
        additionalModelRequestFields={"thinking": {"type": "enabled", "budget_tokens": 2000}, "anthropic_beta": ["a"]},
    ),
    "Bedrock: keys of another model": converse(
        "us.amazon.nova-lite-v1:0", additionalModelRequestFields={"inferenceConfig": {"topK": 5}}
    ),
    "Vertex: results beside a text of an older model": gemini(
        provider="google-vertex",
        contents=[
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}, {"text": "b"}]},
        ],
    ),
    "Vertex: results alone": gemini(
        provider="google-vertex",
        contents=[
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]},
            {"role": "user", "parts": [{"text": "b"}]},
        ],
    ),
    "Gemini: results beside a text": gemini(
        contents=[
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}, {"text": "b"}]},
        ],
    ),
    "Cerebras: its own keys": chat("cerebras", "gpt-oss-120b", disable_reasoning=True, presence_penalty=0.5),
    "Fireworks: its own keys": chat("fireworks", "accounts/fireworks/models/glm-5p3", top_k=5, reasoning_effort=99),
    "Mistral in OpenAI's format, its own keys": chat("mistral", "mistral-large-latest", safe_prompt=True),
    "Vertex: labels": gemini(provider="google-vertex", labels={"a": "b"}),
    "Claude: a tool of its generation": claude(tools=[{"type": "bash_20250124", "name": "bash"}]),
    "Claude: an output schema": claude(
        "claude-opus-4-1-20250805", output_config={"format": {"type": "json_schema", "schema": CLOSED}}
    ),
    "Codex: what its client sends": responses("gpt-5.5", "openai-codex", instructions="a", store=False, stream=True),
    "Bedrock: tools of Llama at once": converse("us.meta.llama3-3-70b-instruct-v1:0", toolConfig={"tools": [TOOL]}),
    "OpenAI: a longer cache": responses("gpt-4.1", prompt_cache_retention="24h"),
    "Ollama: thinking off": ollama("llama3.2", think=False, keep_alive="1h30m"),
    "Ollama: tools of a model that has them": ollama("llama3.2", tools=function(OPEN), keep_alive=-1),
    "Kimi: a forced call without thinking": chat(
        "moonshotai", "kimi-k2.6", tools=function(OPEN), tool_choice="required", thinking={"type": "disabled"}
    ),
}


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_a_target_can_do_is_not_found(given):
    assert check(*given) == []


# -- what no SDK has yet -----------------------------------------------------------------------------------------------

NOVEL = {
    "a parameter": chat("openai", "gpt-4o", brand_new_parameter=True),
    "a type of tool": responses("gpt-5", tools=[{"type": "brand_new_tool"}]),
}


@pytest.mark.parametrize("given", NOVEL.values(), ids=NOVEL.keys())
def test_what_no_sdk_has_is_reported_and_still_sent(given):
    """It is refused, or newer than the SDKs; a projection that removed it would make new parameters useless."""
    protocol, provider, model_id, body = given
    model = Model(model_id, provider, protocol, reasoning=protocol == "openai-responses")
    assert len(check(*given)) == 1
    prompt = segue.decode_request(body, protocol=protocol, model=model)
    request = segue.prepare(prompt.context, model, options=prompt.options)
    new = {"brand_new_parameter", "tools"} & body.keys()
    assert {key: request.body[key] for key in new} == {key: body[key] for key in new}


# -- every rule is checked ---------------------------------------------------------------------------------------------

NOT_IN_A_BODY = {
    "server_edits": "projection alone: what the server is asked to shorten",
    "compaction": "projection alone: when it is asked",
    "repeated_call_ids": "projection alone: no provider refuses an id that is unique in a wider scope",
    "tool_error": "projection alone: how an error is marked",
    "schema_needed": "projection alone: what is left out",
    "url_media": "projection alone: what a server fetches",
    "file_id_pattern": "projection alone: whose file an id is",
    "file_context": "projection alone: where a context is written",
    "pages": "needs the file",
    "resumable_stops": "projection alone: which turns may be continued",
    "instructions_alone": "projection alone: a turn is added",
    "blank_beside": "projection alone: which blank texts are kept",
    "text_phases": "projection alone: what is written",
    "text_signatures": "projection alone: what is written",
    "bound_prefix": "needs the request before: `check(after=...)`",
    "drops_unbound": "projection alone: a field that asks for it",
    "bound_account": "needs the account",
    "budget_in_max_tokens": "projection alone: how much room a budget leaves",
    "portable_extra": "projection alone: which keys are sent",
    "session_id": "projection alone: ids are shortened",
    "assistant_prefix": "projection alone: a flag that is sent",
    "choice_of_functions": "checked by the protocol that refuses it, by the generation of the model",
    "untyped_media": "projection alone: a body without one is no valid block",
    "request_media": "projection alone: providers count bytes in different ways",
    "tool_changes": "projection alone: how a changed list of tools is sent",
    "minimal_with_server_tools": "projection alone: a level is raised",
    "any_output_root": "projection alone: whether a schema is wrapped in an object",
    "unset_max_tokens": "checked by `max_tokens` of the protocol that requires it",
}
"""Rules that no check reads, each with the reason."""


def test_every_rule_is_read_by_a_check_or_needs_more_than_a_body():
    folder = Path(segue.protocols.__file__).parent
    shared = ("capabilities", "checking", "efforts", "media_checks", "ranges", "request_fields", "schemas")
    files = [
        *folder.glob("*/check*.py"),
        *folder.glob("families/*_checks.py"),
        *(folder / "kit" / f"{name}.py" for name in shared),
        folder / "api.py",
    ]
    checks = "".join(path.read_text("utf-8") for path in files)
    unread = {name for name in (*Rules.__struct_fields__, *PLACES) if name not in checks} - NOT_IN_A_BODY.keys()
    assert unread == set()
    assert NOT_IN_A_BODY.keys() <= {*Rules.__struct_fields__, *PLACES}
