"""Estimate the number of input tokens of a conversation, for choosing a model before sending.

Facts this file rests on:
- The usage of the last reply counts everything up to it exactly; only later messages are estimated.
- A token is about three and a half characters, an image about 1,200 tokens.         (pi-ai 1.5.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from segue.conversation.content import AnyContent
from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.models.catalogue import get_model
from segue.models.model import Model

_CHARACTERS_PER_TOKEN: Final = 3.5
_CHARACTERS_PER_IMAGE: Final = 4800
_BYTES_PER_CHARACTER_OF_FILE: Final = 4


def estimate_tokens(context: Context, model: Model | str) -> int:
    """Estimate how many input tokens a conversation takes for a model.

    Raises:
        UnknownModel: the catalogue has no model of that name.
    """
    get_model(model)
    counted, rest = _split_at_last_usage(context.messages)
    characters = sum(_characters(content) for message in rest for content in message.content)
    if not counted:
        prompt = context.system_prompt
        characters += len(prompt) if isinstance(prompt, str) else sum(map(_characters, prompt or ()))
        characters += len(msgspec.json.encode(context.tools)) if context.tools else 0
    return counted + round(characters / _CHARACTERS_PER_TOKEN)


def _split_at_last_usage(messages: Sequence[Message]) -> tuple[int, Sequence[Message]]:
    """Give the tokens that the last reply with a usage reports, and the messages after it."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "assistant" and message.usage is not None and message.usage.total_tokens > 0:
            return message.usage.total_tokens, messages[index + 1 :]
    return 0, messages


def _characters(content: AnyContent) -> int:
    match content.kind:
        case "text":
            return len(content.text)
        case "thinking":
            return len(content.thinking)
        case "toolCall":
            return len(content.name) + len(repr(content.arguments))
        case "image":
            return _CHARACTERS_PER_IMAGE
        case "file":
            return len(content.data or "") // _BYTES_PER_CHARACTER_OF_FILE
        case "native":
            return sum(map(_characters, content.fallback)) or len(repr(content.block))
