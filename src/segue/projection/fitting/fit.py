"""Apply the cuts to a projected conversation, and report them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AnyContent, CacheMark, TextContent, UserContent
from segue.conversation.context import CacheRetention, Context, Options, Summary, Tool
from segue.conversation.messages import Message, UserMessage
from segue.errors import Path
from segue.projection.fitting.fold import Fold, Marks, split_level
from segue.projection.fitting.places import Places
from segue.projection.fitting.plan import FitPlan
from segue.projection.fitting.shortening import shorten_result, without_media
from segue.projection.fitting.window import Window
from segue.projection.passes.cache_marks import Mark
from segue.projection.policy import Texts, fill
from segue.projection.report import Change, ChangeCode, Loss, place_of
from segue.projection.requirements import HistoryNeeded, MediaNeeded, Requirement, SummaryWanted, WindowTooSmall
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import SystemPrompt, Target

_NO_OPTIONS: Final = Options()
_MARKS_WITH_ANCHOR: Final = 4


class Fitted:
    """What fitting gives: the messages to send, and what there is to say about them. `is_cut` is False if all fit."""

    __slots__ = ("changes", "is_cut", "marks", "messages", "needed", "requirements", "window")

    def __init__(self, window: Window | None) -> None:
        self.is_cut: bool = False
        self.messages: list[Message] = []
        self.changes: list[Change] = []
        self.marks: list[Mark] = []
        self.needed: tuple[MediaNeeded | HistoryNeeded, ...] = ()
        self.requirements: tuple[Requirement, ...] = ()
        self.window: Window | None = window


class Given:
    """A projected conversation before fitting."""

    __slots__ = (
        "_find_origins",
        "_find_places",
        "_places",
        "changes",
        "find_marks",
        "length",
        "messages",
        "needed",
        "prompt",
        "retention",
        "schema",
        "settled",
        "summaries",
        "tools",
    )

    def __init__(
        self,
        messages: Sequence[Message],
        settled: int,
        *,
        length: int | None,
        prompt: SystemPrompt,
        tools: tuple[Tool, ...],
        schema: Mapping[str, object] | None,
        retention: CacheRetention | None,
        summaries: tuple[Summary, ...],
        changes: list[Change],
        needed: tuple[MediaNeeded | HistoryNeeded, ...],
        find_places: Callable[[], Places],
        find_origins: Callable[[int], list[int] | None],
        find_marks: Callable[[], list[Mark]],
    ) -> None:
        self.messages: Sequence[Message] = messages
        self.settled: int = settled
        """How many of the messages no later message can change."""
        self.length: int | None = length
        """Not fewer than the characters of the messages, which have no media; None if that is not known."""
        self.prompt: SystemPrompt = prompt
        self.tools: tuple[Tool, ...] = tools
        self.schema: Mapping[str, object] | None = schema
        self.retention: CacheRetention | None = retention
        self.summaries: tuple[Summary, ...] = summaries
        self.changes: list[Change] = changes
        self.needed: tuple[MediaNeeded | HistoryNeeded, ...] = needed
        self.find_marks: Callable[[], list[Mark]] = find_marks
        self._find_places = find_places
        self._find_origins = find_origins
        self._places: Places | None = None

    @property
    def places(self) -> Places:
        """The index of each message in the given conversation, negative for an inserted one; made on first use."""
        if self._places is None:
            self._places = self._find_places()
        return self._places

    def path(self, index: int, position: int | None = None) -> Path:
        """Give the path of the content of a message, or of one piece of it, in the given conversation.

        For a message that projection inserted, such as the one with the media of results, it is the message before.
        """
        if self.places[index] < 0:
            before = self.places.before(index)
            return ("messages", before) if before >= 0 else ("messages",)
        path: Path = ("messages", self.places[index], "content")
        if position is None:
            return path
        origins = self._find_origins(self.places[index])
        origin = position if origins is None else origins[position]
        return path if origin < 0 else (*path, origin)


class Fitter:
    """Fits a growing conversation for one target."""

    def __init__(self, target: Target, plan: FitPlan) -> None:
        rules = target.rules
        self.plan = plan
        self.target = target
        self.texts: Texts = target.policy.texts
        # Where the provider drops the thinking of finished cycles itself, removing it would save nothing.
        drops_thinking = rules.reasoning_replay != "required" and not plan.counter.family.drops_thinking
        self.fold: Fold = Fold(plan, self.texts, thinking=drops_thinking, thinking_first=rules.thinking_before_calls)
        self._fixed: tuple[SystemPrompt, tuple[Tool, ...], object, float] | None = None
        self._variants: dict[tuple[int, object], tuple[Message, Message]] = {}
        self.lean_part: LeanPart | None = None
        self._settled: int = 0

    def fit(self, given: Given) -> Fitted:
        """Find the cuts for a request, apply and report them."""
        fold, plan, messages = self.fold, self.plan, given.messages
        most = self._most(given)
        if most is not None and most <= plan.high:
            return Fitted(self._window(given, None, most))
        # Messages that were not settled in the last request may have changed since, although they are settled now.
        fold.forget_from(self._settled)
        self._settled = given.settled
        fold.sizes.extend_bounds(messages)
        fixed = self._count_fixed(given) if plan.limit else 0.0
        is_long = plan.limit and fixed + fold.sizes.bounds[-1] > plan.high
        if not is_long and not self._exceeds_quota():
            return Fitted(self._window(given, None, fixed + fold.sizes.bounds[-1]))
        if fixed != fold.fixed or given.summaries != fold.summaries:
            fold.restart(fixed, given.summaries)
            self.lean_part = None
        marks = fold.run(messages, given.places, given.settled)
        fitted = Fitted(self._window(given, marks, 0.0))
        if marks.cuts:
            _Cut(self, given, marks, fitted).apply()
        size = fold.size(marks, len(messages)) if plan.limit else 0.0
        if size > plan.limit:
            fitted.requirements = (*fitted.requirements, self._too_small(given, marks, size))
        return fitted

    def _most(self, given: Given) -> float | None:
        """Bound the tokens of a request by its characters alone, which costs little; None if they are not known."""
        counter = self.plan.counter
        if given.length is None or counter.is_own:
            return None
        if not self.plan.limit:
            return 0.0
        fixed = counter.most_fixed(Context(system_prompt=given.prompt, tools=given.tools), given.schema)
        return fixed + given.length * counter.widest + len(given.messages) * counter.family.message

    def _exceeds_quota(self) -> bool:
        return any(
            media.amounts[-1] > quota.limit
            for quota, media in zip(self.plan.quotas, self.fold.sizes.media, strict=True)
        )

    def _count_fixed(self, given: Given) -> float:
        """Count what stands before the messages; the same objects are counted once."""
        known, schema = self._fixed, given.schema
        if known is not None and known[0] == given.prompt and known[1] == given.tools and known[2] == schema:
            return known[3]
        counter = self.plan.counter
        fixed = counter.fixed(Context(system_prompt=given.prompt, tools=given.tools), None)
        if schema:
            fixed += counter.schema(schema)
        self._fixed = (given.prompt, given.tools, schema, fixed)
        return fixed

    def _window(self, given: Given, marks: Marks | None, most: float) -> Window | None:
        """Say how much of the window a request takes; `most` bounds what is not cut. None if no window is known."""
        fold, limit, window = self.fold, self.plan.limit, self.plan.window
        if not limit:
            return None

        def estimate() -> int:
            if marks is not None:
                return round(fold.size(marks, len(given.messages)))
            counter, tokens = self.plan.counter, self._count_fixed(given)
            last_user = max((at for at, message in enumerate(given.messages) if message.role == "user"), default=0)
            for at, message in enumerate(given.messages):
                lasting, passing = counter.message(message)
                tokens += lasting + (passing if at > last_user else 0.0)
            return round(tokens)

        if marks is None:
            return Window(limit, window, estimate, most=most)
        size = estimate()
        lean, gone = self._place(given, marks.lean), self._place(given, marks.gone)
        return Window(limit, window, lambda: size, lean=lean, gone=gone)

    def _place(self, given: Given, index: int) -> int:
        """Give the index in the given conversation of the first given message from an index on; 0 where no cut is."""
        if index <= self.fold.head:
            return 0
        return given.places.after(index)

    def _too_small(self, given: Given, marks: Marks, size: float) -> WindowTooSmall:
        """Name the largest part of what cannot be made smaller."""
        counter, texts = self.plan.counter, given.prompt
        parts: list[tuple[float, Path]] = [
            (sum(counter.message(given.messages[index])), ("messages", place))
            for index in range(marks.gone, len(given.messages))
            if (place := given.places[index]) >= 0 and index not in marks.running
        ]
        if texts:
            parts.append((counter.fixed(Context(system_prompt=texts), _NO_OPTIONS), ("system_prompt",)))
        if given.tools:
            parts.append((counter.tools(given.tools), ("tools",)))
        path = max(parts, default=(0.0, ("messages",)))[1]
        return WindowTooSmall(needed=round(size), limit=self.plan.limit, path=path)

    def variant(self, index: int, key: object, message: Message, make: Callable[[], Message]) -> Message:
        """Make a changed message once, so that the next request has the same object."""
        known = self._variants.get((index, key))
        if known is None or known[0] is not message:
            known = self._variants[index, key] = (message, make())
        return known[1]


class LeanPart:
    """The shortened messages between two indexes, and their changes."""

    __slots__ = ("begin", "changes", "end", "messages")

    def __init__(self, begin: int, end: int) -> None:
        self.begin: int = begin
        self.end: int = end
        self.messages: list[Message] = []
        self.changes: list[Change] = []


class _Cut:
    """Applies the marks of one request."""

    def __init__(self, fitter: Fitter, given: Given, marks: Marks, fitted: Fitted) -> None:
        self.fitter = fitter
        self.given = given
        self.marks = marks
        self.fitted = fitted
        self.fold = fitter.fold
        self.texts = fitter.texts
        self.offset = 0
        """How many messages before the shortened part are left out."""
        self.start = marks.gone if marks.gone > self.fold.head else 0

    def apply(self) -> None:
        """Make the list of messages to send, and report what is not sent as it was."""
        given, fitted, start, head = self.given, self.fitted, self.start, self.fold.head
        lean = self.lean_part()
        fitted.is_cut = True
        fitted.needed = given.needed
        first = kept = 0
        if start:
            fitted.messages = [*given.messages[:head], *lean.messages, *given.messages[max(start, self.marks.lean) :]]
            self.offset = start - head
            first, kept = given.places.before(head) + 1, self.fold.first_kept(self.marks)
            lowest, highest = (bisect_left(given.changes, place, key=place_of) for place in (first, kept))
            fitted.changes = [*given.changes[:lowest], *given.changes[highest:], *lean.changes]
            fitted.needed = tuple(need for need in given.needed if not _is_between(need.path, first, kept))
        else:
            fitted.messages = [*given.messages[:head], *lean.messages, *given.messages[max(head, self.marks.lean) :]]
            fitted.changes = [*given.changes, *lean.changes]
        self.shorten_newest()
        if start:
            self.leave_out(first, kept)
        fitted.changes.sort(key=place_of)
        fitted.marks = self.moved_marks(given.find_marks())
        if given.retention in ("short", "long") and not fitted.marks and fitted.window is not None:
            fitted.window.anchor = self.anchor(is_long=given.retention == "long")

    def note(self, code: ChangeCode, index: int, detail: str = "", position: int | None = None) -> None:
        path = self.given.path(index, position)
        self.fitted.changes.append(Change(code=code, path=path, loss=Loss.CONTENT, detail=detail))

    # -- shortened messages --------------------------------------------------------------------------------------------

    def lean_part(self) -> LeanPart:
        """Give the shortened messages; those of the request before if the cuts are where they were."""
        fitter, begin, end = self.fitter, max(self.start, self.fold.head), self.marks.lean
        known = fitter.lean_part
        if known is not None and (known.begin, known.end) == (begin, end):
            return known
        part = LeanPart(begin, end)
        for index in range(begin, end):
            shortened = self.fold.shortened(index)
            if shortened is None:
                part.messages.append(self.given.messages[index])
                continue
            (message, codes), saved = shortened
            part.messages.append(message)
            path, detail = self.given.path(index), _tokens(saved)
            part.changes += [Change(code=code, path=path, loss=Loss.CONTENT, detail=detail) for code in codes]
        fitter.lean_part = part if end <= self.given.settled else None
        return part

    def shorten_newest(self) -> None:
        """Shorten the results of the running unit and replace media that exceed a quota."""
        marks, given, sent, head = self.marks, self.given, self.fitted.messages, self.fold.head
        for index, level in marks.running.items():
            message = given.messages[index]
            if index >= max(marks.lean, self.start) and message.role == "toolResult":
                shorten = partial(shorten_result, message, *split_level(level), self.texts)
                sent[index - self.offset] = self.fitter.variant(index, level, message, shorten)
                self.note(ChangeCode.RESULT_SHORTENED, index, _tokens(marks.saved[index]))
        for index, positions in self.evicted_media().items():
            at = index if index < head else index - self.offset
            message, key = sent[at], tuple(sorted(positions))
            sent[at] = self.fitter.variant(
                index, key, message, partial(without_media, message, positions, self.texts.media_evicted)
            )
            for position in key:
                self.note(ChangeCode.MEDIA_EVICTED, index, position=position)

    def evicted_media(self) -> dict[int, set[int]]:
        """Give the positions of media that exceed a quota, by the index of their message."""
        found: dict[int, set[int]] = {}
        lean, head = max(self.marks.lean, self.start), self.fold.head
        for evicted, media in zip(self.marks.evicted, self.fold.sizes.media, strict=True):
            for index, position in media.places[:evicted]:
                if index >= lean or index < head:
                    found.setdefault(index, set()).add(position)
        return found

    # -- what is left out ----------------------------------------------------------------------------------------------

    def leave_out(self, first: int, kept: int) -> None:
        """Put a note or a summary in the place of what is left out, and report it."""
        fold, fitted, head = self.fold, self.fitted, self.fold.head
        dropped = fold.sizes.full[self.start] - fold.sizes.full[head]
        summary = fold.summary(self.marks)
        text = self.describe(summary, first, kept)
        message = fitted.messages[head - 1] if head else None
        if message is None or message.role != "user":
            opening = self.fitter.variant(-1, text, self.given.messages[self.start], lambda: UserMessage.of(text))
            fitted.messages.insert(0, opening)
            head = 1
        else:
            opening = self.fitter.variant(head - 1, text, message, lambda: _with_text(message, text))
            fitted.messages[head - 1] = opening
        code = ChangeCode.TURN_FILLED if summary is None else ChangeCode.SUMMARY_USED
        path: Path = ("messages", first - 1, "content") if first else ("messages",)
        fitted.changes.append(Change(code=code, path=path, loss=Loss.NONE, detail="for the messages left out"))
        fitted.changes.append(
            Change(
                code=ChangeCode.TURNS_DROPPED,
                path=("messages", first),
                loss=Loss.CONTENT,
                detail=f"{kept - first} messages, {round(dropped)} tokens",
                last=kept - 1,
            )
        )
        self.merge_users(head)
        covered = 0 if summary is None else summary.covers
        if covered < kept:
            if covered > first:
                places, full = self.given.places, fold.sizes.full
                begin = next((at for at in range(head, self.start) if places[at] >= covered), self.start)
                dropped = full[self.start] - full[begin]
            wanted = SummaryWanted(first=max(first, covered), last=kept - 1, tokens=round(dropped))
            fitted.requirements = (*fitted.requirements, wanted)

    def describe(self, summary: Summary | None, first: int, kept: int) -> str:
        if summary is None:
            return fill(self.texts.turns_dropped, count=str(kept - first))
        return fill(self.texts.summary, text=clean_text(summary.text), count=str(kept - first))

    def merge_users(self, head: int) -> None:
        """Join the first user message and one that now follows it, where roles have to alternate."""
        fitted = self.fitted
        if not self.fitter.target.rules.alternate or len(fitted.messages) <= head:
            return
        first, second = fitted.messages[head - 1], fitted.messages[head]
        if first.role != "user" or second.role != "user":
            return
        content: tuple[UserContent, ...] = (*first.content, *second.content)
        place, is_given = (
            self.given.places[self.start],
            self.given.places.before(self.fold.head) >= 0,
        )
        base = first if is_given else second
        note = "".join(piece.text for piece in first.content[-1:] if piece.kind == "text")
        joined = self.fitter.variant(self.start, note, second, lambda: replace(base, content=content))
        fitted.messages[head - 1 : head + 1] = [joined]
        if not is_given:
            # The note is an addition to a given message now, and not a message of its own.
            fitted.changes = [change for change in fitted.changes if change.path != ("messages",)]
        if place >= 0:
            fitted.changes.append(Change(code=ChangeCode.TURN_MERGED, path=("messages", place), loss=Loss.NONE))

    # -- cache marks ---------------------------------------------------------------------------------------------------

    def anchor(self, *, is_long: bool) -> tuple[int, Message] | None:
        """Put a cache mark at the end of the shortened part: it stays until the next cut, while that of the end moves.

        One of four marks: the others are for the tools, the system prompt and the end.
        """
        target, sent = self.fitter.target, self.fitted.messages
        end = len(sent) - (len(self.given.messages) - max(self.marks.lean, self.start))
        if target.rules.cache_marks < _MARKS_WITH_ANCHOR or end <= 0:
            return None
        message = sent[end - 1]
        mark = CacheMark(ttl="1h" if is_long and target.dialect.cache_long == "1h" else None)
        marked = self.fitter.variant(self.marks.lean, mark.ttl, message, partial(_with_mark, message, mark))
        return None if marked is message else (end - 1, marked)

    def moved_marks(self, given: list[Mark]) -> list[Mark]:
        """Find the cache marks again: indexes have moved, and content has been replaced."""
        if not given:
            return []
        sent, start, head = self.fitted.messages, self.start, self.fold.head
        moved = len(self.given.messages) - len(sent)
        paths = {
            index if index < head or not start else index - moved: path
            for index, _, path in given
            if index < head or index >= start
        }
        marks: list[Mark] = []
        for index, message in enumerate(sent):
            path = paths.get(index, ("messages",))
            if message.role == "toolResult" and message.cache_mark is not None:
                marks.append((index, None, path))
            for position, piece in enumerate(message.content):
                if piece.kind != "thinking" and piece.cache_mark is not None:
                    marks.append((index, position, path))
        return marks


def _with_mark(message: Message, mark: CacheMark) -> Message:
    """Put a mark on a result, or on the last text of another message; the same object if it has none."""
    if message.role == "toolResult":
        return replace(message, cache_mark=mark)
    content: list[AnyContent] = list(message.content)
    for position in range(len(content) - 1, -1, -1):
        piece = content[position]
        if piece.kind == "text" and piece.text.strip():
            content[position] = replace(piece, cache_mark=mark)
            return replace(message, content=tuple(content))
    return message


def _with_text(message: UserMessage, text: str) -> UserMessage:
    return replace(message, content=(*message.content, TextContent(text=text)))


def _is_between(path: Path, first: int, behind: int) -> bool:
    return path[0] == "messages" and len(path) > 1 and first <= int(path[1]) < behind


def _tokens(count: float) -> str:
    return f"{round(count)} tokens"
