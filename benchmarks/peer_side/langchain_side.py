"""The same history in langchain's messages, and their mapping to a wire.

Facts this file relies on:
- `_get_request_payload` of a chat model makes the body for Anthropic and OpenAI, `_messages_to_bedrock` and
  `_parse_chat_history` the messages for Bedrock and Gemini; the last returns objects of google-genai, not dicts.
         (langchain-anthropic 1.7.7, langchain-openai 1.7.3, langchain-aws 1.9.1, langchain-google-genai 4.4.2, 2026-11)
- A turn of any provider has standard blocks if `response_metadata` has `output_version: v1`; it also has the
  `model_provider`. Signatures are in the `extras` of a block.                          (langchain-core 1.7.2, 2026-11)
- For Anthropic and Bedrock, most of its time is spent in `typing.get_type_hints` for every block.          (profiled)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import Json, chat_tools, text_of

_PROVIDERS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "deepseek",
    "openai-responses": "openai",
    "google-genai": "google_genai",
    "bedrock-converse": "bedrock_converse",
}


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in langchain's messages and return the function that encodes them for the target."""
    target, context = task["target"], task["context"]
    kinds = import_module("langchain_core.messages")
    history = [kinds.SystemMessage(content=context["systemPrompt"])]
    history += [_message(message, kinds) for message in context["messages"]]
    return _MAPPINGS[target["protocol"]](target, history, chat_tools(context))


def _anthropic(target: Json, history: list[Any], tools: list[Any]) -> Callable[[], object]:
    kind = import_module("langchain_anthropic").ChatAnthropic
    return _payload(kind(model=target["id"], api_key="none", max_tokens=4096), history, tools)


def _chat(target: Json, history: list[Any], tools: list[Any]) -> Callable[[], object]:
    kind = import_module("langchain_openai").ChatOpenAI
    return _payload(kind(model=target["id"], api_key="none", use_responses_api=False), history, tools)


def _responses(target: Json, history: list[Any], tools: list[Any]) -> Callable[[], object]:
    kind = import_module("langchain_openai").ChatOpenAI
    model = kind(model=target["id"], api_key="none", use_responses_api=True, output_version="v1", store=False)
    return _payload(model, history, tools)


def _payload(model: Any, history: list[Any], tools: list[Any]) -> Callable[[], object]:  # noqa: ANN401
    options = model.bind_tools(tools).kwargs
    return lambda: model._get_request_payload(history, **options)  # noqa: SLF001


def _google(target: Json, history: list[Any], _: list[Any]) -> Callable[[], object]:
    parse = import_module("langchain_google_genai.chat_models")._parse_chat_history  # noqa: SLF001
    return lambda: parse(history, model=target["id"])


def _bedrock(target: Json, history: list[Any], _: list[Any]) -> Callable[[], object]:
    convert = import_module("langchain_aws.chat_models.bedrock_converse")._messages_to_bedrock  # noqa: SLF001
    # It writes into the list that it is given, so each call gets its own.
    return lambda: convert(list(history), model_id=target["id"], provider="anthropic")


_MAPPINGS: Mapping[str, Callable[[Json, list[Any], list[Any]], Callable[[], object]]] = {
    "anthropic-messages": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "google-genai": _google,
    "bedrock-converse": _bedrock,
}


def _message(message: Json, kinds: Any) -> Any:  # noqa: ANN401  # the peer's types are not known here
    content = message["content"]
    if message["role"] == "user":
        return kinds.HumanMessage(content=text_of(content))
    if message["role"] == "toolResult":
        status = "error" if message.get("isError") else "success"
        call, name = message["toolCallId"], message["toolName"]
        return kinds.ToolMessage(content=text_of(content), tool_call_id=call, name=name, status=status)
    calls = [
        {"type": "tool_call", "id": piece["id"], "name": piece["name"], "args": piece["arguments"]}
        for piece in content
        if piece["type"] == "toolCall"
    ]
    blocks = [_block(piece, message, index) for index, piece in enumerate(content)]
    metadata = {
        "output_version": "v1",
        "model_provider": _PROVIDERS[message["protocol"]],
        "model_name": message["model"],
    }
    return kinds.AIMessage(content=blocks, tool_calls=calls, response_metadata=metadata, id=message["responseId"])


def _block(piece: Json, message: Json, index: int) -> dict[str, Any]:
    protocol = message["protocol"]
    name = f"{message['responseId'].removeprefix('msg_')}{index:026}"
    owned = protocol == "openai-responses"
    if piece["type"] == "thinking":
        block: dict[str, Any] = {"type": "reasoning", "reasoning": piece["thinking"]}
        if owned:
            block |= {"id": f"rs_{name}", "encrypted_content": piece["thinkingSignature"]}
        elif protocol != "openai-chat":
            block["extras"] = {"signature": piece["thinkingSignature"]}
        return block
    if piece["type"] == "toolCall":
        call = {"type": "tool_call", "id": piece["id"], "name": piece["name"], "args": piece["arguments"]}
        return {**call, "extras": {"item_id": f"fc_{name}"}} if owned else call
    text = {"type": "text", "text": piece["text"]}
    return {**text, "id": f"msg_{name}"} if owned else text
