"""A row of the tables of wordings: a pattern, the kind of failure, a sample message, and its source.

A message is searched for about a hundred rows, so the search has two steps: every match contains one of the literals
`needs`, which are found by a fast substring search; then `pattern` decides. Both are written for lower case.
A pattern is compiled when it first has to decide: compiling all of them would be half of the import of this folder.
"""

from __future__ import annotations

import re
from functools import cache
from typing import final

import msgspec

from segue.failures.failure import FailureKind


@final
class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One wording of an error message."""

    kind: FailureKind
    needs: tuple[str, ...]
    pattern: str
    sample: str
    source: str
    """The provider and the source of the sample."""
    scope: tuple[str, ...] = ()
    """Parts of provider names: the row applies only to these providers. Empty: to all."""


def row(kind: FailureKind, needs: str, pattern: str, *, sample: str, source: str, scope: tuple[str, ...] = ()) -> Row:
    """Create a row: `needs` has its literals separated by `|`."""
    return Row(kind=kind, needs=tuple(needs.split("|")), pattern=pattern, sample=sample, source=source, scope=scope)


def find_row(rows: tuple[Row, ...], text: str, provider: str) -> tuple[Row, str] | None:
    """Find the first row that matches a lower-case text; return it and the matched part."""
    for entry in rows:
        for literal in entry.needs:
            if literal in text:
                break
        else:
            continue
        if entry.scope and not in_scope(entry.scope, provider):
            continue
        found = _compiled(entry.pattern).search(text)
        if found is not None:
            return entry, found.group()
    return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def in_scope(scope: tuple[str, ...], provider: str) -> bool:
    """Whether the name of a provider (`zai-coding-cn`, `groq/cerebras`) contains one of the parts."""
    return any(name in provider for name in scope)
