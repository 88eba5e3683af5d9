"""Decide where a conversation is cut: a left fold over its request points, with marks that only move forward.

A request point is a place where a request was sent, or is sent now: before each assistant turn, and at the end. At
each point, if the size is above the high mark, one cut brings it down to the low mark, which is lower where a cut loses
reasoning. What is decided at a point depends only on the messages before it, so a longer conversation repeats every
earlier decision: between two cuts a request is a prefix of the next one, and prompt caches are read.

What goes, in this order, until the size is at the low mark:
1. The older part is shortened: long results, media, finished thinking. The newest part stays, `Fit.keep` of the limit.
2. The oldest units are left out, up to the newest part. A unit is a user message, or a turn with its results. What the
   user wrote in them is repeated in the note that replaces them, shortened where it is long. Only whole units go, so
   the size is mostly below the low mark then: the note quotes the newest of them in the tokens between.
3. The newest part is shortened and left out in the same way, up to the running unit.
4. The long results of the running unit are shortened.
5. The note is shortened.

Facts:
- A cut to 0.5 costs less than one to 0.7, because each cut loses the prompt cache. With one mark instead of two, 38 %
  of the tokens are read from the cache at a window of 200,000, with two 98 %. (207,130 simulated requests, 2026-11-15)
- Estimates of short texts vary; with a high mark of 0.9, requests of 43 kinds of adversarial texts had at most 0.92 of
  the window. (264 generated sessions, four tokenizers, 2026-11-17)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from segue.conversation.context import Summary
from segue.conversation.messages import Message, UserMessage
from segue.projection.fitting.marks import Marks
from segue.projection.fitting.notes import TIGHTEST, CutNotes
from segue.projection.fitting.places import JoinedPlaces
from segue.projection.fitting.plan import FitPlan
from segue.projection.fitting.shortening import Shortened, shorten_message, shorten_result
from segue.projection.fitting.sizes import Additions, Sizes
from segue.projection.policy import Texts

_SHARE_OF_HEAD: Final = 2 / 3
"""How much of a shortened result of the running unit is its beginning."""
_FEWEST: Final = 40
"""Of fewer messages it is not known how many tokens a turn has: one long result would decide."""
_SMALLEST_RESULT: Final = 300
"""Results of the running unit are not shortened to fewer characters."""


class Fold:
    """The marks of a growing conversation for one target."""

    def __init__(self, plan: FitPlan, texts: Texts, *, thinking: bool, thinking_first: bool, has_tools: bool) -> None:
        self.plan = plan
        self.sizes: Sizes = Sizes(plan)
        self.marks: Marks = Marks(len(plan.quotas))
        """The marks at the end of the settled messages."""
        self.fixed: float = -1.0
        self.notes: CutNotes = CutNotes(plan, texts, self.sizes)
        self._texts = texts
        self._last_turn = UserMessage.of(texts.last_turn).content
        self._additions = Additions(texts, has_tools=has_tools)
        self._drops_thinking = thinking
        self._thinking_first = thinking_first
        self._lean_sums: list[float] = [0.0]
        """Running sums of the shortened messages, up to `lean`."""
        self._finished: list[bool] = []
        """For each of them, whether its cycle was finished when it was shortened: only then its thinking goes."""
        self._lean: dict[tuple[int, bool], tuple[Message, Shortened | None, float]] = {}
        """Shortened messages by index and `finished`: the given message, the shortened one, and the tokens saved."""
        self._messages: Sequence[Message] = ()
        self._base: tuple[object, float] = (None, 0.0)
        """The tokens before the part that is sent unchanged, and the marks that they were found for in this run."""

    @property
    def head(self) -> int:
        """The messages before this index are always sent: they end with the first user message."""
        return self.notes.head

    # -- the fold ------------------------------------------------------------------------------------------------------

    def restart(self, fixed: float, summaries: tuple[Summary, ...], pins: tuple[int, ...]) -> None:
        """Begin again: what comes before the messages has changed, or a summary, or a pin."""
        self.fixed, self.notes.summaries, self.notes.pins = fixed, summaries, pins
        self._lean.clear()
        self.marks = Marks(len(self.plan.quotas))

    def forget_from(self, count: int) -> None:
        """Forget everything about messages from an index on."""
        self.sizes.truncate(count)
        if self.head > count:
            self.notes.head = 0

    def run(self, messages: Sequence[Message], places: JoinedPlaces, settled: int) -> tuple[Marks, float]:
        """Look at every point up to the end, and return the marks and the size there; settled marks stay."""
        self._messages, self._base = messages, (None, 0.0)
        self.notes.begin(messages, places)
        # What the end of the last request shortened may be shortened differently now.
        del self._lean_sums[self.marks.lean + 1 :], self._finished[self.marks.lean :]
        if self.plan.limit:
            self.sizes.count(messages, self._additions, self.notes.label)
        self._find_head()
        self._advance(self.marks, settled)
        marks = self.marks.copy()
        self._advance(marks, len(messages))
        return marks, marks.learnt.correct(self._look(marks, len(messages)) if messages else self.fixed)

    def _find_head(self) -> None:
        if self.head:
            return
        first = next(
            (
                index
                for index, message in enumerate(self._messages)
                if message.role == "user" and not self._additions.has(message)
            ),
            None,
        )
        is_kept = first is not None and (
            not self.plan.limit
            or self.sizes.full[first + 1] <= self.plan.least_head
            or self.notes.is_note(self._messages[first])
        )
        self.notes.head = first + 1 if is_kept and first is not None else 0

    def _advance(self, marks: Marks, end: int) -> None:
        messages = self._messages
        for point in range(marks.point, end):
            message = messages[point]
            if message.role == "assistant" and not self._additions.has(message):
                size = self._look(marks, point)
                is_reply = messages[point - 1].role != "assistant"  # else it may be the rest of one, with its usage
                if is_reply and message.usage is not None and self.plan.limit:
                    marks.learnt = self.plan.counter.learn(marks.learnt, message, size)
        marks.point = max(marks.point, end)

    def _look(self, marks: Marks, point: int) -> float:
        """Cut at a point if necessary, and return the estimated size of the request there."""
        size = self._estimated(marks, point) if self.plan.limit else 0.0
        if self.plan.limit and marks.learnt.correct(size) > self.plan.high:
            self._cut(marks, point)
            size = self._estimated(marks, point)
        if self.sizes.media:
            self._evict(marks, point)
        return size

    # -- the size ------------------------------------------------------------------------------------------------------

    def size(self, marks: Marks, point: int) -> float:
        """Return the tokens of a request at a point, corrected by the usage of the replies before it."""
        return marks.learnt.correct(self._estimated(marks, point))

    def least_size(self, marks: Marks, point: int) -> float:
        """Return the tokens of a request at a point without what seems to be a hidden prompt.

        It may be the count of messages that were deleted since, so it is a reason to cut more, but not to refuse.
        """
        return marks.learnt._replace(hidden=0.0).correct(self._estimated(marks, point))

    def _estimated(self, marks: Marks, point: int) -> float:
        sizes, lean = self.sizes, marks.lean
        key = (marks.gone, lean, marks.tight, marks.spare)
        if self._base[0] != key:
            self._base = (key, self._before_whole(marks))
        size = self._base[1]
        user = sizes.user_before[point]
        if user > lean:
            size += sizes.lasting[user] - sizes.lasting[lean] + sizes.full[point] - sizes.full[user]
        else:
            size += sizes.full[point] - sizes.full[lean]
        for index, saved in marks.saved.items():
            if index >= lean:
                size -= saved
        return size

    def _before_whole(self, marks: Marks) -> float:
        """Return the tokens of what is sent before the unchanged messages."""
        full, head, start = self.sizes.full, self.head, 0
        size = self.fixed
        if marks.gone > head:
            size += full[head] + self.notes.size(marks)
            start = marks.gone
        elif marks.lean > head:
            size += full[head]
            start = head
        return size + self._lean_sums[marks.lean] - self._lean_sums[start] if marks.lean > start else size

    # -- a cut ---------------------------------------------------------------------------------------------------------

    def _cut(self, marks: Marks, point: int) -> None:
        reasoning, turn = self.sizes.reasoning, 2 * self.sizes.full[point] / point if point >= _FEWEST else 0.0
        low, running = self.plan.low_after(turn, reasoning[point] - reasoning[marks.since]), self._unit_before(point)
        before, note = (marks.gone, marks.lean, len(marks.running)), (marks.tight, marks.spare)
        marks.tight, marks.spare = 0, 0.0
        newest = self._newest_part(point, running)
        self._shorten_up_to(marks, newest, point)
        if self.size(marks, point) > low:
            self._leave_out_up_to(marks, newest, point, low)
        unit = newest
        while unit < running and self.size(marks, point) > low:
            unit = self._next_unit(unit + 1, running)
            self._shorten_up_to(marks, unit, point)
        if self.size(marks, point) > low:
            self._leave_out_up_to(marks, running, point, low)
        if self.size(marks, point) > low:
            self._shorten_running(marks, running, point, low)
        if marks.gone == before[0]:
            marks.tight, marks.spare = note  # the note is the same, and shortened only further
        else:
            end = self._before_users(point, marks.lean)
            marks.noted = end, marks.lean
            most = (low + self.plan.high) / 2 - self.size(marks, point)  # a long message may come after `end`
            marks.spare = max(0.0, min(low - self.size(marks, end), most))
        while marks.gone > self.head and marks.tight < TIGHTEST and self.size(marks, point) > self.plan.most:
            marks.tight += 1
        if before != (marks.gone, marks.lean, len(marks.running)):
            marks.cuts += 1
            marks.since = point

    def _before_users(self, point: int, least: int) -> int:
        """Find the end of what was there before the newest messages of the user and of the system.

        The note depends only on that: where a reply is aborted, the next such message follows with no point between, or
        one that projection adds.
        """
        while point > least and (message := self._messages[point - 1]).role in ("user", "system"):
            if self._additions.has(message) and message.content != self._last_turn:
                break  # a result, or its media
            point -= 1
        return point

    def _newest_part(self, point: int, running: int) -> int:
        """Find where the newest part begins that stays unchanged."""
        full, unit = self.sizes.full, running
        while unit > self.head:
            earlier = self._unit_before(unit)
            if earlier < self.head or full[point] - full[earlier] > self.plan.keep:
                break
            unit = earlier
        return unit

    def _leave_out_up_to(self, marks: Marks, end: int, point: int, low: float) -> None:
        unit = max(marks.gone, self.head)
        while unit < end and self.size(marks, point) > low:
            unit = self._next_unit(unit + 1, end)
            if self._may_begin(unit):
                marks.gone = unit
                marks.lean = max(marks.lean, unit)
                self._sum_lean(marks.lean, point)

    def _shorten_up_to(self, marks: Marks, end: int, point: int) -> None:
        if end <= max(marks.lean, self.head):
            return
        marks.lean = end
        self._sum_lean(end, point)
        for index in [index for index in marks.running if index < end]:
            del marks.running[index], marks.saved[index]

    def _sum_lean(self, end: int, point: int) -> None:
        """Sum up the tokens of the shortened messages before an index."""
        sums, sizes = self._lean_sums, self.sizes
        last_user = sizes.user_before[point]
        for index in range(len(sums) - 1, end):
            finished = index < last_user
            tokens = sizes.lasting if finished else sizes.full
            _, _, saved = self._shortened(index, finished=finished)
            sums.append(sums[-1] + tokens[index + 1] - tokens[index] - saved)
            self._finished.append(finished)

    def _shortened(self, index: int, *, finished: bool) -> tuple[Message, Shortened | None, float]:
        """Shorten one message; kept, so that the next request has the same object."""
        message, known = self._messages[index], self._lean.get((index, finished))
        if known is not None and known[0] is message:
            return known
        drops_thinking = finished and self._drops_thinking
        shortened = shorten_message(message, self.plan.fit, self._texts, drops_thinking=drops_thinking)
        if shortened[0] is message or index in self.notes.pinned:
            known = (message, None, 0.0)
        else:
            counter = self.plan.counter
            saved = counter.message(message)[0] - counter.message(shortened[0])[0]
            known = (message, shortened, saved)
        self._lean[index, finished] = known
        return known

    def shortened(self, index: int) -> tuple[Shortened, float] | None:
        """Return the shortened form of a message before `lean`, and the tokens saved; None if it stays unchanged."""
        _, shortened, saved = self._shortened(index, finished=self._finished[index])
        return None if shortened is None else (shortened, saved)

    def sent_at_cut(self, index: int, lean: int) -> Message:
        """Return a message as it was sent when messages before `lean` were shortened."""
        shortened = self.shortened(index) if index < lean else None
        return self._messages[index] if shortened is None else shortened[0][0]

    def _shorten_running(self, marks: Marks, running: int, point: int, low: float) -> None:
        """Shorten the results of the running unit to one length, the longest that brings the size to the low mark."""
        lengths = {
            index: max((len(piece.text) for piece in message.content if piece.kind == "text"), default=0)
            for index in range(running, point)
            if (message := self._messages[index]).role == "toolResult" and index not in self.notes.pinned
        }
        level = max(lengths.values(), default=0)
        while level > _SMALLEST_RESULT and self.size(marks, point) > low:
            level = max(_SMALLEST_RESULT, level * 3 // 4)
            for index, length in lengths.items():
                message = self._messages[index]
                if length > level and message.role == "toolResult":
                    shorter = shorten_result(message, *split_level(level), self._texts)
                    if shorter is not message:
                        counter = self.plan.counter
                        marks.running[index] = level
                        marks.saved[index] = sum(counter.message(message)) - sum(counter.message(shorter))

    # -- units ---------------------------------------------------------------------------------------------------------

    def _unit_before(self, index: int) -> int:
        """Find the beginning of the unit that ends before an index."""
        index -= 1
        while index > 0 and not self._begins_unit(index):
            index -= 1
        return max(index, 0)

    def _next_unit(self, index: int, end: int) -> int:
        while index < end and not self._begins_unit(index):
            index += 1
        return index

    def _begins_unit(self, index: int) -> bool:
        """Whether a unit begins here: with a message that is neither a result nor an addition to another unit.

        Nor is it the rest of a reply that paused in a tool of the provider: that may begin with the tool's result.
        """
        message = self._messages[index]
        if message.role == "assistant" and index > 0:
            before = self._messages[index - 1]
            if before.role == "assistant" and any(piece.kind == "native" for piece in before.content):
                return False
        return message.role in ("user", "assistant") and not self._additions.has(message)

    def _may_begin(self, index: int) -> bool:
        """Whether a request may begin with this unit, after the first user message.

        Where a tool cycle has to begin with thinking, only a turn that begins with it may become the first of a cycle.
        """
        if not self._thinking_first or index >= len(self._messages):
            return True
        message = self._messages[index]
        if message.role != "assistant" or message.content[0].kind == "thinking":
            return True
        user = self.sizes.user_before[index]
        opener = next((turn for turn in self._messages[user:index] if turn.role == "assistant"), None)
        return opener is None or opener.content[0].kind != "thinking"

    # -- media ---------------------------------------------------------------------------------------------------------

    def _evict(self, marks: Marks, point: int) -> None:
        """Replace the oldest media of a quota that is exceeded, down to the low mark; the newest stay if they fit."""
        start = max(marks.gone, marks.lean)
        for number, (quota, media) in enumerate(zip(self.plan.quotas, self.sizes.media, strict=True)):
            if media.amounts[-1] <= quota.limit or not media.beside[-1]:
                continue
            amounts, beside, end = media.amounts, media.beside, bisect_left(media.places, (point, 0))
            head = bisect_left(media.places, (self.head, 0))
            kept = max(head, bisect_left(media.places, (start, 0)))
            evicted = marks.evicted[number]
            # The first message keeps its media although those after it are left out.
            sent, causes = (
                sums[end] - sums[max(evicted, kept)] + sums[head] - sums[min(evicted, head)]
                for sums in (amounts, beside)
            )
            if sent <= quota.limit or not causes:
                continue
            low, running = quota.limit * self.plan.low_share, bisect_left(media.places, (self._unit_before(point), 0))
            while evicted < end and causes and (sent > quota.limit or (evicted < running and sent > low)):
                if head <= evicted < kept:
                    evicted = kept
                    continue
                sent -= amounts[evicted + 1] - amounts[evicted]
                causes -= beside[evicted + 1] - beside[evicted]
                evicted += 1
            marks.evicted[number] = evicted
            marks.cuts += 1
            marks.since = point


def split_level(level: int) -> tuple[int, int]:
    """Split the length of a shortened result into its beginning and its end."""
    head = round(level * _SHARE_OF_HEAD)
    return head, level - head
