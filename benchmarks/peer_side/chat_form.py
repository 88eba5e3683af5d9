"""A stored history as OpenAI's chat messages, which several peers keep conversations in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Json = Mapping[str, Any]
Said = dict[str, Any]


def chat_history(context: Json, seal: Callable[[Said, Json], None]) -> list[Said]:
    """Write the history; `seal` puts a turn's thinking and its signature where the peer has them."""
    history: list[Said] = [{"role": "system", "content": context["systemPrompt"]}]
    for message in context["messages"]:
        said = _message(message)
        if message["role"] == "assistant":
            seal(said, message)
        history.append(said)
    return history


def chat_tools(context: Json) -> list[Said]:
    """Write the tools the way OpenAI has them."""
    return [
        {"type": "function", "function": {key: tool[key] for key in ("name", "description", "parameters")}}
        for tool in context["tools"]
    ]


def thinking_of(message: Json) -> Json | None:
    """Find the thinking of a turn."""
    return next((piece for piece in message["content"] if piece["type"] == "thinking"), None)


def text_of(content: object) -> str:
    """Give the text of a message: it is a string, or a list with one text."""
    return content if isinstance(content, str) else content[0]["text"]  # type: ignore[index]


def _message(message: Json) -> Said:
    content = message["content"]
    if message["role"] == "user":
        return {"role": "user", "content": text_of(content)}
    if message["role"] == "toolResult":
        call, name = message["toolCallId"], message["toolName"]
        return {"role": "tool", "tool_call_id": call, "name": name, "content": text_of(content)}
    said: Said = {"role": "assistant", "content": None}
    for piece in content:
        if piece["type"] == "text":
            said["content"] = piece["text"]
        elif piece["type"] == "toolCall":
            arguments = json.dumps(piece["arguments"], ensure_ascii=False, separators=(",", ":"))
            function = {"name": piece["name"], "arguments": arguments}
            said.setdefault("tool_calls", []).append({"id": piece["id"], "type": "function", "function": function})
    return said
