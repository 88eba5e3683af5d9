"""Rolling digests of the turns of a body.

A digest is made when it is needed: that of the last turns of a request is part of its stamp, which is read with the
reply. So the request does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, final

import msgspec

from segue.conversation.marks import marks_of
from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.json_values import Block
from segue.protocols.kit.prefix_form import PrefixForm

_ENCODE: Final = msgspec.json.Encoder().encode
_ENCODE_SORTED: Final = msgspec.json.Encoder(order="sorted").encode
START: Final = b"\0" * 32
"""The digest of no turns."""


class Reply(NamedTuple):
    """An assistant turn of a request.

    `place` is the index of the projected message, `before` the digest of the turns before it.
    """

    place: int
    message: AssistantMessage
    before: bytes
    marks: tuple[str, ...]


@final
class _Digest:
    """The digest behind one turn. Until it is made, it holds the turn and the digest before it."""

    __slots__ = ("value", "waiting")

    def __init__(self, value: bytes = b"", waiting: tuple[_Digest, Block, bytes] | None = None) -> None:
        self.value = value
        self.waiting = waiting

    def make(self, form: PrefixForm) -> bytes:
        """Give the digest; those before it are made first.

        Only assistant turns hold objects whose key order is not the codec's own, the arguments of calls; it does not
        count where values are compared.
        """
        chain: list[_Digest] = [self]
        while (waiting := chain[-1].waiting) is not None:
            chain.append(waiting[0])
        before = chain.pop().value
        while chain:
            digest = chain.pop()
            assert digest.waiting is not None
            _, turn, data = digest.waiting
            bare = form.turn(turn)
            if turn["role"] == "assistant":
                before = START if form.starts(turn) else before
                data = _ENCODE_SORTED(bare)
            elif bare is not turn:
                data = _ENCODE(bare)
            before = digest.value = sha256(before + data).digest()
            digest.waiting = None
        return before


@final
class TurnDigests:
    """The digests of consecutive turns behind the digest `start`, and the assistant turns among them."""

    __slots__ = ("_digests", "_form", "replies")

    def __init__(self, form: PrefixForm, start: bytes = START) -> None:
        self._form = form
        self._digests: list[_Digest] = [_Digest(start)]
        """The digest before the turns, then that behind each of them."""
        self.replies: list[Reply] = []

    def __len__(self) -> int:
        return len(self._digests) - 1

    def followed_by(
        self, turns: Sequence[Block], encoded: Sequence[bytes], messages: Sequence[tuple[int, AssistantMessage]]
    ) -> TurnDigests:
        """Give these turns and more; `messages` are those of the new assistant turns, with their indexes."""
        grown = TurnDigests(self._form)
        digests, replies = grown._digests, grown.replies = [*self._digests], [*self.replies]
        number = 0
        for turn, data in zip(turns, encoded, strict=True):
            if turn["role"] == "assistant":
                place, message = messages[number]
                before = START if self._form.starts(turn) else digests[-1].make(self._form)
                replies.append(Reply(place, message, before, marks_of(message)))
                number += 1
            digests.append(_Digest(waiting=(digests[-1], turn, data)))
        return grown

    def behind(self, count: int, replies: int) -> TurnDigests:
        """Give all but the first turns, of which so many are replies."""
        rest = TurnDigests(self._form)
        rest._digests, rest.replies = self._digests[count:], self.replies[replies:]
        return rest

    def last(self) -> bytes:
        """Give the digest behind all turns."""
        return self._digests[-1].make(self._form)

    def digest(self, count: int) -> bytes:
        """Give the digest behind the first turns."""
        return self._digests[count].make(self._form)


def encode_each(turns: Sequence[object]) -> list[bytes]:
    """Give each turn as JSON."""
    return [*map(_ENCODE, turns)]
