"""A conversation as one string, for targets that support nothing else: a prompt, a summary, a log.

Each turn is its role on one line, its text below, and an empty line before the next turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.errors import DecodeError
from segue.protocols.kit.reading import expect_objects
from segue.protocols.plain_text.content import decode_text_content

BETWEEN_TURNS: Final = "\n\n"


def write_transcript(body: Mapping[str, object] | Sequence[object]) -> str:
    """Write the turns of a plain-text body, or of its bare list of messages, as one text.

    `prepare` converts calls, results and images to text first:
    `write_transcript(prepare(context, Model("any", "plain-text", "plain-text")).body)`.

    Raises:
        DecodeError: a message is not a role and a string.
    """
    messages = body.get("messages") if isinstance(body, Mapping) else body
    turns: list[str] = []
    for index, turn in enumerate(expect_objects(messages, ("messages",))):
        role = turn.get("role")
        if not isinstance(role, str):
            reason = "`role` must be a string; use system, user or assistant"
            raise DecodeError(reason, path=("messages", index, "role"))
        text = "".join(piece.text for piece in decode_text_content(turn, ("messages", index)))
        turns.append(f"{role}:\n{text}")
    return BETWEEN_TURNS.join(turns)
