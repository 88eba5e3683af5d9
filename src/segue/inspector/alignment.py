"""Which stored message became which sent message, and which piece of content which."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final, NamedTuple, final

from segue.conversation.messages import Message

_AHEAD: Final = 64
"""How many sent messages are searched for the one that a stored message became; bounds the work of a long history."""


@final
class AlignedPair(NamedTuple):
    """Indexes of a stored message and of the sent message made of it; None if there is none.

    `same` is whether they are the same object. The row of the instructions has neither index.
    """

    stored: int | None
    sent: int | None
    same: bool


def align(stored: Sequence[Message], sent: Sequence[Message]) -> list[AlignedPair]:
    """Align sent messages with stored ones.

    An unchanged message is the same object in both. Between two of those, messages with the same role and the same
    origin or call are paired; any other message is in a row by itself.
    """
    places = {id(message): at for at, message in enumerate(sent)}
    rows: list[AlignedPair] = []
    reached = 0
    waiting: list[int] = []
    for at, message in enumerate(stored):
        found = places.get(id(message))
        if found is None or found < reached:
            waiting.append(at)
            continue
        rows += _align_changed(stored, waiting, sent, reached, found)
        rows.append(AlignedPair(at, found, same=True))
        waiting, reached = [], found + 1
    return rows + _align_changed(stored, waiting, sent, reached, len(sent))


def _align_changed(
    stored: Sequence[Message], old: Sequence[int], sent: Sequence[Message], start: int, end: int
) -> list[AlignedPair]:
    rows: list[AlignedPair] = []
    for at in old:
        near = range(start, min(start + _AHEAD, end))
        match = next((there for there in near if _is_made_of(stored[at], sent[there])), None)
        if match is None:
            rows.append(AlignedPair(at, None, same=False))
            continue
        rows += [AlignedPair(None, there, same=False) for there in range(start, match)]
        rows.append(AlignedPair(at, match, same=False))
        start = match + 1
    return rows + [AlignedPair(None, there, same=False) for there in range(start, end)]


def _is_made_of(given: Message, sent: Message) -> bool:
    if given.role != sent.role:
        return False
    if given.role == "assistant" and sent.role == "assistant":
        return (given.model, given.response_id) == (sent.model, sent.response_id)
    if given.role == "toolResult" and sent.role == "toolResult":
        return given.tool_name == sent.tool_name
    return True


def pair_texts(before: Sequence[str], after: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Pair the texts of two messages: equal ones first, then those in the same place between them."""
    pairs: list[tuple[int | None, int | None]] = []
    for _, from_old, to_old, from_new, to_new in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        pairs += zip_longest(range(from_old, to_old), range(from_new, to_new))
    return pairs
