"""Reasoning and what it is bound to: which of it a request may contain, and what its reply is made after.

Some providers accept signed reasoning only after exactly the instructions, tools and messages that it was made after,
and only as one unbroken run of the original blocks (`Rules.bound_prefix`). The digests here are of the encoded body, so
they are computed where a request is encoded, never by projection.

How it works: each turn of a body adds to a rolling digest. A reply remembers the digest of what came before it
(`AssistantMessage.sent`). Blocks of a later request are chosen so:
- If a block is valid, so are the blocks that were sent in its request: the server accepted them there. They are found
  by following `Sent.before` from block to block, and are a run. So a growing conversation checks one digest.
- Of several runs the one that is worth most is sent: what the model does not have to think again. Signatures contain
  the thinking, so their length is the measure; of two that are worth the same, the newer one. Blocks may be left out
  from the end as well as from the start, so an older run is as valid as the newest.
                                                               (Anthropic documentation: preserved thinking, 2026-09)
- A reply without reasoning decides nothing: nothing is bound to it.
- A block about which nothing is remembered is valid if a valid reply was made right after it: the server accepted it.
- What was left out of a request is not put back after its reply: the run would not be the original one any more.
- After a summary of the provider (compaction), nothing from before it is sent: the provider does not read it.
- Blocks about which nothing is remembered are sent with the request to drop what is not valid, once, while no
  remembered reply follows them; where a server has no such request, they are left out.

A turn is digested without its reasoning, and its reasoning is removed after all passes of projection and after fitting.
So neither the digests nor the window depend on what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

import msgspec
from msgspec.structs import replace

from segue.conversation.marks import signature_lengths, stored_digest
from segue.conversation.messages import AssistantMessage, Sent
from segue.requests.binding.digests import START, ReplyTurn

_SYSTEM: Final = "the system prompt has changed since"
_TOOLS: Final = "the tools have changed since"
_MESSAGES: Final = "an earlier message has changed since"
_CUT: Final = "the conversation was cut to fit the window"
OTHER_ACCOUNT: Final = "made with another account"
_REFUSED: Final = "the provider refused or dropped it before"
_UNKNOWN: Final = "what it was made after is not known"
_SKIPPED: Final = "later reasoning was made without it"
_WORTH_LESS: Final = "it was made without the reasoning that is sent, which is worth more"
_SUMMARISED: Final = "a summary of the provider stands for it"
_GAP: Final = "reasoning that follows it was removed"


@final
class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What the reasoning of a request is compared with, in addition to the turns."""

    system: str
    tools: str
    account: str | None = None
    refused: frozenset[str] = frozenset()
    can_ask: bool = False
    is_cut: bool = False


@final
class BoundRun(msgspec.Struct, frozen=True, kw_only=True):
    """Which reasoning of a request is sent.

    `withheld` has the positions of the marks that are left out, by the index of the reply, with the cause. `newest` is
    the mark of the last block that is sent. `asked` are the marks of unknown blocks that are sent with the request to
    drop.
    """

    count: int
    withheld: dict[int, tuple[tuple[int, ...], str]]
    newest: str | None = None
    known: str | None = None
    """The mark of the last block before those that the server is asked about."""
    asked: tuple[str, ...] = ()


# -- the run that is sent ----------------------------------------------------------------------------------------------


def choose_run(
    replies: Sequence[ReplyTurn], frame: Frame, is_of_account: Callable[[AssistantMessage], bool]
) -> BoundRun:
    """Choose the reasoning that is sent."""
    return _whole_run(replies, frame, is_of_account) or _Choice(replies, frame, is_of_account).run()


def _whole_run(
    replies: Sequence[ReplyTurn], frame: Frame, is_of_account: Callable[[AssistantMessage], bool]
) -> BoundRun | None:
    """Choose all reasoning, if it is one run whose newest reply holds; None if it is not. Most requests are so."""
    newest, last, refused = None, None, frame.refused
    if _start(replies):
        return None
    for reply in replies:
        marks = reply.marks
        if not marks:
            continue
        sent = reply.message.sent
        if sent is None or sent.before != newest or sent.blocks != marks or not is_of_account(reply.message):
            return None
        if refused and not refused.isdisjoint(marks):
            return None
        newest, last = marks[-1], reply
    if last is None or last.message.sent is None or not _holds(last, last.message.sent, frame):
        return None
    return BoundRun(count=len(replies), withheld={}, newest=newest, known=newest)


