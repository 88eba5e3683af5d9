"""Which wire is this? Clues in a request body, as data.

Every clue is a key or a word that one protocol uses and the others do not, or hardly. Clues are weighed and each counts
once, because bodies are open: a vendor may add anything, anywhere. A body with no clue but `messages` of role and
content is OpenAI's chat, which most others imitate: words that it shares with wires of their own count for those too,
so that a history full of them does not outweigh the one clue that tells them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

_BODY_KEYS: Final[Mapping[str, Mapping[str, int]]] = {
    "contents": {"google-genai": 9},
    "generationConfig": {"google-genai": 5},
    "systemInstruction": {"google-genai": 5},
    "system_instruction": {"google-genai": 5},
    "safetySettings": {"google-genai": 5},
    "input": {"openai-responses": 9},
    "instructions": {"openai-responses": 3},
    "previous_response_id": {"openai-responses": 5},
    "max_output_tokens": {"openai-responses": 3},
    "inferenceConfig": {"bedrock-converse": 9},
    "toolConfig": {"bedrock-converse": 5, "google-genai": 1},
    "additionalModelRequestFields": {"bedrock-converse": 9},
    "guardrailConfig": {"bedrock-converse": 9},
    "modelId": {"bedrock-converse": 5},
    "system": {"anthropic-messages": 3, "bedrock-converse": 2},
    "anthropic_version": {"anthropic-messages": 9},
    "stop_sequences": {"anthropic-messages": 2, "cohere-chat": 2},
    "thinking": {"anthropic-messages": 1},
    "top_k": {"anthropic-messages": 1},
    "output_config": {"anthropic-messages": 3},
    "random_seed": {"mistral-chat": 9},
    "safe_prompt": {"mistral-chat": 9},
    "prompt_mode": {"mistral-chat": 5},
    "keep_alive": {"ollama-chat": 9},
    "think": {"ollama-chat": 5},
    "citation_options": {"cohere-chat": 9},
    "safety_mode": {"cohere-chat": 5},
    "strict_tools": {"cohere-chat": 5},
    "p": {"cohere-chat": 2},
    "k": {"cohere-chat": 2},
    "max_completion_tokens": {"openai-chat": 3},
    "stream_options": {"openai-chat": 4},
    "chat_history": {"cohere-chat": 5},  # of its first wire, which its codec refuses by name
    "preamble": {"cohere-chat": 5},  # the same
    "reasoning_effort": {"openai-chat": 1, "mistral-chat": 1},
    "response_format": {"openai-chat": 1, "mistral-chat": 1, "cohere-chat": 1},
    "messages": {"openai-chat": 1},
}
_MESSAGE_KEYS: Final[Mapping[str, Mapping[str, int]]] = {
    "parts": {"google-genai": 9},
    "tool_call_id": {"openai-chat": 1, "mistral-chat": 1, "cohere-chat": 1},
    "reasoning_content": {"openai-chat": 3},
    "refusal": {"openai-chat": 2},
    "call_id": {"openai-responses": 5},
    "encrypted_content": {"openai-responses": 5},
    "phase": {"openai-responses": 5},
    "tool_plan": {"cohere-chat": 9},
    "citations": {"cohere-chat": 5},
    "images": {"ollama-chat": 5},
    "thinking": {"ollama-chat": 3},
    "tool_name": {"ollama-chat": 5},
    "prefix": {"mistral-chat": 5},
}
_BLOCK_KEYS: Final[Mapping[str, Mapping[str, int]]] = {
    "toolUse": {"bedrock-converse": 9},
    "toolResult": {"bedrock-converse": 9},
    "reasoningContent": {"bedrock-converse": 9},
    "cachePoint": {"bedrock-converse": 9},
    "guardContent": {"bedrock-converse": 9},
    "$": {"vscode-lm": 9},
    "tool_use_id": {"anthropic-messages": 9},
    "cache_control": {"anthropic-messages": 1},
    "source": {"anthropic-messages": 3},
    "signature": {"anthropic-messages": 3},
}
_TYPES: Final[Mapping[str, Mapping[str, int]]] = {
    "tool_use": {"anthropic-messages": 9},
    "tool_result": {"anthropic-messages": 9},
    "thinking": {"anthropic-messages": 4, "mistral-chat": 2},
    "redacted_thinking": {"anthropic-messages": 9},
    "server_tool_use": {"anthropic-messages": 9},
    "image": {"anthropic-messages": 3},
    "document": {"anthropic-messages": 3, "cohere-chat": 1},
    "image_url": {"openai-chat": 3, "mistral-chat": 3, "cohere-chat": 3},
    "input_audio": {"openai-chat": 3, "mistral-chat": 3},
    "file": {"openai-chat": 2, "mistral-chat": 2},
    "document_url": {"mistral-chat": 9},
    "reference": {"mistral-chat": 5},
    "input_text": {"openai-responses": 9},
    "output_text": {"openai-responses": 9},
    "input_image": {"openai-responses": 9},
    "function_call": {"openai-responses": 9},
    "function_call_output": {"openai-responses": 9},
    "reasoning": {"openai-responses": 9},
    "message": {"openai-responses": 5},
    "item_reference": {"openai-responses": 9},
}
_TOOL_KEYS: Final[Mapping[str, Mapping[str, int]]] = {
    "input_schema": {"anthropic-messages": 9},
    "functionDeclarations": {"google-genai": 9},
    "function_declarations": {"google-genai": 9},
    "toolSpec": {"bedrock-converse": 9},
    "inputSchema": {"vscode-lm": 5},
    # Not Anthropic's, whoever's Claude it is.
    "function": {"openai-chat": 2, "mistral-chat": 2, "cohere-chat": 2, "anthropic-messages": -9},
    "parameters": {"openai-responses": 2},
}
_MODEL_IDS: Final[Mapping[str, Mapping[str, int]]] = {
    "claude-": {"anthropic-messages": 4},
    "mistral-": {"mistral-chat": 4},
    "magistral-": {"mistral-chat": 4},
    "ministral-": {"mistral-chat": 4},
    "codestral-": {"mistral-chat": 4},
    "devstral-": {"mistral-chat": 4},
    "pixtral-": {"mistral-chat": 4},
    "voxtral-": {"mistral-chat": 4},
    "open-mistral-": {"mistral-chat": 4},
    "open-mixtral-": {"mistral-chat": 4},
    "command": {"cohere-chat": 6},  # once, it was all of an id
    "c4ai-aya-": {"cohere-chat": 6},
}
"""How a maker's own ids begin; a relay that speaks another wire mostly puts the maker's name before them."""
_DEMANDED: Final[Mapping[str, str]] = {"claude-": "max_tokens"}
"""What a maker gives no answer without. A body that asks for one but lacks it was written for a relay, whatever it
calls the model; only to count tokens takes neither. (anthropic 2.8.0; Heroku's ids are Anthropic's: recorded, 2025-10)
"""
_ANSWERING: Final = frozenset({"stream", "temperature", "top_p", "stop", "n"})
"""Settings of an answer."""


_VSCODE: Final[Mapping[str, int]] = {"vscode-lm": 3}  # options with tools or their mode
_OLLAMA: Final[Mapping[str, int]] = {"ollama-chat": 3}  # options as an object; arguments as an object
_BEDROCK: Final[Mapping[str, int]] = {"bedrock-converse": 3}  # a block of text without a type


def detect_protocol(body: object) -> str | None:
    """Name the protocol of a request body or of its bare list of messages; None when it looks like none."""
    scores: Counter[str] = Counter()
    for clues in {id(clues): clues for clues in _clues(body)}.values():
        scores.update(clues)
    if isinstance(body, list) and not scores and _is_plain(cast("list[object]", body)):
        return "openai-chat"
    ranked = scores.most_common(2)
    return ranked[0][0] if ranked else None


_REPLY_KEYS: Final[Mapping[str, str]] = {
    "choices": "openai-chat",
    "stopReason": "bedrock-converse",  # before the next one: it has an `output`, too
    "output": "openai-responses",
    "candidates": "google-genai",
    "promptFeedback": "google-genai",
    "usageMetadata": "google-genai",
    "prompt_feedback": "google-genai",  # as its own client spells them
    "usage_metadata": "google-genai",
    "stop_reason": "anthropic-messages",
    "done_reason": "ollama-chat",
    "done": "ollama-chat",  # older servers give no reason
    "finish_reason": "cohere-chat",  # elsewhere a choice has it
}
"""A key that only one wire's replies have; bodies of the other wires look like one of these."""


