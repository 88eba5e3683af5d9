"""An upper estimate of the tokens of a text, by what kind of text it is; windows are compared with it.

The estimate of `text_estimates` weighs characters. That is right on average, but pinned requirements, word lists, logs
or a language that a vocabulary hardly knows have up to twice as many tokens. Here a text is counted by the places where
tokenizers split it: words by what is before and after them, capitals in a word, runs of digits, punctuation and spaces,
letters and pairs that are frequent or rare in English, other scripts. How far that can be off depends on the kind, too.

Facts:
- The weights are fitted to 5,173 files of 370 kinds and 95 languages, pieces of up to 24 KB. Requirements, lock files,
  hashes, SVG, minified code, source maps, logs, CSV, JSON, listings, base64, man pages, translations, source code.
                                                                     (with each public tokenizer, 2026-11-18)
- Fitted on half of the files, chosen by a hash of their names: as first requests that just fit windows of 8,000 to
  128,000 tokens, 3 of 20,320 counts of the other half exceed the window, and 3 of 21,064 of this half. Texts that are
  recognised as English prose leave 4.6 and 5.0 % of the window unused.                             (the same)
- One file repeated until it fills a larger window exceeds it more often: 28 of about 4,000 at 200,000 tokens, 463 at
  1,000,000, because its error is not averaged. Files of one kind together: 2 of 2,456 at 1,000,000.  (the same)
- Of 475 other files, one fills 1,000,000 tokens: with a margin for what resembles prose, 13 of 950 counts by o200k and
  gemma3 exceed it, 30 without. Of plain text files, 5.0 % of the window stays unused.                (2026-11-18)
- With all weights, at 8,000 tokens 0 of 9,232 counts of 1,154 other files exceed it, after two limits of what counts as
  prose were adjusted because of them; code leaves 15 % unused.                                     (the same)
- Tokenizers that are not public: the counts of o200k, times the ratio of the plain estimates. Of Claude's, only one of
  2023 was published, which counts otherwise than the usage of today's models.         (recorded usage, 2026-11-15)
"""

from __future__ import annotations

import re
from operator import mul
from typing import Final

from segue.counting.text_estimates import bound_bytes, estimate_bytes
from segue.counting.tokenizers import Tokenizer, name_of

