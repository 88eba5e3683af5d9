"""Which words of a text were changed, for highlighting them inside a line.

A pair of texts becomes two lists of parts that alternate: text that both have, then text that only this one has, and so
on. The first part is always common, and may be empty.

The work is bounded: common words at both ends are skipped first, and two long texts that have little else in common are
compared by that alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from operator import eq
from typing import Final

_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_COMPARISONS: Final = 250_000
"""The largest product of the two lengths, in words, that is compared word by word: a few milliseconds."""
_LEAST_COMMON: Final = 0.3
"""Below this similarity, single common words between changed ones would only make both texts harder to read."""


def compare(before: str, after: str) -> tuple[list[str], list[str]]:
    """Split both texts into parts: common, changed, common, changed, and so on."""
    if before == after:
        return [before], [after]
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    head = _count_common(old, new)
    tail = _count_common(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    start, end = "".join(old[:head]), "".join(old[len(old) - tail :])
    old_parts, new_parts = _compare_middle(middle_old, middle_new)
    return _frame(start, old_parts, end), _frame(start, new_parts, end)


def _count_common(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(bool, map(eq, old, new)))


def _compare_middle(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the parts of both texts; the first part is common."""
    whole = ["", *filter(None, ["".join(old)])], ["", *filter(None, ["".join(new)])]
    if not old or not new or len(old) * len(new) > _MOST_COMPARISONS:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _LEAST_COMMON:
        return whole
    old_parts, new_parts = [""], [""]
    for kind, from_old, to_old, from_new, to_new in matcher.get_opcodes():
        was, now = "".join(old[from_old:to_old]), "".join(new[from_new:to_new])
        if kind == "equal" and (not was.isspace() or len(old_parts) == 1):
            _append(old_parts, was, changed=False)
            _append(new_parts, now, changed=False)
        else:
            # White space between two changed words belongs to them: one mark is easier to read than two.
            _append(old_parts, was, changed=True)
            _append(new_parts, now, changed=True)
    return old_parts, new_parts


def _append(parts: list[str], text: str, *, changed: bool) -> None:
    if not text:
        return
    if (len(parts) % 2 == 0) is changed:
        parts[-1] += text
    else:
        parts.append(text)


def _frame(start: str, parts: list[str], end: str) -> list[str]:
    framed = [start + parts[0], *parts[1:]]
    _append(framed, end, changed=False)
    return framed


def shorten(parts: Sequence[str], length: int) -> tuple[list[str], int, bool]:
    """Cut parts after `length` characters: the parts, how many characters are left out, whether a change is there."""
    kept: list[str] = []
    left = length
    for at, part in enumerate(parts):
        if len(part) > left:
            rest = sum(map(len, parts[at:])) - left
            changed_later = at % 2 == 1 or len(parts) > at + 1
            return [*kept, part[:left]], rest, changed_later
        kept.append(part)
        left -= len(part)
    return kept, 0, False
