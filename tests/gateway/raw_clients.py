"""The clients of `bound_clients` without their SDKs: the same requests in a fraction of the time, for long walks.

One more is a client of Chat Completions that returns only the texts and calls of a reply, as some agents do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import httpx2

from gateway.bound_clients import (
    SCHEMA,
    Called,
    ChatClient,
    Entry,
    GeminiClient,
    Items,
    MessagesClient,
    OllamaClient,
    Question,
    ResponsesClient,
    WireClient,
)


class _Raw(WireClient):
    """A client that posts JSON."""

    def connect(self, url: str, http: httpx2.Client | None) -> Any:
        return http or httpx2.Client(base_url=url)

    def post(self, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Send a body; gives the reply, or the events of a stream."""
        reply = self.client.post(path, json=body, headers={"authorization": "Bearer client-key"})
        assert reply.status_code == 200, reply.text
        if not reply.headers["content-type"].startswith("text/event-stream"):
            return [reply.json()]
        return list(_events(reply.text))


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line[6:])


class RawMessages(_Raw, MessagesClient):
    """The Messages API."""

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        events = self.post(
            "/v1/messages",
            {
                "model": question.model,
                "max_tokens": 4000,
                "system": question.system,
                "messages": history,
                "tools": [{"name": name, "input_schema": SCHEMA} for name in question.tools],
                "thinking": {"type": "adaptive"},
                "stream": question.stream,
            },
        )
        content = _joined_blocks(events) if question.stream else events[0]["content"]
        calls = [Called(block["id"], block["name"]) for block in content if block["type"] == "tool_use"]
        return [{"role": "assistant", "content": content}], calls


def _joined_blocks(events: list[dict[str, Any]]) -> Items:
    content: Items = []
    arguments: dict[int, str] = {}
    for event in events:
        at = event.get("index", -1)
        match event["type"]:
            case "content_block_start":
                content.append(event["content_block"])
            case "content_block_delta":
                for key, value in event["delta"].items():
                    if key == "partial_json":
                        arguments[at] = arguments.get(at, "") + value
                    elif key != "type":
                        content[at][key] = content[at].get(key, "") + value
            case "error":
                raise AssertionError(event)
            case _:
                pass
    for at, text in arguments.items():
        content[at]["input"] = json.loads(text or "{}")
    return content


class RawChat(_Raw, ChatClient):
    """Chat Completions."""

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        events = self.post(
            "/v1/chat/completions",
            {
                "model": question.model,
                "messages": [{"role": "system", "content": question.system}, *history],
                "tools": [
                    {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in question.tools
                ],
                "stream": question.stream,
            },
        )
        message: dict[str, Any] = {}
        for event in events:
            for choice in event["choices"]:
                _merge(message, choice["delta" if question.stream else "message"])
        kept = self.keep({key: value for key, value in message.items() if value is not None})
        return [kept], [Called(call["id"], call["function"]["name"]) for call in kept.get("tool_calls") or []]

    def keep(self, message: dict[str, Any]) -> dict[str, Any]:
        """Give what the client returns of a reply."""
        for call in message.get("tool_calls") or []:
            call.pop("index", None)
        return message


def _merge(target: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a piece of a stream: strings and lists are continued, entries with an index belong together."""
    for key, value in delta.items():
        known = target.get(key)
        if known is None or key in ("role", "type", "id", "index"):
            target[key] = value
        elif isinstance(value, str):
            target[key] = known + value
        elif isinstance(value, dict):
            _merge(known, cast("dict[str, Any]", value))
        elif isinstance(value, list):
            for entry in cast("list[dict[str, Any]]", value):
                same = [each for each in known if each.get("index") == entry.get("index") is not None]
                if same:
                    _merge(same[0], entry)
                else:
                    known.append(entry)


class IdsOnly(RawChat):
    """A client that returns texts and calls, and replaces characters in the ids of calls."""

    def keep(self, message: dict[str, Any]) -> dict[str, Any]:
        calls = [
            {"id": re.sub(r"[^a-zA-Z0-9_-]", "_", call["id"]), "type": "function", "function": call["function"]}
            for call in message.get("tool_calls") or []
        ]
        kept = {"role": "assistant", "content": message.get("content")}
        return {**kept, "tool_calls": calls} if calls else kept


class RawResponses(_Raw, ResponsesClient):
    """Responses, without replies that the server keeps."""

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        events = self.post(
            "/v1/responses",
            {
                "model": question.model,
                "instructions": question.system,
                "input": history,
                "tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in question.tools],
                "store": False,
                "include": ["reasoning.encrypted_content"],
                "reasoning": {"effort": "medium"},
                "stream": question.stream,
            },
        )
        reply = events[-1]["response"] if question.stream else events[0]
        assert reply["status"] == "completed", reply
        items = [{key: value for key, value in item.items() if key != "status"} for item in reply["output"]]
        calls = [Called(item["call_id"], item["name"]) for item in items if item["type"] == "function_call"]
        return items, calls


class RawGemini(_Raw, GeminiClient):
    """The Gemini API."""

    def user(self, text: str) -> Entry:
        return Entry("user", [{"role": "user", "parts": [{"text": text}]}])

    def results(self, calls: list[Called], text: str) -> Entry:
        parts = [
            {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": text}}} for call in calls
        ]
        return Entry("results", [{"role": "user", "parts": parts}])

    def ask(self, question: Question, history: Items) -> tuple[Items, list[Called]]:
        declared = [{"name": name, "parametersJsonSchema": SCHEMA} for name in question.tools]
        method = "streamGenerateContent?alt=sse" if question.stream else "generateContent"
        events = self.post(
            f"/v1beta/models/{question.model}:{method}",
            {
                "contents": history,
                "systemInstruction": {"parts": [{"text": question.system}]},
                "tools": [{"functionDeclarations": declared}],
                "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
            },
        )
        parts = [
            part
            for event in events
            for candidate in event.get("candidates") or []
            for part in (candidate.get("content") or {}).get("parts") or []
        ]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        return [{"role": "model", "parts": parts}], [Called(call.get("id") or "", call["name"]) for call in calls]


RAW_WIRES: dict[str, type[WireClient]] = {
    "messages": RawMessages,
    "chat": RawChat,
    "chat, ids only": IdsOnly,
    "responses": RawResponses,
    "gemini": RawGemini,
    "ollama": OllamaClient,
}