def detect_reply(body: Mapping[str, object]) -> str | None:
    """Name the protocol of a whole reply; None when it looks like none."""
    return next((protocol for key, protocol in _REPLY_KEYS.items() if key in body), None)


def _is_plain(messages: Sequence[object]) -> bool:
    return bool(messages) and all(isinstance(message, Mapping) and "role" in message for message in messages)


def _clues(body: object) -> Iterator[Mapping[str, int]]:
    messages: object = body
    if isinstance(body, (dict, Mapping)):
        mapping = cast("Mapping[str, object]", body)
        yield from _found(mapping, _BODY_KEYS)
        messages = next((mapping[key] for key in ("messages", "contents", "input") if key in mapping), ())
        model_id = mapping.get("model")
        if isinstance(model_id, str):
            yield from _of_model(model_id, mapping)
        options = mapping.get("options")
        if isinstance(options, Mapping):
            yield _VSCODE if "toolMode" in options or "tools" in options else _OLLAMA
        for tool in _objects(mapping.get("tools")):
            yield from _found(tool, _TOOL_KEYS)
    for message in _objects(messages):
        # Written out, for a long history goes by here: to make an iterator costs more than all that it gives.
        for key in message:
            if key in _MESSAGE_KEYS:
                yield _MESSAGE_KEYS[key]
        if "type" in message:
            yield from _typed(message)
        if "tool_calls" in message:
            yield from _of_calls(message["tool_calls"])
        content = message.get("content")
        if content is not None and type(content) is not str:
            yield from _of_blocks(content)


