"""Keys and values by which detection recognises a body of the `mistral-chat` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import first_party_prefixes
from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "random_seed": 9,
        "safe_prompt": 9,
        "prompt_mode": 5,
        "reasoning_effort": 1,
        "response_format": 1,
    },
    message_keys={
        "tool_call_id": 1,
        "prefix": 5,
    },
    types={
        "thinking": 2,
        "image_url": 3,
        "input_audio": 3,
        "file": 2,
        "document_url": 9,
        "reference": 5,
    },
    tool_keys={
        "function": 2,
    },
    model_ids=dict.fromkeys(first_party_prefixes("mistral"), 4),
    shared_reply_keys=frozenset({"choices"}),
)
