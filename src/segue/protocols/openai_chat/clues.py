"""Keys and values by which detection recognises a body of the `openai-chat` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "max_completion_tokens": 3,
        "stream_options": 4,
        "reasoning_effort": 1,
        "response_format": 1,
        "messages": 1,
        "venice_parameters": 9,  # Venice serves models of Mistral under their names (API reference, read 2026-11-17)
    },
    message_keys={
        "tool_call_id": 1,
        "reasoning_content": 3,
        "refusal": 2,
    },
    types={
        "image_url": 3,
        "input_audio": 3,
        "file": 2,
    },
    tool_keys={
        "function": 2,
    },
    plain_messages=1,
    reply_keys={
        "choices": 12,
    },
)
