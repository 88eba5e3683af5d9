"""The upper estimates of texts, which windows are compared with, against exact tokenizers."""

from __future__ import annotations

import random
from functools import partial

import pytest
from msgspec.structs import replace

from counting import exact, texts
from segue import Context, Model, Options, UserMessage
from segue.counting import upper_estimates
from segue.counting.counter import TokenCounter
from segue.counting.text_estimates import bound_bytes, bound_text, estimate_text
from segue.counting.tokenizers import TOKENIZERS, Tokenizer, name_of
from segue.counting.upper_estimates import estimate_upper
from segue.projection.projector import project

TARGETS = {
    "o200k": Model("gpt-5", "openai", "openai-responses"),
    "gemma3": Model("gemini-2.5-flash", "google", "google-genai"),
    "tekken": Model("mistral-large-latest", "mistral", "mistral-chat"),
    "qwen3": Model("qwen3-max", "alibaba", "openai-chat"),
    "deepseek": Model("deepseek-chat", "deepseek", "openai-chat"),
}
SHARE = 0.83
"""What the estimate of a request may fill of a window of 8,000 tokens."""
SEVERAL = {**texts.KINDS, **texts.FILES, **texts.DENSE, **texts.RANDOM}


def upper(text: str, tokenizer: Tokenizer) -> float:
    return estimate_upper(text.encode("utf-8", "surrogatepass"), tokenizer, share=SHARE)


@exact.needed
@pytest.mark.parametrize("kind", texts.FILES)
def test_no_kind_of_file_is_estimated_far_too_low(kind):
    """A request may take what is reserved for the reply, an eighth of the window, and what is kept free for errors."""
    text = texts.FILES[kind](random.Random(kind), 12_000)
    found = {name: upper(text, TOKENIZERS[name]) / exact.count(text, name) for name in exact.NAMES}
    assert min(found.values()) > 0.87, found


@exact.needed
def test_the_plain_estimate_does_not_keep_this_law():
    text = texts.FILES["pinned requirements"](random.Random(1), 12_000)
    assert estimate_text(text, TOKENIZERS["o200k"]) / exact.count(text, "o200k") < 0.85


@exact.needed
@pytest.mark.parametrize("kind", ["code", "markdown"])
@pytest.mark.parametrize("name", exact.NAMES)
def test_prose_and_code_have_little_more_than_their_tokens(kind, name):
    found = [
        upper(text, TOKENIZERS[name]) / exact.count(text, name)
        for seed in range(4)
        if (text := texts.KINDS[kind](random.Random(seed), 60_000))
    ]
    assert min(found) > 0.9
    assert sum(found) / len(found) < 1.1, found


@pytest.mark.parametrize("name", TOKENIZERS)
def test_the_bounds_are_never_below_the_upper_estimate(name):
    tokenizer, parts = TOKENIZERS[name], list[str]()
    for kind, make in SEVERAL.items():
        for size in (200, 700, 9000):
            parts.append(make(random.Random(kind), size))
            data = parts[-1].encode()
            assert estimate_upper(data, tokenizer) <= bound_bytes(data, tokenizer) + 1e-6, kind
    assert bound_text("".join(parts), tokenizer) >= sum(upper(part, tokenizer) for part in parts)


def test_a_tokenizer_of_ones_own_has_the_weights_of_an_unknown_one():
    assert {name: name_of(tokenizer) for name, tokenizer in TOKENIZERS.items()} == {name: name for name in TOKENIZERS}
    assert name_of(replace(TOKENIZERS["o200k"], lower=0.3)) == "unknown"
    assert upper("The committee met. " * 50, replace(TOKENIZERS["o200k"], lower=0.3)) > 100


def test_a_text_of_a_few_words_has_the_plain_estimate():
    for text in ("short", "word " * 4000):
        assert upper(text, TOKENIZERS["o200k"]) == estimate_text(text, TOKENIZERS["o200k"])


