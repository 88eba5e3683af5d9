"""The text of a turn, both ways: one string for each turn; its texts are joined by newlines.

A conversation as one string, for targets that support nothing else: a prompt, a summary, a log.

Each turn is its role on one line, its text below, and an empty line before the next turn.

Facts:
- Projection has turned calls, results and media into text (`Texts` holds the wording); other content is an error here.
                                                                                           (rules of this format)
- A turn is its role and its text. Other keys of a turn are kept and written back.                    (our promise)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import AnyContent, Extra, TextContent
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import expect_objects
from segue.protocols.kit.verbatim import restore
from segue.protocols.plain_text.rules import PROTOCOL

TURN_KEYS: Final = frozenset({"role", "content"})
BETWEEN_TEXTS: Final = "\n"


def decode_text_content(turn: Block, path: Path) -> tuple[TextContent, ...]:
    """Read the text of a turn; an empty string is not content.

    Raises:
        DecodeError: its content is not a string.
    """
    content = turn.get("content")
    if not isinstance(content, str):
        raise DecodeError("`content` must be a string; join its texts", path=(*path, "content"))
    return (TextContent(text=content),) if content else ()


def encode_turn(role: str, pieces: Sequence[AnyContent], extra: Extra | None, path: Path) -> Wire:
    """Write one turn. `path` leads to its content.

    Raises:
        EncodeError: a piece is not text, or a block of another protocol.
    """
    texts: list[str] = []
    native: Wire = {}
    for position, piece in enumerate(pieces):
        if piece.kind == "text":
            texts.append(piece.text)
        elif piece.kind == "native" and piece.protocol == PROTOCOL:
            native.update(piece.block)
        else:
            reason = f"{PROTOCOL} does not support content of type `{piece.kind}`; convert it to text with `prepare`"
            raise EncodeError(reason, path=(*path, position))
    turn: Wire = {**native, "role": role}
    if extra is not None:
        restore(turn, extra, PROTOCOL)
    turn["content"] = BETWEEN_TEXTS.join(texts)  # always a string, so it has no other format
    return turn


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
