"""The same history in llm-rosetta's own format, and its encoding for a target.

Facts this file relies on:
- It has no stored format: `request_from_provider` decodes a request, `request_to_provider` encodes the result for
  another protocol.                                                                 (llm-rosetta 0.13.0, 2026-11)
- It supports the protocols of Anthropic, OpenAI and Google, not Bedrock's.                             (the same)

Its input is the request that segue made for the model that wrote the history; decoding it is timed only in tasks
with `reads`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import Json


def make_call(task: Json) -> Callable[[], object]:
    """Decode the history to llm-rosetta's format and return the function that encodes it for the target."""
    source, target = task["source"], task["target"]
    rosetta: Any = import_module("llm_rosetta")
    read, write = (getattr(rosetta, _CONVERTERS[wire["protocol"]])() for wire in (source, target))
    if task.get("reads"):
        return lambda: write.request_to_provider(read.request_from_provider(source["body"]))
    kept = read.request_from_provider(source["body"])
    return lambda: write.request_to_provider(kept)


_CONVERTERS: Mapping[str, str] = {
    "anthropic-messages": "AnthropicConverter",
    "openai-chat": "OpenAIChatConverter",
    "openai-responses": "OpenAIResponsesConverter",
    "google-genai": "GoogleGenerateConverter",
}
