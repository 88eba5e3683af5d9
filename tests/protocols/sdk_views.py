"""What a user of an official SDK sees of a reply: text, reasoning, calls, finish class and token counts.

`VIEWS` takes what `sdk_accumulation` gives for a protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

FINISHES: Final = {
    "stop": ("end_turn", "stop_sequence", "stop", "STOP", "COMPLETE", "completed", "STOP_SEQUENCE", "pause_turn"),
    "length": ("max_tokens", "length", "MAX_TOKENS", "max_output_tokens", "incomplete"),
    "calls": ("tool_use", "tool_calls", "TOOL_CALL", "requires_action"),
}


class View(NamedTuple):
    """What is seen. A part that the protocol does not have is None."""

    text: str
    thinking: str
    calls: list[Any]
    finish: str
    tokens: tuple[int, int] | None


def finish_class(reason: Any, calls: list[Any]) -> str:
    found = next((name for name, reasons in FINISHES.items() if reason in reasons), f"unknown: {reason}")
    return "calls" if calls and found == "stop" else found


def _view(text: str, thinking: str, calls: list[Any], reason: Any, tokens: Any) -> View:
    text, thinking = ("".join(given.split()) for given in (text, thinking))
    return View(text, thinking, calls, finish_class(reason, calls), tokens)


def view_anthropic(found: Any) -> View:
    blocks = found["content"]
    usage = found["usage"]
    read = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return _view(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"],
        found["stop_reason"],
        (usage["input_tokens"] + read + written, usage["output_tokens"]),
    )


def view_chat(found: Any) -> View:
    message, usage = found["choices"][0]["message"], found.get("usage") or {}
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return _view(
        message.get("content") or "",
        message.get("reasoning_content") or "",
        [(call["name"], json.loads(call["arguments"])) for call in calls],
        found["choices"][0]["finish_reason"],
        (usage["prompt_tokens"], usage["completion_tokens"]) if usage else None,
    )


def view_responses(found: Any) -> View:
    items, usage = found["output"], found.get("usage") or {}
    thoughts = [part["text"] for item in items if item["type"] == "reasoning" for part in item["summary"]]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    calls = [(item["name"], json.loads(item["arguments"])) for item in items if item["type"] == "function_call"]
    reason = (found.get("incomplete_details") or {}).get("reason") or found["status"]
    tokens = (usage["input_tokens"], usage["output_tokens"]) if usage else None
    return _view("".join(texts), "".join(thoughts), calls, reason, tokens)


def view_google(found: Any) -> View:
    parts, usage = found["parts"], found.get("usage_metadata") or {}
    out = (usage.get("candidates_token_count") or 0) + (usage.get("thoughts_token_count") or 0)
    return _view(
        "".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        "".join(part["text"] for part in parts if part.get("thought")),
        [(part["function_call"]["name"], part["function_call"]["args"]) for part in parts if "function_call" in part],
        found["finish_reason"].value,
        (usage["prompt_token_count"], out) if usage else None,
    )


def view_ollama(found: Any) -> View:
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in found["calls"]]
    tokens = (found["prompt_eval_count"] or 0, found["eval_count"] or 0)
    return _view(found["content"], found["thinking"], calls, found["done_reason"], tokens if any(tokens) else None)


def view_bedrock(found: Any) -> View:
    blocks, usage = found["blocks"], found.get("usage") or {}
    calls = [
        (block["start"]["toolUse"]["name"], json.loads(block.get("toolUse", {}).get("input") or "{}"))
        for block in blocks
        if "start" in block
    ]
    cached = usage.get("cacheReadInputTokens", 0) + usage.get("cacheWriteInputTokens", 0)
    return _view(
        "".join(block.get("text", "") for block in blocks),
        "".join(block.get("reasoningContent", {}).get("text", "") for block in blocks),
        calls,
        found["stopReason"],
        (usage["inputTokens"] + cached, usage["outputTokens"]) if usage else None,
    )


def view_mistral(found: Any) -> View:
    usage = found.get("usage") or {}
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found["calls"]]
    return _view(
        "".join(chunk["text"] for chunk in found["content"] if chunk["type"] == "text"),
        "".join(chunk["thinking"] for chunk in found["content"] if chunk["type"] == "thinking"),
        calls,
        found["finish_reason"],
        (usage["prompt_tokens"], usage["completion_tokens"]) if usage else None,
    )


def view_cohere(found: Any) -> View:
    usage = (found["end"].get("usage") or {}).get("tokens") or {}
    calls = [(name, json.loads(arguments)) for _, name, arguments in found["calls"].values()]
    tokens = (int(usage["input_tokens"]), int(usage["output_tokens"])) if usage else None
    return _view(found["text"], found["thinking"], calls, found["end"]["finish_reason"], tokens)


def view_interactions(found: Any) -> View:
    usage, steps = found.get("usage") or {}, found["steps"]
    contents = [content for step in steps if step["type"] == "model_output" for content in step["content"]]
    summaries = [content for step in steps if step["type"] == "thought" for content in step.get("summary", ())]
    output = usage.get("total_output_tokens", 0) + usage.get("total_thought_tokens", 0)
    return _view(
        "".join(content["text"] for content in contents if content["type"] == "text"),
        "".join(content["text"] for content in summaries),
        [(step["name"], step["arguments"]) for step in steps if step["type"] == "function_call"],
        found["status"],
        (usage["total_input_tokens"], output) if usage else None,
    )


VIEWS: Final[dict[str, Callable[[Any], View]]] = {
    "anthropic-messages": view_anthropic,
    "openai-chat": view_chat,
    "openai-responses": view_responses,
    "google-genai": view_google,
    "ollama-chat": view_ollama,
    "bedrock-converse": view_bedrock,
    "mistral-chat": view_mistral,
    "cohere-chat": view_cohere,
    "google-interactions": view_interactions,
}


def view_of_message(message: Any) -> View:
    """Give what the neutral message says."""
    usage = message.usage
    reasons = {"stop": "stop", "length": "length", "toolUse": "tool_calls"}
    return _view(
        "".join(piece.text for piece in message.content if piece.kind == "text"),
        "".join(piece.thinking for piece in message.content if piece.kind == "thinking"),
        [(call.name, dict(call.arguments)) for call in message.tool_calls()],
        reasons.get(str(message.stop_reason), str(message.raw_stop_reason)),
        None if usage is None else (usage.input + usage.cache_read + usage.cache_write, usage.output),
    )
