"""Write the note that replaces the messages that are left out, and compute its size before it is written.

It has, in this order: a summary if there is one, else the facts that are extracted without a model and an excerpt of
the newest messages; pinned messages; and what the user wrote. Its room is kept free by every cut, so that a summary
that comes later does not move the cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Final

from msgspec.structs import replace

from segue.conversation.context import Summary
from segue.conversation.messages import Message, UserMessage
from segue.counting.counter import encode_value
from segue.projection.fitting.facts import FactExtractor, quoted_texts
from segue.projection.fitting.marks import Marks
from segue.projection.fitting.places import JoinedPlaces
from segue.projection.fitting.plan import FitPlan
from segue.projection.fitting.shortening import keep_words, shorten_to
from segue.projection.fitting.sizes import Sizes
from segue.projection.passes.media_fit import kind_of
from segue.projection.policy import Texts, fill, template_pattern
from segue.projection.workspace.surrogates import clean_text

TIGHTEST: Final = 5
"""How often the room of the note is halved, where the running unit leaves too little."""
_FRAME: Final = 60
"""The tokens of the text around a summary or facts."""
_TAG: Final = re.compile(r"<(?=/?(?:facts|excerpt|pinned|user)>)")
"""The start of a tag of the note itself."""
_SMALLEST_EXCERPT: Final = 100
"""With fewer tokens left, nothing more is quoted."""
_LEAST_WORDS: Final = 48
"""The fewest tokens that are left for the user's newest words."""


