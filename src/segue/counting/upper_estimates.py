"""An upper estimate of the tokens of a text, by what kind of text it is; windows are compared with it.

The estimate of `text_estimates` weighs characters. That is right on average, but pinned requirements, word lists, logs
or a language that a vocabulary hardly knows have up to twice as many tokens. Here a text is counted by the places where
tokenizers split it (a word after a space, after punctuation, at the beginning of a line, capitals in a word, numbers)
and by how many of its letter pairs are frequent in English. What is neither English prose nor code gets a margin.

Facts:
- The weights are fitted by a linear program, so that no kind of file as a whole, and almost no single file, is
  estimated too low: 2,422 files of 70 kinds and 95 languages, pieces of up to 24 KB. Requirements, lock files, hashes,
  SVG, minified code, source maps, logs, CSV, JSON, listings, base64, man pages, translations, source code of nine
  languages.                                                         (with each public tokenizer, 2026-11-18)
- First requests that just fit windows of 8,000 to 1,000,000 tokens and cannot be cut: 37 of 4,844 exceed the window,
  by 7 % at most; with the plain estimate 605 of 2,422 did. Plain text leaves 7 % of the window unused.    (the same)
- Fitted on half of the kinds alone, 3 % of the counts of the other half are above 1.14 times the upper estimate, most
  of them word lists.                                                                                  (the same)
- Tokenizers that are not public: the counts of o200k, times the ratio of the plain estimates.
"""

from __future__ import annotations

import re
from operator import mul
from typing import Final

from segue.counting.text_estimates import bound_bytes, estimate_bytes
from segue.counting.tokenizers import Tokenizer, name_of

_LOWER: Final = bytes(range(ord("a"), ord("z") + 1))
_UNUSUAL: Final = bytes(set(_LOWER) - set(b"etaoinsrhl"))
_TO_KINDS: Final = bytes(
    ord("a" if chr(byte).islower() else "A" if chr(byte).isupper() else "0" if chr(byte).isdigit() else " ")
    if byte < 0x80 and (chr(byte).isalnum() or byte == 0x20)
    else ord("." if 0x20 < byte < 0x7F else "\n" if byte < 0x80 else "?")
    for byte in range(256)
)
"""A small letter, a capital, a digit, a space, punctuation, a control character, a byte of another character."""
_PIECES: Final = (b"a", b"A", b"0", b".", b"\n", b" a", b".a", b"\na", b"Aa", b"aA", b"AA", b" 0", b".0", b" .", b"..")
_RUNS: Final = (b"  ", b"\n ", b"aaaa", b"aaaaaaaa", b"....")
_PAIRS: Final = (b"th", b"in", b"re", b"on", b"st", b"e ")
_LEADS: Final = tuple(
    map(
        bytes,
        (
            range(0xC0, 0xCC),  # accented
            (0xCE, 0xCF),  # Greek
            (0xD0, 0xD1),  # Cyrillic
            range(0xD4, 0xD8),  # Hebrew, Armenian
            range(0xD8, 0xE0),  # Arabic
            (0xE0, 0xE1),  # Indic, Thai
            (0xCC, 0xCD, 0xD2, 0xD3, 0xE2, 0xEE, 0xEF),  # symbols
            (0xE3,),  # kana
            range(0xE4, 0xEA),  # Han
            range(0xEA, 0xEE),  # Hangul
            range(0xF0, 0x100),  # emoji
        ),
    )
)
_RARE: Final = re.compile(
    rb"\xe0[\xb6\xb7\xba-\xbf]|\xe1[\x84-\xb7\xbc-\xbf]|\xea[\x80-\x93]|\xee|\xef[\x80-\xa3]|\xf0[^\x9f]"
)
_MANY_UNUSUAL: Final = 0.42
"""Of the small letters of a text, so many are not frequent ones at most; in hashes and minified code more are."""
SHORT: Final = 256
"""In shorter texts, a kind cannot be recognised."""
_FEW_WORDS: Final = 3
_MANY_WORDS: Final = 20
"""A text that repeats so many words is not of any kind that was measured: it has the plain estimate."""
_SAMPLED: Final = 4096
_SAMPLE: Final = 512
_SAMPLES: Final = (8, 64, 2048)
"""Of a text longer than `_SAMPLED`, so many pieces are looked at, at least and at most: one for so many bytes."""
_ENGLISH: Final = (0.055, 0.006)
"""English prose and code have so many of the frequent pairs, and of `th`, for each small letter."""
_SHARE_OF_LOWER: Final = 0.4
_WORDS_IN_A_LINE: Final = 2
_BEYOND_ASCII: Final = 0.02
_FOREIGN: Final = 0.04
"""Texts of letters with fewer pairs are in another language, or at random."""
_MARGINS: Final = (1.14, 1.25)
"""What is neither English prose nor code has this part more; the second number holds for other languages."""
_LEAST: Final = 0.9
"""The upper estimate is not below this part of the plain one."""

