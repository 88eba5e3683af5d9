"""The marked differences of two texts, and of the pieces of two messages."""

from __future__ import annotations

import pytest

from segue.inspector.differences import compare
from segue.inspector.pieces import ShownPiece, show_pair


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("same", "same", ["same"], ["same"]),
        ("a b", "a c b", ["a b"], ["a ", "c ", "b"]),
        ("a c b", "a b", ["a ", "c ", "b"], ["a b"]),
        ("the quick brown fox", "the quick red fox", ["the quick ", "brown", " fox"], ["the quick ", "red", " fox"]),
        ("one two three four", "2 two three 4", ["", "one", " two three ", "four"], ["", "2", " two three ", "4"]),
        ("alpha", "beta", ["", "alpha"], ["", "beta"]),
    ],
)
def test_changed_words_are_apart(before: str, after: str, old: list[str], new: list[str]):
    assert compare(before, after) == (old, new)


def test_pieces_after_one_that_was_replaced_are_shown():
    same, was, now = (ShownPiece("text", text, {}) for text in ("alpha beta", "one two three", "one 2 three"))
    dropped, added = ShownPiece("image", "x", {}), ShownPiece("toolCall", "qq", {"name": "f"})
    before, after = show_pair([same, dropped, was], [same, added, now], 100)
    assert [piece["parts"] for piece in before] == [["alpha beta"], ["", "x"], ["one ", "two", " three"]]
    assert [piece["parts"] for piece in after] == [["alpha beta"], ["", "qq"], ["one ", "2", " three"]]
    assert [piece.get("state") for piece in (*before, *after)] == [None, "dropped", None, None, "added", None]


def test_a_piece_that_became_another_kind_is_marked():
    was, now = (
        ShownPiece("thinking", "I look at the file.", {}),
        ShownPiece("text", "I look at the file.", {"name": "n"}),
    )
    (before,), (after,) = show_pair([was], [now], 100)
    assert before["marks"] == after["marks"] == ["kind", "name"]
