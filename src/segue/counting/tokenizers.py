"""The weights of tokenizers: tokens per character of each class, for `text_estimates`.

Facts:
- The weights are fitted on 970 pieces of 4 KB: source code, JSON, YAML, Markdown, tool results, calls, replies, 17
  languages, base64, ids, symbols. Single pieces vary by 6 to 12 %; long texts of mixed kinds by 1 to 5 %.
                                                            (measured with each tokenizer, 2026-11-15)
- Claude has no public tokenizer. Its weights come from the usage of 608,000 tokens of two recorded sessions and of 103
  requests; classes outside Latin are those of o200k times 1.15.           (Sonnet 4.5 and Opus 4.5, 2026-11-15)
- Claude 4.7 and later: letters count 1.5 times as much, the rest as before. (14 replies of Opus 4.8, 2026-11-15)
- In prose a word is one token or two, however long it is: 0.4 for a space and 0.15 for a letter count English within
  15 %, where letters alone count long words twice.   (1,700 pieces of documentation and sessions, 2026-11-17)
- Words of other languages than English are split into more tokens: 0.19 to 0.26 a letter, and about 1 for a letter with
  an accent. Other scripts: the median over the languages that use them.
                                  (words of 40 languages by their frequency, with each tokenizer, 2026-11-17)
- Base64 has 0.67 to 0.76 tokens a character, half as much again as its classes give. (the tokenizers, 2026-11-15)
- Emoji have 1.2 to 3.9 tokens, one for each byte where a vocabulary has none of them. (the tokenizers, 2026-11-17)
"""

from __future__ import annotations

from typing import Final, final

import msgspec

PIECE: Final = 0.9
"""The fewest tokens of a run of punctuation, or of a word after one: some of them are one token together."""
OF_FOUR_BYTES: Final = 4.0
"""The tokens of a character of four bytes in UTF-8 that is not in a vocabulary."""


