"""The same history in pydantic-ai's types, and its encoding for a target.

Facts this file relies on:
- `AnthropicModel._map_message` and `_map_messages` of `OpenAIChatModel`, `OpenAIResponsesModel`, `GoogleModel` and
  `BedrockConverseModel` encode a history as dicts (Gemini's contain signatures as bytes); they are coroutines that
  never wait when there is nothing to fetch.                           (pydantic-ai-slim 2.66.0, read 2026-11)
- The arguments of a call are kept verbatim: text from OpenAI, an object from Anthropic.                 (the same)
- Signatures and ids are sent only to the provider whose name is stored with them.                       (the same)

Tools, options and the checks before a request are not timed here; segue's time includes all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import Any

from chat_form import Json, text_of

_FIELDS_AS_IDS = {"openai-chat": "reasoning_content"}
_ARGUMENTS_AS_TEXT = frozenset({"openai-chat", "openai-responses"})
_PROVIDERS = {"amazon-bedrock": "bedrock"}
"""pydantic-ai's names of providers that differ from segue's."""


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in pydantic-ai's types and return the function that encodes it for the target."""
    history = make_history(task["context"])
    models = import_module("pydantic_ai.models")
    parameters = models.ModelRequestParameters()
    target = task["target"]
    model = _MODELS[target["protocol"]](target)
    match target["protocol"]:
        case "anthropic-messages":
            return lambda: run(model._map_message(history, parameters, {}))  # noqa: SLF001
        case "openai-responses":
            # The instructions beside them may be a mark for "left out", which cannot be serialised.
            return lambda: run(model._map_messages(history, {}, parameters))[1]  # noqa: SLF001
        case "bedrock-converse":
            return lambda: run(model._map_messages(history, parameters, {}))  # noqa: SLF001
        case _:
            return lambda: run(model._map_messages(history, parameters))  # noqa: SLF001


def run(work: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401  # the peer's types are not known here
    """Run a coroutine that never waits, without the cost of an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("it wanted to wait")


def _anthropic(target: Json) -> Any:  # noqa: ANN401  # the peer's types are not known here
    models, providers = import_module("pydantic_ai.models.anthropic"), import_module("pydantic_ai.providers.anthropic")
    return models.AnthropicModel(target["id"], provider=providers.AnthropicProvider(api_key="none"))


def _chat(target: Json) -> Any:  # noqa: ANN401
    models = import_module("pydantic_ai.models.openai")
    kind = "DeepSeekProvider" if target["provider"] == "deepseek" else "OpenAIProvider"
    providers = import_module(f"pydantic_ai.providers.{target['provider']}")
    return models.OpenAIChatModel(target["id"], provider=getattr(providers, kind)(api_key="none"))


def _responses(target: Json) -> Any:  # noqa: ANN401
    models, providers = import_module("pydantic_ai.models.openai"), import_module("pydantic_ai.providers.openai")
    return models.OpenAIResponsesModel(target["id"], provider=providers.OpenAIProvider(api_key="none"))


def _google(target: Json) -> Any:  # noqa: ANN401
    models, providers = import_module("pydantic_ai.models.google"), import_module("pydantic_ai.providers.google")
    return models.GoogleModel(target["id"], provider=providers.GoogleProvider(api_key="none"))


def _bedrock(target: Json) -> Any:  # noqa: ANN401
    models, providers = import_module("pydantic_ai.models.bedrock"), import_module("pydantic_ai.providers.bedrock")
    provider = providers.BedrockProvider(api_key="none", region_name="us-east-1")
    return models.BedrockConverseModel(target["id"], provider=provider)


_MODELS: Mapping[str, Callable[[Json], Any]] = {
    "anthropic-messages": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "google-genai": _google,
    "bedrock-converse": _bedrock,
}


def make_history(context: Json) -> list[Any]:
    """Convert a stored transcript to requests and responses; the results of parallel calls are one request."""
    kinds = import_module("pydantic_ai.messages")
    messages: list[Any] = []
    waiting: list[Any] = [kinds.SystemPromptPart(content=context["systemPrompt"])]
    for message in context["messages"]:
        if message["role"] == "assistant":
            if waiting:
                messages.append(kinds.ModelRequest(parts=waiting))
                waiting = []
            messages.append(_response(message, kinds))
        elif message["role"] == "toolResult":
            part = kinds.ToolReturnPart(
                tool_name=message["toolName"],
                content=text_of(message["content"]),
                tool_call_id=message["toolCallId"],
                outcome="failed" if message.get("isError") else "success",
            )
            waiting.append(part)
        else:
            waiting.append(kinds.UserPromptPart(content=text_of(message["content"])))
    if waiting:
        messages.append(kinds.ModelRequest(parts=waiting))
    return messages


def _response(message: Json, kinds: Any) -> Any:  # noqa: ANN401
    provider, protocol = _PROVIDERS.get(message["provider"], message["provider"]), message["protocol"]
    parts: list[Any] = []
    for index, piece in enumerate(message["content"]):
        name = f"{message['responseId'].removeprefix('msg_')}{index:026}"
        owned = protocol == "openai-responses"
        if piece["type"] == "thinking":
            signature = None if protocol in _FIELDS_AS_IDS else piece["thinkingSignature"]
            label = f"rs_{name}" if owned else _FIELDS_AS_IDS.get(protocol)
            part = kinds.ThinkingPart(content=piece["thinking"], id=label, signature=signature, provider_name=provider)
        elif piece["type"] == "toolCall":
            arguments = piece["arguments"]
            if protocol in _ARGUMENTS_AS_TEXT:
                arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            part = kinds.ToolCallPart(
                tool_name=piece["name"],
                args=arguments,
                tool_call_id=piece["id"],
                id=f"fc_{name}" if owned else None,
                provider_name=provider,
            )
        else:
            part = kinds.TextPart(content=piece["text"], id=f"msg_{name}" if owned else None, provider_name=provider)
        parts.append(part)
    return kinds.ModelResponse(
        parts=parts, model_name=message["model"], provider_name=provider, provider_response_id=message["responseId"]
    )
