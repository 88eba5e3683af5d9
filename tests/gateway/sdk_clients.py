"""The official Python SDKs as clients of a gateway: each asks, answers the calls, and returns what it got."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
RESULT = "content of the file"

_Client = TypeVar("_Client")
_OPEN: list[Any] = []


def _kept(client: _Client) -> _Client:
    """Note a client, to close it at the end of the test."""
    _OPEN.append(client)
    return client


def close_clients() -> None:
    """Close all clients that were made."""
    for client in _OPEN:
        client.close()
    _OPEN.clear()


Ask = Callable[[str, str, list[Any], str], list[Any]]
"""(base URL, model, history, question) -> history after the loop."""


def anthropic_client(*, stream: bool) -> Ask:
    def ask(url: str, model: str, history: list[Any], question: str) -> list[Any]:
        client = _kept(anthropic.Anthropic(base_url=url, api_key="client-key", max_retries=0))
        history = [*history, {"role": "user", "content": question}]
        for _ in range(4):
            arguments: dict[str, Any] = {
                "model": model,
                "max_tokens": 4000,
                "messages": history,
                "tools": [{"name": "read", "input_schema": SCHEMA}],
                "thinking": {"type": "enabled", "budget_tokens": 2000},
            }
            if stream:
                with client.messages.stream(**arguments) as events:
                    reply = events.get_final_message()
            else:
                reply = client.messages.create(**arguments)
            content = [block.model_dump(exclude_none=True) for block in reply.content]
            history = [*history, {"role": "assistant", "content": content}]
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return history
            results = [{"type": "tool_result", "tool_use_id": call["id"], "content": RESULT} for call in calls]
            history = [*history, {"role": "user", "content": results}]
        raise AssertionError("the loop did not end")

    return ask


def chat_client(*, stream: bool) -> Ask:
    def ask(url: str, model: str, history: list[Any], question: str) -> list[Any]:
        client = _kept(openai.OpenAI(base_url=f"{url}/v1", api_key="client-key", max_retries=0))
        history = [*history, {"role": "user", "content": question}]
        tools: Any = [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}]
        for _ in range(4):
            if stream:
                with client.chat.completions.stream(model=model, messages=history, tools=tools) as events:
                    message = events.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(model=model, messages=history, tools=tools).choices[0].message
            plain = message.model_dump(exclude_none=True, exclude={"parsed"})
            for call in plain.get("tool_calls", []):
                call["function"].pop("parsed_arguments", None)
                call.pop("index", None)
            history = [*history, plain]
            calls = plain.get("tool_calls")
            if not calls:
                return history
            history += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
        raise AssertionError("the loop did not end")

    return ask


def responses_client(*, stream: bool) -> Ask:
    def ask(url: str, model: str, history: list[Any], question: str) -> list[Any]:
        client = _kept(openai.OpenAI(base_url=f"{url}/v1", api_key="client-key", max_retries=0))
        history = [*history, {"role": "user", "content": question}]
        for _ in range(4):
            arguments: dict[str, Any] = {
                "model": model,
                "input": history,
                "tools": [{"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}],
                "store": False,
                "include": ["reasoning.encrypted_content"],
                "reasoning": {"effort": "medium"},
            }
            if stream:
                with client.responses.stream(**arguments) as events:
                    reply = events.get_final_response()
            else:
                reply = client.responses.create(**arguments)
            items = [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments", "status"}) for item in reply.output
            ]
            for item in items:
                for part in item.get("content") or []:
                    part.pop("parsed", None)
            history = [*history, *items]
            calls = [item for item in items if item["type"] == "function_call"]
            if not calls:
                return history
            history += [
                {"type": "function_call_output", "call_id": call["call_id"], "output": RESULT} for call in calls
            ]
        raise AssertionError("the loop did not end")

    return ask


def google_client(*, stream: bool) -> Ask:
    def ask(url: str, model: str, history: list[Any], question: str) -> list[Any]:
        client = _kept(genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=url)))
        history = [*history, types.Content(role="user", parts=[types.Part(text=question)])]
        declared = types.FunctionDeclaration(name="read", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])],
            thinking_config=types.ThinkingConfig(include_thoughts=True),
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        for _ in range(4):
            parts: list[types.Part] = []
            if stream:
                for chunk in client.models.generate_content_stream(model=model, contents=history, config=config):
                    for candidate in chunk.candidates or []:
                        parts += (candidate.content and candidate.content.parts) or []
            else:
                reply = client.models.generate_content(model=model, contents=history, config=config)
                for candidate in reply.candidates or []:
                    parts += (candidate.content and candidate.content.parts) or []
            history = [*history, types.Content(role="model", parts=parts)]
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return history
            results = [
                types.Part(
                    function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": RESULT})
                )
                for call in calls
            ]
            history = [*history, types.Content(role="user", parts=results)]
        raise AssertionError("the loop did not end")

    return ask


def interactions_client(*, stream: bool) -> Ask:
    def ask(url: str, model: str, history: list[Any], question: str) -> list[Any]:
        client: Any = _kept(genai.Client(api_key="client-key", http_options=types.HttpOptions(base_url=url)))
        history = [*history, {"type": "user_input", "content": [{"type": "text", "text": question}]}]
        arguments: dict[str, Any] = {
            "model": model,
            "tools": [{"type": "function", "name": "read", "parameters": SCHEMA}],
            "generation_config": {"thinking_level": "high", "thinking_summaries": "auto"},
            "store": False,
        }
        for _ in range(4):
            if stream:
                steps = _fold_steps(client.interactions.create(**arguments, input=history, stream=True))
            else:
                reply = client.interactions.create(**arguments, input=history)
                steps = [step.model_dump(exclude_none=True) for step in reply.steps]
            history = [*history, *steps]
            calls = [step for step in steps if step["type"] == "function_call"]
            if not calls:
                return history
            history += [
                {"type": "function_result", "call_id": call["id"], "name": call["name"], "result": RESULT}
                for call in calls
            ]
        raise AssertionError("the loop did not end")

    return ask


def _fold_steps(events: Any) -> list[dict[str, Any]]:
    """Put the steps of a stream together; google-genai 3.1.0 gives events only."""
    steps: list[dict[str, Any]] = []
    pieces: dict[int, str] = {}
    ended = False
    for event in events:
        match event.event_type:
            case "step.start":
                steps.append(event.step.model_dump(exclude_none=True))
            case "step.delta":
                step, delta = steps[event.index], event.delta
                match delta.type:
                    case "text":
                        step.setdefault("content", [{"type": "text", "text": ""}])[0]["text"] += delta.text
                    case "thought_summary":
                        step.setdefault("summary", [{"type": "text", "text": ""}])[0]["text"] += delta.content.text
                    case "thought_signature":
                        step["signature"] = delta.signature
                    case "arguments_delta":
                        pieces[event.index] = pieces.get(event.index, "") + delta.arguments
                    case other:
                        raise AssertionError(other)
            case "interaction.completed":
                ended = True
            case "error":
                raise AssertionError(event.error)
            case _:
                pass
    assert ended
    for index, text in pieces.items():
        steps[index]["arguments"] = json.loads(text)
    return steps


def ollama_client(*, stream: bool) -> Ask:
    def ask(url: str, model: str, history: list[Any], question: str) -> list[Any]:
        client = ollama.Client(host=url)
        _kept(client._client)
        history = [*history, {"role": "user", "content": question}]
        tools: Any = [{"type": "function", "function": {"name": "read", "description": "d", "parameters": SCHEMA}}]
        for _ in range(4):
            if stream:
                message: dict[str, Any] = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
                for chunk in client.chat(model=model, messages=history, tools=tools, stream=True):
                    piece = json.loads(chunk.message.model_dump_json(exclude_none=True))
                    message["content"] += piece.get("content", "")
                    message["thinking"] += piece.get("thinking", "")
                    message["tool_calls"] += piece.get("tool_calls", [])
            else:
                reply = client.chat(model=model, messages=history, tools=tools)
                message = json.loads(reply.message.model_dump_json(exclude_none=True))
            history = [*history, message]
            calls = message.get("tool_calls")
            if not calls:
                return history
            history += [{"role": "tool", "tool_name": call["function"]["name"], "content": RESULT} for call in calls]
        raise AssertionError("the loop did not end")

    return ask


CLIENTS: dict[str, Callable[..., Ask]] = {
    "anthropic": anthropic_client,
    "chat": chat_client,
    "responses": responses_client,
    "google": google_client,
    "interactions": interactions_client,
    "ollama": ollama_client,
}
