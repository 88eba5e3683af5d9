"""The check for retired words finds them where users and readers of the code would meet them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "check_words.py"


def load_check():
    spec = importlib.util.spec_from_file_location("check_words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FOUND = {
    "a function": ("def tell_model(): ...", "tell"),
    "a class": ("class SealedText: ...", "sealed"),
    "an argument": ("def f(spelt): ...", "spelt"),
    "a variable": ("usual_form = 1", "usual"),
    "an attribute": ("self.said = 1", "said"),
    "the text of an error": ('raise ValueError("the wire says no")', "says"),
    "an error that is returned": ('error = EncodeError(f"{x} is spelt wrong")', "spelt"),
    "the help of an option": ('option("--to", help="whom it is told to")', "told"),
    "a docstring": ('"""The seal of a block."""', "seal"),
}

NOT_FOUND = {
    "a name that somebody else defined": "value.said",
    "a key of a wire": 'block["shape"]',
    "the user's folder": "home = Path.home()",
    "part of another word": "def essay_length(): ...",
    "a comment": "# spelt another way",
}


@pytest.mark.parametrize(("source", "word"), FOUND.values(), ids=FOUND.keys())
def test_a_retired_word_is_found(source, word):
    assert word in [finding.word for finding in load_check().find_in_source(SCRIPT, source)]


@pytest.mark.parametrize("source", NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_other_words_are_not(source):
    assert list(load_check().find_in_source(SCRIPT, source)) == []
