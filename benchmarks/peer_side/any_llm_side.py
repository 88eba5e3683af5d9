"""The same history in any-llm's format, which is OpenAI's chat messages, and its encoding for a target.

Facts this file relies on:
- `_convert_messages_for_anthropic` and `_convert_messages` of Gemini and Bedrock make the messages of the request;
  Gemini's are objects of google-genai, not dicts.                                      (any-llm-sdk 1.40.2, 2026-11)
- Claude's signature is in `extra_content.anthropic.signature` of the message, the text in `reasoning`;
  Gemini's in `extra_content.google.thought_signature` of the call.                                       (the same)
- Bedrock gets no reasoning at all, Gemini none of its thoughts.                                          (the same)
- For OpenAI nothing is converted: its own format is the same.                                             (the same)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chat_form import ChatMessage, Json, chat_history, thinking_of


def make_call(task: Json) -> Callable[[], object]:
    """Build the history in any-llm's format and return the function that encodes it for the target."""
    target = task["target"]
    history = chat_history(task["context"], _add_thinking)
    module, name, more = _CONVERSIONS[target["protocol"]]
    convert: Any = getattr(import_module(f"any_llm.providers.{module}.utils"), name)
    options = dict.fromkeys(more, target["id"])
    return lambda: convert(history, **options)


_CONVERSIONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "anthropic-messages": ("anthropic", "_convert_messages_for_anthropic", ()),
    "google-genai": ("gemini", "_convert_messages", ("model",)),
    "bedrock-converse": ("bedrock", "_convert_messages", ()),
}
"""The function of each provider, and its arguments that are the model's name."""


def _add_thinking(chat_message: ChatMessage, message: Json) -> None:
    thinking = thinking_of(message)
    if thinking is None:
        return
    chat_message["reasoning"] = thinking["thinking"]
    signature = thinking["thinkingSignature"]
    if message["protocol"] == "anthropic-messages":
        chat_message["extra_content"] = {"anthropic": {"signature": signature}}
    elif message["protocol"] == "google-genai" and "tool_calls" in chat_message:
        chat_message["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": signature}}
