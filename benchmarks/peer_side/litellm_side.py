"""The same history in litellm's form, which is OpenAI's chat messages, and its transformation to a wire.

Facts this file rests on:
- `AnthropicConfig.transform_request` and `OpenAIGPTConfig.transform_request` make the body.  (litellm 1.106.2, 2026-11)
- Claude's sealed thinking is kept as `thinking_blocks` beside `reasoning_content`.                        (the same)
- To OpenAI it is nearly a pass-through, because its own form is OpenAI's.                                 (the same)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Json = Mapping[str, Any]


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in litellm's form and give its transformation to the wire of the target."""
    litellm = import_module("litellm")
    target, context = task["target"], task["context"]
    history = [{"role": "system", "content": context["systemPrompt"]}]
    history += [_message(message) for message in context["messages"]]
    tools = [
        {"type": "function", "function": {key: tool[key] for key in ("name", "description", "parameters")}}
        for tool in context["tools"]
    ]
    if target["protocol"] == "anthropic-messages":
        config: Any = litellm.AnthropicConfig()
        options = config.map_openai_params({"tools": tools, "max_tokens": 4096}, {}, target["id"], drop_params=False)
    else:
        config, options = litellm.OpenAIGPTConfig(), {"tools": tools}

    def transform() -> object:
        # It takes lists apart and puts keys in: each call gets its own outer containers, as `completion` would give.
        return config.transform_request(
            model=target["id"],
            messages=list(history),
            optional_params=dict(options),
            litellm_params={},
            headers={},
        )

    return transform


def _message(message: Json) -> dict[str, Any]:
    content = message["content"]
    if message["role"] == "user":
        return {"role": "user", "content": _text(content)}
    if message["role"] == "toolResult":
        return {
            "role": "tool",
            "tool_call_id": message["toolCallId"],
            "name": message["toolName"],
            "content": _text(content),
        }
    said: dict[str, Any] = {"role": "assistant", "content": None}
    for piece in content:
        if piece["type"] == "text":
            said["content"] = piece["text"]
        elif piece["type"] == "thinking":
            said["reasoning_content"] = piece["thinking"]
            if message["protocol"] == "anthropic-messages":
                block = {
                    "type": "thinking",
                    "thinking": piece["thinking"],
                    "signature": piece["thinkingSignature"],
                }
                said["thinking_blocks"] = [block]
        else:
            arguments = json.dumps(piece["arguments"], ensure_ascii=False, separators=(",", ":"))
            function = {"name": piece["name"], "arguments": arguments}
            said.setdefault("tool_calls", []).append({"id": piece["id"], "type": "function", "function": function})
    return said


def _text(content: object) -> str:
    return content if isinstance(content, str) else content[0]["text"]  # type: ignore[index]
