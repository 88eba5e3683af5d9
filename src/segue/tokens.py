"""How long is it? An estimate of tokens, for choosing a model before anyone has counted.

Facts this file rests on:
- The last reply's usage counts everything before it exactly; only what came after has to be guessed.
- Three and a half characters are about a token, an image about 1,200 tokens.        (pi-ai 1.5.0, read 2026-11-15)
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
    """Estimate how many tokens a conversation takes as input of a model."""
    get_model(model)
    counted, rest = _counted(context.messages)
    characters = sum(_characters(content) for message in rest for content in message.content)
    if not counted:
        prompt = context.system_prompt
        characters += len(prompt) if isinstance(prompt, str) else sum(map(_characters, prompt or ()))
        characters += len(msgspec.json.encode(context.tools)) if context.tools else 0
    return counted + round(characters / _CHARACTERS_PER_TOKEN)


def _counted(messages: Sequence[Message]) -> tuple[int, Sequence[Message]]:
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
