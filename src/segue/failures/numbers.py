"""Read the count of tokens and the limit from the message of a provider.

`used` is the number that the provider compares with `limit`. If it adds the requested output to the input, so does this
module ("179413 + 32768 > 200000" is 212181 of 200000).

Facts: the samples of `overflow` and of the rate-limit rows; llama.cpp sends the numbers in separate
fields (`n_prompt_tokens`, `n_ctx`), read 2026-11.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_DIGITS: Final = 18
"""The longest count, in digits; the rest is ignored."""
_N: Final = r"(\d[\d,_.]*k?)"
_Numbers = tuple[int | None, int | None]


def _used_first(*numbers: int) -> _Numbers:
    return numbers[0], numbers[1]


def _limit_first(*numbers: int) -> _Numbers:
    return numbers[1], numbers[0]


def _sum_then_limit(*numbers: int) -> _Numbers:
    return numbers[0] + numbers[1], numbers[2]


def _limit_then_sum(*numbers: int) -> _Numbers:
    return numbers[1] + numbers[2], numbers[0]


def _limit_only(*numbers: int) -> _Numbers:
    return None, numbers[0]


def _output_over_rest(*numbers: int) -> _Numbers:
    """`(2000 > 4096 - 3000)`: the requested output is more than the input leaves."""
    return numbers[0] + numbers[2], numbers[1]


FORMS: Final[tuple[tuple[str, re.Pattern[str], Callable[..., _Numbers], str, _Numbers], ...]] = tuple(
    (needs, re.compile(pattern), read, sample, expected)
    for needs, pattern, read, sample, expected in (
        (" - ", rf"\({_N} > {_N} - {_N}\)", _output_over_rest, "(2000 > 4096 - 3000)", (5000, 4096)),
        ("[", rf"\[\s*[01]\s*,\s*{_N}\s*\]", _limit_only, "range of input length should be [1, 30720]", (None, 30720)),
        (
            "output tokens",
            rf"passed {_N} input tokens and requested {_N} output tokens[^\n]{{0,60}}? only {_N}",
            _sum_then_limit,
            "you passed 9 input tokens and requested 8 output tokens. however, the context length is only 16 tokens",
            (17, 16),
        ),
        (" + ", rf"{_N} \+ {_N} > {_N}", _sum_then_limit, "179413 + 32768 > 200000", (212181, 200000)),
        ("n_keep", rf"n_keep\W+{_N}\W+n_ctx\W+{_N}", _used_first, "n_keep (15028) >= n_ctx (7424)", (15028, 7424)),
        (">", rf"{_N}(?: tokens?)? > {_N}", _used_first, "213462 tokens > 200000 maximum", (213462, 200000)),
        (
            "given:",
            rf"<= {_N}\. given: {_N} \W?inputs\W? tokens and {_N}",
            _limit_then_sum,
            "must be <= 4096. given: 4000 `inputs` tokens and 500 `max_new_tokens`",
            (4500, 4096),
        ),
        (
            "limit",
            rf"\blimit:? {_N}[^\n]{{0,20}}?\bused:? {_N}[^\n]{{0,20}}?\brequested:? {_N}",
            _limit_then_sum,
            "limit 100000, used 99500, requested 1200",
            (100700, 100000),
        ),
        (
            "limit",
            rf"\blimit:? {_N}\W{{1,4}}(?:requested|current|used):? {_N}",
            _limit_first,
            "exceeded model token limit: 262144 (requested: 300000)",
            (300000, 262144),
        ),
    )
)
"""A literal to search for, the pattern, how to read its numbers, a sample, and the expected result."""

_LIMIT: Final = re.compile(
    r"(?:context[ _](?:length|window|size|limit)|max\w*(?: \w+){0,3}? (?:length|tokens?|size|allowed|context|window)|"
    r"tokens? allowed|limit|maximum|allowed|max_model_len|n_ctx|cannot exceed|(?:less|fewer|more) than|at most|up to)"
    r"(?: for this model| length| size| window| of| is| to| only| allowed| tokens?| model|[:=(\[<`'\" ]|\b1,)*?"
    rf"[(\[ :]{_N}\b"
)
_LIMIT_AFTER: Final = re.compile(
    rf"\b{_N}[- ](?:tokens? )?"
    r"(?:max\w*(?: context| input| prompt)?(?: length| tokens?)?|(?:tokens? )?(?:limit|context|window))\b"
)
_ERROR_NUMBER: Final = re.compile(r"exceeds limit \(\d{4}\)$")
"""MiniMax ends its message with the number of the error: "context window exceeds limit (2013)"."""
_COUNT: Final = re.compile(rf"(?<![\w.-]){_N}(?![\w-])")


def read_numbers(text: str) -> tuple[int | None, int | None]:
    """Read (used, limit) from a message in lower case about a length or a rate; None for a missing number."""
    text = _ERROR_NUMBER.sub("", text)
    for needs, form, read, _, _ in FORMS:
        if needs in text:
            found = form.search(text)
            if found is not None:
                return read(*(_number(group) for group in found.groups()))
    found = _LIMIT.search(text) or _LIMIT_AFTER.search(text)
    if found is None:
        return None, None
    limit = _number(found.group(1))
    # The count is above the limit; the first such number is the total, its parts follow in brackets.
    for other in _COUNT.finditer(text):
        value = _number(other.group(1))
        if value > limit and other.start(1) != found.start(1):
            return value, limit
    return None, limit


def _number(digits: str) -> int:
    digits = digits.rstrip(".,_")[:_DIGITS]
    thousands = digits.endswith("k")
    whole = re.sub(r"[,_]|\.(?=\d{3}\b)", "", digits.rstrip("k"))
    value = float(whole) if whole.replace(".", "", 1).isdecimal() else 0.0
    return int(value * 1000) if thousands else int(value)


_SUBJECT: Final = re.compile(r"\b(?:prompt|inputs?|messages?|context|conversation|history|chat|request|models?)")
_BOUND: Final = re.compile(
    r"\b(?:max\w*|limit\w*|allow\w*|only|up to|at most|window|capacity|fits?|above|over|beyond|too|range)\b"
)
_ANOTHER: Final = re.compile(
    r"max_(?:completion_|output_|new_)?tokens|maxoutputtokens|\b(?:output|completion|response|second|minute|hour|day|week|month|quota|credits?|files?|images?|audio|video|tools?|"
    r"cach\w+|budget|characters?|bytes|[kmg]i?b|minimum|at least)\b"
)
_FEWEST: Final = 256
"""Smaller numbers are not counts of tokens: no context window is smaller."""


def counts_too_many(text: str) -> bool:
    """Whether a message in lower case compares the tokens of a conversation with a smaller limit.

    This is for wordings without a row. Limits on anything else than the conversation do not count.
    """
    if "token" not in text or not _SUBJECT.search(text) or not _BOUND.search(text) or _ANOTHER.search(text):
        return False
    counts = {_number(found.group(1)) for found in _COUNT.finditer(text)}
    return len([count for count in counts if count >= _FEWEST]) == 2


def asks_too_much_output(text: str) -> bool:
    """Whether the requested output alone exceeds the context window, so that a shorter conversation would not help."""
    found = FORMS[0][1].search(text)
    return found is not None and _number(found.group(1)) > _number(found.group(2))
