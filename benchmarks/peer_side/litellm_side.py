"""The same history in litellm's format, which is OpenAI's chat messages, and its encoding for a target.

Facts this file relies on:
- `transform_request` of `AnthropicConfig`, `OpenAIGPTConfig` and `AmazonConverseConfig`, and for Gemini
  `transform_request_body` make the body; over its bridge to OpenAI's Responses,
  `convert_chat_completion_messages_to_responses_api` makes the input alone.               (litellm 1.106.2, 2026-11)
- Claude's signed thinking is kept as `thinking_blocks` beside `reasoning_content`.                        (the same)
- OpenAI's encrypted reasoning is kept as `reasoning_items`.                                               (the same)
- Gemini's signature is kept with the call: `provider_specific_fields.thought_signature`.                  (the same)
- For OpenAI it changes next to nothing, because its own format is OpenAI's.                               (the same)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import ChatMessage, Json, chat_history, chat_tools, thinking_of

_SIGNED_BLOCKS = frozenset({"anthropic-messages", "bedrock-converse"})


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in litellm's format and return the function that encodes it for the target."""
    litellm = import_module("litellm")
    target, context = task["target"], task["context"]
    history, tools = chat_history(context, _add_thinking), chat_tools(context)
    config, transform = _TRANSFORMS[target["protocol"]](litellm)
    asked: dict[str, Any] = {"tools": tools}
    if target["protocol"] == "anthropic-messages":
        asked["max_tokens"] = 4096
    name = target["id"]
    options = asked if config is None else config.map_openai_params(asked, {}, name, drop_params=False)
    # It takes lists apart and puts keys in: each call gets its own outer containers, as `completion` would give.
    return lambda: transform(name, list(history), dict(options))


Transform = Callable[[str, list[Any], dict[str, Any]], object]


def _by_config(config: Any) -> Transform:  # noqa: ANN401  # the peer's types are not known here
    return lambda model, messages, options: config.transform_request(
        model=model, messages=messages, optional_params=options, litellm_params={}, headers={}
    )


def _anthropic(litellm: Any) -> tuple[Any, Transform]:  # noqa: ANN401
    config = litellm.AnthropicConfig()
    return config, _by_config(config)


def _chat(litellm: Any) -> tuple[Any, Transform]:  # noqa: ANN401
    return None, _by_config(litellm.OpenAIGPTConfig())


def _bedrock(litellm: Any) -> tuple[Any, Transform]:  # noqa: ANN401
    config = litellm.AmazonConverseConfig()
    return config, _by_config(config)


def _google(litellm: Any) -> tuple[Any, Transform]:  # noqa: ANN401
    make_body = import_module("litellm.llms.vertex_ai.gemini.transformation").transform_request_body
    return litellm.GoogleAIStudioGeminiConfig(), lambda model, messages, options: make_body(
        messages=messages,
        model=model,
        optional_params=options,
        custom_llm_provider="gemini",
        litellm_params={},
        cached_content=None,
    )


def _responses(_: Any) -> tuple[Any, Transform]:  # noqa: ANN401
    bridge = import_module("litellm.completion_extras.litellm_responses_transformation.transformation")
    convert = bridge.LiteLLMResponsesTransformationHandler().convert_chat_completion_messages_to_responses_api
    return None, lambda _, messages, __: convert(messages)


_TRANSFORMS: Mapping[str, Callable[[Any], tuple[Any, Transform]]] = {
    "anthropic-messages": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "google-genai": _google,
    "bedrock-converse": _bedrock,
}
"""The functions that map the options, for protocols with their own, and that make the body."""


def _add_thinking(chat_message: ChatMessage, message: Json) -> None:
    thinking = thinking_of(message)
    if thinking is None:
        return
    chat_message["reasoning_content"] = thinking["thinking"]
    signature = thinking["thinkingSignature"]
    if message["protocol"] in _SIGNED_BLOCKS:
        chat_message["thinking_blocks"] = [
            {"type": "thinking", "thinking": thinking["thinking"], "signature": signature}
        ]
    elif message["protocol"] == "openai-responses":
        name = message["responseId"].removeprefix("msg_")
        summary = [{"type": "summary_text", "text": thinking["thinking"]}]
        item = {"type": "reasoning", "id": f"rs_{name}", "encrypted_content": signature, "summary": summary}
        chat_message["reasoning_items"] = [item]
    elif message["protocol"] == "google-genai" and "tool_calls" in chat_message:
        chat_message["tool_calls"][0]["provider_specific_fields"] = {"thought_signature": signature}