def grow_run(
    new: Sequence[ReplyTurn], frame: Frame, is_of_account: Callable[[AssistantMessage], bool], known: BoundRun
) -> BoundRun | None:
    """Add new replies to a choice that was made for the same frame; None if they do not continue its run."""
    if known.asked:
        return None
    count = known.count + len(new)
    newest = known.newest
    for reply in new:
        if reply.before == START:
            return None
        if not reply.marks:
            continue
        sent = reply.message.sent
        if (
            sent is None
            or sent.before != newest
            or sent.blocks != reply.marks
            or not _holds(reply, sent, frame)
            or not frame.refused.isdisjoint(reply.marks)
            or not is_of_account(reply.message)
        ):
            return None
        newest = reply.marks[-1]
    return replace(known, count=count, newest=newest, known=newest) if new else known


def _start(replies: Sequence[ReplyTurn]) -> int:
    """Return the index of the newest reply that the provider reads in place of all before it; 0 if there is none."""
    return next((index for index in range(len(replies) - 1, -1, -1) if replies[index].before == START), 0)


def _holds(reply: ReplyTurn, sent: Sent, frame: Frame) -> bool:
    """Whether what a reply was made after is what comes before it now."""
    return sent.system == frame.system and sent.tools == frame.tools and sent.messages == stored_digest(reply.before)


def _is_known(reply: ReplyTurn) -> bool:
    sent = reply.message.sent
    return sent is not None and bool(sent.messages)