class CutNotes:
    """The notes of a growing conversation for one target."""

    def __init__(self, plan: FitPlan, texts: Texts, sizes: Sizes) -> None:
        self.summaries: tuple[Summary, ...] = ()
        self.head: int = 0
        """The messages before this index are always sent."""
        self.pins: tuple[int, ...] = ()
        """Indexes of the given conversation."""
        self.pinned: dict[int, float] = {}
        """The projected messages at those indexes, and the tokens of each in the note."""
        self.messages: Sequence[Message] = ()
        self.places: JoinedPlaces = JoinedPlaces([], ())
        self.label: float = plan.counter.text(fill(texts.user_words, text="")) if plan.limit else 0.0
        """The tokens around a user's text."""
        self._plan = plan
        self._texts = texts
        self._sizes = sizes
        self._extractor = FactExtractor(plan.counter)
        facts = ("", texts.facts, texts.excerpt, texts.facts + texts.excerpt)
        notes = (*(texts.turns_dropped + text for text in facts), texts.summary)
        parts = product(notes, ("", texts.pinned), ("", texts.user_words))
        self._pattern = template_pattern(*map("".join, parts))
        self._summary_sizes: dict[str, float] = {}
        self._short_summaries: dict[tuple[int, str, float], tuple[Summary, float] | None] = {}

    def begin(self, messages: Sequence[Message], places: JoinedPlaces) -> None:
        """Take the messages of a request."""
        self.messages, self.places = messages, places
        if self.pins or self.pinned:
            pins = frozenset(self.pins)
            found = [at for at in range(len(messages)) if places[at] in pins]
            self.pinned = {at: self._plan.counter.text(self._pin(at)) for at in found}

    def is_note(self, message: Message) -> bool:
        """Whether a message holds the note of an earlier cut: it is never cut again."""
        return any(piece.kind == "text" and self._pattern.fullmatch(piece.text) for piece in message.content)

    def size(self, marks: Marks) -> float:
        """Return the most tokens that the note can have."""
        sums, room = self._sizes.user_words, self._room(marks)
        size = room + min(self._users_room(marks), sums[marks.gone] - sums[self.head])
        if self.pinned:
            size += sum(self.pinned[at] for at in self.pinned_in(marks))
        found = self.summary(marks) if self.summaries else None
        return size if found is None else size + max(0.0, _FRAME + found[1] - room)

    def write(self, marks: Marks, summary: Summary | None, count: int, sent: Callable[[int, int], Message]) -> str:
        """Write the note for so many messages; `sent` returns a message, by its index, as it was sent at the cut."""
        texts, number = self._texts, str(count)
        if summary is not None:
            note = fill(texts.summary, text=clean_text(summary.text), count=number)
        else:
            note = fill(texts.turns_dropped, count=number) + self._facts(marks, sent)
        return note + "".join(map(self._pin, self.pinned_in(marks))) + self._words(marks)

    def pinned_in(self, marks: Marks) -> list[int]:
        """Return the pinned messages that are left out in their place."""
        return [at for at in self.pinned if self.head <= at < marks.gone]

    def _room(self, marks: Marks) -> float:
        return max(_FRAME, (self._plan.summary_room + marks.spare) / 2**marks.tight)

    def _users_room(self, marks: Marks) -> float:
        """Return the tokens for what the user wrote in the messages that are left out."""
        room = self._plan.users_room
        return max(min(_LEAST_WORDS, room), room / 2**marks.tight)

    # -- what replaces the messages ------------------------------------------------------------------------------------

    def _facts(self, marks: Marks, sent: Callable[[int, int], Message]) -> str:
        room, (point, lean) = self._room(marks) - _FRAME, marks.noted
        if room <= 0 or marks.tight == TIGHTEST:
            return ""
        kept = [*self.messages[: self.head], *(sent(index, lean) for index in range(marks.gone, point))]
        excerpt = self._excerpt(marks, marks.spare / 2**marks.tight - _FRAME)
        if excerpt:
            kept.append(UserMessage.of(excerpt))  # its names are not repeated
            room -= self._plan.counter.text(excerpt)
        text = self._extractor.extract(self.messages[self.head : marks.gone], kept, room)
        return (fill(self._texts.facts, text=_quoted(text)) if text else "") + excerpt

    def _excerpt(self, marks: Marks, room: float) -> str:
        """Quote the newest messages that are left out, in so many tokens; what users wrote is repeated anyway.

        A step that writes a file may take most of the window. Without this, the request had 1,300 of 14,000 tokens when
        it was left out. Of the names that the next turn used, 86.0 % were there at a window of 16,000, with it 88.5 %;
        of the rare words 61.3 and 66.2 %. (11 recorded sessions, 2026-11-17)
        """
        quoted, index = list[str](), marks.gone - 1
        while index >= self.head and room >= _SMALLEST_EXCERPT:
            message = self.messages[index]
            if message.role != "user" and index not in self.pinned:
                text = shorten_to("\n".join(quoted_texts(message)), room, self._plan.counter, self._texts)
                quoted.append(text)
                room -= self._plan.counter.text(text) + 1
            index -= 1
        return fill(self._texts.excerpt, text=_quoted(clean_text("\n".join(reversed(quoted))))) if quoted else ""

    def _pin(self, index: int) -> str:
        """Write a pinned message: its texts and calls whole, and a placeholder for its media."""
        texts, parts = self._texts, list[str]()
        for piece in self.messages[index].content:
            if piece.kind == "text":
                parts.append(piece.text)
            elif piece.kind == "toolCall":
                parts.append(fill(texts.call, name=piece.name, arguments=encode_value(piece.arguments).decode()))
            elif piece.kind == "image" or piece.kind == "file":
                parts.append(fill(texts.media_cut, kind=kind_of(piece)))
        return fill(texts.pinned, text=clean_text("\n".join(parts)))

    def _words(self, marks: Marks) -> str:
        """Repeat what the user wrote in the messages that are left out, as far as there is room."""
        sums, room = self._sizes.user_words, self._users_room(marks)
        dropped = [
            self.messages[index]
            for index in range(self.head, marks.gone)
            if sums[index] < sums[index + 1] and self.messages[index].role == "user" and index not in self.pinned
        ]
        texts = ["\n".join(piece.text for piece in each.content if piece.kind == "text") for each in dropped]
        kept = [text for text in texts if text.strip() and text != self._texts.first_turn]
        if kept and sums[marks.gone] - sums[self.head] > room:
            kept = keep_words(kept, room, self.label, self._plan.counter, self._texts)
        return "".join(fill(self._texts.user_words, text=text) for text in kept)

    def summary(self, marks: Marks) -> tuple[Summary, float] | None:
        """Find the latest summary of messages that are all left out, and its tokens.

        If it is too long, the latest one that is not; if all are, the latest one is shortened. Blank ones do not count.
        """
        kept, most = self.places.after(marks.gone), self._plan.summary_most / 2**marks.tight
        if marks.tight == TIGHTEST:
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
            size = self._summary_sizes[summary.text] = self._plan.counter.text(summary.text)
        return size

    def _shortened_summary(self, summary: Summary, most: float) -> tuple[Summary, float] | None:
        key = (summary.covers, summary.text, most)
        if key not in self._short_summaries:
            text = shorten_to(clean_text(summary.text), most, self._plan.counter, self._texts)
            self._short_summaries[key] = (replace(summary, text=text), most) if text else None
        return self._short_summaries[key]


def _covered(summary: Summary) -> int:
    return summary.covers


def _quoted(text: str) -> str:
    """Return the text of a tool or a model without the tags of the note: a page must not pass for the user's words."""
    return _TAG.sub("(", text)
