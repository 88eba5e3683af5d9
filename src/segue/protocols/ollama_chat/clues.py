"""Keys and values by which detection recognises a body of the `ollama-chat` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import first_party_prefixes
from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "keep_alive": 9,
        "think": 5,
        "format": 5,
    },
    message_keys={
        "images": 5,
        "thinking": 3,
        "tool_name": 5,
    },
    tool_keys={
        "function": 2,
    },
    # More than the name of a model of Mistral or Cohere with tools: Ollama serves the open ones of both.
    options_object=7,
    object_arguments=3,
    # Models that no Ollama server has; a client of another protocol may send `options` with them.
    model_ids={
        **dict.fromkeys((*first_party_prefixes("openai"), "openai/", "claude-", "anthropic/"), -9),
        "gpt-oss": 9,
    },
    reply_keys={
        "done_reason": 7,
        "done": 6,  # replies of older servers have no reason
    },
)