_LOWER: Final = bytes(range(ord("a"), ord("z") + 1))
_UNUSUAL: Final = bytes(set(_LOWER) - set(b"etaoinsrhl"))
_TO_MARKS: Final = bytes(
    ord("a" if chr(byte).islower() else "A" if chr(byte).isupper() else "0" if chr(byte).isdigit() else chr(byte))
    if byte < 0x80
    else ord("?")
    for byte in range(256)
)
"""A small letter, a capital and a digit are one each; so are the bytes of all characters beyond ASCII."""
_TO_KINDS: Final = bytes(
    ord("." if 0x20 < byte < 0x7F and not chr(byte).isalnum() else "\n" if byte < 0x20 or byte == 0x7F else chr(kind))
    for byte, kind in enumerate(_TO_MARKS)
)
"""The same, with one for all punctuation and one for all control characters."""
_KINDS: Final = (
    *(b"a", b"A", b"0", b" ", b".", b"\n", b"00", b"..", b"  ", b"   ", b"AAA", b"AAa", b"aa\n", b"a  ", b" .", b" A"),
    *(b".a", b"..a", b".a.", b" .a", b".a\n", b".\n\n", b".\na", b"??\n", b" ?", b"a?"),
)
_PARTS: Final = (b" a", b" A", b". ")
_MARKS: Final = (b".0", b"(a", b"#a", b"-A", b"A,", b"A_", b"| ", b".*")
_VERBATIM: Final = (
    *(b"z", b"k", b"e", b"o", b"\\", b"|", b"th", b"in", b"re", b"on", b"st", b"er"),
    *(b"io", b"ck", b"ke", b"te", b"ef", b"a ", b"g ", b"h ", b"y ", b" c"),
)
_BACKSLASH, _TH, _PAIRS = 4, 6, slice(6, 12)
"""The places in `_VERBATIM` of a backslash, of `th`, and of the pairs that are frequent in English."""
_LEADS: Final = tuple(
    map(
        bytes,
        (
            (0xC2, 0xC3),  # accented, in western Europe
            range(0xC4, 0xCC),  # and elsewhere
            (0xCE, 0xCF),  # Greek
            (0xD0, 0xD1),  # Cyrillic
            (0xD4, 0xD5),  # Armenian
            (0xD6, 0xD7),  # Hebrew
            (0xD8, 0xD9),  # Arabic
            range(0xDA, 0xE0),  # its letters in other languages
            (0xE0,),  # Indic, Thai
            (0xE1,),  # Georgian, Vietnamese, Khmer
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
_SAMPLE: Final = 256
_SAMPLES: Final = (3, 16, 256, 512)
"""So many pieces are looked at of a text that is a small part of a window; of others at least and at most so many, one
for so many bytes."""
_SURE: Final = (1.0, 1.12, 1.28, 1.72)
"""How many times the estimate the tokens of a file are at most: of English prose, of what resembles it, of other texts
with English words in them, such as code, and of everything else."""
_COMMON: Final = (b" the ", b" to ", b" of ", b" a ", b" and ", b" is ", b" in ")
_MANY_COMMON: Final = 0.12
"""So many of the words of English prose are common ones, at least; of headers, build files, tables of keys and lists of
names that resemble it otherwise, fewer are."""
_SMALLEST_MARGIN: Final = 0.3
_LONG: Final = 25
"""Texts that are so many times as long as the shortest have the whole margin, others the less the shorter they are, and
at least this part of it: of several texts, the errors balance out."""
_LEAST: Final = 0.75
"""The upper estimate is not below this part of the plain one."""

# The weights in the order of _KINDS; _MARKS, _VERBATIM, unusual letters, those beyond `_MANY_UNUSUAL`; _LEADS, rare
# scripts. In hundredths of a token.
_ROWS: Final = """
o200k 16 65 160 42 77 69 -232 -116 37 -173 -119 145 116 52 13 -76 -11 93 133 55 107 -82 54 188 -29 -50
    -20 -71 -109 54 70 -78 -203 -77 70 119 1 -20 44 118 -33 -14 -49 -22 -12 -18 -125 -177
    -103 -47 22 33 -198 225 -19 -60 8 46 145 138 39 34 30 38 31 101 48 47 238 65 75 65 138 6;
gemma3 17 70 166 42 88 94 -125 -141 57 -192 -140 117 79 -23 35 -84 41 33 138 -39 96 -91 94 217 1 -31
    -30 12 -72 16 77 -8 -167 -5 54 122 -5 -34 43 65 -15 -2 -31 -15 -4 -5 -130 -181
    -76 -42 25 60 -228 227 -64 -68 8 41 143 115 35 30 46 39 30 116 40 33 155 36 55 45 114 3;
tekken 15 78 179 41 61 76 -144 -82 30 -159 -119 159 115 55 27 -64 19 62 154 31 84 -83 36 165 17 -81
    -11 -77 -126 112 44 -87 -195 112 31 140 5 -29 56 107 -12 0 -59 -25 -13 5 -110 -208
    -129 -46 36 95 -233 267 -80 -63 10 20 186 170 38 34 32 40 25 268 57 57 244 58 96 63 234 240;
llama3 21 56 158 49 72 72 -229 -116 25 -179 -93 222 134 74 2 -71 -16 121 89 82 114 -89 39 17 -114 -176
    -19 -19 -109 69 76 -72 -194 49 112 147 -4 -41 53 123 -70 -12 -57 -8 -9 -5 -135 -194
    -94 -70 31 105 -336 250 -72 -110 0 51 250 266 55 58 204 125 58 257 199 210 391 69 87 100 171 0;
qwen3 20 60 170 47 63 71 -123 -98 28 -179 -105 202 127 59 16 -77 -8 117 91 63 122 -86 28 30 -26 -102
    -8 11 -121 55 84 -69 -191 55 102 161 -2 -37 52 124 -55 -11 -63 -9 -8 -6 -134 -204
    -108 -62 39 98 -336 276 -73 -104 1 37 201 214 99 56 120 41 45 192 164 153 217 64 75 84 142 0;
deepseek 18 66 158 40 82 75 -230 -127 27 -151 -102 137 119 37 17 -67 2 83 115 45 92 -86 59 147 -12 -17
    -23 -16 -144 144 48 -21 -208 82 52 121 -2 -35 59 112 -57 -6 -37 1 -11 -8 -141 -186
    -96 -45 7 129 -202 244 -84 -102 9 41 148 153 48 42 60 49 40 182 90 88 250 62 55 71 138 35;
glm4 20 58 161 48 68 72 -200 -108 27 -178 -99 206 128 70 9 -77 -12 118 79 73 129 -86 39 11 -120 -156
    -10 14 -114 61 79 -73 -204 63 76 159 -1 -36 53 125 -53 -15 -60 -18 -11 -14 -123 -207
    -110 -65 34 87 -340 274 -65 -94 1 46 227 260 61 59 234 126 62 260 202 210 365 70 91 131 171 0;
kimi 17 63 163 46 72 81 -240 -110 26 -169 -122 146 119 78 3 -66 -9 94 121 78 124 -111 50 67 -21 45
    -21 -20 -79 84 86 -90 -233 106 101 144 3 -27 46 127 -79 -40 -59 -17 -8 23 -118 -214
    -116 -44 44 124 -58 263 -73 -61 3 44 169 123 69 52 68 68 59 141 90 83 219 66 82 97 153 40;
claude 18 74 224 51 82 92 -275 -135 40 -202 -143 151 124 75 20 -86 -11 113 151 56 134 -91 50 230 -36 -62
    -32 -90 -125 77 66 -84 -241 -145 76 112 -4 -27 52 134 -41 -15 -48 -2 -21 -4 -156 -166
    -93 -60 34 41 -223 242 -26 -82 9 0 165 160 44 39 35 41 34 122 51 54 215 72 76 73 150 0;
claude-4.7 29 106 208 55 96 105 -256 -171 75 -274 -187 -8 157 111 26 -97 -16 136 192 68 200 -95 45 261 -30 -78
    -21 -132 -146 113 91 -108 -292 -194 84 125 -5 -33 74 164 -70 -14 -47 -8 -27 13 -204 -203
    -99 -80 55 75 -208 278 -85 -100 11 0 178 179 40 34 32 35 27 131 45 51 216 67 68 65 150 0;
command-r 17 64 203 40 90 82 -256 -127 47 -195 -116 161 106 84 33 -64 -3 120 155 60 123 -90 43 170 -59 -76
    -36 -78 -115 84 56 -72 -233 -207 83 99 -7 -24 63 135 -53 -6 -33 8 -21 -2 -163 -167
    -68 -61 21 39 -227 207 -37 -79 12 5 155 152 46 41 43 49 33 112 112 112 268 42 62 67 144 0;
unknown 17 63 173 46 76 72 -239 -120 34 -181 -112 172 127 55 9 -77 -12 109 117 66 118 -92 66 162 -62 -74
    -22 -20 -111 71 70 -74 -212 -52 80 127 1 -23 48 127 -62 -15 -39 -7 -16 -9 -130 -180
    -90 -56 17 94 -201 220 -45 -79 7 38 175 179 58 49 70 78 46 132 99 96 245 61 66 81 156 0
"""
_WEIGHTS: Final = {
    name: tuple(int(weight) / 100 for weight in weights) for name, *weights in map(str.split, _ROWS.split(";"))
}


def estimate_upper(data: bytes, tokenizer: Tokenizer, least: int = SHORT, share: float = 1.0) -> float:
    """Estimate the most tokens that a text in UTF-8 has; not above `bound_bytes`, which is cheaper.

    Texts of fewer than `least` bytes have the plain estimate: of many short texts, the errors balance out. `share` is
    the part of a window that a request may fill by its estimate: what is left free is room for errors, too.
    """
    plain = estimate_bytes(data, tokenizer)
    size = len(data)
    if size < least or _repeats_words(data[: 2 * _SAMPLE]):
        return plain
    sample = _take_samples(data, is_long=size >= _LONG * least)
    tokens, sure, is_odd = _weigh(sample, _WEIGHTS[name_of(tokenizer)])
    upper = max(tokens * size / len(sample), plain if is_odd else plain * _LEAST)
    margin = max(0.0, sure * share - 1.0) * min(1.0, max(_SMALLEST_MARGIN, size / (_LONG * least)))
    return min(upper * (1.0 + margin), bound_bytes(data, tokenizer))


def _repeats_words(data: bytes) -> bool:
    words = data.split()
    return len(words) > _MANY_WORDS and len(set(words)) <= _FEW_WORDS


def _take_samples(data: bytes, *, is_long: bool) -> bytes:
    """Return pieces from the whole length of a text; the text if it is short."""
    few, least, most, distance = _SAMPLES
    count = min(most, max(least, len(data) // distance)) if is_long else few
    if len(data) <= count * _SAMPLE:
        return data
    step = (len(data) - _SAMPLE) / (count - 1)
    return b"".join(data[(at := round(number * step)) : at + _SAMPLE] for number in range(count))


def _weigh(data: bytes, weights: tuple[float, ...]) -> tuple[float, float, bool]:
    """Return the tokens of a text, how many times as many there are at most, and whether its letters may be random."""
    size, kinds, marks = len(data), data.translate(_TO_KINDS), data.translate(_TO_MARKS)
    verbatim = [*map(data.count, _VERBATIM)]
    counts: list[float] = [*map(kinds.count, _KINDS), *map(marks.count, _MARKS), *verbatim]
    lower, _, digits, spaces, punctuation = counts[:5]
    unusual = size - len(data.translate(None, _UNUSUAL))
    counts += (unusual, max(0.0, unusual - _MANY_UNUSUAL * lower))
    beyond = 0
    if not data.isascii():
        leads = [size - len(data.translate(None, members)) for members in _LEADS]
        beyond = sum(leads)
        counts += (*leads, len(_RARE.findall(data)))
    # No token spans two words, nor a word and the punctuation after it.
    tokens = max(sum(map(mul, counts, weights)), sum(map(kinds.count, _PARTS)))
    frequent, th, slashes = sum(verbatim[_PAIRS]), verbatim[_TH], verbatim[_BACKSLASH]
    is_odd = frequent < 0.04 * lower or punctuation > lower or unusual > _MANY_UNUSUAL * lower or beyond > 0.1 * size
    if beyond >= 0.02 * size or lower < 0.35 * size or th < 0.004 * lower:
        return tokens, _SURE[3], is_odd
    is_prose = (
        frequent >= 0.05 * lower
        and 0.006 * lower <= th <= 0.035 * lower
        and lower >= 0.4 * size
        and spaces >= 0.1 * lower
        and digits < 0.05 * size
        and punctuation * lower < (0.12 * lower + 5 * th) * size
        and slashes < 0.01 * size
    )
    if not is_prose:
        return tokens, _SURE[2], is_odd
    return tokens, _SURE[sum(map(data.count, _COMMON)) < _MANY_COMMON * len(data.split())], is_odd
