"""JSON arrays, split anywhere."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.framing.json_array import JsonArrayDecoder

CASES = {
    "objects": (b'[{"a": 1},\r\n{"b": 2}\n]\n', [{"a": 1}, {"b": 2}]),
    "nothing": (b"", []),
    "an empty array": (b" [ ] ", []),
    "brackets and quotes in strings": (rb'[{"a": "]}[{,\" \\"}, {"b": ["x,y", {"c": "}"}]}]', None),
    "values that are no objects": (b'[1, "a,b", [2, [3]], null]', [1, "a,b", [2, [3]], None]),
    "an object without an array": (b'{"error": {"code": 400}}', [{"error": {"code": 400}}]),
    "a mark at the beginning": (b'\xef\xbb\xbf[{"a": 1}]', [{"a": 1}]),
    "more than one byte a character": ('[{"a": "\u00e9\U0001f680"}]'.encode(), [{"a": "\u00e9\U0001f680"}]),
}


def split(data: bytes, size: int) -> list[bytes]:
    decoder = JsonArrayDecoder()
    found = [element for at in range(0, len(data), size) for element in decoder.feed(data[at : at + size])]
    return found + decoder.finish()


@pytest.mark.parametrize(("data", "elements"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_an_array_is_split_the_same_however_it_is_cut(data, elements, size):
    assert [json.loads(element) for element in split(data, size)] == (
        json.loads(data) if elements is None else elements
    )


def test_an_object_is_given_as_soon_as_it_is_whole():
    decoder = JsonArrayDecoder()
    assert decoder.feed(b'[{"a": 1}') == [b'{"a": 1}']
    assert decoder.feed(b", ") == []
    assert decoder.feed(b'{"b"') == []
    assert decoder.feed(b": 2}") == [b'{"b": 2}']


def test_an_incomplete_element_is_given_at_the_end():
    decoder = JsonArrayDecoder()
    assert decoder.feed(b'[{"a": 1}, {"b": [') == [b'{"a": 1}']
    assert decoder.finish() == [b'{"b": [']


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(VALUES, max_size=4), size=st.integers(1, 20), indent=st.sampled_from([None, 2]))
def test_any_array_comes_apart_into_its_elements(values, size, indent):
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert [json.loads(element) for element in split(data, size)] == values
