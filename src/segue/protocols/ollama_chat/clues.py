"""How a body of the `ollama-chat` wire is recognised."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    body_keys={
        "keep_alive": 9,
        "think": 5,
    },
    message_keys={
        "images": 5,
        "thinking": 3,
        "tool_name": 5,
    },
    options_object=3,
    object_arguments=3,
    reply_keys={
        "done_reason": 7,
        "done": 6,  # older servers give no reason
    },
)
