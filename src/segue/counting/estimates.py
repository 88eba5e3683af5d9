"""An estimate with its error bar, and its correction by what the provider counted for earlier requests.

Facts:
- From one request to the next, the count of a provider grows by the tokens of what was added. That holds after a cut or
  an edit too: both requests are without the same messages. So growth corrects the weights of a tokenizer.
                                                   (sessions of 171,000 and 436,000 tokens, recorded 2026-11-15)
- What the provider counts beyond that, in every request, is a hidden prompt.   (xAI, Cohere, Groq; recorded 2026-11)
- With tools that the provider runs, a usage counts several requests.                                   (the same)
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from segue.conversation.messages import AssistantMessage

Writer = tuple[str, str, str]

_PLAUSIBLE: Final = (0.5, 2.0)
"""Growth outside these factors of the estimate is that of another history."""
_PRIOR: Final = 2000.0
"""Tokens of growth that count as much as the estimate itself: one short turn corrects nothing."""
_LEAST_FACTOR: Final = 0.85
"""A correction downwards is bounded: text of another kind may follow, which was not estimated too high."""
_LARGEST_HIDDEN: Final = 4096
"""In larger requests a hidden prompt cannot be distinguished from the error of the weights."""
_UNFINISHED: Final = frozenset({"error", "aborted"})


@final
class Estimate(NamedTuple):
    """A number of tokens with its error bar: the true count is between `low` and `high` in 95 of 100 requests."""

    tokens: int
    low: int
    high: int


@final
class Calibration(NamedTuple):
    """What the usage of replies shows about the estimate of a conversation."""

    estimated: float = 0.0
    """The growth between requests, as estimated and as counted."""
    counted: float = 0.0
    hidden: float = 0.0
    """Tokens of every request that are not in its body."""
    writer: Writer | None = None
    size: float = 0.0
    """The last request with a usage: who answered it, what it was estimated at and counted for."""
    usage: int = 0
    is_first: bool = True

    @property
    def factor(self) -> float:
        """By how much estimates are corrected."""
        return max(_LEAST_FACTOR, (_PRIOR + self.counted) / (_PRIOR + self.estimated))

    @property
    def certainty(self) -> float:
        """How much of the correction is known from growth: 0 at the beginning, towards 1 in a long conversation."""
        return self.estimated / (_PRIOR + self.estimated)

    def correct(self, size: float) -> float:
        """Correct the estimate of a request."""
        return size if self.usage == 0 else size * self.factor + self.hidden

    def learn(self, reply: AssistantMessage, size: float, target: Writer, *, most_hidden: int) -> Calibration:
        """Take in the usage of a reply to a request that was estimated at a size; nothing changes without one.

        `most_hidden`: how many tokens a prompt of the provider's own has at most. A first usage that is larger than the
        estimate by more counted messages, tools or instructions that the conversation no longer has.
        """
        usage = counted_input(reply)
        if usage <= 0:
            return self
        writer = (reply.protocol, reply.provider, reply.model)
        estimated, counted, hidden = self.estimated, self.counted, self.hidden
        if writer == self.writer:
            grown, more = size - self.size, usage - self.usage
            if grown > 0 and _PLAUSIBLE[0] * grown <= more <= _PLAUSIBLE[1] * grown:
                estimated, counted = estimated + grown, counted + more
        found = Calibration(estimated, counted, hidden, writer, size, usage, self.is_first)
        if writer != target or not most_hidden:
            return found
        beyond = max(0.0, usage - size * found.factor)
        if self.is_first:
            is_hidden = size < _LARGEST_HIDDEN and beyond <= most_hidden
            return found._replace(hidden=beyond if is_hidden else 0.0, is_first=False)
        return found._replace(hidden=min(hidden, beyond)) if beyond < hidden else found


NOTHING_LEARNT: Final = Calibration()


def counted_input(reply: AssistantMessage) -> int:
    """Return the tokens that the provider counted for the request of a reply; 0 if that is not known."""
    usage = reply.usage
    if usage is None or reply.stop_reason in _UNFINISHED or any(piece.kind == "native" for piece in reply.content):
        return 0
    return usage.input + usage.cache_read + usage.cache_write
