"""Extract what is worth keeping of messages that are left out, without a model: lines and names.

Lines are the beginnings of what the assistant wrote, which has its decisions, commands, and lines of errors. Names are
paths, identifiers, urls, addresses and numbers: any text between blanks, quotes and brackets with a joint, a digit or
an inner capital. Names alone are a bag of words, so about a third of the room goes to lines.

The same messages always give the same text, and only the newest of them are looked at, so a cut of a long conversation
costs no more than one of a short one.

Facts:
- With 8 % of the limit, 88 to 98 % of the names that the next turn used were still in the request, without the note 77
  to 92 %; above 12 % the note takes more from what is kept verbatim than it gives. (77 recorded sessions, 2026-11)
- Extracting costs 0.45 s for a million tokens, six times as much as counting. (the same)
- With names ranked by their mentions alone, those of three characters left out and 8,000 characters of a text looked
  at, 71 and 79 % of the names were there at windows of 16,000 and 32,000, now 76 and 84 %. (7 others, 2026-11-17)
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from segue.conversation.messages import Message
from segue.counting.counter import TokenCounter

_LOOKED_AT: Final = 200
"""How many of the messages that are left out are looked at, from the newest on."""
_HEAD, _TAIL = 24_000, 8000
"""The characters of a long text that are looked at."""
_SHARE_OF_LINES: Final = 0.3
_LONGEST_LINE: Final = 160
_JOINT: Final = re.compile(r"[/.]")
_DECAY: Final = 0.99
"""How much less a mention counts for each message that follows."""
_WEIGHTS: Final = {"user": 4.0, "assistant": 3.0, "toolResult": 1.0}
_SEPARATORS: Final = str.maketrans(dict.fromkeys("\"'`()[]{}<>,;:|=\\*", " "))
_SCHEME: Final = "\x00"
"""Replaces `://` while a text is split: a colon separates names otherwise."""
_SHORTEST_NAME, _LONGEST_NAME = 2, 100
_IS_NAME: Final = re.compile(r"[_/.@#\d\-]|[^\W\d_][a-z]+[A-Z]|[a-z][A-Z]")
_BEFORE: Final = "!?-#+&$%^~"
_BEHIND: Final = _BEFORE + "./"
"""What is not part of a name at its ends."""
_ERROR: Final = re.compile(
    r"^[ \t]*(?:E[ \t]+|\S+:\d+(?::\d+)?:[ \t]*)?"
    r"(?:[\w.]*(?:Error|Exception)|(?i:error|fatal|failed|panic|warning))\b.*$",
    re.MULTILINE,
)
"""Lines that begin with an error, perhaps after its location. Code that only mentions one does not match."""
_MOST_ERRORS: Final = 2
"""Lines of one result."""
_CONSTANT_LENGTH: Final = 4
"""A name takes room by its characters and so many more: what comes before it, and the token that a short one is."""
_LINE_COST: Final = 2.0
_NAME_COST: Final = 1.0
"""The tokens between two lines or names, at most."""


class _Facts:
    """The names and lines of one message, found on first use."""

    __slots__ = ("_endings", "_lines", "_names", "message")

    def __init__(self, message: Message) -> None:
        self.message: Message = message
        self._names: frozenset[str] | None = None
        self._endings: frozenset[str] | None = None
        self._lines: tuple[str, ...] | None = None

    def names(self) -> frozenset[str]:
        if self._names is None:
            self._names = names_of(self.message)
        return self._names

    def endings(self) -> frozenset[str]:
        """Return the endings of the names: a path that is read contains the name of the file, too."""
        if self._endings is None:
            self._endings = frozenset(_endings(self.names()))
        return self._endings

    def lines(self) -> tuple[str, ...]:
        """Return the lines, the last one first."""
        if self._lines is None:
            self._lines = tuple(reversed([*_lines(self.message)]))
        return self._lines


class FactExtractor:
    """Extracts the facts of a growing conversation; those of each message are found once."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._seen: dict[int, _Facts] = {}
        """The facts of the messages that the last call looked at, by the identity of the message."""
        self._sizes: dict[str, float] = {}
        """The tokens of the lines and names that the last call chose."""

    def extract(self, dropped: Sequence[Message], kept: Iterable[Message], room: float) -> str:
        """Return lines and names of messages that are left out, in so many tokens; names in `kept` are not repeated."""
        before, sizes = self._seen, self._sizes
        self._seen, self._sizes = {}, {}
        recent = [self._facts_of(message, before) for message in dropped[-_LOOKED_AT:]]
        lines, left = self._choose_lines(recent, room * _SHARE_OF_LINES, sizes)
        left += room * (1 - _SHARE_OF_LINES)
        known = set(_names("\n".join(lines)))
        known |= set(_endings(known))
        for message in kept:
            facts = self._facts_of(message, before)
            known |= facts.names()
            known |= facts.endings()
        names: list[str] = []
        for name in _rank_names([(facts.message.role, facts.names()) for facts in recent], known):
            if name in known:
                continue
            left -= self._size(name, sizes) + _NAME_COST
            if left < 0:
                break
            names.append(name)
            known.update(_endings((name,)))
        text = "\n".join([*lines, " ".join(names)] if names else lines)
        # A text of many names at random has more tokens than they have one by one.
        while names and (size := self._counter.text(text)) > room:
            del names[int(len(names) * room / size) :]
            text = "\n".join([*lines, " ".join(names)])
        return text

    def _choose_lines(self, recent: Sequence[_Facts], room: float, sizes: dict[str, float]) -> tuple[list[str], float]:
        """Choose lines from the newest message on, and return them in order, with the room that is left."""
        chosen: dict[str, None] = {}
        for facts in reversed(recent):
            for line in facts.lines():
                if line in chosen:
                    continue
                cost = self._size(line, sizes) + _LINE_COST
                if cost > room:
                    return list(reversed(chosen)), room
                room -= cost
                chosen[line] = None
        return list(reversed(chosen)), room

    def _facts_of(self, message: Message, before: dict[int, _Facts]) -> _Facts:
        found = before.get(id(message))
        if found is None or found.message is not message:
            found = _Facts(message)
        self._seen[id(message)] = found
        return found

    def _size(self, text: str, before: dict[str, float]) -> float:
        size = self._sizes[text] = before[text] if text in before else self._counter.text(text)
        return size


