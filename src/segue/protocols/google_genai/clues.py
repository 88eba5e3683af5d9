"""Keys and values by which detection recognises a body of the `google-genai` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    turns_key="contents",
    body_keys={
        "contents": 9,
        "generationConfig": 5,
        "systemInstruction": 5,
        "system_instruction": 5,
        "safetySettings": 5,
        "toolConfig": 1,
    },
    message_keys={
        "parts": 9,
    },
    tool_keys={
        "functionDeclarations": 9,
        "function_declarations": 9,
    },
    reply_keys={
        "candidates": 9,
        "promptFeedback": 9,
        "usageMetadata": 9,
        "prompt_feedback": 9,  # names in Google's Python SDK
        "usage_metadata": 9,
    },
)
