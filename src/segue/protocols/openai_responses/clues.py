"""Keys and values by which detection recognises a body of the `openai-responses` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    turns_key="input",
    body_keys={
        "input": 9,
        "instructions": 3,
        "previous_response_id": 5,
        "conversation": 5,
        "max_output_tokens": 3,
        "max_tool_calls": 3,
        "include": 3,
        "truncation": 3,
        "background": 3,
    },
    object_keys={
        "prompt": 9,  # a stored prompt; the older completions have a text there
        "text": 5,
        "reasoning": 2,
    },
    message_keys={
        "call_id": 5,
        "encrypted_content": 5,
        "phase": 5,
    },
    types={
        "input_text": 9,
        "output_text": 9,
        "input_image": 9,
        "function_call": 9,
        "function_call_output": 9,
        "reasoning": 9,
        "message": 5,
        "item_reference": 9,
    },
    tool_keys={
        "parameters": 2,
    },
    reply_keys={
        "output": 10,
    },
)
