"""Keys and values by which detection recognises a body of the `anthropic-messages` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.models.model_ids import first_party_prefixes
from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "system": 3,
        "anthropic_version": 9,
        "stop_sequences": 2,
        "thinking": 1,
        "top_k": 1,
        "output_config": 3,
    },
    block_keys={
        "tool_use_id": 9,
        "cache_control": 1,
        "source": 3,
        "signature": 3,
    },
    types={
        "tool_use": 9,
        "tool_result": 9,
        "thinking": 4,
        "redacted_thinking": 9,
        "server_tool_use": 9,
        "image": 3,
        "document": 3,
    },
    tool_keys={
        "input_schema": 9,
        "function": -9,  # never in this protocol, at any provider of Claude models
    },
    model_ids=dict.fromkeys(first_party_prefixes("anthropic"), 4),
    # This protocol requires it. A request without it is for a provider that serves Claude models over another protocol,
    # or counts tokens. (anthropic 2.8.0; Heroku uses the same ids: recorded, 2025-10)
    model_ids_need="max_tokens",
    reply_keys={
        "stop_reason": 8,
    },
)
