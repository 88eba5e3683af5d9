"""Rolling digests of the turns of a body.

A digest is made when it is needed: that of the last turns of a request is part of its stamp, which is read with the
reply. So the request does not wait for it. Values are digested, not the bytes that are sent: key order does not count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final, NamedTuple, final

import msgspec

from segue.conversation.marks import marks_of
from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.facts import PrefixForm
from segue.protocols.kit.json_values import Block

_ENCODE: Final = msgspec.json.Encoder().encode
_ENCODE_SORTED: Final = msgspec.json.Encoder(order="sorted").encode
_MOST_BYTES: Final = 64 * 1024 * 1024
_GROUP: Final = 32
"""How many turns are compared at once."""
START: Final = b"\0" * 32
"""The digest of no turns."""


@final
class ReplyTurn(msgspec.Struct, frozen=True):
    """An assistant turn of a request.

    `place` is the index of the projected message, `before` the digest of the turns before it.
    """

    place: int
    message: AssistantMessage
    before: bytes
    marks: tuple[str, ...]


@final
class _Digest:
    """The digest after one turn. Until it is made, it holds the turn and the digest before it.

    `reply` is for assistant turns: the digest before it, and the marks of its reasoning.
    """

    __slots__ = ("reply", "value", "waiting")

    def __init__(self, value: bytes = b"", waiting: tuple[_Digest, Block] | None = None) -> None:
        self.value = value
        self.waiting = waiting
        self.reply: tuple[bytes, tuple[str, ...]] | None = None

    def make(self, form: PrefixForm) -> bytes:
        """Return the digest; those before it are made first."""
        if self.waiting is None:
            return self.value
        chain: list[_Digest] = [self]
        while (waiting := chain[-1].waiting) is not None:
            chain.append(waiting[0])
        before = chain.pop().value
        while chain:
            digest = chain.pop()
            assert digest.waiting is not None
            turn = digest.waiting[1]
            if digest.reply is not None:
                before = digest.reply[0]
            elif turn["role"] == "assistant" and form.starts(turn):
                before = START
            before = digest.value = sha256(before + _ENCODE_SORTED(form.turn(turn))).digest()
            digest.waiting = None
        return before


class _Known(NamedTuple):
    """A conversation as it was sent the last time: its turns as JSON, where each of them ends, and the digests."""

    turns: memoryview
    ends: list[int]
    digests: list[_Digest]

    def common(self, content: bytes, start: int) -> int:
        """Count the first turns that a body has too; its turns begin at `start`."""
        turns, ends = self.turns, self.ends
        at, begin, group = 0, 0, _GROUP
        while at < len(ends):
            to = min(at + group, len(ends))
            if content.startswith(turns[begin : ends[to - 1]], start + begin):
                at, begin = to, ends[to - 1]
            elif group > 1:
                group = 1  # one of these
            else:
                break
        return at

    def turn(self, at: int) -> bytes:
        """Return one turn as JSON."""
        return bytes(self.turns[self.ends[at - 1] + 1 if at else 0 : self.ends[at]])


@final
class DigestCache:
    """The digests of conversations that are sent whole each time, by the bytes that they were sent as.

    A turn whose bytes are those of the last time is not digested again. The conversations that were not used for the
    longest time are forgotten.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._known: OrderedDict[tuple[object, ...], _Known] = OrderedDict()

    @property
    def held_bytes(self) -> int:
        """How much is kept."""
        return sum([len(known.turns) for known in list(self._known.values())])

    def read(self, form: PrefixForm, turns: Sequence[Block], content: bytes, start: int) -> list[_Digest]:
        """Return the digest before the turns, then that after each of them; `content` has them as JSON from `start`."""
        key = (form.turn, *map(_ENCODE, turns[:2]))
        known = self._known.get(key, _NOTHING)
        count = known.common(content, start)
        ends, digests, last = known.ends[:count], known.digests[: count + 1], len(known.ends)
        for at in range(count, len(turns)):
            data = _ENCODE(turns[at])
            ends.append(len(data) + (ends[-1] + 1 if ends else 0))
            if at < last and data == known.turn(at):
                digests.append(known.digests[at + 1])
                continue
            digests.append(_Digest(waiting=(digests[-1], turns[at])))
            # Reasoning and cache marks are not digested, so what follows may still be the same.
            if at < last and digests[-1].make(form) != known.digests[at + 1].value:
                last = 0
        digests[-1].make(form)  # threads share what is kept, so nothing in it may wait
        if not 0 < len(ends) <= last:
            self._keep(key, _Known(memoryview(content)[start:], ends, digests))
        return digests

    def _keep(self, key: tuple[object, ...], known: _Known) -> None:
        with suppress(KeyError):  # another thread may have removed it
            self._known[key] = known
            self._known.move_to_end(key)
            while self.held_bytes > self._most:
                self._known.popitem(last=False)


_NOTHING: Final = _Known(memoryview(b""), [], [_Digest(START)])


@final
class TurnDigests:
    """The digests of consecutive turns after the digest `start`, and the assistant turns among them."""

    __slots__ = ("_digests", "_form", "replies")

    def __init__(
        self, form: PrefixForm, start: bytes | list[_Digest] = START, replies: Sequence[ReplyTurn] = ()
    ) -> None:
        self._form = form
        self._digests: list[_Digest] = [_Digest(start)] if isinstance(start, bytes) else start
        """The digest before the turns, then that after each of them."""
        self.replies: list[ReplyTurn] = [*replies]

    def __len__(self) -> int:
        return len(self._digests) - 1

    def followed_by(self, turns: Sequence[Block], messages: Sequence[tuple[int, AssistantMessage]]) -> TurnDigests:
        """Return these turns and more; `messages` are those of the new assistant turns, with their indexes."""
        grown = TurnDigests(self._form, [*self._digests], self.replies)
        grown.add(turns, messages)
        return grown

    def add(self, turns: Sequence[Block], messages: Sequence[tuple[int, AssistantMessage]]) -> None:
        """Add turns to these; nobody else may have them yet."""
        digests = self._digests
        first = len(digests) - 1
        for turn in turns:
            digests.append(_Digest(waiting=(digests[-1], turn)))
        self._add_replies(turns, first, messages)

    @classmethod
    def cached(
        cls,
        form: PrefixForm,
        turns: Sequence[Block],
        messages: Sequence[tuple[int, AssistantMessage]],
        content: tuple[bytes, int],
        cache: DigestCache,
    ) -> TurnDigests:
        """Return the turns of a body; `content` has them as JSON, with the place of the first one."""
        digests = cls(form, cache.read(form, turns, *content))
        digests._add_replies(turns, 0, messages)
        return digests

    def _add_replies(
        self, turns: Sequence[Block], first: int, messages: Sequence[tuple[int, AssistantMessage]]
    ) -> None:
        form, digests, add = self._form, self._digests, self.replies.append
        number = 0
        for at, turn in enumerate(turns, first):
            if turn["role"] == "assistant":
                place, message = messages[number]
                known = digests[at + 1].reply
                if known is None:
                    before = START if form.starts(turn) else digests[at].make(form)
                    known = digests[at + 1].reply = (before, marks_of(message))
                add(ReplyTurn(place, message, *known))
                number += 1

    def behind(self, count: int, replies: int) -> TurnDigests:
        """Return all but the first turns, this many of them replies."""
        return TurnDigests(self._form, self._digests[count:], self.replies[replies:])

    def last(self) -> bytes:
        """Return the digest after all turns."""
        return self._digests[-1].make(self._form)

    def digest(self, count: int) -> bytes:
        """Return the digest after the first turns."""
        return self._digests[count].make(self._form)