def test_long_texts_are_estimated_from_their_whole_length():
    half = texts.KINDS["markdown"](random.Random(1), 100_000)
    mixed = half + texts.KINDS["base64"](random.Random(2), 100_000)
    assert upper(mixed, TOKENIZERS["o200k"]) > 2.2 * upper(half, TOKENIZERS["o200k"])


def plain(chance: random.Random, size: int) -> str:
    """Give lines of prose without markup."""
    lines = texts.markdown(chance, 400_000).split("\n")
    prose = "\n".join(line for line in lines if len(line.split()) > 9 and not set(line) & set("|`{}[]=<>_"))
    return texts.piece_of(prose, chance, size)


def longest_sent(make: texts.Text, model: Model) -> str:
    """Find the longest text that is sent to a model in a first request, to 1 %."""
    chance = random.Random(7)
    whole = make(chance, 5 * model.context_window)

    def is_sent(size: int) -> bool:
        projection = project(Context().add(UserMessage.of(whole[:size])), model)
        return not any(requirement.kind == "windowTooSmall" for requirement in projection.requirements)

    low, high = 0, len(whole)
    while high - low > len(whole) / 100:
        middle = (low + high) // 2
        low, high = (middle, high) if is_sent(middle) else (low, middle)
    return whole[:low]


@exact.needed
@pytest.mark.parametrize(
    ("kind", "window"),
    [
        pytest.param(kind, window, marks=() if window == 8000 else pytest.mark.proof)
        for kind in texts.FILES
        for window in (8000, 32_000, 200_000, 1_000_000)
    ],
)
def test_a_first_request_that_is_sent_fits_the_window(kind, window):
    """The longest text of each kind that fitting lets through, as one message that cannot be cut."""
    name = list(TARGETS)[list(texts.FILES).index(kind) % len(TARGETS)]
    model = replace(TARGETS[name], context_window=window, max_input=0)
    text = longest_sent(texts.FILES[kind], model)
    counter = TokenCounter(model, lambda part: exact.count(part, name))
    size = counter.fixed(Context(), Options()) + sum(counter.message(UserMessage.of(text)))
    assert 0.4 * window < size <= window


@exact.needed
@pytest.mark.parametrize("window", [8000, pytest.param(1_000_000, marks=pytest.mark.proof)])
@pytest.mark.parametrize(("make", "unused"), [(plain, 0.05), (texts.markdown, 0.1), (texts.code, 0.12)])
def test_plain_text_takes_what_the_input_may_have(make, unused, window):
    model = replace(TARGETS["o200k"], context_window=window, max_input=0)
    text = longest_sent(make, model)
    assert exact.count(text, "o200k") >= window - min(16_384, window // 8) - unused * window


def test_a_text_with_more_digits_is_no_prose():
    """Of 2,000 characters, 100 digits are the first 5 % that prose does not have."""
    prose = texts.SENTENCES["English"] * 40
    for digits, is_prose in ((0, True), (99, True), (100, False), (101, False)):
        text = prose[: 2000 - digits] + "7" * digits
        _, sure, _ = upper_estimates._weigh(text.encode(), (0.0,) * 99)
        assert (sure < upper_estimates._SURE[2]) is is_prose, digits


@exact.needed
def test_a_text_has_at_least_the_tokens_of_its_words():
    """One sentence, over and over: its letters are not those of the files that the weights come from."""
    text = texts.SENTENCES["English"] * 100
    for name in exact.NAMES:
        assert upper(text, TOKENIZERS[name]) >= len(text.split()), name


def test_the_smaller_the_reserve_the_larger_the_margin():
    pins, prose = (make(random.Random(1), 9000).encode() for make in (texts.FILES["pinned requirements"], plain))
    small, large = (partial(estimate_upper, tokenizer=TOKENIZERS["o200k"], share=share) for share in (0.835, 0.944))
    assert large(pins) / small(pins) == pytest.approx(0.944 / 0.835)
    assert large(prose) == small(prose)
