"""Names of models that are newer than the catalogue, distinguished from names with a typo.

A catalogue is a snapshot. A name that continues the names of a listed family is a model of it, and is given what the
newest listed one has: a later version (`gpt-7`, `o5-mini`, `groq/llama-5-70b`), a later date (`mistral-large-2703`),
or, where a lab names its models by words, a new word (`muse-ember`). Everything else is a mistake: an older version or
date, a generation that is far away, a dot for a dash, a listed name with other punctuation, and a new word that is
similar to a word in the names of that provider (`gpt-4o-mnii`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple

from segue.models.model import Model
from segue.models.model_ids import first_party_providers

_GENERATIONS: Final = 2
"""How many generations after the newest listed one a name may be of."""
_LATEST: Final = 30
"""Larger numbers are not versions: Azure writes `gpt-35-turbo`."""
_TYPO: Final = 0.7
_SURE_TYPO: Final = 0.88
"""How alike a new word has to be to one of the provider, or of any other, to be that one with a typo."""
_DIGITS: Final = frozenset({1, 2, 4, 8})
"""How many digits versions, years, months and dates have."""
_WORD: Final = 3
"""The fewest letters of a word that can name a model by itself."""
_FORM: Final = re.compile(r"-v\d:\d+$|-v1$|(?<![a-z0-9.])(?:\d+x)?[ae]?\d+(?:[.p]\d+)?[bkmt](?![a-z0-9])")
"""What is not part of a name: the version of Bedrock's form, and sizes."""
_DATE: Final = re.compile(
    r"(?<!\d)(?:(?P<m>\d\d)-20(?P<y>\d\d)|20(?P<y1>\d\d)(?:-?(?P<m1>\d\d)(?:-?\d\d)?)?|(?P<y2>2\d)(?P<m2>[01]\d))(?!\d)"
)
_VERSION: Final = re.compile(r"(?<!\d)(\d{1,2})(?:([.p-])(\d)(?!\d))?(?!\d)")


class Name(NamedTuple):
    """The parts of an id: words before the version, the version with the sign in it, words after it, year and month."""

    head: tuple[str, ...]
    version: tuple[int, ...]
    point: str
    rest: tuple[str, ...]
    date: int
    tokens: tuple[str, ...]


def read_name(model_id: str) -> Name:
    """Split an id into its parts."""
    text = _FORM.sub("-", model_id.lower())
    dates = [int(f"{y}{m or 99}") for found in _DATE.finditer(text) for m, y in [_month(found)]]
    text = _DATE.sub("-", text)
    found = _VERSION.search(text)
    start, end = found.span() if found is not None else (len(text), len(text))
    version = tuple(int(part) for part in (found[1], found[3]) if part) if found is not None else ()
    head, rest = (tuple(re.findall("[a-z]+", part)) for part in (text[:start], text[end:]))
    tokens = tuple(re.findall("[a-z]+|[0-9]+", model_id.lower()))
    point = (found[2] or "") if found is not None else ""
    return Name(head, version if version < (_LATEST,) else (), point, rest, max(dates, default=0), tokens)


def _month(found: re.Match[str]) -> tuple[str | None, str]:
    return found["m"] or found["m1"] or found["m2"], found["y"] or found["y1"] or found["y2"]


class Names:
    """The names of a catalogue, by provider."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._listed: dict[str, list[tuple[Name, Model]]] = {}
        self._homes: dict[str, str] = {}
        for model in models:
            if model.router:
                continue
            name, own = read_name(model.id), first_party_providers(model.id)
            self._listed.setdefault(model.provider, []).append((name, model))
            if name.head and model.provider in own:
                self._homes.setdefault(name.head[0], own[0])
            elif name.tokens and model.id.startswith(f"{name.tokens[0]}."):
                self._homes.setdefault(f"{name.tokens[0]}.", model.provider)
        self._words = {word for listed in self._listed.values() for name, _ in listed for word in name.tokens}

    def find(self, model_id: str, provider: str, families: Mapping[str, str]) -> Model | None:
        """Find the listed model that a newer one is like; `families` are providers of families that others made."""
        asked = read_name(model_id)
        if not asked.head:
            return None
        first = asked.head[0]
        home = self._homes.get(model_id[: model_id.find(".") + 1].lower()) or self._homes.get(first)
        listed = self._listed.get(provider or home or families.get(first, ""), [])
        own = {word for name, _ in listed for word in name.tokens}
        new = [token for token in asked.tokens if token not in self._words]
        if any(_is_typo(token, own, self._words) for token in new) or any(
            asked.tokens == name.tokens for name, _ in listed
        ):
            return None
        shared = max((_shared(asked.head, name.head) for name, _ in listed), default=0)
        family = [row for row in listed if shared and row[0].head[:shared] == asked.head[:shared]]
        is_listed = shared == len(asked.head)
        rows = [row for row in family if row[0].head == asked.head] or family
        if asked.version:
            rows = _generation(asked, [row for row in rows if row[0].version] or rows)
        elif asked.date:
            newest = max(name.date for name, _ in rows) if rows else 0
            rows = [row for row in rows if row[0].date == newest] if 0 < newest < asked.date else []
        elif is_listed or any(len(name.head) == shared for name, _ in family) or len(asked.head[-1]) < _WORD:
            rows = []  # a part of a name, or a lab that numbers its models
        words = set(asked.rest)
        order = [(name.version, len(words & {*name.rest}), -len(name.rest), name.date) for name, _ in rows]
        return rows[order.index(max(order))][1] if rows else None


def _is_typo(token: str, own: set[str], others: set[str]) -> bool:
    """Whether a new word is one of the provider's, or of others', with a typo; or a number no version and no date."""
    if token.isdigit():
        return len(token) not in _DIGITS
    swapped = any(len(word) == len(token) and sorted(word) == sorted(token) for word in own)
    return swapped or bool(get_close_matches(token, own, 1, _TYPO) or get_close_matches(token, others, 1, _SURE_TYPO))


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Count the words that both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _generation(asked: Name, rows: list[tuple[Name, Model]]) -> list[tuple[Name, Model]]:
    """Return the newest models of the generation that a later version continues; none if it is not a later one."""
    newest = max((name.version[0] for name, _ in rows if name.version), default=0)
    if not newest:
        return rows
    major, date = min(asked.version[0], newest), max(name.date for name, _ in rows)
    last = max((name.version for name, _ in rows if name.version[:1] == (major,)), default=())
    rows = [row for row in rows if row[0].version == last]
    is_later = asked.version > last or (asked.version[0] == newest and not 0 < asked.date < date)
    points = {asked.point, *(name.point for name, _ in rows)} - {""}
    return rows if last and is_later and asked.version[0] <= newest + _GENERATIONS and len(points) <= 1 else []
