"""The same history in llm-rosetta's own form, and its conversion to a wire.

Facts this file rests on:
- It has no stored form but what `request_from_provider` reads out of a request; `request_to_provider` writes that for
  another wire.                                                                     (llm-rosetta 0.13.0, 2026-11)
- It speaks Anthropic's, OpenAI's and Google's wires, and not Bedrock's.                                (the same)

What it is given is the request that segue made for whoever wrote the history; reading it is not timed
unless the task says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import Json


def make_call(task: Json) -> Callable[[], object]:
    """Read the history into llm-rosetta's own form and give its conversion to the wire of the target."""
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
