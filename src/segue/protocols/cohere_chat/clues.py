"""Keys and values by which detection recognises a body of the `cohere-chat` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import first_party_prefixes
from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "stop_sequences": 2,
        "citation_options": 9,
        "safety_mode": 5,
        "strict_tools": 5,
        "p": 2,
        "k": 2,
        "chat_history": 5,  # of version 1, which the codec refuses with its own message
        "preamble": 5,  # the same
        "response_format": 1,
    },
    message_keys={
        "tool_call_id": 1,
        "tool_plan": 9,
        "citations": 5,
    },
    types={
        "document": 1,
        "image_url": 3,
    },
    tool_keys={
        "function": 2,
    },
    model_ids=dict.fromkeys(first_party_prefixes("cohere"), 6),
    reply_keys={
        "finish_reason": 5,  # other protocols have it inside a choice
    },
)
