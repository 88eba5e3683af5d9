"""Fit a growing conversation to the window of one target, and to its limits of media."""

from __future__ import annotations

from functools import cached_property
from operator import is_
from typing import Final

from segue.conversation.context import Context, Options, Tool
from segue.errors import Path
from segue.projection.fitting.cutting import MadeMessages, apply_cuts
from segue.projection.fitting.fold import Fold
from segue.projection.fitting.given import Fitted, Given
from segue.projection.fitting.marks import Marks
from segue.projection.fitting.plan import FitPlan
from segue.projection.fitting.window import Window
from segue.projection.requirements import WindowTooSmall
from segue.projection.workspace.workspace import SystemPrompt, Target

_NO_OPTIONS: Final = Options()


class Fitter:
    """Fits a growing conversation for one target."""

    def __init__(self, target: Target, plan: FitPlan) -> None:
        self.plan = plan
        self.target = target
        self._fixed: tuple[SystemPrompt, tuple[Tool, ...], object, float] | None = None
        self._made: MadeMessages = MadeMessages()
        self._settled: int = 0
        self._is_cut: bool = False
        """Whether the last request was cut."""

    @cached_property
    def fold(self) -> Fold:
        """The marks of the conversation; made on first use, because most requests are far from their window."""
        rules, plan = self.target.rules, self.plan
        # Where the provider drops the thinking of finished cycles itself, removing it would save nothing.
        # Where calls need signed thinking before them, a placeholder would replace it.
        is_needed = rules.reasoning_replay == "required" or rules.call_signature == "thought"
        drops_thinking = not is_needed and not plan.counter.family.drops_thinking
        return Fold(
            plan,
            self.target.policy.texts,
            thinking=drops_thinking,
            thinking_first=rules.thinking_before_calls,
            has_tools=rules.tools,
        )

    def fit(self, given: Given) -> Fitted:
        """Find the cuts for a request, apply and report them."""
        plan, messages = self.plan, given.messages
        # Once a conversation was cut, its length no longer says that it fits.
        most = None if self._is_cut else self._most(given)
        if most is not None and most > plan.high and not given.settled:
            most = self._closer(given)
        if most is not None and most <= plan.high:
            return Fitted(self._window(given, most))
        fold = self.fold
        # Messages that were not settled in the last request may have changed since, although they are settled now.
        fold.forget_from(self._settled)
        self._settled = given.settled
        fold.sizes.extend_bounds(messages)
        most = self._bound(given, fold.sizes.bounds[-1])
        if most > plan.high and given.covered:
            most = self._bound(given, self._count(given))
        if most <= plan.high and not self._exceeds_quota():
            return Fitted(self._window(given, most))
        fixed = self._count_fixed(given) if plan.limit else 0.0
        if fixed != fold.fixed or given.summaries != fold.notes.summaries or given.pins != fold.notes.pins:
            fold.restart(fixed, given.summaries, given.pins)
            self._made.restart()
        marks, size = fold.run(messages, given.places, given.settled)
        fitted = Fitted(self._cut_window(given, marks, size))
        self._is_cut = bool(marks.cuts)
        if marks.cuts:
            apply_cuts(fitted, marks, given, target=self.target, fold=fold, made=self._made)
            # Where nothing could be shortened, the conversation stays the same object.
            if len(fitted.messages) == len(messages) and all(map(is_, fitted.messages, messages)):
                fitted.is_cut = False
        if size > plan.most and (least := fold.least_size(marks, len(messages))) > plan.most:
            fitted.requirements = (*fitted.requirements, self._too_small(given, marks, least))
        return fitted

    def _most(self, given: Given) -> float | None:
        """Bound the tokens of a request by its characters alone, which costs little; None if they are not known."""
        counter = self.plan.counter
        if given.length is None or counter.is_own:
            return None
        characters, beyond_ascii = given.length
        most = counter.bound_characters(characters, beyond_ascii) + len(given.messages) * counter.family.message
        return self._bound(given, most)

    def _closer(self, given: Given) -> float:
        """Bound the tokens by the characters of each kind; not incremental, as the bounds of `Sizes` are."""
        return self._bound(given, self.plan.counter.bound_messages(given.messages))

    def _bound(self, given: Given, messages: float) -> float:
        """Bound the tokens of a request, given a bound of its messages; 0 without a limit."""
        limit, high, counter = self.plan.limit, self.plan.high, self.plan.counter
        if not limit:
            return 0.0
        if messages > high:
            return messages
        if not counter.is_own:
            most = messages + counter.most_fixed(Context(system_prompt=given.prompt, tools=given.tools), given.schema)
            if most <= high:
                return most
        return messages + self._count_fixed(given)

    def _exceeds_quota(self) -> bool:
        return any(
            media.amounts[-1] > quota.limit and media.beside[-1]
            for quota, media in zip(self.plan.quotas, self.fold.sizes.media, strict=True)
        )

    def _count_fixed(self, given: Given) -> float:
        """Count what comes before the messages; the same objects are counted once."""
        known, schema = self._fixed, given.schema
        if known is not None and known[0] == given.prompt and known[1] == given.tools and known[2] == schema:
            return known[3]
        counter = self.plan.counter
        fixed = counter.fixed(Context(system_prompt=given.prompt, tools=given.tools), None)
        if schema:
            fixed += counter.schema(schema)
        self._fixed = (given.prompt, given.tools, schema, fixed)
        return fixed

    def _window(self, given: Given, most: float) -> Window | None:
        """Return the window of a request that is not cut and has at most so many tokens; None if no window is known."""
        limit, window = self.plan.limit, self.plan.window

        def estimate() -> int:
            read = given.messages[given.covered :]  # the server has replaced those before
            return self.plan.counter.request(read, self._count_fixed(given)).tokens

        if not limit:
            return None
        closer = None if self.plan.counter.is_own else lambda: self._closer(given)
        return Window(limit, window, estimate, most=most, closer=closer)

    def _count(self, given: Given) -> float:
        """Count the tokens of the messages that the server reads."""
        counter, tokens, messages = self.plan.counter, 0.0, given.messages[given.covered :]
        last_user = max((at for at, message in enumerate(messages) if message.role == "user"), default=0)
        for at, message in enumerate(messages):
            lasting, passing = counter.message(message)
            tokens += lasting + (passing if at > last_user else 0.0)
        return tokens

    def _cut_window(self, given: Given, marks: Marks, size: float) -> Window | None:
        limit, window, tokens = self.plan.limit, self.plan.window, round(size)
        if not limit:
            return None
        lean, gone = self._place(given, marks.lean), self._place(given, marks.gone)
        return Window(limit, window, lambda: tokens, lean=lean, gone=gone)

    def _place(self, given: Given, index: int) -> int:
        """Return the index in the given conversation of the first given message from an index on; 0 without a cut."""
        if index <= self.fold.head:
            return 0
        return given.places.after(index)

    def _too_small(self, given: Given, marks: Marks, size: float) -> WindowTooSmall:
        """Name the largest part of what cannot be made smaller."""
        counter, texts = self.plan.counter, given.prompt
        parts: list[tuple[float, Path]] = [
            (sum(counter.message(given.messages[index])), ("messages", place))
            for index in (*self.fold.notes.pinned_in(marks), *range(marks.gone, len(given.messages)))
            if (place := given.places[index]) >= 0 and index not in marks.running
        ]
        if texts:
            parts.append((counter.fixed(Context(system_prompt=texts), _NO_OPTIONS), ("system_prompt",)))
        if given.tools:
            parts.append((counter.tools(given.tools), ("tools",)))
        path = max(parts, default=(0.0, ("messages",)))[1]
        return WindowTooSmall(needed=round(size), limit=int(self.plan.most), path=path)
