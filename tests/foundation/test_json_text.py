"""JSON that leaves the program: content as it is, descriptions as text that every reader accepts."""

from __future__ import annotations

import json

import msgspec
import pytest

from segue.foundation.growing_json import GrowingJson
from segue.foundation.json_text import encode_json, encode_valid_json

HALF = {"a": "cut \ud83d here", "b": msgspec.Raw(b'{"x":1}'), "c": "\U0001f600"}


def test_content_with_half_a_surrogate_pair_is_written_without_loss():
    assert json.loads(encode_json(HALF)) == {"a": "cut \ud83d here", "b": {"x": 1}, "c": "\U0001f600"}


def test_a_description_with_half_a_surrogate_pair_is_valid_for_every_reader():
    assert msgspec.json.decode(encode_valid_json(HALF)) == {"a": "cut \ufffd here", "b": {"x": 1}, "c": "\U0001f600"}


@pytest.mark.parametrize("write", [encode_json, encode_valid_json])
def test_a_value_that_is_no_json_is_refused_by_its_type(write):
    with pytest.raises(TypeError, match="object"):
        write({"a": "\ud83d", "b": object()})


GROWING = {
    "valid JSON": ('{"a":1, "b":[1,\n {"c":"x\\n\\u00e9"}]} ', '{"a":1, "b":[1,\n {"c":"x\\n\\u00e9"}]} '),
    "raw control characters and wrong escapes": ('{"p":"a\nb\\q"}', '{"p":"a\\nb\\\\q"}'),
    "a comma too many": ('{"a":[1,],}', '{"a":[1]}'),
    "literals of Python": ('{"a": True}', '{"a": null}'),
    "quotes of Python": ("{'a': 1}", "{}"),
    "no JSON at all": ("path=a", "{}"),
    "an object twice": ('{"a":1}{"a":1}', '{"a":1}'),
    "cut off": ('{"a":"x', '{"a":"x'),
}


@pytest.mark.parametrize(("given", "written"), GROWING.values(), ids=GROWING.keys())
def test_json_is_repaired_while_it_grows(given: str, written: str):
    for size in (1, 3, 99):
        growing = GrowingJson()
        pieces = [growing.add(given[at : at + size]) for at in range(0, len(given), size)]
        assert "".join(pieces) + growing.end() == written


SOUND = '{"path":"src/a.py", "text":"x\\n\\"y\\" } , é","n":[1,{"a":null}],"b":true , "c":-1.5e3}'


@pytest.mark.parametrize("given", [*(given for given, _ in GROWING.values()), SOUND])
def test_a_piece_that_is_read_at_once_is_written_like_its_characters(given: str):
    alone = GrowingJson()
    by_character = "".join([alone.add(character) for character in given]) + alone.end()
    for size in range(2, len(given) + 1):
        growing = GrowingJson()
        pieces = [growing.add(given[at : at + size]) for at in range(0, len(given), size)]
        assert "".join(pieces) + growing.end() == by_character


def test_a_comma_is_held_back_until_the_next_value():
    growing = GrowingJson()
    assert [growing.add(piece) for piece in ('{"a":1,', '"b":"x"', ", ", "}")] == ['{"a":1', ',"b":"x"', "", "}"]


@pytest.mark.parametrize("last", ['"b}', '"b},}', '"b": "}'])
def test_a_bracket_at_the_end_of_a_piece_may_be_in_a_string(last: str):
    """The comma before it was held back until the value that comes with it."""
    growing = GrowingJson()
    written = [growing.add(piece) for piece in ('{"a":1', ",", last)]
    assert written == ['{"a":1', "", f",{last}"]
