"""The words of a turn, both ways: one string a turn, its pieces one below the other.

Facts this file rests on:
- Projection has told calls, results and media in words before they come here (`Texts` holds the wording); what is
  still something else has no word here.                                                          (rules of this form)
- A turn is its role and its words. Other keys that a program put beside them come back as they were.    (our promise)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import AnyContent, Extra, TextContent
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.reading import left_over
from segue.protocols.plain_text.rules import PROTOCOL

TURN_KEYS: Final = frozenset({"role", "content"})
BETWEEN_PIECES: Final = "\n"


def decode_text_content(turn: Mapping[str, object], path: Path) -> tuple[TextContent, ...]:
    """Read the words of a turn; no characters are no text.

    Raises:
        DecodeError: its content is no string.
    """
    content = turn.get("content")
    if not isinstance(content, str):
        raise DecodeError("content has to be a string", path=(*path, "content"))
    return (TextContent(text=content),) if content else ()


def encode_turn(role: str, pieces: Sequence[AnyContent], extra: Extra | None, path: Path) -> dict[str, object]:
    """Write one turn. `path` leads to its pieces.

    Raises:
        EncodeError: a piece is no text, or a block of another wire.
    """
    texts: list[str] = []
    beside: dict[str, object] = {}
    for position, piece in enumerate(pieces):
        if piece.kind == "text":
            texts.append(piece.text)
        elif piece.kind == "native" and piece.protocol == PROTOCOL:
            beside.update(piece.block)
        else:
            raise EncodeError(f"plain text has no word for content of kind {piece.kind}", path=(*path, position))
    turn: dict[str, object] = {"role": role, "content": BETWEEN_PIECES.join(texts)}
    for key, value in {**beside, **left_over(extra, PROTOCOL)}.items():
        turn.setdefault(key, value)
    return turn
