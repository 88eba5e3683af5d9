"""The text of an envelope: authenticated, bound to a tenant, and readable in every alphabet that clients write."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.conversation.content import ThinkingContent
from segue.envelope.envelopes import MARK, Envelopes, find_envelopes
from segue.envelope.state import Piece, State
from segue.errors import SettingsError

KEY = b"k" * 32


def _state(size: int, dice: Random) -> State:
    signature = "".join(dice.choice("abcdefghijklmnop+/=_é漢") for _ in range(size))
    thought = ThinkingContent(thinking="because", thinking_signature=signature)
    return State(protocol="p", provider="q", model="m", base_url="https://x", pieces=(Piece(0, thought),))


@given(st.integers(0, 3000), st.integers(0, 2**32), st.text(max_size=5))
def test_a_state_comes_back_whole(size: int, seed: int, tenant: str) -> None:
    envelopes = Envelopes([KEY])
    state = _state(size, Random(seed))
    text = envelopes.write(state, tenant)
    assert text.startswith(MARK)
    assert envelopes.read(text, tenant) == state
    url_safe = text.replace("+", "-").replace("/", "_")
    assert envelopes.read(url_safe, tenant) == state
    assert envelopes.read(url_safe.rstrip("="), tenant) == state
    assert envelopes.read(text, tenant + "x") is None


@given(st.integers(0, 900), st.integers(0, 2**32))
def test_a_changed_envelope_is_not_read(size: int, seed: int) -> None:
    dice = Random(seed)
    text = Envelopes([KEY]).write(_state(size, dice))
    at = dice.randrange(len(text) - 4)
    changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
    assert Envelopes([KEY]).read(changed) is None
    assert Envelopes([KEY]).read(text[: dice.randrange(len(text))]) is None


def test_the_key_can_be_replaced() -> None:
    state = _state(40, Random(1))
    old = Envelopes([KEY]).write(state)
    assert Envelopes([b"n" * 32, KEY]).read(old) == state
    assert Envelopes([b"n" * 32]).read(old) is None


@pytest.mark.parametrize("keys", [[], [b"short"], [KEY, b""]])
def test_a_weak_key_is_refused(keys: list[bytes]) -> None:
    with pytest.raises(SettingsError, match="at least 16 bytes"):
        Envelopes(keys)


def test_the_repr_has_no_key() -> None:
    assert "kkk" not in repr(Envelopes([KEY]))


def test_envelopes_are_found_inside_of_json() -> None:
    text = Envelopes([KEY]).write(_state(10, Random(2)))
    assert list(find_envelopes(f'[{{"data":"{text}"}}]')) == [text]
    assert list(find_envelopes("call_x." + text)) == [text]
    assert list(find_envelopes(None)) == []
