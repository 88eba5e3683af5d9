"""Decide where a conversation is cut: a left fold over its request points, with marks that only move forward.

A request point is a place where a request was sent, or is sent now: before each assistant turn that answers a user
message or a tool result, and at the end. At each point, if the size is above the high mark, one cut brings it down to
the low mark, which is lower where a cut loses reasoning. What is decided at a point depends only on the messages before
it, so a longer conversation repeats every earlier decision: between two cuts a request is a prefix of the next one, and
prompt caches are read.

What goes, in this order, until the size is at the low mark:
1. The older part is shortened: long results, media, finished thinking. The newest part stays, `Fit.keep` of the limit.
2. The oldest units are left out, up to the newest part. A unit is a user message, or a turn with its results. What the
   user said in them is repeated in the note that stands for them, shortened where it is long.
3. The newest part is shortened and left out in the same way, up to the running unit.
4. The long results of the running unit are shortened.
5. The note is shortened.

Facts this file rests on:
- A cut to 0.5 costs less than one to 0.7, because each cut loses the prompt cache. With one mark instead of two, 38 %
  of the tokens are read from the cache at a window of 200,000, with two 98 %. (207,130 simulated requests, 2026-11-15)
- Estimates of short texts vary; with a high mark of 0.85 no request exceeded a window of 16,000 or more. (the same)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.context import Summary
from segue.conversation.messages import Message
from segue.counting.estimates import NOTHING_LEARNT, Calibration
from segue.projection.fitting.places import Places
from segue.projection.fitting.plan import FitPlan
from segue.projection.fitting.shortening import Shortened, keep_words, shorten_message, shorten_result, shorten_to
from segue.projection.fitting.sizes import Additions, Sizes
from segue.projection.policy import Texts, fill, template_pattern
from segue.projection.workspace.surrogates import clean_text

_NOTE: Final = 60
"""The tokens of the text around a summary."""
_SHARE_OF_HEAD: Final = 2 / 3
"""How much of a shortened result of the running unit is its beginning."""
_SMALLEST_RESULT: Final = 300
"""Results of the running unit are not shortened to fewer characters."""
_TIGHTEST: Final = 5
"""How often the room of the note is halved, where the running unit leaves too little."""
_LEAST_WORDS: Final = 48
"""The tokens that are left for the newest words of the user at least."""


class Marks:
    """Where the cuts are at one point; all of them are indexes of projected messages and only grow."""

    __slots__ = ("cuts", "evicted", "gone", "lean", "learnt", "point", "running", "saved", "since", "tight")

    def __init__(self, quotas: int) -> None:
        self.point: int = 1
        """The next point to look at."""
        self.gone: int = 0
        """Messages between the first user message and here are left out."""
        self.lean: int = 0
        """Messages between the first user message and here are shortened."""
        self.evicted: list[int] = [0] * quotas
        """For each quota, how many of its oldest media are replaced by a placeholder."""
        self.running: dict[int, int] = {}
        """Results that were shortened while their unit was running, and to how many characters."""
        self.saved: dict[int, float] = {}
        """The tokens that this saves."""
        self.cuts: int = 0
        self.since: int = 0
        """Where the last cut was. The next one loses the reasoning behind it, where that is bound to its prefix."""
        self.tight: int = 0
        """How often the room of the note is halved."""
        self.learnt: Calibration = NOTHING_LEARNT
        """What the usage of the replies so far tells about the estimates."""

    def copy(self) -> Marks:
        """Give marks that continue from these without changing them."""
        new = Marks(0)
        new.point, new.gone, new.lean, new.cuts = self.point, self.gone, self.lean, self.cuts
        new.since, new.tight, new.learnt = self.since, self.tight, self.learnt
        new.evicted, new.running, new.saved = list(self.evicted), dict(self.running), dict(self.saved)
        return new


class Fold:
    """The marks of a growing conversation for one target."""

    def __init__(self, plan: FitPlan, texts: Texts, *, thinking: bool, thinking_first: bool, has_tools: bool) -> None:
        self.plan = plan
        self.sizes: Sizes = Sizes(plan)
        self.marks: Marks = Marks(len(plan.quotas))
        """The marks at the end of the settled messages."""
        self.fixed: float = -1.0
        self.summaries: tuple[Summary, ...] = ()
        self.head: int = 0
        """The messages before this index are always sent: they end with the first user message."""
        self._texts = texts
        self._additions = Additions(texts, has_tools=has_tools)
        notes = (texts.turns_dropped, texts.summary)
        self._notes = template_pattern(*notes, *(note + texts.user_words for note in notes))
        self._label = plan.counter.text(fill(texts.user_words, text="")) if plan.limit else 0.0
        self._drops_thinking = thinking
        self._thinking_first = thinking_first
        self._lean_sums: list[float] = [0.0]
        """Running sums of the shortened messages, up to `lean`."""
        self._finished: list[bool] = []
        """For each of them, whether its cycle was finished when it was shortened: only then its thinking goes."""
        self._lean: dict[tuple[int, bool], tuple[Message, Shortened | None, float]] = {}
        """Shortened messages by index and `finished`: the given message, the shortened one, and the tokens saved."""
        self._summary_sizes: dict[str, float] = {}
        self._short_summaries: dict[tuple[int, str, float], tuple[Summary, float] | None] = {}
        self._messages: Sequence[Message] = ()
        self._places: Places = Places([], ())

    # -- the fold ------------------------------------------------------------------------------------------------------

    def restart(self, fixed: float, summaries: tuple[Summary, ...]) -> None:
        """Begin again: what stands before the messages, or a summary, is another one."""
        self.fixed, self.summaries = fixed, summaries
        self.marks = Marks(len(self.plan.quotas))

    def forget_from(self, count: int) -> None:
        """Forget everything about messages from an index on."""
        self.sizes.truncate(count)
        if self.head > count:
            self.head = 0

    def run(self, messages: Sequence[Message], places: Places, settled: int) -> Marks:
        """Look at every point up to the end, and give the marks there; those of the settled part are kept."""
        self._messages, self._places = messages, places
        # What the end of the last request shortened may be shortened differently now.
        del self._lean_sums[self.marks.lean + 1 :], self._finished[self.marks.lean :]
        if self.plan.limit:
            self.sizes.count(messages, self._additions, self._label)
        self._find_head()
        self._advance(self.marks, settled)
        marks = self.marks.copy()
        self._advance(marks, len(messages))
        if messages and marks.point <= len(messages):
            self._look(marks, len(messages))
        return marks

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
            or self._is_note(self._messages[first])
        )
        self.head = first + 1 if is_kept and first is not None else 0

    def _is_note(self, message: Message) -> bool:
        """Whether a message holds the note of an earlier cut: it is never cut again."""
        return any(piece.kind == "text" and self._notes.fullmatch(piece.text) for piece in message.content)

    def _advance(self, marks: Marks, end: int) -> None:
        messages = self._messages
        for point in range(marks.point, end):
            message = messages[point]
            if (
                message.role == "assistant"
                and messages[point - 1].role in ("user", "toolResult")
                and not self._additions.has(message)
            ):
                self._look(marks, point)
                if message.usage is not None and self.plan.limit:
                    marks.learnt = self.plan.counter.learn(marks.learnt, message, self._estimated(marks, point))
        marks.point = max(marks.point, end)

    def _look(self, marks: Marks, point: int) -> None:
        if self.plan.limit and self.size(marks, point) > self.plan.high:
            self._cut(marks, point)
        if self.sizes.media:
            self._evict(marks, point)

    # -- the size ------------------------------------------------------------------------------------------------------

    def size(self, marks: Marks, point: int) -> float:
        """Give the tokens of a request at a point, corrected by the usage of the replies before it."""
        return marks.learnt.correct(self._estimated(marks, point))

    def _estimated(self, marks: Marks, point: int) -> float:
        sizes, head = self.sizes, self.head
        size, start = self.fixed, 0
        if marks.gone > head:
            size += sizes.full[head] + self.note_size(marks)
            start = marks.gone
        elif marks.lean > head:
            size += sizes.full[head]
            start = head
        lean = max(marks.lean, start)
        if marks.lean > start:
            size += self._lean_sums[marks.lean] - self._lean_sums[start]
        user = sizes.user_before[point]
        if user > lean:
            size += sizes.lasting[user] - sizes.lasting[lean] + sizes.full[point] - sizes.full[user]
        else:
            size += sizes.full[point] - sizes.full[lean]
        for index, saved in marks.saved.items():
            if index >= lean:
                size -= saved
        return size

    def note_size(self, marks: Marks) -> float:
        """Give the most tokens of the note or the summary, and of the user's words, that stand for what is left out."""
        sums, room = self.sizes.user_words, max(_NOTE, self.plan.summary_room / 2**marks.tight)
        words = min(self.users_room(marks), sums[marks.gone] - sums[self.head])
        found = self.summary(marks) if self.summaries else None
        return words + (room if found is None else max(room, _NOTE + found[1]))

    def users_room(self, marks: Marks) -> float:
        """Give the tokens for what the user said in the messages that are left out."""
        room = self.plan.users_room
        return max(min(_LEAST_WORDS, room), room / 2**marks.tight)

    def words(self, marks: Marks) -> str:
        """Repeat what the user said in the messages that are left out, as far as there is room."""
        sums, room = self.sizes.user_words, self.users_room(marks)
        dropped = [
            self._messages[index]
            for index in range(self.head, marks.gone)
            if sums[index] < sums[index + 1] and self._messages[index].role == "user"
        ]
        texts = ["\n".join(piece.text for piece in each.content if piece.kind == "text") for each in dropped]
        kept = [text for text in texts if text.strip() and text != self._texts.first_turn]
        if kept and sums[marks.gone] - sums[self.head] > room:
            kept = keep_words(kept, room, self._label, self.plan.counter, self._texts)
        return "".join(fill(self._texts.user_words, text=text) for text in kept)

    def summary(self, marks: Marks) -> tuple[Summary, float] | None:
        """Find the latest summary of messages that are all left out, and its tokens.

        If it is too long, the latest one that is not; if all are, the latest one is shortened. Blank ones do not count.
        """
        kept, most = self.first_kept(marks), self.plan.summary_most / 2**marks.tight
        if marks.tight == _TIGHTEST:
            return None
        usable = [summary for summary in self.summaries if summary.covers <= kept and summary.text.strip()]
        # Of two that cover the same messages, the later one is the newer one.
        usable.sort(key=_covered)
        usable.reverse()
        return next(
            ((summary, size) for summary in usable if (size := self._summary_size(summary)) <= most),
            self._shortened_summary(usable[0], most) if usable else None,
        )

    def _summary_size(self, summary: Summary) -> float:
        size = self._summary_sizes.get(summary.text)
        if size is None:
            size = self._summary_sizes[summary.text] = self.plan.counter.text(summary.text)
        return size

    def _shortened_summary(self, summary: Summary, most: float) -> tuple[Summary, float] | None:
        key = (summary.covers, summary.text, most)
        if key not in self._short_summaries:
            text = shorten_to(clean_text(summary.text), most, self.plan.counter, self._texts)
            self._short_summaries[key] = (replace(summary, text=text), most) if text else None
        return self._short_summaries[key]

    def first_kept(self, marks: Marks) -> int:
        """Give the index, in the given conversation, of the first message behind those that are left out."""
        return self._places.after(marks.gone)

    # -- a cut ---------------------------------------------------------------------------------------------------------

    def _cut(self, marks: Marks, point: int) -> None:
        reasoning = self.sizes.reasoning
        low, running = self.plan.low_after(reasoning[point] - reasoning[marks.since]), self._unit_before(point)
        before, tight = (marks.gone, marks.lean, len(marks.running)), marks.tight
        marks.tight = 0
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
            marks.tight = tight  # the note is the same, and shortened only further
        while marks.gone > self.head and marks.tight < _TIGHTEST and self.size(marks, point) > self.plan.limit:
            marks.tight += 1
        if before != (marks.gone, marks.lean, len(marks.running)):
            marks.cuts += 1
            marks.since = point

    def _newest_part(self, point: int, running: int) -> int:
        """Find where the newest part begins that stays as it is."""
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
        if shortened[0] is message:
            known = (message, None, 0.0)
        else:
            counter = self.plan.counter
            saved = counter.message(message)[0] - counter.message(shortened[0])[0]
            known = (message, shortened, saved)
        self._lean[index, finished] = known
        return known

    def shortened(self, index: int) -> tuple[Shortened, float] | None:
        """Give the shortened form of a message before `lean`, and the tokens saved; None if it stays as it is."""
        _, shortened, saved = self._shortened(index, finished=self._finished[index])
        return None if shortened is None else (shortened, saved)

    def _shorten_running(self, marks: Marks, running: int, point: int, low: float) -> None:
        """Shorten the results of the running unit to one length, the longest that brings the size to the low mark."""
        lengths = {
            index: max((len(piece.text) for piece in message.content if piece.kind == "text"), default=0)
            for index in range(running, point)
            if (message := self._messages[index]).role == "toolResult"
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
        """Whether a unit begins here: with a message that is no result and is no addition to another unit."""
        message = self._messages[index]
        return message.role in ("user", "assistant") and not self._additions.has(message)

    def _may_begin(self, index: int) -> bool:
        """Whether a request may begin with this unit, behind the first user message.

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
            if media.amounts[-1] <= quota.limit:
                continue
            amounts, end = media.amounts, bisect_left(media.places, (point, 0))
            head = bisect_left(media.places, (self.head, 0))
            kept = max(head, bisect_left(media.places, (start, 0)))
            evicted = marks.evicted[number]
            # The first message keeps its media although those after it are left out.
            sent = amounts[end] - amounts[max(evicted, kept)] + amounts[head] - amounts[min(evicted, head)]
            if sent <= quota.limit:
                continue
            low, running = quota.limit * self.plan.low_share, bisect_left(media.places, (self._unit_before(point), 0))
            while evicted < end and (sent > quota.limit or (evicted < running and sent > low)):
                if head <= evicted < kept:
                    evicted = kept
                    continue
                sent -= amounts[evicted + 1] - amounts[evicted]
                evicted += 1
            marks.evicted[number] = evicted
            marks.cuts += 1
            marks.since = point


def _covered(summary: Summary) -> int:
    return summary.covers


def split_level(level: int) -> tuple[int, int]:
    """Split the length of a shortened result into its beginning and its end."""
    head = round(level * _SHARE_OF_HEAD)
    return head, level - head
