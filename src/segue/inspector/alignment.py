"""Which stored message became which sent message, and which piece of content which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias, final

from segue.conversation.messages import Message

_AHEAD: Final = 64
"""How many sent messages are searched for the one that a stored message became; bounds the work of a long history."""

_Pairing: TypeAlias = Callable[[Message, Message], bool]
"""Whether a message of the right side is paired with one of the left that is not the same."""


@final
class AlignedPair(NamedTuple):
    """Indexes of a stored message and of the sent message made from it; None if there is none.

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
    kept: list[tuple[int, int]] = []
    reached = 0
    for at, message in enumerate(stored):
        found = places.get(id(message))
        if found is not None and found >= reached:
            kept.append((at, found))
            reached = found + 1
    return _align_between(stored, sent, kept, _is_made_of)


def align_equal(left: Sequence[Message], right: Sequence[Message], keys: Sequence[Sequence[str]]) -> list[AlignedPair]:
    """Align the messages of two histories; `keys` of both sides are equal for messages that are the same.

    Between two pairs of equal messages, those with the same role are paired.
    """
    # With the number of its occurrence each key is unique: the work does not grow with the square of the repetitions.
    matcher = SequenceMatcher(None, _number(keys[0]), _number(keys[1]), autojunk=False)
    kept = [(start + n, there + n) for start, there, size in matcher.get_matching_blocks() for n in range(size)]
    rows = _align_between(left, right, kept, lambda given, other: given.role == other.role)
    return [
        row if row.stored is None or row.sent is None else row._replace(same=keys[0][row.stored] == keys[1][row.sent])
        for row in rows
    ]


def _number(keys: Sequence[str]) -> list[tuple[str, int]]:
    seen: Counter[str] = Counter()
    numbered: list[tuple[str, int]] = []
    for key in keys:
        seen[key] += 1
        numbered.append((key, seen[key]))
    return numbered


def _align_between(
    stored: Sequence[Message], sent: Sequence[Message], kept: Sequence[tuple[int, int]], is_made_of: _Pairing
) -> list[AlignedPair]:
    """Return a row for each pair that is kept, with the rows of what is between them."""
    rows: list[AlignedPair] = []
    old = new = 0
    for at, found in kept:
        rows += _align_changed(stored[old:at], old, sent[new:found], new, is_made_of)
        rows.append(AlignedPair(at, found, same=True))
        old, new = at + 1, found + 1
    return rows + _align_changed(stored[old:], old, sent[new:], new, is_made_of)


def _align_changed(
    stored: Sequence[Message], old: int, sent: Sequence[Message], new: int, is_made_of: _Pairing
) -> list[AlignedPair]:
    """Pair messages in order; `old` and `new` are the places of the first of each side."""
    rows: list[AlignedPair] = []
    start = 0
    for at, message in enumerate(stored, old):
        near = range(start, min(start + _AHEAD, len(sent)))
        match = next((there for there in near if is_made_of(message, sent[there])), None)
        if match is None:
            rows.append(AlignedPair(at, None, same=False))
            continue
        rows += [AlignedPair(None, new + there, same=False) for there in range(start, match)]
        rows.append(AlignedPair(at, new + match, same=False))
        start = match + 1
    return rows + [AlignedPair(None, new + there, same=False) for there in range(start, len(sent))]


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