@final
class Tokenizer(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens per character of each class. Characters beyond ASCII are classed by their first byte in UTF-8."""

    lower: float
    upper: float
    digit: float
    other: float
    """Printable ASCII that is not a letter, digit or space."""
    control: float
    """Line breaks and tabs."""
    space: float
    prose_lower: float
    """Small letters in English prose, where the spaces count the words."""
    prose_upper: float
    prose_other: float
    prose_control: float
    prose_space: float
    prose_foreign: float
    """Small letters in prose of other languages than English."""
    accented: float
    """C2 to CB: Latin letters with accents."""
    greek: float
    """CE, CF: Greek."""
    cyrillic: float
    """D0, D1: Cyrillic."""
    semitic: float
    """D8 to DF: Arabic."""
    hebrew: float
    """D4 to D7: Hebrew, Armenian."""
    indic: float
    """E0, E1: Indic scripts, Thai."""
    symbol: float
    """CC, CD, D2, D3, E2, EE, EF: combining accents, rare Cyrillic, arrows, curly quotes, full-width forms."""
    kana: float
    """E3: kana."""
    han: float
    """E4 to E9: Han."""
    hangul: float
    """EA to ED: Hangul."""
    emoji: float
    """F0 to F4: emoji and everything beyond the basic plane."""
    base64: float
    """Letters and digits at random, in long runs."""

    def widest_ascii(self) -> float:
        """Return the most tokens that one ASCII character can have."""
        return max(self.narrow(), self.digit, 1.0)

    def narrow(self) -> float:
        """Return the most tokens that one ASCII character has by its class, except digits."""
        plain = max(self.lower, self.upper, self.other, self.control, self.space, self.base64)
        prose = max(self.prose_lower, self.prose_upper, self.prose_other, self.prose_control, self.prose_foreign)
        return max(plain, prose, self.prose_space, PIECE)

    def widest(self) -> float:
        """Return the most tokens that one character can have."""
        wide = (self.accented, self.greek, self.cyrillic, self.semitic, self.hebrew, self.indic, self.symbol)
        return max(self.widest_ascii(), *wide, self.kana, self.han, self.hangul, self.emoji, OF_FOUR_BYTES)


def _row(*weights: str) -> Tokenizer:
    return Tokenizer(**dict(zip(Tokenizer.__struct_fields__, map(float, " ".join(weights).split()), strict=True)))


# The weights in the order of the fields. ASCII: a-z, A-Z, 0-9, other, control, space. In prose: a-z, A-Z, other,
# control, space, a-z of other languages. The rest: accented, Greek, Cyrillic, Arabic, Hebrew, Indic, symbol, kana, Han,
# Hangul, emoji, base64.
O200K: Final = _row(
    "0.22 0.52 0.94 0.48 0.19 0.06",
    "0.14 0.16 0.74 0.22 0.46 0.19",
    "1.03 0.45 0.35 0.39 0.46 0.40 1.76 0.70 0.80 0.75 2.30 0.68",
)
GEMMA3: Final = _row(
    "0.21 0.55 1.40 0.72 0.19 0.11",
    "0.15 0.13 0.88 0.49 0.42 0.19",
    "0.93 0.46 0.34 0.40 0.54 0.30 1.60 0.50 0.62 0.68 1.90 0.70",
)
TEKKEN: Final = _row(
    "0.23 0.59 1.39 0.52 0.17 0.06",
    "0.15 0.30 0.74 0.19 0.41 0.21",
    "0.93 0.48 0.38 0.37 0.54 0.47 2.09 0.65 1.06 0.77 3.90 0.76",
)
LLAMA3: Final = _row(
    "0.23 0.52 0.94 0.43 0.13 0.06",
    "0.15 0.15 0.73 0.11 0.45 0.25",
    "0.84 0.48 0.40 0.46 1.19 0.95 1.66 0.67 0.81 0.80 2.85 0.72",
)
QWEN3: Final = _row(
    "0.23 0.50 1.40 0.45 0.14 0.07",
    "0.14 0.15 0.72 0.07 0.46 0.24",
    "1.34 1.05 0.44 0.50 0.47 1.11 1.49 0.68 0.75 0.86 2.36 0.74",
)
DEEPSEEK: Final = _row(
    "0.24 0.68 0.93 0.50 0.18 0.06",
    "0.16 0.17 0.77 0.33 0.38 0.24",
    "1.25 0.58 0.40 0.46 0.56 0.70 1.70 0.72 0.66 0.87 2.30 0.70",
)
GLM4: Final = _row(
    "0.23 0.52 1.07 0.44 0.14 0.06",
    "0.15 0.14 0.73 0.09 0.45 0.23",
    "1.13 0.52 0.36 0.49 1.19 1.21 1.84 0.78 0.74 1.02 2.85 0.72",
)
KIMI: Final = _row(
    "0.22 0.53 0.93 0.46 0.20 0.06",
    "0.14 0.18 0.69 0.14 0.45 0.27",
    "1.28 0.72 0.49 0.58 0.74 0.70 1.81 0.84 0.72 1.03 2.55 0.68",
)
COMMAND_R: Final = _row(
    "0.23 0.55 1.39 0.68 0.21 0.02",
    "0.15 0.17 0.80 0.25 0.43 0.21",
    "1.00 0.50 0.38 0.40 0.55 0.80 1.84 0.50 0.69 0.75 2.40 0.72",
)
CLAUDE: Final = _row(
    "0.24 0.58 1.54 0.51 0.37 0.07",
    "0.16 0.20 0.80 0.35 0.50 0.21",
    "1.15 0.52 0.40 0.45 0.53 0.46 1.58 0.81 0.85 0.86 2.50 0.78",
)
CLAUDE_4_7: Final = _row(
    "0.36 0.87 1.54 0.51 0.37 0.07",
    "0.23 0.30 0.80 0.37 0.70 0.31",
    "1.15 0.52 0.40 0.45 0.53 0.46 1.58 0.81 0.85 0.86 2.50 0.78",
)
UNKNOWN: Final = _row(
    "0.23 0.53 1.07 0.48 0.18 0.06",
    "0.15 0.17 0.75 0.20 0.45 0.23",
    "1.10 0.60 0.43 0.50 0.80 0.70 1.76 0.65 0.69 0.80 2.60 0.72",
)

TOKENIZERS: Final[dict[str, Tokenizer]] = {
    "o200k": O200K,
    "gemma3": GEMMA3,
    "tekken": TEKKEN,
    "llama3": LLAMA3,
    "qwen3": QWEN3,
    "deepseek": DEEPSEEK,
    "glm4": GLM4,
    "kimi": KIMI,
    "command-r": COMMAND_R,
    "claude": CLAUDE,
    "claude-4.7": CLAUDE_4_7,
    "unknown": UNKNOWN,
}

_NAMES: Final = {id(tokenizer): name for name, tokenizer in TOKENIZERS.items()}


def name_of(tokenizer: Tokenizer) -> str:
    """Return the name of a tokenizer of the table; `unknown` for another one."""
    return _NAMES.get(id(tokenizer), "unknown")
