"""The estimate of a text: by class of characters, and against exact tokenizers."""

from __future__ import annotations

import random

import pytest

from counting import exact, texts
from segue.counting.text_estimates import bound_text, estimate_bytes, estimate_text
from segue.counting.tokenizers import O200K, TOKENIZERS, Tokenizer

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
    kinds = (*texts.KINDS.values(), *texts.DENSE.values(), *texts.RANDOM.values())
    joined = [[make(chance, size) for size in (3, 40, 700, 4000)] + [chance.choice("a7{é漢🌍")] for make in kinds]
    for tokenizer in TOKENIZERS.values():
        for parts in joined:
            estimates = sum(estimate_text(part, tokenizer) for part in parts)
            assert bound_text("".join(parts), tokenizer) >= estimates - 1e-6
        every = "".join(map(chr, [*range(0xD800), 0xD800, *range(0xE000, 0x30000)]))
        assert bound_text(every, tokenizer) >= estimate_text(every, tokenizer)


def test_no_character_counts_more_than_the_widest():
    chance = random.Random(3)
    made = [make(chance, 2000) for make in (*texts.KINDS.values(), *texts.DENSE.values(), *texts.RANDOM.values())]
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
    """A request is cut at 0.9 of the limit, which is 7/8 of the window: above 0.85 it does not exceed the window."""
    text = texts.KINDS[kind](random.Random(7), 20_000)
    assert estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) > 0.85


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("kind", texts.DENSE)
def test_texts_of_many_short_pieces_are_not_estimated_too_low(kind, name):
    text = texts.DENSE[kind](random.Random(7), 20_000)
    assert 0.95 < estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) < 1.45


@exact.needed
@pytest.mark.parametrize("name", ["o200k", "gemma3", "tekken"])
@pytest.mark.parametrize("kind", texts.RANDOM)
def test_texts_at_random_are_not_estimated_too_low(kind, name):
    """A request is cut at 0.9 of the limit, which is 7/8 of the window: above 0.79 it does not exceed the window."""
    chance = random.Random(7)
    for pieces in ([texts.RANDOM[kind](chance, 300) for _ in range(6)], [texts.RANDOM[kind](chance, 3000)]):
        estimated = sum(estimate_text(piece, TOKENIZERS[name]) for piece in pieces)
        assert 0.79 < estimated / sum(exact.count(piece, name) for piece in pieces) < 3.0


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("language", texts.SENTENCES)
def test_no_language_is_estimated_much_too_low(language, name):
    text = texts.SENTENCES[language] * 40
    assert 0.85 < estimate_text(text, TOKENIZERS[name]) / exact.count(text, name) < 1.6