Weights = tuple[float, ...]


def _row(*weights: str) -> Weights:
    return tuple(map(float, " ".join(weights).split()))


# The weights in the order of _PIECES, _RUNS; unusual letters, those beyond `_MANY_UNUSUAL`, _PAIRS; _LEADS, a space
# before a character beyond ASCII, rare scripts.
_WEIGHTS: Final[dict[str, Weights]] = {
    "o200k": _row(
        "0.04 0.48 0.60 0.60 1.29 0.78 0.87 1.84 0.42 0.03 0.03 0.93 0.53 0.53 -0.50 0.06 -0.12 -0.45 2.03 -0.19",
        "0.15 1.61 0.00 -0.26 -0.49 -0.33 -0.11 -0.50",
        "1.85 0.41 0.38 0.38 0.55 0.61 2.43 0.57 0.60 0.62 1.38 -0.50 0.72",
    ),
    "gemma3": _row(
        "0.04 0.62 1.11 0.65 1.29 0.76 1.11 1.53 0.36 -0.11 -0.27 0.60 0.00 0.62 -0.50 0.07 0.11 -0.12 1.17 -0.50",
        "0.13 1.14 0.00 -0.17 -0.50 -0.50 0.00 -0.50",
        "1.67 0.42 0.38 0.52 0.55 0.54 1.77 0.37 0.49 0.61 1.14 -0.37 0.00",
    ),
    "tekken": _row(
        "0.00 0.74 1.14 0.60 1.41 0.93 1.03 1.63 0.33 0.18 -0.50 0.35 0.29 0.51 -0.50 0.11 -0.43 -0.18 2.12 0.17",
        "0.10 1.40 -0.07 -0.50 -0.50 -0.50 -0.37 -0.50",
        "1.67 0.30 0.34 0.32 0.67 0.56 1.72 0.48 0.68 0.46 2.34 0.65 2.02",
    ),
    "llama3": _row(
        "0.05 0.49 0.58 0.57 1.23 0.82 0.92 2.21 0.74 -0.22 0.02 1.09 0.41 0.58 -0.40 0.04 0.03 -0.50 2.50 -0.50",
        "0.13 1.94 -0.50 -0.19 -0.50 -0.50 -0.50 -0.50",
        "1.51 0.39 0.42 1.53 0.80 1.71 2.99 0.52 0.57 0.62 1.71 -0.21 0.00",
    ),
    "qwen3": _row(
        "0.04 0.51 1.07 0.52 1.26 0.82 0.90 2.11 0.61 -0.27 0.02 0.99 0.03 0.69 -0.41 0.02 0.02 -0.35 2.28 0.12",
        "0.11 1.74 -0.18 -0.46 -0.50 -0.50 -0.19 -0.50",
        "2.41 0.82 0.43 0.85 0.66 1.48 2.68 0.51 0.47 0.66 1.42 -0.25 0.00",
    ),
    "deepseek": _row(
        "0.08 0.61 0.58 0.60 1.45 0.68 0.90 1.61 0.16 0.20 -0.22 0.85 0.54 0.45 -0.50 0.05 -0.12 -0.50 1.85 0.04",
        "0.21 1.43 -0.33 -0.11 -0.50 -0.50 0.00 -0.50",
        "2.25 0.49 0.42 0.57 0.69 0.95 2.62 0.53 0.41 0.73 1.38 -0.50 0.35",
    ),
    "glm4": _row(
        "0.04 0.32 0.72 0.54 1.33 0.91 0.95 2.01 0.76 -0.13 0.40 1.04 0.32 0.61 -0.36 0.04 -0.08 -0.50 2.37 -0.48",
        "0.15 1.81 -0.32 -0.37 -0.50 -0.50 -0.50 -0.50",
        "2.03 0.46 0.42 1.76 0.85 1.73 3.31 0.55 0.56 0.85 1.71 -0.50 0.00",
    ),
    "kimi": _row(
        "0.12 0.56 0.60 0.67 1.33 0.70 0.56 2.01 0.34 0.07 -0.17 1.09 0.32 0.42 -0.50 0.02 -0.04 -0.50 2.27 -0.44",
        "0.03 1.50 -0.50 -0.50 -0.50 -0.50 -0.50 -0.50",
        "2.30 0.60 0.52 0.63 0.71 0.85 1.94 0.55 0.62 0.86 1.53 -0.50 0.18",
    ),
    "command-r": _row(
        "0.00 0.36 0.92 0.72 1.43 0.94 1.23 1.72 0.69 0.09 0.25 0.97 0.79 0.85 -0.50 -0.01 -0.21 -0.48 2.50 0.11",
        "0.18 1.37 0.00 -0.27 -0.50 -0.50 -0.09 -0.50",
        "1.80 0.40 0.41 0.45 0.55 1.13 2.49 0.35 0.45 0.58 1.44 -0.50 0.27",
    ),
    "claude": _row(
        "0.00 0.37 1.07 0.51 1.60 1.01 1.19 2.09 0.73 0.08 0.41 1.04 0.89 0.80 -0.38 0.10 -0.20 -0.33 2.39 0.05",
        "0.14 1.22 0.00 -0.26 -0.50 -0.50 -0.05 -0.50",
        "2.07 0.43 0.46 0.44 0.63 0.66 2.04 0.65 0.63 0.70 1.50 -0.50 0.50",
    ),
    "claude-4.7": _row(
        "0.06 1.03 1.02 0.53 2.09 1.03 1.41 2.50 0.35 -0.06 -0.50 1.05 0.76 0.88 -0.50 0.08 -0.29 -0.35 2.50 -0.01",
        "0.27 0.00 0.00 -0.26 -0.50 -0.50 -0.20 -0.50",
        "2.07 0.38 0.40 0.39 0.60 0.59 2.09 0.60 0.52 0.60 1.50 -0.50 0.42",
    ),
    "unknown": _row(
        "0.01 0.34 0.69 0.58 1.21 0.93 0.95 2.13 0.78 -0.07 0.34 0.73 0.64 0.60 -0.50 0.02 -0.03 -0.38 2.10 -0.17",
        "0.22 1.47 -0.25 -0.36 -0.50 -0.40 -0.26 -0.50",
        "1.98 0.55 0.49 0.72 0.71 1.03 2.44 0.54 0.49 0.68 1.56 -0.50 0.51",
    ),
}