class _Choice:
    """Chooses the reasoning of one request."""

    def __init__(
        self, replies: Sequence[ReplyTurn], frame: Frame, is_of_account: Callable[[AssistantMessage], bool]
    ) -> None:
        self.replies = replies
        self.frame = frame
        self.is_of_account = is_of_account
        self.first: int = _start(replies)
        self.kept: dict[int, tuple[int, int]] = {}
        """By the index of the reply: from which mark to which one its blocks are sent."""
        self.accepted: dict[str, tuple[str, ...]] = {}
        """Unknown blocks that the server accepted: with the block before them in that request, and in its order."""
        for reply in replies:
            if reply.message.sent is not None:
                self.accepted.update(dict.fromkeys(reply.message.sent.accepted, reply.message.sent.accepted))

    def run(self) -> BoundRun:
        unknown, answers, below = self._newest_unknown()
        sendable = self._sendable(unknown)
        usable = [
            mark for index, (begin, end) in reversed(sendable.items()) for mark in self.replies[index].marks[begin:end]
        ]
        accepted = next((answer for answer in answers if usable and set(answer).issuperset(usable)), None)
        asked: tuple[str, ...] = ()
        known: str | None = None
        if accepted is not None:
            self.accepted.update(dict.fromkeys(accepted, accepted))
            self._follow(usable[-1], len(self.replies))
        self._choose_known(below)
        if accepted is None:
            known = self._newest()
            if usable and self.frame.can_ask:
                self.kept.update(sendable)
                asked = tuple(usable)
        return BoundRun(
            count=len(self.replies), withheld=self._withheld(), newest=self._newest(), known=known, asked=asked
        )

    def _newest(self) -> str | None:
        at = max(self.kept, default=-1)
        return self.replies[at].marks[self.kept[at][1] - 1] if at >= 0 else None

    def _newest_unknown(self) -> tuple[list[int], list[tuple[str, ...]], int]:
        """Find the unknown replies that no known one with reasoning follows, and what the server accepted of them."""
        unknown: list[int] = []
        accepted: list[tuple[str, ...]] = []
        for index in range(len(self.replies) - 1, self.first - 1, -1):
            reply = self.replies[index]
            sent = reply.message.sent
            if not reply.marks:
                if sent is not None and sent.accepted and _holds(reply, sent, self.frame):
                    accepted.append(sent.accepted)
            elif _is_known(reply):
                return unknown, accepted, index
            else:
                unknown.append(index)
        return unknown, accepted, -1

    def _sendable(self, unknown: list[int]) -> dict[int, tuple[int, int]]:
        """Return which blocks of unknown replies may be sent at all, as `kept`: no others are asked about."""
        sendable: dict[int, tuple[int, int]] = {}
        for index in unknown:
            marks = self.replies[index].marks
            allowed = [position for position, mark in enumerate(marks) if self._may_send(mark)]
            if allowed and self.is_of_account(self.replies[index].message):
                # From the first to the last one: a block between them that may not be sent ends the run there.
                end = next((at for at in range(allowed[0], len(marks)) if at not in allowed), len(marks))
                sendable[index] = (allowed[0], end)
        return sendable

    def _may_send(self, mark: str) -> bool:
        return mark not in self.frame.refused

    def _choose_known(self, below: int) -> None:
        """Keep the run that is worth most, of what is kept already and of those that end with a known reply."""
        best, is_first = self.kept, not self.kept
        covered = set(best)
        for index in range(below, self.first - 1, -1):
            reply = self.replies[index]
            sent = reply.message.sent
            if not reply.marks or sent is None or index in covered or not _is_known(reply):
                continue
            self.kept = {}
            if (
                _holds(reply, sent, self.frame)
                and self.is_of_account(reply.message)
                and self._keep(index, len(reply.marks), sent.blocks or reply.marks)
            ):
                self._follow(self._before(index, sent), index)
                # A run that ends with a whole reply of this one is a part of it.
                covered.update(at for at, (_, end) in self.kept.items() if end == len(self.replies[at].marks))
                if is_first or self._worth(self.kept) > self._worth(best):
                    best, is_first = self.kept, False
        self.kept = best

    def _worth(self, kept: Mapping[int, tuple[int, int]]) -> int:
        """Measure what a run saves."""
        return sum(
            sum(signature_lengths(self.replies[index].message)[begin:end]) for index, (begin, end) in kept.items()
        )

    def _keep(self, index: int, end: int, blocks: Sequence[str]) -> bool:
        """Keep the blocks of a reply up to `end` that are one run of its original ones; False if there are none."""
        marks = self.replies[index].marks
        while end and (marks[end - 1] not in blocks or not self._may_send(marks[end - 1])):
            end -= 1
        if not end:
            return False
        begin, place = end - 1, blocks.index(marks[end - 1])
        while begin and place and marks[begin - 1] == blocks[place - 1] and self._may_send(marks[begin - 1]):
            begin, place = begin - 1, place - 1
        self.kept[index] = (begin, end)
        return True

    def _follow(self, want: str | None, below: int) -> None:
        """Keep the blocks of a request: that with a mark, and from there each one that the one before it follows."""
        for index in range(below - 1, self.first - 1, -1):
            if want is None:
                return
            marks = self.replies[index].marks
            if want not in marks:
                continue
            message = self.replies[index].message
            own, end = message.sent, marks.index(want) + 1
            if not self._may_send(want) or not self.is_of_account(message):
                return
            if own is not None and _is_known(self.replies[index]):
                if not self._keep(index, end, own.blocks or marks) or self.kept[index][1] != end:
                    self.kept.pop(index, None)
                    return
                want = self._before(index, own)
            elif accepted := self.accepted.get(want):
                self._keep(index, end, accepted)
                place = accepted.index(marks[self.kept[index][0]])
                want = accepted[place - 1] if place else None
            else:
                # The reply after it proves this block, and nothing proves what came before it.
                self.kept[index] = (end - 1, end)
                return

    def _before(self, index: int, sent: Sent) -> str | None:
        """Return the mark of the block before the kept ones of a reply; None if one between them is missing."""
        first = self.replies[index].marks[self.kept[index][0]]
        return sent.before if not sent.blocks or first == sent.blocks[0] else None

    # -- what is left out ----------------------------------------------------------------------------------------------

    def _withheld(self) -> dict[int, tuple[tuple[int, ...], str]]:
        withheld: dict[int, tuple[tuple[int, ...], str]] = {}
        for index, reply in enumerate(self.replies):
            if not reply.marks:
                continue
            begin, end = self.kept.get(index, (0, 0))
            if (begin, end) != (0, len(reply.marks)):
                left = (*range(begin), *range(end, len(reply.marks)))
                withheld[index] = left, self._cause(index, left)
        return withheld

    def _cause(self, index: int, left: tuple[int, ...]) -> str:
        """Say why blocks of a reply are left out."""
        reply, frame = self.replies[index], self.frame
        sent = reply.message.sent
        if index < self.first:
            return _SUMMARISED
        if any(not self._may_send(reply.marks[position]) for position in left):
            return _REFUSED
        if not self.is_of_account(reply.message):
            return OTHER_ACCOUNT
        if sent is None or not sent.messages:
            return _UNKNOWN
        if sent.system != frame.system:
            return _SYSTEM
        if sent.tools != frame.tools:
            return _TOOLS
        if sent.messages != stored_digest(reply.before):
            return _CUT if frame.is_cut else _MESSAGES
        if index > max(self.kept, default=index):
            return _WORTH_LESS
        return _SKIPPED if index not in self.kept else _GAP
