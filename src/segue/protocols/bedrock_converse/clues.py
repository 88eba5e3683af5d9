"""Keys and values by which detection recognises a body of the `bedrock-converse` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "inferenceConfig": 9,
        "toolConfig": 5,
        "additionalModelRequestFields": 9,
        "guardrailConfig": 9,
        "modelId": 5,
        "system": 2,
    },
    block_keys={
        "toolUse": 9,
        "toolResult": 9,
        "reasoningContent": 9,
        "cachePoint": 9,
        "guardContent": 9,
    },
    tool_keys={
        "toolSpec": 9,
    },
    untyped_text=3,
    reply_keys={
        "stopReason": 11,  # more than `output` of openai-responses, which replies of this protocol have too
    },
    shared_reply_keys=frozenset({"output"}),
)