def estimate_upper(data: bytes, tokenizer: Tokenizer, least: int = SHORT) -> float:
    """Estimate the most tokens that a text in UTF-8 has; not above `bound_bytes`, which is cheaper.

    Texts of fewer than `least` bytes have the plain estimate: of many short texts, the errors balance out.
    """
    plain = estimate_bytes(data, tokenizer)
    size = len(data)
    if size < least or _repeats_words(data[:_SAMPLE]):
        return plain
    sample = data if size <= _SAMPLED else _take_samples(data)
    upper, is_odd = _weigh(sample, _WEIGHTS[name_of(tokenizer)])
    upper = max(upper * size / len(sample), plain if is_odd else plain * _LEAST)
    return max(plain * _LEAST, min(upper, bound_bytes(data, tokenizer)))


def _repeats_words(data: bytes) -> bool:
    words = data.split()
    return len(words) > _MANY_WORDS and len(set(words)) <= _FEW_WORDS


def _take_samples(data: bytes) -> bytes:
    """Return pieces from the whole length of a text."""
    least, most, distance = _SAMPLES
    count = min(most, max(least, len(data) // distance))
    step = (len(data) - _SAMPLE) / (count - 1)
    return b"".join(data[(at := round(number * step)) : at + _SAMPLE] for number in range(count))


def _weigh(data: bytes, weights: Weights) -> tuple[float, bool]:
    """Return the most tokens of a text, and whether its letters or characters may be at random."""
    kinds = data.translate(_TO_KINDS)
    counts: list[float] = [*map(kinds.count, _PIECES), *map(kinds.count, _RUNS)]
    lower, punctuation, breaks = counts[0], counts[3], counts[4]
    unusual = len(data) - len(data.translate(None, _UNUSUAL))
    pairs = [*map(data.count, _PAIRS)]
    counts += (unusual, max(0.0, unusual - _MANY_UNUSUAL * lower), *pairs)
    beyond = 0
    if not data.isascii():
        leads = [len(data) - len(data.translate(None, members)) for members in _LEADS]
        beyond = sum(leads)
        counts += (*leads, kinds.count(b" ?"), len(_RARE.findall(data)))
    tokens = sum(map(mul, counts, weights))
    frequent = sum(pairs[:5]) + data.count(b"er")
    has_words = lower >= _SHARE_OF_LOWER * len(data)
    is_foreign = frequent < _FOREIGN * lower
    is_odd = is_foreign or punctuation > lower or unusual > _MANY_UNUSUAL * lower or beyond > len(data) / 10
    if is_foreign and has_words:
        return tokens * _MARGINS[1], is_odd
    is_plain = (
        has_words
        and frequent >= _ENGLISH[0] * lower
        and pairs[0] >= _ENGLISH[1] * lower
        and kinds.count(b" ") >= _WORDS_IN_A_LINE * breaks
        and beyond < _BEYOND_ASCII * len(data)
    )
    return tokens if is_plain else tokens * _MARGINS[0], is_odd
