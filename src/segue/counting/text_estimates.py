"""Estimate the tokens of a text: count its characters by class, and weigh each class.

A vocabulary takes megabytes and 60 to 280 ns a byte, and only some providers publish theirs. Characters in eighteen
classes, each with a weight for each tokenizer, count texts of 100 KB and more within a few per cent of the tokenizer.

Facts:
- A space before a number is a separate token, and each word is at least one: tables of single digits and texts of
  short words have up to three times the tokens that their classes give. (the tokenizers, 2026-11-17)
- Letters at random have 0.54 (small) and 0.68 tokens, punctuation 0.7, with every tokenizer. Of the small letters of
  code and prose, 15 to 40 % are not among the ten most frequent ones; of letters at random, of hexadecimal digits,
  base64 and minified code 44 % and more.        (9,000 pieces of 150 bytes to 4 KB; the tokenizers, 2026-11-17)
- A word or run of punctuation is at least 0.9 tokens in code, minified or not. (the tokenizers, 2026-11-17)
- A row of dots, dashes or other rules has 0.016 to 0.125 tokens a character. (the tokenizers, 2026-11-17)
- Characters at random of other alphabets have 0.8 to 2 tokens, Han and Hangul 1.5 to 3, words 0.35 to 1.1. (the
  tokenizers, 2026-11-17)
- `bytes.translate` that deletes a class counts it at 0.3 to 1 ns a byte; a loop in Python takes 30 ns and more.
                                                            (CPython 3.11, 2026-11-15)
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from segue.counting.tokenizers import OF_FOUR_BYTES, PIECE, Tokenizer

_LOWER: Final = bytes(range(ord("a"), ord("z") + 1))
_UNUSUAL: Final = bytes(set(_LOWER) - set(b"etaoinsrhl"))
_UPPER: Final = bytes(range(ord("A"), ord("Z") + 1))
_DIGITS: Final = bytes(range(ord("0"), ord("9") + 1))
_BREAKS: Final = b"\n\r\t"
_CONTROL: Final = bytes(range(0x20))
_SPECIAL: Final = _DIGITS + _CONTROL
_ASCII: Final = bytes(range(0x80))
_OTHER: Final = bytes(set(range(0x20, 0x80)) - set(_LOWER + _UPPER + _DIGITS + b" "))
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_ACCENTED: Final = bytes(range(0xC0, 0xCC))
_GREEK: Final = b"\xce\xcf"
_CYRILLIC: Final = b"\xd0\xd1"
_HEBREW: Final = bytes(range(0xD4, 0xD8))
_SEMITIC: Final = bytes(range(0xD8, 0xE0))
_INDIC: Final = b"\xe0\xe1"
_SYMBOLS: Final = b"\xcc\xcd\xd2\xd3\xe2\xee\xef"
_KANA: Final = b"\xe3"
_HAN: Final = bytes(range(0xE4, 0xEA))
_HANGUL: Final = bytes(range(0xEA, 0xEE))
_EAST_ASIAN: Final = _KANA + _HAN + _HANGUL
_OF_TWO: Final = bytes(range(0xC0, 0xE0))
_OF_THREE: Final = bytes(range(0xE0, 0xF0))

_TO_KINDS: Final = bytes.maketrans(
    _LOWER + _UPPER + _DIGITS + _CONTROL + _OTHER,
    b"a" * len(_LOWER + _UPPER) + b"0" * len(_DIGITS) + b"\n" * len(_CONTROL) + b"." * len(_OTHER),
)
_MANY_DIGITS: Final = 0.15
_MANY_SPACES: Final = 0.3
"""For each small letter; prose has 0.2. Only texts with so many digits or spaces are split into pieces."""
_SOME_PUNCTUATION: Final = 0.45
_MUCH_PUNCTUATION: Final = 0.8
"""Punctuation and line breaks for each small letter, likewise; code has 0.4. The first where there are no spaces."""
_MANY_CONTROLS: Final = 0.1
"""In texts with so many control characters, a space before one is a separate token, as before a digit."""
_SHORT: Final = 64
_FEW_ENDS: Final = 0.1
"""Words of ten letters and more have fewer spaces, or spaces and punctuation."""
_SINGLE_DIGITS: Final = 1.2
"""Tokenizers with a larger weight of digits have a token for each digit, others one for up to three."""

_PROSE: Final = 0.15
"""Prose has at most this much punctuation, and digits, for each small letter; code and JSON have more."""
_SPACES: Final = (0.05, 0.4)
"""Prose has so many spaces for each small letter; tables have more."""
_CAPITALS_OF_PROSE: Final = 0.2
_AVERAGE_WORD: Final = 5.5
"""The small letters of a word on average."""
_SAVED: Final = 0.75
"""Long English words are one token, too: letters beyond these count that much less."""
_ENGLISH: Final = (b"th", b"ing", b"ed ", b"ly ", b"sh")
_FREQUENCIES: Final = (0.010, 0.022)
"""English has more than the second number of these for each small letter, other languages fewer than the first."""
_BYTES_TO_DECIDE: Final = (60, 300)
"""Below the first number of letters a text is taken for English, above the second its letters decide."""
_SAMPLE: Final = 256

_LEAST_LOWER: Final = 100
_SHARES: Final = (0.12, 0.40, 0.52)
"""Of the small letters of a text, so many are not frequent ones. Below the first and above the last number they are
at random, between the last two in part."""
_RANDOM: Final = (0.54, 0.68, 0.7)
"""The tokens of a small letter, a capital and a punctuation character at random."""
_EVEN: Final = (1.15, 1.35)
"""Letters of a language are used unevenly: two of them are the same 1.4 to 2 times as often as with letters at random.
Below the first number all letters are at random, above the second none."""
_FEW_WORDS: Final = 300
_NEW_WORDS: Final = 0.6
"""Of the words in so many characters, prose has 0.75 different ones."""
_REPEATED: Final = re.compile(rb"([!-/:-@\[-`{-~])\1{2,}")
_RULE: Final = re.compile(rb"([-.=_*#/])\1{15,}")
_RULED: Final = 0.125
"""The tokens of a character in a row of one of these: vocabularies have 8 to 64 of them as one token."""
_FOREIGN: Final = 0.5
_FIRST_LOOK: Final = 96
_PLAIN: Final = (0.1, 0.42)
"""Of so many characters in the middle of a text; most texts are within, and nothing more is looked at."""
_ENOUGH: Final = 512
_LARGEST: Final = 3 * _ENOUGH
"""Of longer texts, the beginning, the middle and the end are looked at."""

_RARE: Final = 2.8
"""The tokens of a character that is not in a vocabulary: one for each byte of it, almost."""
_RARE_LEADS: Final = b"\xe0\xe1\xea\xee\xef\xf0"
_RARE_SCRIPTS: Final = re.compile(rb"\xe0[\xba-\xbf]|\xe1[\x84-\xb7\xbc-\xbf]|\xea[\x80-\x93]|\xee|\xef[\x80-\xa3]")
"""Lao, Tibetan, Ethiopic, Khmer, Mongolian, old Greek, Yi, icons of fonts: few vocabularies have them."""
_OLD_SCRIPTS: Final = re.compile(rb"\xf0[^\x9f]")
_LEAST_CHARACTERS: Final = 60
_CHARACTERS: Final = 150
"""So many characters of a text in Han, kana or Hangul have 70 % different ones, characters at random 99 %."""
_DIFFERENT: Final = (0.85, 0.93)
"""Texts with more different ones are random: of many characters, and of few."""
_FEWEST_DIFFERENT: Final = 6
_ALL_KANA: Final = 0.95
_SAMPLE_BEYOND: Final = 256
_EVEN_CHARACTERS: Final = 1.12
"""As above, for characters of other alphabets."""
_RANDOM_LEADS: Final = ((_ACCENTED + _SYMBOLS[:4], 1.9), (_INDIC[:1], 2.2))
_RANDOM_HEBREW: Final = 1.65
_RANDOM_EMOJI: Final = 1.2
"""The tokens of a character at random by its first byte, or by how much they exceed those of words. Others of two bytes
have one token, of three `_RARE`."""

_MANY_CAPITALS: Final = 0.12
"""Prose has 0.05 capitals for each small letter, code up to 0.15, base64 1. Only texts above are searched for runs."""
_SHORTEST_RUN: Final = 64
_TO_RUNS: Final = bytes(
    b"x"[0] if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "+/_-") else b" "[0] for byte in range(256)
)
"""Looking for 64 times x in a text that is written like this takes a twentieth of the time of the expression."""
_RUN: Final = re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{%d,}" % _SHORTEST_RUN)


def estimate_text(text: str, tokenizer: Tokenizer) -> float:
    """Estimate the tokens of a text."""
    return estimate_bytes(text.encode("utf-8", "surrogatepass"), tokenizer)


def estimate_bytes(data: bytes, tokenizer: Tokenizer) -> float:
    """Estimate the tokens of a text in UTF-8. Frequent classes are deleted first, so that the rest gets short."""
    rest = data.translate(None, _LOWER)
    size = len(rest)
    lower = len(data) - size
    rest = rest.translate(None, b" ")
    spaces, size = size - len(rest), len(rest)
    rest = rest.translate(None, _OTHER)
    other, size = size - len(rest), len(rest)
    rest = rest.translate(None, _UPPER)
    upper, size = size - len(rest), len(rest)
    rest = rest.translate(None, _DIGITS)
    digits, size = size - len(rest), len(rest)
    rest = rest.translate(None, _BREAKS) if rest else rest
    breaks = size - len(rest)
    share = 0.0
    if (
        other + digits < _PROSE * lower
        and _SPACES[0] * lower < spaces < _SPACES[1] * lower
        and upper < _CAPITALS_OF_PROSE * lower
    ):
        weight, longer = tokenizer.prose_lower, lower - _AVERAGE_WORD * (spaces + 1)
        if longer > 0:
            weight *= 1 - _SAVED * longer / lower
        if lower > _BYTES_TO_DECIDE[0] and (foreign := _share_of_foreign(data, lower)):
            weight += foreign * (tokenizer.prose_foreign - weight)
            # Where letters have accents, the others are used more evenly.
            share = _share_of_even(data) if foreign > _FOREIGN and not rest else 0.0
        tokens = lower * weight + (spaces + 1) * tokenizer.prose_space + other * tokenizer.prose_other
        tokens += upper * tokenizer.prose_upper + breaks * tokenizer.prose_control
    else:
        tokens = lower * tokenizer.lower + spaces * tokenizer.space + other * tokenizer.other
        tokens += upper * tokenizer.upper + breaks * tokenizer.control
        if lower > _LEAST_LOWER:
            middle = len(data) // 2
            look = data[middle : middle + _FIRST_LOOK]
            unusual = (len(look) - len(look.translate(None, _UNUSUAL))) * len(data)
            lower_there = lower * len(look)
            if unusual < _PLAIN[0] * lower_there or unusual > _PLAIN[1] * lower_there:
                share = _share_of_random(data)
            elif other + digits + spaces < _FEW_ENDS * lower:
                share = _share_of_even(data)
    tokens += digits * tokenizer.digit
    if upper > _MANY_CAPITALS * lower and upper > _MANY_CAPITALS * _SHORTEST_RUN:
        tokens += _more_for_base64(data, tokenizer)
    if share:
        most = lower * _RANDOM[0] + upper * _RANDOM[1] + other * _RANDOM[2] + digits * tokenizer.digit
        tokens += share * max(0.0, most + spaces * tokenizer.space + breaks - tokens)
    if (
        other + 2 * breaks > _SOME_PUNCTUATION * lower
        and (spaces < _FEW_ENDS * lower or other + 2 * breaks > _MUCH_PUNCTUATION * lower)
        and len(data) > _SHORT
    ):
        if other > lower:
            tokens += max(0.0, _RANDOM[2] - tokenizer.other) * other * _share_of_changing(data)
            tokens -= sum(len(row[0]) for row in _RULE.finditer(data)) * (tokenizer.other - _RULED)
        tokens = max(tokens, _count_pieces(data, digits, tokenizer, punctuation=True))
    # There are at most so many pieces; of two spaces, one at least is not before a word.
    elif (digits > _MANY_DIGITS * len(data) or spaces > _MANY_SPACES * lower) and (
        spaces + breaks + 2 * digits > tokens and spaces - data.count(b"  ") + breaks + 2 * digits > tokens
    ):
        tokens = max(tokens, _count_pieces(data, digits, tokenizer, punctuation=False))
    return tokens + _estimate_rest(data, rest, tokenizer) if rest else tokens


def bound_text(text: str, tokenizer: Tokenizer) -> float:
    """Bound the tokens of a text, and of the texts that it was joined from: never less than the estimate of each.

    Digits have twice the tokens of other ASCII characters, and other characters more still. Counting these two alone
    takes a third of the time of the estimate.
    """
    data = text.encode("utf-8", "surrogatepass")
    return _bound(data, len(text), tokenizer)


def bound_bytes(data: bytes, tokenizer: Tokenizer) -> float:
    """Bound the tokens of a text in UTF-8 by both bounds that are cheaper than the estimate."""
    characters = len(data) if data.isascii() else len(data.translate(None, _CONTINUATION))
    beyond = 0 if characters == len(data) else characters - (len(data) - len(data.translate(None, _ASCII)))
    narrow = tokenizer.widest_ascii()
    return min(_bound(data, characters, tokenizer), characters * narrow + beyond * (tokenizer.widest() - narrow))


def _bound(data: bytes, characters: int, tokenizer: Tokenizer) -> float:
    special = len(data) - len(data.translate(None, _SPECIAL))
    wide = len(data) - characters  # each character beyond ASCII has at least one more byte
    narrow = tokenizer.narrow()
    # A digit, the space before it, the line break after it and the word that follows can be one token each.
    more = max(tokenizer.digit - narrow, 4 * (1.0 - narrow))
    return characters * narrow + special * more + wide * (tokenizer.widest() - narrow)


def _count_pieces(data: bytes, digits: int, tokenizer: Tokenizer, *, punctuation: bool) -> float:
    """Count the pieces into which a tokenizer splits ASCII before it joins characters: no token spans two of them."""
    if (size := len(data)) > _LARGEST:
        data = _samples(data, _LARGEST // 3)
        digits = digits * len(data) // size
    count = data.translate(_TO_KINDS).count
    pieces: float = count(b" a") + count(b"\na")
    if punctuation:
        pieces += count(b"a\n") + PIECE * (
            count(b".a") + count(b"a.") + count(b" .") + count(b"\n.") + count(b".\n") / 2
        )
        pieces += PIECE * (count(b" \n") + count(b"\n ")) if not pieces else 0.0
    if digits:
        behind = count(b"0.") + count(b"0\n") + count(b"0a")
        groups = digits if tokenizer.digit > _SINGLE_DIGITS else max(behind + count(b"0 "), digits / 3)
        pieces += groups + count(b" 0") + behind
    return pieces * size / len(data)


def _samples(data: bytes, size: int) -> bytes:
    """Return the beginning, the middle and the end of a text."""
    middle = (len(data) - size) // 2
    return data[:size] + data[middle : middle + size] + data[-size:]


def _share_of_random(data: bytes) -> float:
    """Guess by how many letters are not frequent ones how many are at random; of a long text from every so many."""
    if _is_repeated(data):
        return 0.0
    data = data[:: len(data) // _ENOUGH + 1]
    size, (few, many, all_) = len(data), _SHARES
    found = (size - len(data.translate(None, _UNUSUAL))) / (size - len(data.translate(None, _LOWER)) or 1)
    return 1.0 if found < few else min(1.0, max(0.0, (found - many) / (all_ - many)))


def _is_repeated(data: bytes) -> bool:
    """Whether the same words are repeated: they are not random, whatever their letters are."""
    words = data[:_FEW_WORDS].split()
    return len(set(words)) < _NEW_WORDS * len(words)


def _share_of_even(data: bytes) -> float:
    """Guess by how evenly letters are used how many of them are at random; of a long text from every so many."""
    if _is_repeated(data):
        return 0.0
    counts = [count for count in map(data[:: len(data) // _ENOUGH + 1].lower().count, _LOWER) if count]
    size, (few, many) = sum(counts), _EVEN
    if size < _LEAST_LOWER:
        return 0.0
    same = sum(count * (count - 1) for count in counts) * len(counts) / (size * (size - 1))
    return min(1.0, max(0.0, (many - same) / (many - few)))


def _share_of_changing(data: bytes) -> float:
    """Compute how much of a text is not one punctuation character repeated, as in rules and borders."""
    if len(data) > _LARGEST:
        data = _samples(data, _LARGEST // 3)
    return len(_REPEATED.sub(b"", data)) / len(data)


def _share_of_foreign(data: bytes, lower: int) -> float:
    """Guess from frequent letters how much of a prose is not English; long texts by three samples."""
    size = len(data)
    if size > 3 * _SAMPLE:
        data = _samples(data, _SAMPLE)
        lower = lower * len(data) // size
    first, last = _BYTES_TO_DECIDE
    if lower <= first:
        return 0.0
    found, (few, many) = 0, _FREQUENCIES
    for piece in _ENGLISH:
        found += data.count(piece)
        if found >= many * lower:  # mostly after one or two of them
            return 0.0
    certainty = min(1.0, (lower - first) / (last - first))
    return certainty * min(1.0, (many - found / lower) / (many - few))


def _more_for_base64(data: bytes, tokenizer: Tokenizer) -> float:
    """Compute the tokens of long runs of letters and digits beyond the weights of their classes."""
    more = 0.0
    if b"x" * _SHORTEST_RUN not in data.translate(_TO_RUNS):
        return more
    for run in _RUN.findall(data):
        rest = run.translate(None, _LOWER)
        lower, size = len(run) - len(rest), len(rest)
        rest = rest.translate(None, _UPPER)
        upper, size = size - len(rest), len(rest)
        others = len(rest.translate(None, _DIGITS))
        if min(lower, upper) > _MANY_CAPITALS * len(run):  # else a path, a name, a number in hexadecimal digits
            classes = lower * tokenizer.lower + upper * tokenizer.upper + others * tokenizer.other
            more += max(0.0, len(run) * tokenizer.base64 - classes - (size - others) * tokenizer.digit)
    return more


def _estimate_rest(data: bytes, rest: bytes, tokenizer: Tokenizer) -> float:
    """Estimate what is neither printable ASCII nor a line break: control characters, and everything beyond ASCII."""
    rest = rest.translate(None, _CONTINUATION)
    size = len(rest)
    rest = rest.translate(None, _CONTROL)
    tokens = float(size - len(rest))
    if tokens > _MANY_CONTROLS * len(data):
        tokens += PIECE * min(tokens, data.count(b" "))
    is_random = len(rest) >= max(_LEAST_CHARACTERS, len(data) / 10) and _is_random(data, rest)
    if len(rest.translate(None, _RARE_LEADS)) < len(rest):
        beyond = data.translate(None, _ASCII)
        tokens += len(_OLD_SCRIPTS.findall(beyond)) * max(0.0, OF_FOUR_BYTES - tokenizer.emoji)
        tokens += 0.0 if is_random else len(_RARE_SCRIPTS.findall(beyond)) * (_RARE - 1)
    if not is_random:
        return tokens + _estimate_beyond_ascii(rest, tokenizer)
    most, hebrew = 0.0, max(1.0, tokenizer.hebrew * _RANDOM_HEBREW)
    for members, weight in (*_RANDOM_LEADS, (_HEBREW, hebrew), (_OF_TWO, 1.0), (_OF_THREE, _RARE)):
        size = len(rest)
        rest = rest.translate(None, members)
        most += (size - len(rest)) * weight
    return tokens + most + len(rest) * min(OF_FOUR_BYTES, tokenizer.emoji * _RANDOM_EMOJI)


def _is_random(data: bytes, rest: bytes) -> bool:
    """Whether the characters beyond ASCII are random ones of an alphabet, or of thousands: most have no token."""
    kana = len(rest) - len(rest.translate(None, _KANA))
    is_east_asian = len(rest.translate(None, _EAST_ASIAN)) < len(rest) / 2 and kana < _ALL_KANA * len(rest)
    if len(data) > 3 * _SAMPLE_BEYOND:
        data = _samples(data, _SAMPLE_BEYOND)
    sample = data.translate(None, _ASCII).decode("utf-8", "ignore")
    size, different = len(sample), len(set(sample))
    if size < _LEAST_CHARACTERS or (different < _FEWEST_DIFFERENT and size < len(data) / 4):
        return False
    if is_east_asian:
        return different > _DIFFERENT[size < _CHARACTERS] * size
    same = sum(count * (count - 1) for count in Counter(sample).values()) / (size * (size - 1))
    return different > 2 and same * different < _EVEN_CHARACTERS


def _estimate_beyond_ascii(rest: bytes, tokenizer: Tokenizer) -> float:
    tokens = 0.0
    for members, weight in (
        (_ACCENTED, tokenizer.accented),
        (_CYRILLIC, tokenizer.cyrillic),
        (_HAN, tokenizer.han),
        (_KANA, tokenizer.kana),
        (_SYMBOLS, tokenizer.symbol),
        (_HANGUL, tokenizer.hangul),
        (_INDIC, tokenizer.indic),
        (_GREEK, tokenizer.greek),
        (_SEMITIC, tokenizer.semitic),
        (_HEBREW, tokenizer.hebrew),
    ):
        size = len(rest)
        rest = rest.translate(None, members)
        tokens += (size - len(rest)) * weight
        if not rest:
            return tokens
    return tokens + len(rest) * tokenizer.emoji