def _of_model(model_id: str, body: Mapping[str, object]) -> Iterator[Mapping[str, int]]:
    for start, clues in _MODEL_IDS.items():
        if not model_id.startswith(start):
            continue
        if start not in _DEMANDED or _DEMANDED[start] in body or _ANSWERING.isdisjoint(body):
            yield clues


def _of_calls(calls: object) -> Iterator[Mapping[str, int]]:
    for call in _objects(calls):
        function = call.get("function")
        if isinstance(function, (dict, Mapping)):
            arguments = cast("Mapping[str, object]", function).get("arguments")
            if type(arguments) is not str and isinstance(arguments, Mapping):
                yield _OLLAMA


def _of_blocks(content: object) -> Iterator[Mapping[str, int]]:
    for block in _objects(content):
        for key in block:
            if key in _BLOCK_KEYS:
                yield _BLOCK_KEYS[key]
        if "type" in block:
            yield from _typed(block)
        elif "text" in block:
            yield _BEDROCK


def _objects(value: object) -> Sequence[Mapping[str, object]]:
    if not isinstance(value, (list, tuple)):
        return ()
    # JSON objects are dicts: to ask whether something is any mapping costs ten times as much, so that comes second.
    items = cast("Sequence[object]", value)
    return [cast("Mapping[str, object]", item) for item in items if type(item) is dict or isinstance(item, Mapping)]


def _found(mapping: Mapping[str, object], table: Mapping[str, Mapping[str, int]]) -> Iterator[Mapping[str, int]]:
    return (table[key] for key in mapping if key in table)


def _typed(mapping: Mapping[str, object]) -> Iterator[Mapping[str, int]]:
    kind = mapping.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        yield _TYPES[kind]
