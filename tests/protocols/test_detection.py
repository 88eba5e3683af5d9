"""Detection of the protocol of a body: small bodies of each protocol, and some of none."""

from __future__ import annotations

import pytest

from segue.protocols.detection import detect_protocol

BODIES: dict[str, tuple[object, str | None]] = {
    "Anthropic by its own ids": ({"model": "claude-opus-4-8", "max_tokens": 9, "messages": []}, "anthropic-messages"),
    "Anthropic by a tool result": (
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}],
        "anthropic-messages",
    ),
    "OpenAI chat without any other clue": (
        {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
        "openai-chat",
    ),
    "OpenAI chat as a bare list": ([{"role": "user", "content": "hi"}], "openai-chat"),
    "a relay's Claude over OpenAI chat": (
        {"model": "anthropic/claude-opus-4.8", "messages": [{"role": "user", "content": "hi"}]},
        "openai-chat",
    ),
    "a relay's Claude with cache marks": (
        {
            "model": "claude-opus-4-8",
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}],
        },
        "openai-chat",
    ),
    "a relay's Claude without a limit": (
        {"model": "claude-opus-4-8", "stream": False, "messages": [{"role": "user", "content": "hi"}]},
        "openai-chat",
    ),
    "a relay's Claude with tools": (
        {
            "model": "claude-opus-4-8",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "function", "function": {"name": "f"}}],
        },
        "openai-chat",
    ),
    "Responses by its input": ({"model": "gpt-6-sol", "input": "hi"}, "openai-responses"),
    "Responses as bare items": ([{"type": "function_call", "call_id": "c", "name": "f"}], "openai-responses"),
    "Gemini by its contents": ({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "google-genai"),
    "Bedrock by untyped blocks": ({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, "bedrock-converse"),
    "Bedrock by its guardrail": (
        {"messages": [{"role": "user", "content": [{"guardContent": {}}]}], "guardrailConfig": {}},
        "bedrock-converse",
    ),
    "Bedrock by a guarded block": (
        [{"role": "user", "content": [{"guardContent": {"text": {"text": "hi"}}}]}],
        "bedrock-converse",
    ),
    "Mistral by its seed": ({"model": "x", "messages": [], "random_seed": 1}, "mistral-chat"),
    "Mistral by its own ids": (
        {"model": "voxtral-small-latest", "messages": [{"role": "user", "content": "hi"}]},
        "mistral-chat",
    ),
    "Mistral by its own ids, with many keys that OpenAI has too": (
        {
            "model": "mistral-large-latest",
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]},
                {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "a", "content": "x"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
            "response_format": {"type": "text"},
        },
        "mistral-chat",
    ),
    "OpenAI chat by calls and images alone": (
        [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ],
        "openai-chat",
    ),
    "Ollama by its options": ({"model": "x", "messages": [], "options": {"num_ctx": 9}}, "ollama-chat"),
    "Ollama by its thinking": ([{"role": "assistant", "content": "x", "thinking": "hm"}], "ollama-chat"),
    "Cohere by a tool plan": ({"messages": [{"role": "assistant", "tool_plan": "x"}]}, "cohere-chat"),
    "Cohere by its first id": ({"model": "command", "messages": [{"role": "user", "content": "hi"}]}, "cohere-chat"),
    "Cohere v1, which the codec of v2 refuses": ({"message": "hi", "chat_history": []}, "cohere-chat"),
    "VS Code by its parts": ({"messages": [{"role": "user", "content": [{"$": "text", "value": "x"}]}]}, "vscode-lm"),
    "VS Code by the tools in its options": ({"messages": [], "options": {"tools": []}}, "vscode-lm"),
    "OpenAI chat with a tool of the form of Responses": (
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f", "parameters": {}}]},
        "openai-chat",
    ),
    "OpenAI chat with fields that Responses has too": (
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], "instructions": "x", "max_output_tokens": 9},
        "openai-chat",
    ),
    "OpenAI chat with blocks of Responses": (
        {"messages": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
        "openai-chat",
    ),
    "OpenAI chat with turns of Gemini's form": ({"messages": [{"role": "user", "parts": []}]}, "openai-chat"),
    "OpenAI chat beside an empty input": (
        {"messages": [{"role": "user", "content": "hi"}], "input": None},
        "openai-chat",
    ),
    "Responses with a tool of the form of OpenAI chat": (
        {"model": "m", "input": "hi", "tools": [{"type": "function", "function": {"name": "f"}}]},
        "openai-responses",
    ),
    "Responses by a stored prompt": ({"prompt": {"id": "pmpt_1"}}, "openai-responses"),
    "Responses by a stored prompt, with a model and options": (
        {"model": "gpt-6-sol", "prompt": {"id": "pmpt_1", "variables": {"a": "b"}}, "stream": True, "temperature": 1},
        "openai-responses",
    ),
    "Responses by a stored conversation": ({"model": "gpt-6-sol", "conversation": "conv_1"}, "openai-responses"),
    "Responses by the object of a stored conversation": ({"conversation": {"id": "conv_1"}}, "openai-responses"),
    "Responses by its text settings": ({"model": "m", "text": {"verbosity": "low"}, "include": []}, "openai-responses"),
    "a prompt of the older completions": ({"model": "m", "prompt": "Once upon a time"}, None),
    "Ollama by options and tools": (
        {
            "model": "qwen3",
            "messages": [{"role": "user", "content": "hi"}],
            "options": {"temperature": 0},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        },
        "ollama-chat",
    ),
    "Ollama by options and tools, with calls and results": (
        {
            "model": "gpt-oss:20b",
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                {"role": "tool", "tool_call_id": "a", "content": "x"},
            ],
            "stream": False,
            "options": {},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        },
        "ollama-chat",
    ),
    "Ollama by options and tools, without a model": (
        {
            "messages": [{"role": "user", "content": "hi"}],
            "options": {"seed": 1},
            "tools": [{"function": {"name": "f"}}],
        },
        "ollama-chat",
    ),
    "Ollama by options and a model of Mistral": (
        {
            "model": "mistral-small:24b",
            "messages": [{"role": "user", "content": "hi"}],
            "options": {"num_predict": 9},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        },
        "ollama-chat",
    ),
    "Ollama by options and a model of Cohere": (
        {
            "model": "command-r7b",
            "messages": [{"role": "user", "content": "hi"}],
            "options": {"temperature": 0},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        },
        "ollama-chat",
    ),
    "Ollama by its format": (
        {"model": "qwen3", "messages": [{"role": "user", "content": "hi"}], "format": "json"},
        "ollama-chat",
    ),
    "a model of OpenAI's with options and tools": (
        {
            "model": "gpt-4o",
            "messages": [{"role": "user", "content": "hi"}],
            "options": {"temperature": 0},
            "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        },
        "openai-chat",
    ),
    "a gateway's model of OpenAI's with options": (
        {"model": "openai/gpt-5.4", "messages": [{"role": "user", "content": "hi"}], "options": {"temperature": 0}},
        "openai-chat",
    ),
    "an empty object": ({}, None),
    "an empty list": ([], None),
    "a number": (7, None),
    "a list of numbers": ([7], None),
}


@pytest.mark.parametrize(("body", "protocol"), BODIES.values(), ids=BODIES.keys())
def test_a_body_is_recognised_by_its_clues(body, protocol):
    assert detect_protocol(body) == protocol
