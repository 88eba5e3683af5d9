"""The same history in strands' format, which is Bedrock's messages, and its encoding for a target.

Facts this file relies on:
- `format_request` (for OpenAI's Responses and for Gemini `_format_request`) makes the request; Gemini's uses objects
  of google-genai.                                                                    (strands-agents 1.62.0, 2026-11)
- A signature is kept beside the text of `reasoningText`, without the name of its model.                    (the same)
- OpenAI gets no reasoning, Anthropic and Bedrock only signed reasoning.                                    (the same)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import Json, text_of

_SIGNED = frozenset({"anthropic-messages", "bedrock-converse", "google-genai"})


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in strands' format and return the function that encodes it for the target."""
    context, target = task["context"], task["target"]
    tools = [
        {"name": tool["name"], "description": tool["description"], "inputSchema": {"json": tool["parameters"]}}
        for tool in context["tools"]
    ]
    return _FORMATS[target["protocol"]](target["id"], make_history(context), tools, context["systemPrompt"])


Made = Callable[[], object]
History = list[dict[str, Any]]


def _anthropic(model: str, history: History, tools: History, system: str) -> Made:
    kind = import_module("strands.models.anthropic").AnthropicModel
    format_request = kind(client_args={"api_key": "none"}, model_id=model, max_tokens=4096).format_request
    return lambda: format_request(history, tools, system)


def _chat(model: str, history: History, tools: History, system: str) -> Made:
    kind = import_module("strands.models.openai").OpenAIModel
    format_request = kind(client_args={"api_key": "none"}, model_id=model).format_request
    return lambda: format_request(history, tools, system)


def _responses(model: str, history: History, tools: History, system: str) -> Made:
    kind = import_module("strands.models.openai_responses").OpenAIResponsesModel
    format_request = kind(client_args={"api_key": "none"}, model_id=model)._format_request  # noqa: SLF001
    return lambda: format_request(history, tools, system)


def _google(model: str, history: History, tools: History, system: str) -> Made:
    kind = import_module("strands.models.gemini").GeminiModel
    format_request = kind(client_args={"api_key": "none"}, model_id=model)._format_request  # noqa: SLF001
    return lambda: format_request(history, tools, system, None)


def _bedrock(model: str, history: History, tools: History, system: str) -> Made:
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    kind = import_module("strands.models.bedrock").BedrockModel
    format_request = kind(region_name="us-east-1", api_key="none", model_id=model).format_request
    return lambda: format_request(history, tools, [{"text": system}])


_FORMATS: Mapping[str, Callable[[str, History, History, str], Made]] = {
    "anthropic-messages": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "google-genai": _google,
    "bedrock-converse": _bedrock,
}


def make_history(context: Json) -> History:
    """Convert a stored transcript to Bedrock's messages; the results of parallel calls are one user turn."""
    history: History = []
    for message in context["messages"]:
        if message["role"] == "assistant":
            content = [_block(piece, message["protocol"]) for piece in message["content"]]
            history.append({"role": "assistant", "content": content})
            continue
        if message["role"] == "toolResult":
            block: dict[str, Any] = {
                "toolResult": {
                    "toolUseId": message["toolCallId"],
                    "status": "error" if message.get("isError") else "success",
                    "content": [{"text": text_of(message["content"])}],
                }
            }
        else:
            block = {"text": text_of(message["content"])}
        if history and history[-1]["role"] == "user":
            history[-1]["content"].append(block)
        else:
            history.append({"role": "user", "content": [block]})
    return history


def _block(piece: Json, protocol: str) -> dict[str, Any]:
    if piece["type"] == "thinking":
        reasoning = {"text": piece["thinking"]}
        if protocol in _SIGNED:
            reasoning["signature"] = piece["thinkingSignature"]
        return {"reasoningContent": {"reasoningText": reasoning}}
    if piece["type"] == "toolCall":
        return {"toolUse": {"toolUseId": piece["id"], "name": piece["name"], "input": piece["arguments"]}}
    return {"text": piece["text"]}
