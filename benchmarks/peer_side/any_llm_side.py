"""The same history in any-llm's form, which is OpenAI's chat messages, and its conversion to a wire.

Facts this file rests on:
- `_convert_messages_for_anthropic` and `_convert_messages` of Gemini and Bedrock make the messages of the wire;
  Gemini's are objects of google-genai, no plain values.                                (any-llm-sdk 1.40.2, 2026-11)
- Claude's signature stands in `extra_content.anthropic.signature` of the message, with `reasoning` for its text;
  Gemini's in `extra_content.google.thought_signature` of the call.                                       (the same)
- Bedrock is told no reasoning at all, Gemini none of its thoughts.                                       (the same)
- For OpenAI nothing is converted: its own form is that wire.                                              (the same)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import Json, Said, chat_history, thinking_of


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in any-llm's form and give its conversion to the wire of the target."""
    target = task["target"]
    history = chat_history(task["context"], _seal)
    module, name, more = _CONVERSIONS[target["protocol"]]
    convert: Any = getattr(import_module(f"any_llm.providers.{module}.utils"), name)
    options = dict.fromkeys(more, target["id"])
    return lambda: convert(history, **options)


_CONVERSIONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "anthropic-messages": ("anthropic", "_convert_messages_for_anthropic", ()),
    "google-genai": ("gemini", "_convert_messages", ("model",)),
    "bedrock-converse": ("bedrock", "_convert_messages", ()),
}
"""Which function of which provider, and the arguments that want the model's name."""


def _seal(said: Said, message: Json) -> None:
    thinking = thinking_of(message)
    if thinking is None:
        return
    said["reasoning"] = thinking["thinking"]
    seal = thinking["thinkingSignature"]
    if message["protocol"] == "anthropic-messages":
        said["extra_content"] = {"anthropic": {"signature": seal}}
    elif message["protocol"] == "google-genai" and "tool_calls" in said:
        said["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": seal}}
