"""Calls that a request requires of a local model: a grammar makes it write one, even if it does not know tools.

A request that requires a call becomes one for JSON by a schema, with the tools as text; the JSON of the reply becomes
the call. A stream of it comes in one piece.

Facts (xllamacpp 2026.10.11549, tried 2026-11-17):
- `tool_choice: "required"` has no effect on a model whose chat template has no tools, as that of SmolLM2. With a
  template that has them, the model may write text before the call, as long as it likes.
- `response_format` with a JSON schema binds the reply from its first token, with every template.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

_TOOL_KEYS: Final = ("tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options")


def require_call(body: dict[str, Any]) -> dict[str, Any] | None:
    """Build the request for the JSON of a call; None if the request requires no call."""
    choice = body.get("tool_choice")
    functions = [tool["function"] for tool in body.get("tools") or ()]
    if isinstance(choice, dict):
        name = cast("dict[str, Any]", choice).get("function", {}).get("name")
        functions = [function for function in functions if function["name"] == name]
    if choice in (None, "auto", "none") or not functions:
        return None
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": function["name"]},
                "arguments": function.get("parameters") or {"type": "object"},
            },
            "required": ["name", "arguments"],
        }
        for function in functions
    ]
    schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    text = "Call one of these tools, as JSON with its name and its arguments:\n" + "\n".join(
        msgspec.json.encode(function).decode() for function in functions
    )
    asked = {key: value for key, value in body.items() if key not in _TOOL_KEYS}
    return asked | {
        "messages": _instructed(body["messages"], text),
        "response_format": {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}},
    }


def _instructed(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Add a text to the instructions."""
    first = messages[0] if messages else {}
    if first.get("role") == "system" and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def as_reply(data: bytes, *, is_stream: bool) -> bytes:
    """Build the reply with the call that the JSON describes; JSON that was cut off stays text."""
    reply = msgspec.json.decode(data, type=dict[str, Any])
    for choice in reply.get("choices", ()):
        message = choice["message"]
        try:
            call = msgspec.json.decode(message.get("content") or "", type=dict[str, Any])
        except msgspec.DecodeError:
            continue
        function = {"name": call["name"], "arguments": msgspec.json.encode(call["arguments"]).decode()}
        identity = f"call_{reply.get('id', '').rpartition('-')[2][:24]}"
        message |= {"content": None, "tool_calls": [{"id": identity, "type": "function", "function": function}]}
        choice["finish_reason"] = "tool_calls"
    return _stream(reply) if is_stream else msgspec.json.encode(reply)


def _stream(reply: dict[str, Any]) -> bytes:
    """Write a reply as the events of a stream: its messages, then its usage."""
    choices: list[dict[str, Any]] = [
        {
            "index": choice["index"],
            "delta": {
                **choice["message"],
                "tool_calls": [
                    {**call, "index": at} for at, call in enumerate(choice["message"].get("tool_calls") or ())
                ],
            },
            "finish_reason": choice["finish_reason"],
        }
        for choice in reply["choices"]
    ]
    head: dict[str, Any] = {key: value for key, value in reply.items() if key != "usage"} | {
        "object": "chat.completion.chunk"
    }
    chunks: tuple[dict[str, Any], ...] = (
        head | {"choices": choices},
        head | {"choices": [], "usage": reply.get("usage")},
    )
    return b"".join(b"data: %s\n\n" % msgspec.json.encode(chunk) for chunk in chunks) + b"data: [DONE]\n\n"
