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


TRANSLATED = {
    "a docstring that begins with Give": ('def f():\n    """Give the name."""', "Give"),
    "the docstring of an alias": ('X = 1\n"""Gives the name."""', "Give"),
    "what a function does and returns": ('"""Read a string; give it, and its length."""', "give"),
    "behind": ("x = 1  # the turn behind the call", "behind"),
    "beside": ('"""The file beside it."""', "beside"),
    "besides": ('"""Types besides `text/*`."""', "beside"),
    "stands": ('"""Where a block stands."""', "stands"),
    "stood": ("# what stood there before", "stands"),
    "rests on": ('"""What a rule rests on."""', "rests on"),
    "the heading of facts": ('"""A file.\n\nFacts this file relies on:\n- one\n"""', "Facts this file"),
    "is no": ('raise ValueError("the script is no list")', "is no"),
    "a phrase over two lines": ('"""The value is\nno list."""', "is no"),
    "a phrase over two comments": ("# the value is\n# no list", "is no"),
    "of which": ('"""Lines of which the first is empty."""', "of which"),
    "of its own": ('"""Thinking is a message of its own."""', "of its own"),
}

PLAIN = {
    "a deployment": '"""The region behind a proxy."""',
    "what does not exist": '"""None if there is no key; it is no longer sent."""',
    "a choice": '"""Keys, one of which is in every line."""',
    "a possessive": '"""A block of its own protocol."""',
    "code": '"""`beside` is a parameter, `stands` a function."""',
    "an identifier": "def beside(behind): ...",
    "a value that nobody reads": 'x = "the turn behind it"',
    "what a callable returns": '"""`clock` gives the time."""',
}


@pytest.mark.parametrize(("source", "phrase"), TRANSLATED.values(), ids=TRANSLATED.keys())
def test_a_translated_phrase_is_found(source, phrase):
    assert phrase in [finding.word for finding in load_check().find_translated(SCRIPT, source)]


@pytest.mark.parametrize("source", PLAIN.values(), ids=PLAIN.keys())
def test_plain_phrases_are_not(source):
    assert list(load_check().find_translated(SCRIPT, source)) == []


def test_a_phrase_in_the_package_fails_the_check(tmp_path, monkeypatch, capsys):
    check = load_check()
    for place in ("src/segue/framing", "scripts"):
        file = tmp_path / place / "planted.py"
        file.parent.mkdir(parents=True)
        file.write_text('"""What stands behind a call."""\n', encoding="utf-8")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" in ")[0] for line in lines[:-1]] == [
        "src/segue/framing/planted.py:1: retired word 'behind'",
        "src/segue/framing/planted.py:1: retired word 'stands'",
    ]


PAGE = {
    "a phrase that is translated": ("# Title\n\nA file beside it.\n", "beside", 3),
    "so": ("Encode it so, and send it.", "it so", 1),
    "told": ("The limit, which is told to the program.", "is told", 1),
    "a list that is none": ("The script is\nno list.", "is no", 1),
    "the second page of a list": ("- One\n- Write it behind `segue ask`.\n", "behind", 1),
    "also for even": ("Ids come back, also after a restart.", "also after", 1),
    "a genitive": ("What a switch of models costs.", "switch of models", 1),
    "a space before a sign": ("Within 10 % of it.", "10 %", 1),
    "in its place": ("A note in place of the steps.", "in the place of", 1),
}
PLAIN_PAGE = {
    "code": "`beside` is a field.\n\n```text\nwhat stands behind it\n```\n",
    "a generated part": "<!-- begin: rules x -->\nwhat stands behind it\n<!-- end: rules x -->\n",
    "an address": "[decision 14](decisions/0014-summaries-are-values-beside-the-messages.md)",
    "also": "Ids, also called names, are 10% of it. `{:.0f} %`",
    "a purpose": "Write them so that every program can read them.",
}


@pytest.mark.parametrize(("page", "phrase", "line"), PAGE.values(), ids=PAGE.keys())
def test_a_phrase_on_a_page_is_found(page, phrase, line):
    assert (phrase, line) in [(found.word, found.line) for found in load_check().find_in_page(SCRIPT, page)]


@pytest.mark.parametrize("page", PLAIN_PAGE.values(), ids=PLAIN_PAGE.keys())
def test_what_nobody_wrote_on_a_page_is_not(page):
    assert list(load_check().find_in_page(SCRIPT, page)) == []


def test_a_phrase_on_a_new_page_fails_the_check(tmp_path, monkeypatch, capsys):
    check = load_check()
    page = tmp_path / "docs" / "guides" / "new.md"
    page.parent.mkdir(parents=True)
    page.write_text("# How?\n\nThe program is told the window.\n", encoding="utf-8")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    assert check.main() == 1
    assert "docs/guides/new.md:3: retired word 'is told'" in capsys.readouterr().out


def test_every_room_that_was_rewritten_exists():
    check = load_check()
    assert all((check.ROOT / room).exists() for room in check.PLAIN_ROOMS)


@pytest.mark.parametrize(("source", "word"), FOUND.values(), ids=FOUND.keys())
def test_a_retired_word_is_found(source, word):
    assert word in [finding.word for finding in load_check().find_in_source(SCRIPT, source)]


@pytest.mark.parametrize("source", NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_other_words_are_not(source):
    assert list(load_check().find_in_source(SCRIPT, source)) == []
