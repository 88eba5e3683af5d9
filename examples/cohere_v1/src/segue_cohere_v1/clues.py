"""Keys by which bodies of this protocol are recognised."""

from __future__ import annotations

from typing import Final

from segue.protocols import Clues

CLUES: Final = Clues(
    turns_key=None,  # the last turn is not in the history
    body_keys={"chat_history": 9, "preamble": 9, "tool_results": 9, "message": 9},
    tool_keys={"parameter_definitions": 9},
    reply_keys={"generation_id": 20},
)
