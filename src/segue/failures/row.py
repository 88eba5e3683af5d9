"""One line of the tables: a wording, the kind of failure it tells of, a sample of it, and where the sample is from.

A wording is found in two steps, because a failure is asked about some hundred rows: `needs` are literals, one of which
every match contains (a substring search costs next to nothing), `pattern` decides. Both are written for lower case.
"""

from __future__ import annotations

import re
from typing import final

import msgspec

from segue.failures.failure import FailureKind


@final
class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One wording."""

    kind: FailureKind
    needs: tuple[str, ...]
    pattern: re.Pattern[str]
    sample: str
    source: str
    """Who says so, and when it was seen."""
    scope: tuple[str, ...] = ()
    """Parts of provider names; the row counts only for those. Empty: for everyone."""


def row(kind: FailureKind, needs: str, pattern: str, *, sample: str, source: str, scope: tuple[str, ...] = ()) -> Row:
    """Write a row: `needs` with `|` between its literals; the pattern is compiled here, once."""
    literals = tuple(needs.split("|"))
    return Row(kind=kind, needs=literals, pattern=re.compile(pattern), sample=sample, source=source, scope=scope)


def find_row(rows: tuple[Row, ...], text: str, provider: str) -> tuple[Row, str] | None:
    """Find the first row that fits a lower-case text, and the words it rests on."""
    for entry in rows:
        for literal in entry.needs:
            if literal in text:
                break
        else:
            continue
        if entry.scope and not in_scope(entry.scope, provider):
            continue
        found = entry.pattern.search(text)
        if found is not None:
            return entry, found.group()
    return None


def in_scope(scope: tuple[str, ...], provider: str) -> bool:
    """Whether a provider, under any of its names (`zai-coding-cn`, `groq/cerebras`), is one of those meant."""
    return any(name in provider for name in scope)
