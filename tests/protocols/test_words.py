"""The words of a body are a lower bound of its tokens, so that `check` is certain where it refuses a length."""

from __future__ import annotations

import random

import pytest

from counting import exact, texts
from segue.models.model import Model
from segue.protocols.api import check
from segue.protocols.words import count_words

SMALL = Model("m", "acme", "openai-chat", context_window=100)


def body(text: str) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def codes(text: str, model: Model = SMALL, **more: object) -> list[str]:
    return [found.code for found in check({**body(text), **more}, protocol=model.protocol, model=model)]


@exact.needed
@pytest.mark.parametrize("name", exact.NAMES)
@pytest.mark.parametrize("kind", texts.KINDS)
def test_no_tokenizer_has_fewer_tokens_than_words(kind, name):
    text = texts.KINDS[kind](random.Random(2), 20_000)
    assert count_words(text) <= exact.count(text, name)


def test_thinking_data_and_metadata_are_not_counted():
    value = {"thinking": "a b", "data": "c d", "metadata": {"x": "e f"}, "text": "one two !! (three)", "n": 5}
    assert count_words([value, ("four",)]) == 4


def test_a_body_that_is_certainly_larger_than_the_window_is_refused():
    assert codes("word " * 99) == []
    assert codes("word " * 100 + "word") == ["window_exceeded"]


def test_nothing_is_refused_where_the_provider_cuts_or_the_window_is_not_known():
    long = "word " * 200
    assert codes(long, Model("m", "acme", "openai-chat")) == []
    ollama = Model("m", "ollama", "ollama-chat", context_window=100)
    assert "window_exceeded" not in codes(long, ollama)
    responses = Model("m", "acme", "openai-responses", context_window=100)
    assert "window_exceeded" not in [
        found.code
        for found in check(
            {"model": "m", "input": long, "truncation": "auto"}, protocol="openai-responses", model=responses
        )
    ]
