"""A stored history as OpenAI's chat messages, the format of several peers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Json = Mapping[str, Any]
ChatMessage = dict[str, Any]


def chat_history(context: Json, add_thinking: Callable[[ChatMessage, Json], None]) -> list[ChatMessage]:
    """Write the history; `add_thinking` adds the thinking and signature of a turn in the peer's format."""
    history: list[ChatMessage] = [{"role": "system", "content": context["systemPrompt"]}]
    for message in context["messages"]:
        chat_message = _message(message)
        if message["role"] == "assistant":
            add_thinking(chat_message, message)
        history.append(chat_message)
    return history


def chat_tools(context: Json) -> list[ChatMessage]:
    """Write the tools in OpenAI's format."""
    return [
        {"type": "function", "function": {key: tool[key] for key in ("name", "description", "parameters")}}
        for tool in context["tools"]
    ]


def thinking_of(message: Json) -> Json | None:
    """Find the thinking of a turn."""
    return next((piece for piece in message["content"] if piece["type"] == "thinking"), None)


def text_of(content: object) -> str:
    """Return the text of a message: it is a string, or a list with one text."""
    return content if isinstance(content, str) else content[0]["text"]  # type: ignore[index]


def _message(message: Json) -> ChatMessage:
    content = message["content"]
    if message["role"] == "user":
        return {"role": "user", "content": text_of(content)}
    if message["role"] == "toolResult":
        call, name = message["toolCallId"], message["toolName"]
        return {"role": "tool", "tool_call_id": call, "name": name, "content": text_of(content)}
    chat_message: ChatMessage = {"role": "assistant", "content": None}
    for piece in content:
        if piece["type"] == "text":
            chat_message["content"] = piece["text"]
        elif piece["type"] == "toolCall":
            arguments = json.dumps(piece["arguments"], ensure_ascii=False, separators=(",", ":"))
            function = {"name": piece["name"], "arguments": arguments}
            chat_message.setdefault("tool_calls", []).append(
                {"id": piece["id"], "type": "function", "function": function}
            )
    return chat_message
