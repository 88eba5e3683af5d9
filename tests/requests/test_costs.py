"""What functions cost that run for each request or row, counted in calls: they are the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from segue import check
from segue.corpus.conversion import RowConverter
from segue.corpus.jobs import Job
from segue.corpus.rows import Reader
from segue.corpus.summary import Summary
from segue.histories.recognition import is_plain_request
from segue.models.catalogue import get_model

USER, REPLY = {"role": "user", "content": "What is this?"}, {"role": "assistant", "content": "A text of some words."}


def count_calls(function: Callable[[], object]) -> int:
    """Count the calls of Python functions, once everything is imported and compiled."""
    function()
    calls = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("model", "protocol", "most"), [("gpt-5.4", "openai-chat", 45), ("claude-sonnet-4-5", "anthropic-messages", 65)]
)
def test_a_check_calls_few_functions_for_a_turn(model: str, protocol: str, most: int):
    bodies = [{"model": model, "max_tokens": 100, "messages": [USER, REPLY] * times + [USER]} for times in (2, 100)]
    short, long = (count_calls(lambda body=body: check(body, protocol=protocol)) for body in bodies)
    assert (long - short) / 196 < most


def test_a_request_with_a_model_is_read_like_one_without():
    assert is_plain_request({"messages": [USER]})
    assert is_plain_request({"model": "gpt-5.4", "messages": [USER, REPLY]})
    assert not is_plain_request({"model": "text-embedding-3-small", "input": "a text"})


def test_a_short_row_of_a_corpus_calls_few_functions():
    converter, reader = RowConverter(Job(get_model("anthropic/claude-sonnet-4-5"))), Reader()
    line = b'{"model":"gpt-5.4","messages":[{"role":"user","content":"What is the tallest mountain?"}]}'
    assert count_calls(lambda: converter.convert_into(reader.read_line(line), Summary(), ("", 1, 0))) < 400
