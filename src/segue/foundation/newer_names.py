"""Names that continue listed ones with a later version, a later date or a new word, distinguished from typos.

Names such as `gpt-6.1-sol` or `mistral-large-2512` have words before the version (their family), a version, words after
it and perhaps a date. A new name continues its family if its version or date is later than the listed ones. A family
without versions right after its name is named by words, and a new word continues it. What precedes the name in an id
(`anthropic/`, `us.anthropic.`) has to be listed, too. Everything else is a mistake: an older version or date, a version
that is far away, a dot for a dash, a listed name with other punctuation, a number that is neither a version nor a date,
and a new word that is similar to a listed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, Generic, NamedTuple, TypeVar

_Value = TypeVar("_Value")

_GENERATIONS: Final = 2
"""How many generations after the newest listed one a name may be of."""
_LATEST: Final = 30
"""Larger numbers are not versions: some write `gpt-35-turbo`."""
_TYPO: Final = 0.7
_SURE_TYPO: Final = 0.88
"""How alike a new word has to be to one of its group, or of any other, to be that one with a typo."""
_DIGITS: Final = frozenset({1, 2, 4, 8})
"""How many digits versions, years, months and dates have."""
_LONG: Final = max(_DIGITS)
_WORD: Final = 3
"""The fewest letters of a word that can be a name by itself."""
_FORM: Final = re.compile(r"-v\d:\d+$|-v1$|(?<![a-z0-9.])(?:\d+x)?[ae]?\d+(?:[.p]\d+)?[bkmt](?![a-z0-9])")
"""What is not part of a name: a version of the form of an id (`-v1:0`), and sizes (`70b`, `128k`)."""
_DATE: Final = re.compile(
    r"(?<!\d)(?:(?P<m>0[1-9]|1[0-2])-20(?P<y>\d\d)|20(?P<y1>\d\d)(?:-?(?P<m1>0[1-9]|1[0-2])(?:-?[0-3]\d)?)?"
    r"|(?P<y2>2\d)(?P<m2>0[1-9]|1[0-2]))(?!\d)"
)
_VERSION: Final = re.compile(r"(?<!\d)(\d{1,2})(?:([.p-])(\d)(?!\d))?(?!\d)")
_ID: Final = re.compile(r"[a-z0-9]+(?:[._:@/+-][a-z0-9]+)*", re.IGNORECASE)
_SPACE: Final = re.compile(r"(?:.*/)?(?:[a-z][a-z0-9-]*\.(?=[a-z]))*")
"""What precedes a name in an id: the folders of a host, and the regions and makers of a cloud."""
_DAY: Final = re.compile(r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")


class Name(NamedTuple):
    """The parts of a name: words before the version, the version and the sign in it, words after it, year and month.

    `space` precedes the name in an id, `joint` is the sign before the version, and `numbers` are those after it.
    """

    space: str
    head: tuple[str, ...]
    joint: str
    version: tuple[int, ...]
    point: str
    rest: tuple[str, ...]
    numbers: tuple[str, ...]
    date: int
    tokens: tuple[str, ...]


def read_name(text: str) -> Name:
    """Split a name into its parts."""
    tokens = tuple(re.findall("[a-z]+|[0-9]+", text.lower()))
    found = _SPACE.match(text.lower())
    space = found[0] if found is not None else ""
    text = _FORM.sub("-", text.lower().removeprefix(space))
    dates = [int(f"{y}{m or 99}") for m, y in map(_month, _DATE.finditer(text))]
    text = _DATE.sub("-", text)
    found = _VERSION.search(text)
    start, end = found.span() if found is not None else (len(text), len(text))
    version = tuple(int(part) for part in (found[1], found[3]) if part) if found is not None else ()
    head, rest = (tuple(re.findall("[a-z]+", part)) for part in (text[:start], text[end:]))
    joint, point = (text[start - 1 : start].strip("abcdefghijklmnopqrstuvwxyz"), found[2] or "") if found else ("", "")
    numbers = tuple(re.findall(r"\d+", text[end:]))
    return Name(
        space, head, joint, version if version < (_LATEST,) else (), point, rest, numbers, max(dates, default=0), tokens
    )


def _month(found: re.Match[str]) -> tuple[str | None, str]:
    return found["m"] or found["m1"] or found["m2"], found["y"] or found["y1"] or found["y2"]


class Names(Generic[_Value]):
    """Listed names in groups, each with a value."""

    def __init__(self, rows: Iterable[tuple[str, str, _Value]]) -> None:
        self._listed: dict[str, list[tuple[Name, _Value]]] = {}
        for group, text, value in rows:
            self._listed.setdefault(group, []).append((read_name(text), value))
        self._words = {word for listed in self._listed.values() for name, _ in listed for word in name.tokens}

    def find(self, text: str, group: str) -> _Value | None:
        """Return the value of the newest name of a group that a new name continues; None for a mistake."""
        asked = read_name(text)
        listed = [row for row in self._listed.get(group, []) if row[0].space == asked.space]
        own = {word for name, _ in listed for word in name.tokens}
        new = [token for token in asked.tokens if token not in self._words]
        if (
            _ID.fullmatch(text) is None
            or any(_is_typo(token, own, self._words) for token in new)
            or any(asked.tokens == name.tokens for name, _ in listed)
        ):
            return None
        shared = max((_count_shared(asked.head, name.head) for name, _ in listed), default=0)
        family = [row for row in listed if shared and row[0].head[:shared] == asked.head[:shared]]
        rows = [row for row in family if row[0].head == asked.head] or family
        if asked.version:
            rows = [row for row in rows if row[0].version] or rows
            numbers = {number for name, _ in rows for number in name.numbers}
            if any(number not in numbers and not _DAY.fullmatch(number) for number in asked.numbers):
                return None
            rows = _find_generation(asked, rows)
        elif asked.date:
            newest = max((name.date for name, _ in rows), default=0)
            rows = [row for row in rows if row[0].date == newest] if 0 < newest < asked.date else []
        elif (
            shared == len(asked.head)
            or len(asked.head[-1]) < _WORD
            or any(len(row[0].head) == shared for row in family)
        ):
            rows = []  # a part of a name, or a family whose names have versions
        words = set(asked.rest)
        order = [(name.version, len(words & {*name.rest}), -len(name.rest), name.date) for name, _ in rows]
        return rows[order.index(max(order))][1] if rows else None


def _is_typo(token: str, own: set[str], others: set[str]) -> bool:
    """Whether a new word is a listed one with a typo, or a number can be neither a version nor a date."""
    if token.isdigit():
        return len(token) not in _DIGITS or (len(token) == _LONG and _DATE.fullmatch(token) is None)
    swapped = any(len(word) == len(token) and sorted(word) == sorted(token) for word in own)
    doubled = re.sub(r"(.)\1", r"\1", token) in own
    return (
        swapped
        or doubled
        or bool(get_close_matches(token, own, 1, _TYPO) or get_close_matches(token, others, 1, _SURE_TYPO))
    )


def _count_shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the words that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _find_generation(asked: Name, rows: list[tuple[Name, _Value]]) -> list[tuple[Name, _Value]]:
    """Return the newest rows of the generation that a later version continues; none if it is not a later one."""
    newest = max((name.version[0] for name, _ in rows if name.version), default=0)
    if not newest:
        return rows
    # `gpt-5.5-chat-latest` continues `gpt-5.3-chat-latest`, although GPT-5.6 is listed: there is a GPT-5.5.
    branch = [row for row in rows if row[0].rest == asked.rest and row[0].version[:1] == asked.version[:1]]
    last = max((name.version for name, _ in branch), default=())
    is_listed = any(name.version == asked.version and name.joint == asked.joint for name, _ in rows)
    if last and asked.rest and asked.version > last and is_listed:
        return [row for row in branch if row[0].version == last]
    major, date = min(asked.version[0], newest), max(name.date for name, _ in rows)
    last = max((name.version for name, _ in rows if name.version[:1] == (major,)), default=())
    rows = [row for row in rows if row[0].version == last]
    is_named_anew = asked.rest not in {name.rest for name, _ in rows}
    is_of_newest = asked.version[0] == newest and (asked.version >= last or is_named_anew)
    is_later = asked.version > last or (is_of_newest and not 0 < asked.date < date)
    points = {asked.point, *(name.point for name, _ in rows)} - {""}
    is_near = newest - 1 <= asked.version[0] <= newest + _GENERATIONS
    is_written_so = len(points) <= 1 and any(asked.joint == name.joint for name, _ in rows)
    return rows if last and is_later and is_near and is_written_so else []