def rank_messages(dropped: Sequence[Message], sent: Iterable[Message]) -> list[int]:
    """Return the indexes of messages that are left out; those that share most names with what is sent come first."""
    known = {name for message in sent for name in names_of(message)}
    scores = [_WEIGHTS.get(message.role, 0.0) + len(names_of(message) & known) for message in dropped]
    return sorted(range(len(dropped)), key=lambda at: (-scores[at], -at))


def _lines(message: Message) -> Iterator[str]:
    if message.role == "toolResult":
        texts = [*_texts(message)]
        found = [line for text in texts for line in _ERROR.findall(text)]
        if message.is_error and not found:
            found = [line for text in texts for line in text.splitlines() if line.strip()]
        yield from map(_shorten_line, found[-_MOST_ERRORS:])
    elif message.role == "assistant":
        for piece in message.content:
            if piece.kind == "toolCall":
                values = [value for value in _values(piece.arguments) if " " in value and "\n" not in value]
                yield from (f"{piece.name}: {value}" for value in values if len(value) <= _LONGEST_LINE)
            elif piece.kind == "text" and piece.text.strip():
                yield _shorten_line(piece.text)


def _shorten_line(text: str) -> str:
    """Return the beginning of a text as one line."""
    return " ".join(text[: 2 * _LONGEST_LINE].split())[:_LONGEST_LINE]


def _rank_names(messages: Sequence[tuple[str, frozenset[str]]], known: set[str]) -> list[str]:
    """Rank names by how often, how recently and by whom they were mentioned, relative to the room that they take.

    Ties are broken by the name itself.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    weight = 1.0
    for role, names in reversed(messages):
        each = weight * _WEIGHTS.get(role, 0.0)
        for name in names - known:
            scores[name] += each
        weight *= _DECAY
    return [name for name, _ in sorted(scores.items(), key=_order)]


def _order(item: tuple[str, float]) -> tuple[float, str]:
    name, score = item
    return -score / (len(name) + _CONSTANT_LENGTH), name


def _endings(names: Iterable[str]) -> Iterator[str]:
    """Yield the part after each separator of a path or a dotted name."""
    for name in names:
        for joint in _JOINT.finditer(name):
            yield name[joint.end() :]


def names_of(message: Message) -> frozenset[str]:
    """Return the names in a message."""
    return frozenset(_names("\n".join(_texts(message))))


def _names(text: str) -> Iterator[str]:
    chunks = set(text.replace("://", _SCHEME).translate(_SEPARATORS).split())
    # Most are plain words.
    for chunk in [chunk for chunk in chunks if not chunk.islower() or not chunk.isalpha()]:
        name = chunk.replace(_SCHEME, "://").lstrip(_BEFORE).rstrip(_BEHIND)[:_LONGEST_NAME]
        if len(name) > _SHORTEST_NAME and _IS_NAME.search(name):
            yield name


def _texts(message: Message) -> Iterator[str]:
    for piece in message.content:
        if piece.kind == "text":
            yield _limit(piece.text)
        elif piece.kind == "toolCall":
            yield from map(_limit, _values(piece.arguments))


def quoted_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message and of its calls, verbatim."""
    for piece in message.content:
        if piece.kind == "text":
            yield piece.text
        elif piece.kind == "toolCall":
            yield "\n".join((f"{piece.name}:", *_values(piece.arguments)))


def _limit(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]} {text[-_TAIL:]}"


def _values(value: object) -> Iterator[str]:
    """Yield the texts and numbers of arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast("dict[str, object]", value).values():
            yield from _values(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _values(item)
    elif isinstance(value, int | float):
        yield str(value)
