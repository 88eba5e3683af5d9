"""The estimate of a text: by class of characters, and against exact tokenizers."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence

import pytest

from counting import exact, texts
from segue.counting.tokenizers import O200K, TOKENIZERS, Tokenizer, bound_text, estimate_bytes, estimate_text

CLASSES: dict[str, tuple[str, str]] = {
    "small letters": ("a", "lower"),
    "capitals": ("A", "upper"),
    "digits": ("7", "digit"),
    "punctuation": ("}", "other"),
    "line breaks": ("\n", "control"),
    "spaces": (" ", "space"),
    "accents": ("é", "accented"),
    "Greek": ("λ", "greek"),
    "Cyrillic": ("ж", "cyrillic"),
    "Hebrew": ("ש", "hebrew"),
    "Arabic": ("ع", "semitic"),
    "Devanagari": ("क", "indic"),
    "Thai": ("ก", "indic"),
    "arrows": ("→", "symbol"),
    "kana": ("か", "kana"),
    "Han": ("漢", "han"),
    "Hangul": ("한", "hangul"),
    "emoji": ("🌍", "emoji"),
}


Text = Callable[[random.Random, int], str]


def rows(values: Callable[[random.Random], object], *, separator: str = " ") -> Text:
    def make(chance: random.Random, size: int) -> str:
        lines = (separator.join(str(values(chance)) for _ in range(30)) for _ in range(size // 30 + 1))
        return "\n".join(lines)[:size]

    return make


DENSE: dict[str, Text] = {
    "a grid of digits": rows(lambda chance: chance.randint(0, 9)),
    "a grid with commas": rows(lambda chance: chance.randint(0, 9), separator=", "),
    "a grid without spaces": rows(lambda chance: chance.randint(0, 9), separator=","),
    "a column of digits": rows(lambda chance: chance.randint(0, 9), separator="\n"),
    "a grid of numbers": rows(lambda chance: chance.randint(0, 99)),
    "measurements": rows(lambda chance: f"{chance.random():.3f}"),
    "single letters": rows(lambda chance: chance.choice("abcdefghijkl")),
    "short words": rows(lambda chance: chance.choice(("it", "is", "so", "we", "go", "by", "ox"))),
    "short words and digits": rows(lambda chance: chance.choice(("it", "is", "7", "so", "4", "x"))),
    "a dump of bytes": rows(lambda chance: f"{chance.getrandbits(8):02x}"),
    "digests": rows(lambda chance: f"{chance.getrandbits(256):064x}", separator="\n"),
    "digests in capitals": rows(lambda chance: f"{chance.getrandbits(256):064X}", separator="\n"),
}
"""Texts with more tokens than their classes of characters give, because a token never spans two words or numbers."""


LETTERS = string.ascii_letters


def at_random(alphabet: Sequence[str], lengths: tuple[int, int], *, separator: str = " ") -> Text:
    def make(chance: random.Random, size: int) -> str:
        count = size // (lengths[0] + len(separator)) + 1
        return separator.join("".join(chance.choices(alphabet, k=chance.randint(*lengths))) for _ in range(count))[
            :size
        ]

    return make


def minified(chance: random.Random, size: int) -> str:
    def name() -> str:
        return chance.choice(string.ascii_lowercase)

    statements = (
        lambda: f"function {name()}({name()},{name()}){{return {name()}[{name()}]||{name()}.{name()}({name()})}}",
        lambda: f"for({name()}=0;{name()}<{name()};{name()}++){name()}[{name()}]={name()}^{name()}>>>3;",
        lambda: f"if(!{name()}&&{name()}!=={name()}){{{name()}.push({name()})}}",
    )
    return "".join(chance.choice(statements)() for _ in range(size // 20))[:size]


RANDOM: dict[str, Text] = {
    "small letters": at_random(string.ascii_lowercase, (3, 9)),
    "small letters without spaces": at_random(string.ascii_lowercase, (60, 60), separator=""),
    "capitals": at_random(string.ascii_uppercase, (3, 9)),
    "letters": at_random(LETTERS, (3, 9)),
    "letters and digits": at_random(LETTERS + string.digits, (20, 20), separator=","),
    "consonants": at_random("bcdfghjklmnpqrstvwxz", (3, 8)),
    "vowels": at_random("aeiou", (3, 8)),
    "syllables": at_random([first + second for first in "bdfgklmnprstvz" for second in "aeiou"], (2, 4)),
    "names with underscores": at_random([*string.ascii_lowercase, "_"], (9, 20)),
    "genes": at_random("ACGT", (60, 60), separator="\n"),
    "punctuation": at_random(string.punctuation, (1, 12)),
    "punctuation without spaces": at_random(string.punctuation, (60, 60), separator=""),
    "brackets": at_random("()[]{}<>", (1, 8)),
    "punctuation and letters": at_random(string.punctuation + string.ascii_lowercase, (60, 60), separator=""),
    "short words in lines": at_random(("it", "is", "so", "we"), (1, 1), separator="\n"),
    "short words with commas": at_random(("it", "is", "so", "we"), (1, 1), separator=","),
    "base64 in lines": at_random(LETTERS + string.digits + "+/", (76, 76), separator="\n"),
    "minified code": minified,
    "control characters": at_random([*map(chr, range(1, 9))], (1, 5)),
    "Cyrillic": at_random([*map(chr, range(0x430, 0x450))], (2, 8)),
    "Greek": at_random([*map(chr, range(0x3B1, 0x3CA))], (2, 8)),
    "Arabic": at_random([*map(chr, range(0x621, 0x64B))], (2, 8)),
    "Devanagari": at_random([*map(chr, range(0x905, 0x93A))], (2, 8)),
    "Ethiopic": at_random([*map(chr, range(0x1200, 0x1248))], (2, 8)),
    "Latin with accents": at_random([*map(chr, range(0xC0, 0x250))], (2, 8)),
    "kana": at_random([*map(chr, range(0x3041, 0x3097))], (4, 30)),
    "Han": at_random([*map(chr, range(0x4E00, 0x9F00))], (2, 8)),
    "Hangul": at_random([*map(chr, range(0xAC00, 0xD7A4))], (2, 8)),
    "emoji": at_random([*map(chr, range(0x1F300, 0x1F650))], (1, 9)),
    "mathematical letters": at_random([*map(chr, range(0x1D400, 0x1D4FF))], (3, 9)),
    "several scripts": at_random("aZ7{éßжλשعक漢か한🌍→ǣ뇑", (2, 9)),
}
"""Texts with more tokens than the same characters in words have: nothing of them is in a vocabulary."""


@pytest.mark.parametrize(("character", "field"), CLASSES.values(), ids=CLASSES.keys())
@pytest.mark.parametrize("name", TOKENIZERS)
def test_each_class_has_its_own_weight(name, character, field):
    tokenizer = TOKENIZERS[name]
    assert estimate_text(character * 10, tokenizer) == pytest.approx(10 * getattr(tokenizer, field))


def test_every_byte_belongs_to_one_class():
    """Characters that no vocabulary has count more than those of a class: one token for each byte, almost."""
    ones = Tokenizer(**dict.fromkeys(Tokenizer.__struct_fields__, 1.0))
    every = [*range(0x3000), *range(0x3000, 0xD800, 7), *range(0xE000, 0x10000, 7), *range(0x10000, 0x30000, 61)]
    assert {estimate_text(chr(point), ones) for point in every} == {1.0, 2.8, 4.0}


def test_half_a_surrogate_pair_is_counted():
    assert estimate_text("\ud800", O200K) > 0


def test_bytes_and_text_are_counted_alike():
    text = "Grüße, wörld → 🌍! {}"
    assert estimate_bytes(text.encode(), O200K) == estimate_text(text, O200K)


def test_the_bound_of_joined_texts_is_never_below_their_estimates():
    chance = random.Random(7)
    kinds = (*texts.KINDS.values(), *DENSE.values(), *RANDOM.values())
    joined = [[make(chance, size) for size in (3, 40, 700, 4000)] + [chance.choice("a7{é漢🌍")] for make in kinds]
    for tokenizer in TOKENIZERS.values():
        for parts in joined:
            estimates = sum(estimate_text(part, tokenizer) for part in parts)
            assert bound_text("".join(parts), tokenizer) >= estimates - 1e-6
        every = "".join(map(chr, [*range(0xD800), 0xD800, *range(0xE000, 0x30000)]))
        assert bound_text(every, tokenizer) >= estimate_text(every, tokenizer)


def test_no_character_counts_more_than_the_widest():
    chance = random.Random(3)
    made = [make(chance, 2000) for make in (*texts.KINDS.values(), *DENSE.values(), *RANDOM.values())]
    for tokenizer in TOKENIZERS.values():
        for text in made:
            assert estimate_text(text, tokenizer) <= len(text) * tokenizer.widest()
            if text.isascii():
                assert estimate_text(text, tokenizer) <= len(text) * tokenizer.widest_ascii()


def test_base64_counts_more_than_prose_with_the_same_letters():
    text = texts.opaque(random.Random(1), 4000)
    spaced = " ".join(text[at : at + 8] for at in range(0, len(text), 8))
    assert estimate_text(text, O200K) == pytest.approx(0.68 * 4000, rel=0.02)
    assert estimate_text(spaced, O200K) < estimate_text(text, O200K)


def test_a_long_path_is_no_base64():
    path = "/usr/share/locale/" * 20
    assert estimate_text(path, O200K) == pytest.approx(sum(estimate_text(letter, O200K) for letter in path))


def test_other_languages_count_more_than_english():
    chance = random.Random(1)
    for language in ("German", "French", "Polish"):
        foreign = texts.speech(chance, 1000, (language,))
        english = texts.speech(chance, 1000, ("English",))
        assert estimate_text(foreign, O200K) > 1.15 * estimate_text(english, O200K)


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
def test_mixed_texts_are_estimated_within_8_per_cent(name):
    """What an agent reads: code, prose, records, searches, logs and a little base64, more than 100 KB together."""
    chance = random.Random(5)
    sizes = {"code": 60_000, "markdown": 30_000, "JSON": 15_000, "a search": 20_000, "a log": 5_000, "base64": 2_000}
    pieces = [texts.KINDS[kind](chance, size) for kind, size in sizes.items()]
    estimated = sum(estimate_text(piece, TOKENIZERS[name]) for piece in pieces)
    assert estimated / sum(exact.count(piece, name) for piece in pieces) == pytest.approx(1.0, abs=0.08)


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("kind", texts.KINDS)
def test_no_kind_of_text_is_estimated_much_too_low(kind, name):
    """A request is cut at 0.85 of the limit; an estimate that is lower than this share overflows it."""
    text = texts.KINDS[kind](random.Random(7), 20_000)
    assert estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) > 0.85


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("kind", DENSE)
def test_texts_of_many_short_pieces_are_not_estimated_too_low(kind, name):
    text = DENSE[kind](random.Random(7), 20_000)
    assert 0.95 < estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) < 1.45


@exact.needed
@pytest.mark.parametrize("name", ["o200k", "gemma3", "tekken"])
@pytest.mark.parametrize("kind", RANDOM)
def test_texts_at_random_are_not_estimated_too_low(kind, name):
    """A request is cut at 0.85 of the limit, which is 7/8 of the window: above 0.75 it does not exceed the window."""
    chance = random.Random(7)
    for pieces in ([RANDOM[kind](chance, 300) for _ in range(6)], [RANDOM[kind](chance, 3000)]):
        estimated = sum(estimate_text(piece, TOKENIZERS[name]) for piece in pieces)
        assert 0.75 < estimated / sum(exact.count(piece, name) for piece in pieces) < 3.0


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("language", texts.SENTENCES)
def test_no_language_is_estimated_much_too_low(language, name):
    text = texts.SENTENCES[language] * 40
    assert 0.85 < estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) < 1.6
