"""Clients of every inbound protocol that make one request at a time and return what they got, as the official SDKs do.

A history is a list of entries: what a user said, a reply, or results of calls, each as the items of the protocol. So
a test can edit, shorten and continue it without knowing the protocol.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types

Items = list[Any]


@final
class Entry(NamedTuple):
    """A part of a history: `kind` is user, reply or results."""

    kind: str
    items: Items


@final
class Called(NamedTuple):
    """A call of a tool, as the client sees it."""

    id: str
    name: str


@final
class Question(NamedTuple):
    """What a request says besides its history."""

    model: str
    system: str
    tools: tuple[str, ...]
    stream: bool


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}


class WireClient(ABC):
    """A client of one protocol."""

    def __init__(self, url: str, http: httpx2.Client | None = None) -> None:
        self.client: Any = self.connect(url, http)

    @abstractmethod
    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        """Make the SDK's client; `http` sends its requests."""

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def user(self, text: str) -> Entry:
        """Make what a user says."""
        return Entry("user", [{"role": "user", "content": text}])

    @abstractmethod
    def results(self, calls: list[Called], text: str) -> Entry:
        """Make the results of calls."""

    @abstractmethod
    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        """Send one request; gives the items of the reply and its calls."""


class MessagesClient(WireClient):
    """The Anthropic SDK."""

    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        return anthropic.Anthropic(base_url=url, api_key="client-key", max_retries=0, http_client=http)

    def results(self, calls: list[Called], text: str) -> Entry:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call in calls]
        return Entry("results", [{"role": "user", "content": blocks}])

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        arguments: dict[str, Any] = {
            "model": question.model,
            "max_tokens": 4000,
            "system": question.system,
            "messages": history,
            "tools": [{"name": name, "input_schema": SCHEMA} for name in question.tools],
            "thinking": {"type": "adaptive"},
        }
        if question.stream:
            with self.client.messages.stream(**arguments) as events:
                reply = events.get_final_message()
        else:
            reply = self.client.messages.create(**arguments)
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        calls = [Called(block["id"], block["name"]) for block in content if block["type"] == "tool_use"]
        return [{"role": "assistant", "content": content}], calls


class ChatClient(WireClient):
    """The OpenAI SDK, Chat Completions."""

    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        return openai.OpenAI(base_url=f"{url}/v1", api_key="client-key", max_retries=0, http_client=http)

    def results(self, calls: list[Called], text: str) -> Entry:
        return Entry("results", [{"role": "tool", "tool_call_id": call.id, "content": text} for call in calls])

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        arguments: dict[str, Any] = {
            "model": question.model,
            "messages": [{"role": "system", "content": question.system}, *history],
            "tools": [
                {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in question.tools
            ],
        }
        if question.stream:
            with self.client.chat.completions.stream(**arguments) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = self.client.chat.completions.create(**arguments).choices[0].message
        plain = message.model_dump(exclude_none=True, exclude={"parsed"})
        for call in plain.get("tool_calls") or []:
            call["function"].pop("parsed_arguments", None)
            call.pop("index", None)
        calls = [Called(call["id"], call["function"]["name"]) for call in plain.get("tool_calls") or []]
        return [plain], calls


class ResponsesClient(WireClient):
    """The OpenAI SDK, Responses, without replies that the server keeps."""

    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        return openai.OpenAI(base_url=f"{url}/v1", api_key="client-key", max_retries=0, http_client=http)

    def results(self, calls: list[Called], text: str) -> Entry:
        return Entry(
            "results", [{"type": "function_call_output", "call_id": call.id, "output": text} for call in calls]
        )

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        arguments: dict[str, Any] = {
            "model": question.model,
            "instructions": question.system,
            "input": history,
            "tools": [
                {"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in question.tools
            ],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium"},
        }
        if question.stream:
            with self.client.responses.stream(**arguments) as events:
                reply = events.get_final_response()
        else:
            reply = self.client.responses.create(**arguments)
        items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments", "status"}) for item in reply.output]
        for item in items:
            for part in item.get("content") or []:
                part.pop("parsed", None)
        calls = [Called(item["call_id"], item["name"]) for item in items if item["type"] == "function_call"]
        return items, calls


class GeminiClient(WireClient):
    """The google-genai SDK."""

    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        return genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=url, httpx_client=http))

    def user(self, text: str) -> Entry:
        return Entry("user", [types.Content(role="user", parts=[types.Part(text=text)])])

    def results(self, calls: list[Called], text: str) -> Entry:
        parts = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id or None, name=call.name, response={"output": text})
            )
            for call in calls
        ]
        return Entry("results", [types.Content(role="user", parts=parts)])

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        declared = [types.FunctionDeclaration(name=name, parameters_json_schema=SCHEMA) for name in question.tools]
        config = types.GenerateContentConfig(
            system_instruction=question.system,
            tools=[types.Tool(function_declarations=declared)],
            thinking_config=types.ThinkingConfig(include_thoughts=True),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        models = self.client.models
        if question.stream:
            replies = list(models.generate_content_stream(model=question.model, contents=history, config=config))
        else:
            replies = [models.generate_content(model=question.model, contents=history, config=config)]
        parts: list[types.Part] = []
        for reply in replies:
            for candidate in reply.candidates or []:
                parts += (candidate.content and candidate.content.parts) or []
        calls = [
            Called(part.function_call.id or "", part.function_call.name or "") for part in parts if part.function_call
        ]
        return [types.Content(role="model", parts=parts)], calls


class OllamaClient(WireClient):
    """A client of Ollama, without an SDK: it streams lines of JSON."""

    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        return http or httpx2.Client(base_url=url)

    def results(self, calls: list[Called], text: str) -> Entry:
        return Entry("results", [{"role": "tool", "tool_name": call.name, "content": text} for call in calls])

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        tools = [
            {"type": "function", "function": {"name": name, "description": "d", "parameters": SCHEMA}}
            for name in question.tools
        ]
        body = {
            "model": question.model,
            "messages": [{"role": "system", "content": question.system}, *history],
            "tools": tools,
            "stream": question.stream,
        }
        reply = self.client.post("/api/chat", json=body)
        assert reply.status_code == 200, reply.text
        message: dict[str, Any] = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
        for line in reply.text.splitlines():
            piece = json.loads(line).get("message") or {}
            message["content"] += piece.get("content", "")
            message["thinking"] += piece.get("thinking", "")
            message["tool_calls"] += piece.get("tool_calls") or []
        return [message], [Called("", call["function"]["name"]) for call in message["tool_calls"]]


WIRES: dict[str, type[WireClient]] = {
    "messages": MessagesClient,
    "chat": ChatClient,
    "responses": ResponsesClient,
    "gemini": GeminiClient,
    "ollama": OllamaClient,
}
