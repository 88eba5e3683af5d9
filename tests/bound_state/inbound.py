"""Clients of a gateway on three wires, in raw bodies: each keeps its own history and sends it whole.

A client sends back what it was given, unchanged, and does to its history what programs do: another system prompt, an
edited message, a new start.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

import httpx2

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Inbound:
    """A client with its history. `calls` are the open calls of the newest reply."""

    path: ClassVar[str]

    def __init__(self, http: httpx2.Client, model: str) -> None:
        self.http = http
        self.model = model
        self.system = "Be brief."
        self.history: list[Any] = []
        self.calls: list[str] = []

    def ask(self, text: str) -> httpx2.Response:
        """Answer the open calls, or add a user message; send; keep the reply."""
        if self.calls:
            self.history += self.results()
        else:
            self.history.append({"role": "user", "content": text})
        response = self.http.post(self.path, json=self.body(), headers={"x-api-key": "k"})
        if response.status_code == 200:
            self.keep(response.json())
        return response

    def edit_first(self, text: str) -> None:
        """Change the first message."""
        if self.history:
            self.history[0] = {"role": "user", "content": text}

    def start_again(self) -> None:
        """Go back to the beginning."""
        self.calls = []
        self.history.clear()

    def body(self) -> dict[str, Any]:
        raise NotImplementedError

    def keep(self, reply: dict[str, Any]) -> None:
        raise NotImplementedError

    def results(self) -> list[Any]:
        raise NotImplementedError


class Chat(Inbound):
    """A client of Chat Completions."""

    path = "/v1/chat/completions"

    def body(self) -> dict[str, Any]:
        tool = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}
        messages = [{"role": "system", "content": self.system}, *self.history]
        return {"model": self.model, "messages": messages, "tools": [tool], "reasoning_effort": "medium"}

    def keep(self, reply: dict[str, Any]) -> None:
        message = reply["choices"][0]["message"]
        self.history.append(message)
        self.calls = [call["id"] for call in message.get("tool_calls") or ()]

    def results(self) -> list[Any]:
        return [{"role": "tool", "tool_call_id": each, "content": "seen"} for each in self.calls]


class Messages(Inbound):
    """A client of the Messages API."""

    path = "/v1/messages"

    def body(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": 2000,
            "system": self.system,
            "messages": self.history,
            "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
            "thinking": {"type": "adaptive"},
        }

    def keep(self, reply: dict[str, Any]) -> None:
        self.history.append({"role": "assistant", "content": reply["content"]})
        self.calls = [block["id"] for block in reply["content"] if block["type"] == "tool_use"]

    def results(self) -> list[Any]:
        content = [{"type": "tool_result", "tool_use_id": each, "content": "seen"} for each in self.calls]
        return [{"role": "user", "content": content}]


class Responses(Inbound):
    """A client of Responses that stores nothing."""

    path = "/v1/responses"

    def body(self) -> dict[str, Any]:
        tool = {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA}
        return {
            "model": self.model,
            "instructions": self.system,
            "input": self.history,
            "tools": [tool],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium"},
        }

    def keep(self, reply: dict[str, Any]) -> None:
        self.history += reply["output"]
        self.calls = [item["call_id"] for item in reply["output"] if item["type"] == "function_call"]

    def results(self) -> list[Any]:
        return [{"type": "function_call_output", "call_id": each, "output": "seen"} for each in self.calls]


def show(response: httpx2.Response) -> str:
    """Describe an answer."""
    return f"{response.status_code} {json.dumps(response.json())[:600]}"
