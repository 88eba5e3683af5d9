"""What was said differently from the usual: kept as a difference, and put back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.protocols.kit.reading import join_texts
from segue.protocols.kit.retired_format import difference, keep, put_back, restored

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "is", "keys", "items"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(usual=JSON, message_given=JSON)
def test_the_usual_and_the_difference_give_what_was_said(usual, message_given):
    found = difference(usual, message_given)
    assert json.dumps(restored(usual, found), sort_keys=True) == json.dumps(message_given, sort_keys=True)
    assert (found is None) == (json.dumps(usual, sort_keys=True) == json.dumps(message_given, sort_keys=True))


@given(usual=JSON, message_given=JSON, other=JSON)
def test_a_difference_is_plain_json_and_fits_anything(usual, message_given, other):
    found = json.loads(json.dumps(difference(usual, message_given)))
    assert restored(usual, found) == message_given
    restored(other, found)  # a value that has changed since is no reason to fail


STALE = {
    "a list that has become shorter": ([1, 2], ["x", 2], [], []),
    "a key that is gone": ({"a": {"b": 1}}, {"a": {"b": 2}}, {}, {}),
    "a value that has become another": ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 9}, {"a": 2, "b": 9}),
    "an object that has become a text": ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": "x"}, {"a": "x"}),
}


@pytest.mark.parametrize(("usual", "message_given", "now", "then"), STALE.values(), ids=STALE.keys())
def test_what_no_longer_fits_is_left_alone(usual, message_given, now, then):
    assert restored(now, difference(usual, message_given)) == then


KEPT = {
    "nothing beyond": ({"a": 1}, None),
    "data": ({"a": 1, "b": 2}, {"p": {"b": 2}}),
    "null is spelling": ({"a": 1, "b": None, "c": 3}, {"p": {"c": 3, "shape": {"null": ["b"]}}}),
}


@pytest.mark.parametrize(("wire", "extra"), KEPT.values(), ids=KEPT.keys())
def test_what_is_kept_is_put_back(wire, extra):
    assert keep("p", wire, {"a"}) == extra
    assert put_back({"a": 1}, extra, "p") == wire
    assert put_back({"a": 1}, extra, "q") == {"a": 1}


JOINED = {
    "thinking told in words, then the answer": ("They see.", "Blue it is.", "They see.\n\nBlue it is."),
    "a list behind a sentence": ("Two things:", "- one", "Two things:\n\n- one"),
    "a sentence in pieces": ("It was born in ", "1916", "It was born in 1916"),
    "what goes on after a citation": ("1916", ", in Petoskey.", "1916, in Petoskey."),
    "nothing, then something": ("", "Blue", "Blue"),
    "something, then nothing": ("Blue.", "", "Blue."),
}


@pytest.mark.parametrize(("before", "after", "whole"), JOINED.values(), ids=JOINED.keys())
def test_two_texts_become_one(before, after, whole):
    assert join_texts(before, after) == whole
