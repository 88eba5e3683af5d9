"""What `check` names and what it lets pass, over several protocols and providers.

The tables of one protocol are in its own folder.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import segue
from protocols.every_protocol import all_codecs
from segue.models.model import Model
from segue.protocols.registry import get_protocol

USER = {"role": "user", "content": "hi"}
ASKED = {"role": "user", "parts": [{"text": "hi"}]}
SEARCH = [{"googleSearch": {}}]
CALL = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
TEXT = {"type": "text", "text": "so"}
FUNCTION = [{"functionDeclarations": [{"name": "f"}]}]


def calling(mode: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    return {"contents": [ASKED], "tools": tools, "toolConfig": {"functionCallingConfig": {"mode": mode}}}


def thinking(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [ASKED, {"role": "model", "parts": [*parts, {"text": "x"}]}, ASKED]}


def answered(response: object, args: object = None) -> dict[str, Any]:
    call = {"functionCall": {"name": "f", "args": {} if args is None else args}, "thoughtSignature": "c2VhbA=="}
    result = {"functionResponse": {"name": "f", "response": response}}
    return {
        "contents": [ASKED, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}],
        "tools": FUNCTION,
    }


def claude(*blocks: dict[str, Any], **more: object) -> dict[str, Any]:
    turns = [USER, {"role": "assistant", "content": list(blocks)}, {"role": "user", "content": [RESULT]}]
    return {"max_tokens": 9, "messages": turns, **more}


def converse(*blocks: dict[str, Any]) -> dict[str, Any]:
    result = {"toolResult": {"toolUseId": "a", "content": [{"text": "ok"}]}}
    return {
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": list(blocks)},
            {"role": "user", "content": [result]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]},
    }


CONVERSE_CALL = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
VENDOR_ITEMS = [
    USER,
    {"type": "reasoning", "id": "84cf774d-60a1", "summary": [], "encrypted_content": None},
    {"role": "assistant", "content": "done"},
    USER,
]
GEMINI_3 = Model("gemini-3-pro-preview", "google", "google-genai")
GEMINI_2 = Model("gemini-2.5-flash", "google", "google-genai")
SONNET = Model("claude-sonnet-4-5", "anthropic", "anthropic-messages")
OPUS = Model("claude-opus-4-6", "anthropic", "anthropic-messages")
BEDROCK = Model("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon-bedrock", "bedrock-converse")
NOVA = Model("amazon.nova-pro-v1:0", "amazon-bedrock", "bedrock-converse")


def chat(model_id: str, provider: str = "openai") -> Model:
    return Model(model_id, provider, "openai-chat")


def responses(model_id: str, provider: str = "openai") -> Model:
    return Model(model_id, provider, "openai-responses")


PENALTIES = {"contents": [ASKED], "generationConfig": {"presencePenalty": 0.5, "frequencyPenalty": 0.5}}
EFFORT = {"output_config": {"effort": "xhigh"}}

CASES: dict[str, tuple[dict[str, Any], Model, set[str]]] = {
    "a calling mode beside Google Search alone, from Gemini 3 on": (calling("AUTO", SEARCH), GEMINI_3, set()),
    "the mode VALIDATED beside Google Search alone": (calling("VALIDATED", SEARCH), GEMINI_3, set()),
    "a calling mode beside Google Search alone, before Gemini 3": (
        calling("AUTO", SEARCH),
        GEMINI_2,
        {"tool_choice_without_tools"},
    ),
    "a calling mode without any tool": (calling("AUTO", []), GEMINI_3, {"tool_choice_without_tools"}),
    "a calling mode beside an empty list of functions": (
        calling("AUTO", [{"functionDeclarations": []}]),
        GEMINI_2,
        {"tool_choice_without_tools"},
    ),
    "a thought with a signature and without text": (
        thinking({"thought": True, "thoughtSignature": "c2VhbA=="}),
        GEMINI_3,
        set(),
    ),
    "the same in snake case": (thinking({"thought": True, "thought_signature": "c2VhbA=="}), GEMINI_3, set()),
    "a signature alone": (thinking({"thoughtSignature": "c2VhbA=="}), GEMINI_3, set()),
    "a thought with nothing": (thinking({"thought": True}), GEMINI_3, {"content_missing"}),
    "a thought with null": (thinking({"thought": True, "text": None}), GEMINI_3, {"content_missing"}),
    "penalties of 2.5 Pro at Vertex": (PENALTIES, Model("gemini-2.5-pro", "google-vertex", "google-genai"), set()),
    "penalties of 2.5 Pro at the Gemini API": (
        PENALTIES,
        Model("gemini-2.5-pro", "google", "google-genai"),
        {"option_unsupported"},
    ),
    "a list as the response of a function": (answered(["a"]), GEMINI_3, {"type_wrong"}),
    "a text as the response of a function": (answered("a"), GEMINI_3, {"type_wrong"}),
    "an object as the response of a function": (answered({"a": 1}), GEMINI_3, set()),
    "an empty object as the response of a function": (answered({}), GEMINI_3, set()),
    "a list as the arguments of a function": (answered({}, args=["a"]), GEMINI_3, {"type_wrong"}),
    "Claude: text after a call": (claude(CALL, TEXT), SONNET, {"text_after_call"}),
    "Claude: text before a call": (claude(TEXT, CALL), SONNET, set()),
    "another vendor's model: text after a call": (
        claude(CALL, TEXT),
        Model("kimi-k2", "moonshotai", "anthropic-messages"),
        set(),
    ),
    "Claude on Bedrock: text after a call": (converse(CONVERSE_CALL, {"text": "x"}), BEDROCK, {"text_after_call"}),
    "Claude on Bedrock: text before a call": (converse({"text": "x"}, CONVERSE_CALL), BEDROCK, set()),
    "Nova: text after a call": (converse(CONVERSE_CALL, {"text": "x"}), NOVA, set()),
    "Claude 4.6: effort xhigh": ({"max_tokens": 9, "messages": [USER], **EFFORT}, OPUS, {"effort_unsupported"}),
    "Claude 4.6: effort max": ({"max_tokens": 9, "messages": [USER], "output_config": {"effort": "max"}}, OPUS, set()),
    "Claude 4.8: effort xhigh": (
        {"max_tokens": 9, "messages": [USER], **EFFORT},
        Model("claude-opus-4-8", "anthropic", "anthropic-messages"),
        set(),
    ),
    "Claude Sonnet 4.5: any effort": (
        {"max_tokens": 9, "messages": [USER], "output_config": {"effort": "low"}},
        SONNET,
        {"effort_unsupported"},
    ),
    "o4-mini: effort minimal": (
        {"messages": [USER], "reasoning_effort": "minimal"},
        chat("o4-mini"),
        {"effort_unsupported"},
    ),
    "o4-mini with a date: effort minimal": (
        {"messages": [USER], "reasoning_effort": "minimal"},
        chat("o4-mini-2025-04-16"),
        {"effort_unsupported"},
    ),
    "o3: effort none": ({"messages": [USER], "reasoning_effort": "none"}, chat("o3"), {"effort_unsupported"}),
    "o4-mini: effort low": ({"messages": [USER], "reasoning_effort": "low"}, chat("o4-mini"), set()),
    "GPT-5: effort minimal": ({"messages": [USER], "reasoning_effort": "minimal"}, chat("gpt-5-mini"), set()),
    "GPT-5: effort none": (
        {"messages": [USER], "reasoning_effort": "none"},
        chat("gpt-5-mini"),
        {"effort_unsupported"},
    ),
    "GPT-5.1: effort minimal": (
        {"messages": [USER], "reasoning_effort": "minimal"},
        chat("gpt-5.1"),
        {"effort_unsupported"},
    ),
    "GPT-5.1: effort none": ({"messages": [USER], "reasoning_effort": "none"}, chat("gpt-5.1"), set()),
    "GPT-5.4: effort xhigh": (
        {"messages": [USER], "reasoning_effort": "xhigh"},
        chat("gpt-5.4"),
        set(),
    ),
    "GPT-6: effort max": ({"messages": [USER], "reasoning_effort": "max"}, chat("gpt-6-sol"), set()),
    "a model that nobody knows: effort xhigh": ({"messages": [USER], "reasoning_effort": "xhigh"}, chat("new"), set()),
    "a gateway's o4-mini: effort minimal": (
        {"messages": [USER], "reasoning_effort": "minimal"},
        chat("openai/o4-mini", "openrouter"),
        set(),
    ),
    "GPT-5.2: a temperature with an effort": (
        {"messages": [USER], "reasoning_effort": "low", "temperature": 0.5},
        chat("gpt-5.2"),
        {"option_unsupported"},
    ),
    "GPT-5.2: a temperature alone": ({"messages": [USER], "temperature": 0.5}, chat("gpt-5.2"), set()),
    "GPT-5.2: a temperature with effort none": (
        {"messages": [USER], "reasoning_effort": "none", "temperature": 0.5},
        chat("gpt-5.2"),
        set(),
    ),
    "Responses, GPT-5.2: a temperature with an effort": (
        {"input": "hi", "reasoning": {"effort": "low"}, "temperature": 0.5},
        responses("gpt-5.2"),
        {"option_unsupported"},
    ),
    "Responses, GPT-5.2: a temperature alone": ({"input": "hi", "temperature": 0.5}, responses("gpt-5.2"), set()),
    "OpenAI: an empty list of calls": (
        {"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER]},
        chat("gpt-4o"),
        {"tool_list_empty"},
    ),
    "another vendor: an empty list of calls": (
        {"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER]},
        chat("llama", "groq"),
        set(),
    ),
    "OpenAI: an empty list of tools": ({"messages": [USER], "tools": []}, chat("gpt-4o"), {"tool_list_empty"}),
    "a gateway that requires a list of tools": ({"messages": [USER], "tools": []}, chat("gpt-4o", "litellm"), set()),
    "OpenAI: a tool without a name": (
        {"messages": [USER], "tools": [{"type": "function", "function": {"name": ""}}]},
        chat("gpt-4o"),
        {"tool_name_invalid"},
    ),
    "OpenAI: five stop texts": ({"messages": [USER], "stop": list("abcde")}, chat("gpt-4o"), {"stop_invalid"}),
    "DeepSeek: five stop texts": (
        {"messages": [USER], "stop": list("abcde")},
        chat("deepseek-chat", "deepseek"),
        set(),
    ),
    "a local server: many stop texts, a high temperature": (
        {"messages": [USER], "stop": list("abcdefgh"), "temperature": 3},
        chat("m", "llama.cpp"),
        set(),
    ),
    "Responses, o4-mini: effort minimal": (
        {"input": "hi", "reasoning": {"effort": "minimal"}},
        responses("o4-mini"),
        {"effort_unsupported"},
    ),
    "Responses, o4-mini: no effort": ({"input": "hi", "reasoning": {"effort": None}}, responses("o4-mini"), set()),
    "Responses: a null where another protocol has a field": (
        {"input": "hi", "max_tokens": None, "response_format": None},
        responses("gpt-5.4"),
        set(),
    ),
    "a limit of one value": ({"messages": [{**USER, "name": "a b"}]}, chat("gpt-4.1"), {"value_malformed"}),
    "usage of a stream without a stream": (
        {"messages": [USER], "stream_options": {"include_usage": True}},
        chat("gpt-4.1"),
        {"option_needs_other"},
    ),
    "usage of a stream": (
        {"messages": [USER], "stream": True, "stream_options": {"include_usage": True}},
        chat("gpt-4.1"),
        set(),
    ),
    "metadata that are not stored": (
        {"messages": [USER], "metadata": {"a": "b"}},
        chat("gpt-4.1"),
        {"option_needs_other"},
    ),
    "metadata": ({"messages": [USER], "metadata": {"a": "b"}, "store": True}, chat("gpt-4.1"), set()),
    "a model of the Responses API alone": ({"messages": [USER]}, chat("gpt-5-codex"), {"option_unsupported"}),
    "Responses: a search with the lowest effort": (
        {"input": "hi", "reasoning": {"effort": "minimal"}, "tools": [{"type": "web_search"}]},
        responses("gpt-5"),
        {"options_conflict"},
    ),
    "Responses: an id of another kind": (
        {"input": "hi", "previous_response_id": "x"},
        responses("gpt-5"),
        {"value_malformed"},
    ),
    "Responses: a field of another protocol": (
        {"input": "hi", "max_tokens": 9},
        responses("gpt-5.4"),
        {"option_renamed"},
    ),
}


@pytest.mark.parametrize(("body", "model", "codes"), CASES.values(), ids=CASES.keys())
def test_a_body_is_refused_or_accepted(body, model, codes):
    assert {found.code for found in segue.check(body, protocol=model.protocol, model=model)} == codes


# -- without a model: who serves the model that the body names ---------------------------------------------------------

WITHOUT_A_MODEL: dict[str, tuple[str, dict[str, Any], bool]] = {
    "DeepSeek's items over Responses": (
        "openai-responses",
        {"model": "deepseek-v4-flash", "input": VENDOR_ITEMS},
        True,
    ),
    "xAI's items over Responses": ("openai-responses", {"model": "grok-unknown", "input": VENDOR_ITEMS}, True),
    "a gateway's items over Responses": ("openai-responses", {"model": "openai/gpt-x", "input": VENDOR_ITEMS}, True),
    "open weights over Responses": ("openai-responses", {"model": "meta-llama/x", "input": VENDOR_ITEMS}, True),
    "the same items of OpenAI's": ("openai-responses", {"model": "gpt-5.4-2026-03-01", "input": VENDOR_ITEMS}, False),
    "the same items of a deployment": ("openai-responses", {"model": "my-deployment", "input": VENDOR_ITEMS}, False),
    "the same items without a model": ("openai-responses", {"input": VENDOR_ITEMS}, False),
    "a part of another vendor over chat": (
        "openai-chat",
        {
            "model": "qwen/x",
            "messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "x"}}]}],
        },
        True,
    ),
    "Kimi over Anthropic Messages: text after a call": ("anthropic-messages", claude(CALL, TEXT, model="kimi-x"), True),
}


@pytest.mark.parametrize(("protocol", "body", "passes"), WITHOUT_A_MODEL.values(), ids=WITHOUT_A_MODEL.keys())
def test_rules_of_the_protocols_own_provider_do_not_apply_to_models_of_others(protocol, body, passes):
    assert (segue.check(body, protocol=protocol) == []) == passes


# -- what is empty or null ---------------------------------------------------------------------------------------------

PLAIN: dict[str, dict[str, Any]] = {
    "anthropic-messages": {"max_tokens": 9, "messages": [USER]},
    "openai-chat": {"messages": [USER]},
    "openai-responses": {"input": "hi"},
    "google-genai": {"contents": [ASKED]},
    "bedrock-converse": {"messages": [{"role": "user", "content": [{"text": "hi"}]}]},
    "mistral-chat": {"messages": [USER]},
    "ollama-chat": {"model": "x", "messages": [USER]},
    "cohere-chat": {"messages": [USER]},
    "google-interactions": {"input": "hi"},
    "vscode-lm": {"messages": [{"role": "user", "content": [{"$": "text", "value": "hi"}]}]},
    "plain-text": {"messages": [USER]},
}
SETTINGS: dict[str, tuple[str, ...]] = {
    "anthropic-messages": (
        "stop_sequences",
        "system",
        "tools",
        "temperature",
        "top_p",
        "top_k",
        "thinking",
        "metadata",
    ),
    "openai-chat": (
        *("stop", "temperature", "top_p", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "n", "seed"),
        *("top_logprobs", "reasoning_effort", "response_format", "web_search_options", "parallel_tool_calls", "user"),
    ),
    "openai-responses": (
        *("instructions", "temperature", "top_p", "max_output_tokens", "tools", "tool_choice", "reasoning", "text"),
        *("include", "previous_response_id", "conversation", "prompt", "metadata", "store", "truncation"),
    ),
    "google-genai": ("systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"),
    "bedrock-converse": ("system", "inferenceConfig", "toolConfig", "additionalModelRequestFields", "guardrailConfig"),
    "mistral-chat": (
        "stop",
        "temperature",
        "top_p",
        "max_tokens",
        "tools",
        "tool_choice",
        "random_seed",
        "prompt_mode",
    ),
    "ollama-chat": ("tools", "format", "options", "think", "keep_alive", "stream"),
    "cohere-chat": ("stop_sequences", "p", "k", "tools", "tool_choice", "documents", "thinking", "response_format"),
    "google-interactions": (
        *("system_instruction", "tools", "generation_config", "safety_settings", "response_format", "store", "stream"),
        *("previous_interaction_id", "cached_content", "labels", "background", "environment"),
    ),
    "vscode-lm": ("options",),
    "plain-text": (),
}
EMPTY_LISTS: dict[str, tuple[str, ...]] = {
    "anthropic-messages": ("stop_sequences", "tools", "system"),
    "openai-chat": ("stop",),
    "openai-responses": ("include",),
    "google-genai": ("tools", "safetySettings"),
    "mistral-chat": ("stop",),
    "bedrock-converse": ("system",),
    "ollama-chat": ("tools",),
    "cohere-chat": ("stop_sequences", "tools", "documents"),
    "google-interactions": ("tools", "safety_settings"),
}
MODELS: dict[str, tuple[str, ...]] = {
    "anthropic-messages": ("claude-sonnet-4-5", "claude-opus-4-8", "claude-fable-5"),
    "openai-chat": ("gpt-4o", "gpt-5-mini", "gpt-5.2", "gpt-6-sol", "o1", "o1-mini", "o3-mini", "o4-mini"),
    "openai-responses": ("gpt-4o", "gpt-5", "gpt-5.2", "gpt-6-sol", "o4-mini"),
    "google-genai": ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3.6-flash"),
    "bedrock-converse": (BEDROCK.id, NOVA.id, "openai.gpt-5.6-luna", "meta.llama4-x"),
    "mistral-chat": ("mistral-large-latest", "magistral-medium-latest"),
    "cohere-chat": ("command-a-03-2025",),
    "google-interactions": ("gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3.8-flash"),
}


PLAIN |= {codec.name: segue.prepare("hi", codec.example).body for codec in all_codecs() if codec.name not in PLAIN}


@pytest.mark.parametrize("protocol", PLAIN)
def test_a_plain_body_is_accepted(protocol):
    for model_id in MODELS.get(protocol, ("m",)):
        model = Model(model_id, get_protocol(protocol).provider, protocol)
        assert segue.check(PLAIN[protocol], protocol=protocol, model=model) == [], model_id


@pytest.mark.parametrize("protocol", PLAIN)
def test_a_setting_that_is_null_or_empty_is_as_good_as_absent(protocol):
    settings = [{key: None} for key in SETTINGS.get(protocol, ())] + [
        {key: []} for key in EMPTY_LISTS.get(protocol, ())
    ]
    for model_id, setting in product(MODELS.get(protocol, ("m",)), settings):
        model = Model(model_id, get_protocol(protocol).provider, protocol)
        assert segue.check({**PLAIN[protocol], **setting}, protocol=protocol, model=model) == [], (model_id, setting)


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("alibaba/qwen-max", "openai-chat"),
        ("ollama/glm-5.2:cloud", "anthropic-messages"),
        ("amazon-bedrock/ai21.j2-mid-v1", "bedrock-converse"),
    ],
)
def test_check_accepts_what_prepare_makes_for_a_model_that_is_only_named(name: str, protocol: str):
    """Both take the abilities of the entry: what it reads, and how much it writes."""
    provider, _, model_id = name.partition("/")
    made = segue.Model(model_id, provider, protocol)
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    image = segue.ImageContent(data=png, mime_type="image/png")
    context = segue.Context(messages=(segue.UserMessage(content=(segue.TextContent(text="x"), image)),))
    request = segue.prepare(context, made, options=segue.Options(max_tokens=900_000))
    assert segue.check(request.body, protocol=protocol, model=made) == []
