"""Apply the cuts to a projected conversation, and report them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from segue.conversation.content import CacheMark, TextContent, UserContent
from segue.conversation.messages import Message, UserMessage
from segue.errors import Path
from segue.foundation.plurals import counted
from segue.projection.fitting.fold import Fold, split_level
from segue.projection.fitting.given import Fitted, Given
from segue.projection.fitting.marks import Marks
from segue.projection.fitting.shortening import shorten_result, without_media
from segue.projection.passes.cache_marks import Mark
from segue.projection.policy import Texts
from segue.projection.report import Change, ChangeCode, Loss, place_of
from segue.projection.requirements import SummaryWanted
from segue.projection.return_mark import MARKS_WITH_ANCHOR, with_mark
from segue.projection.workspace.workspace import Target


class LeanPart:
    """The shortened messages between two indexes, and their changes."""

    __slots__ = ("begin", "changes", "end", "messages")

    def __init__(self, begin: int, end: int) -> None:
        self.begin: int = begin
        self.end: int = end
        self.messages: list[Message] = []
        self.changes: list[Change] = []


class EvictedMedia:
    """The messages without the media that exceed a quota, and the changes; valid as long as `key` is the same."""

    __slots__ = ("changes", "key", "messages")

    def __init__(self, key: object) -> None:
        self.key: object = key
        self.messages: list[tuple[int, Message]] = []
        self.changes: list[Change] = []


class DroppedTurns:
    """What replaces the messages that are left out, and the changes.

    Valid as long as `key` is the same, and `newest`: the messages before the cut from `settled` on, which could change.
    """

    __slots__ = ("changes", "key", "newest", "settled", "text", "wanted")

    def __init__(self, key: object, settled: int, newest: list[Message]) -> None:
        self.key: object = key
        self.settled: int = settled
        self.newest: list[Message] = newest
        self.text: str = ""
        self.changes: tuple[Change, ...] = ()
        self.wanted: SummaryWanted | None = None


class MadeMessages:
    """What the cuts of earlier requests made: the next request has the same objects, and the same bytes."""

    __slots__ = ("_variants", "dropped", "evicted", "lean_part")

    def __init__(self) -> None:
        self._variants: dict[tuple[int, object], tuple[Message, Message]] = {}
        self.lean_part: LeanPart | None = None
        self.evicted: EvictedMedia | None = None
        self.dropped: DroppedTurns | None = None

    def restart(self) -> None:
        """Forget what depends on where the cuts are."""
        self.lean_part = self.evicted = self.dropped = None

    def variant(self, index: int, key: object, message: Message, make: Callable[[], Message]) -> Message:
        """Make a changed message once, so that the next request has the same object."""
        known = self._variants.get((index, key))
        if known is None or known[0] is not message:
            known = self._variants[index, key] = (message, make())
        return known[1]


def apply_cuts(fitted: Fitted, marks: Marks, given: Given, *, target: Target, fold: Fold, made: MadeMessages) -> None:
    """Make the messages to send after the cuts of one request, and report what is not sent unchanged."""
    _Cut(fitted, marks, given, target=target, fold=fold, made=made).apply()


class _Cut:
    """Applies the marks of one request."""

    def __init__(
        self, fitted: Fitted, marks: Marks, given: Given, *, target: Target, fold: Fold, made: MadeMessages
    ) -> None:
        self.target = target
        self.fold = fold
        self.made = made
        self.given = given
        self.marks = marks
        self.fitted = fitted
        self.texts: Texts = target.policy.texts
        self.offset = 0
        """How many messages before the shortened part are left out."""
        self.start = marks.gone if marks.gone > self.fold.head else 0

    def apply(self) -> None:
        """Make the list of messages to send, and report what is not sent unchanged."""
        given, fitted, start, head = self.given, self.fitted, self.start, self.fold.head
        lean = self.lean_part()
        fitted.is_cut = True
        fitted.needed = given.needed
        first = kept = 0
        if start:
            fitted.messages = [*given.messages[:head], *lean.messages, *given.messages[max(start, self.marks.lean) :]]
            self.offset = start - head
            first, kept = given.places.before(head) + 1, given.places.after(start)
            if given.changes:
                lowest, highest = (bisect_left(given.changes, place, key=place_of) for place in (first, kept))
                fitted.changes = [*given.changes[:lowest], *given.changes[highest:]]
            if given.needed:
                fitted.needed = tuple(need for need in given.needed if not _is_between(need.path, first, kept))
        else:
            fitted.messages = [*given.messages[:head], *lean.messages, *given.messages[max(head, self.marks.lean) :]]
            fitted.changes = [*given.changes]
        count = len(fitted.changes)
        fitted.changes += lean.changes
        self.shorten_newest()
        if start:
            self.leave_out(first, kept)
        fitted.changes = _in_order(fitted.changes, lean.changes, count)
        fitted.marks = self.moved_marks(given.find_marks())
        if given.retention in ("short", "long") and not fitted.marks and fitted.window is not None:
            fitted.window.anchor = self.anchor(is_long=given.retention == "long")

    def note(
        self, code: ChangeCode, index: int, detail: str = "", position: int | None = None, *, tokens: float = 0
    ) -> None:
        path = self.given.path(index, position)
        change = Change(code=code, path=path, loss=Loss.CONTENT, detail=detail, tokens=round(tokens))
        self.fitted.changes.append(change)

    # -- shortened messages --------------------------------------------------------------------------------------------

    def lean_part(self) -> LeanPart:
        """Return the shortened messages; those of the previous request if the cuts have not moved."""
        made, begin, end = self.made, max(self.start, self.fold.head), self.marks.lean
        known = made.lean_part
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
            sizes = (round(saved), *[0] * len(codes))  # the sum of all: it is counted once
            part.changes += [
                Change(code=code, path=path, loss=Loss.CONTENT, detail=detail, tokens=tokens)
                for code, tokens in zip(codes, sizes, strict=False)
            ]
        # What a cut at the end shortened, the next request may shorten as part of a finished cycle.
        made.lean_part = part if end <= self.fold.marks.lean else None
        return part

    def shorten_newest(self) -> None:
        """Shorten the results of the running unit and replace media that exceed a quota."""
        marks, given, sent = self.marks, self.given, self.fitted.messages
        for index, level in marks.running.items():
            message = given.messages[index]
            if index >= max(marks.lean, self.start) and message.role == "toolResult":
                shorten = partial(shorten_result, message, *split_level(level), self.texts)
                sent[index - self.offset] = self.made.variant(index, level, message, shorten)
                saved = marks.saved[index]
                self.note(ChangeCode.RESULT_SHORTENED, index, _tokens(saved), tokens=saved)
        if any(marks.evicted):
            evicted = self.evicted()
            for index, message in evicted.messages:
                sent[self.sent_at(index)] = message
            self.fitted.changes += evicted.changes

    def sent_at(self, index: int) -> int:
        return index if index < self.fold.head else index - self.offset

    def evicted(self) -> EvictedMedia:
        """Return the messages without media; those of the previous request if no cut has moved since."""
        made, marks, given = self.made, self.marks, self.given
        key = (tuple(marks.evicted), max(marks.lean, self.start), self.fold.head, tuple(marks.running.items()))
        known = made.evicted
        if known is not None and known.key == key:
            return known
        found, last = EvictedMedia(key), -1
        for index, positions in self.evicted_media().items():
            last, ordered = max(last, index), tuple(sorted(positions))
            message = self.fitted.messages[self.sent_at(index)]
            make = partial(without_media, message, positions, self.texts.media_evicted)
            found.messages.append((index, made.variant(index, ordered, message, make)))
            found.changes += [
                Change(code=ChangeCode.MEDIA_EVICTED, path=given.path(index, position), loss=Loss.CONTENT)
                for position in ordered
            ]
        made.evicted = found if last < given.settled else None
        return found

    def evicted_media(self) -> dict[int, set[int]]:
        """Return the positions of media that exceed a quota, by the index of their message."""
        found: dict[int, set[int]] = {}
        lean, head = max(self.marks.lean, self.start), self.fold.head
        for evicted, media in zip(self.marks.evicted, self.fold.sizes.media, strict=True):
            for index, position in media.places[:evicted]:
                if index >= lean or index < head:
                    found.setdefault(index, set()).add(position)
        return found

    # -- what is left out ----------------------------------------------------------------------------------------------

    def leave_out(self, first: int, kept: int) -> None:
        """Put a note or a summary in place of what is left out, and report it."""
        fitted, head = self.fitted, self.fold.head
        dropped = self.dropped_turns(first, kept)
        text = dropped.text
        message = fitted.messages[head - 1] if head else None
        if message is None or message.role != "user":
            opening = self.made.variant(-1, text, self.given.messages[self.start], lambda: UserMessage.of(text))
            fitted.messages.insert(0, opening)
            head = 1
        else:
            opening = self.made.variant(head - 1, text, message, lambda: _with_text(message, text))
            fitted.messages[head - 1] = opening
        for change in dropped.changes:
            share = change.tokens / (change.tokens + fitted.window.estimate) if change.tokens and fitted.window else 0.0
            fitted.changes.append(replace(change, share=round(share, 3)) if share else change)
        self.merge_users(head)
        if dropped.wanted is not None:
            fitted.requirements = (*fitted.requirements, dropped.wanted)

    def dropped_turns(self, first: int, kept: int) -> DroppedTurns:
        """Return what replaces the messages left out; that of the previous request if the cut has not moved since."""
        fold, given = self.fold, self.given
        full, head, found = fold.sizes.full, fold.head, fold.notes.summary(self.marks)
        summary = None if found is None else found[0]
        is_short = summary is not None and summary not in fold.notes.summaries
        note = (self.marks.tight, self.marks.spare, self.marks.noted)
        key = (first, kept, self.start, head, full[self.start], full[head], summary, note)
        known, noted = self.made.dropped, self.marks.noted[0]
        if known is not None and known.key == key and known.newest == [*given.messages[known.settled : noted]]:
            return known
        tokens = full[self.start] - full[head]
        code = ChangeCode.TURN_FILLED if summary is None else ChangeCode.SUMMARY_USED
        path: Path = ("messages", first - 1, "content") if first else ("messages",)
        changes = (
            Change(
                code=code,
                path=path,
                loss=Loss.NONE,
                detail=f"for {counted(kept - first, 'message')} left out" + ", shortened" * is_short,
            ),
            Change(
                code=ChangeCode.TURNS_DROPPED,
                path=("messages", first),
                loss=Loss.CONTENT,
                detail=f"{counted(kept - first, 'message')}, {_tokens(tokens)}",
                last=kept - 1,
                tokens=round(tokens),
            ),
        )
        covered, wanted = 0 if summary is None else summary.covers, None
        if covered < kept:
            if covered > first:
                places = given.places
                begin = next((at for at in range(max(head, 1), self.start) if places[at] >= covered), self.start)
                tokens = full[self.start] - full[begin]
            wanted = SummaryWanted(first=max(first, covered), last=kept - 1, tokens=round(tokens))
        self.made.dropped = dropped = DroppedTurns(key, given.settled, [*given.messages[given.settled : noted]])
        dropped.text = fold.notes.write(self.marks, summary, kept - first, fold.sent_at_cut)
        dropped.changes, dropped.wanted = changes, wanted
        return dropped

    def merge_users(self, head: int) -> None:
        """Join the first user message and one that now follows it, where roles have to alternate."""
        fitted = self.fitted
        if not self.target.rules.alternate or len(fitted.messages) <= head:
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
        joined = self.made.variant(self.start, note, second, lambda: replace(base, content=content))
        fitted.messages[head - 1 : head + 1] = [joined]
        if not is_given:
            # The note is an addition to a given message now, and not a separate message.
            fitted.changes = [change for change in fitted.changes if change.path != ("messages",)]
        if place >= 0:
            fitted.changes.append(Change(code=ChangeCode.TURN_MERGED, path=("messages", place), loss=Loss.NONE))

    # -- cache marks ---------------------------------------------------------------------------------------------------

    def anchor(self, *, is_long: bool) -> tuple[int, Message] | None:
        """Put a cache mark at the end of the shortened part: it stays until the next cut, while that of the end moves.

        One of four marks: the others are for the tools, the system prompt and the end.
        """
        target, sent = self.target, self.fitted.messages
        end = len(sent) - (len(self.given.messages) - max(self.marks.lean, self.start))
        if target.rules.cache_marks < MARKS_WITH_ANCHOR or end <= 0:
            return None
        message = sent[end - 1]
        mark = CacheMark(ttl="1h" if is_long and target.dialect.cache_long == "1h" else None)
        marked = self.made.variant(self.marks.lean, mark.ttl, message, partial(with_mark, message, mark))
        return None if marked is message else (end - 1, marked)

    def moved_marks(self, given: list[Mark]) -> list[Mark]:
        """Find the cache marks again: indexes have moved, and content has been replaced."""
        if not given:
            return []
        sent, start, head = self.fitted.messages, self.start, self.fold.head
        moved = len(self.given.messages) - len(sent)
        paths = {
            (index if index < head or not start else index - moved, position): path
            for index, position, path in given
            if index < head or index >= start
        }
        of_message = {index: path for (index, _), path in paths.items()}
        marks: list[Mark] = []
        for index, message in enumerate(sent):
            positions = [position for position, piece in enumerate(message.content) if piece.cache_mark is not None]
            own = [None] if message.role == "toolResult" and message.cache_mark is not None else []
            for position in (*own, *positions):
                path = paths.get((index, position)) or of_message.get(index, ("messages",))
                marks.append((index, position, path))
        return marks


def _in_order(changes: list[Change], lean: list[Change], at: int) -> list[Change]:
    """Sort changes. Those of the shortened part, from an index on, are in order, and mostly after all others."""
    end = at + len(lean)
    others = sorted(changes[:at] + changes[end:], key=place_of)
    if changes[at:end] == lean and (not lean or not others or place_of(others[-1]) < place_of(lean[0])):
        return others + lean
    return sorted(changes, key=place_of)


def _with_text(message: UserMessage, text: str) -> UserMessage:
    return replace(message, content=(*message.content, TextContent(text=text)))


def _is_between(path: Path, first: int, behind: int) -> bool:
    return path[0] == "messages" and len(path) > 1 and first <= int(path[1]) < behind


def _tokens(count: float) -> str:
    return f"{round(count)} tokens"
