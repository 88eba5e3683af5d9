"""The text of an envelope: encrypted, bound to a tenant, and readable in every alphabet that clients write."""

from __future__ import annotations

import hmac
import sys
import zlib
from base64 import b64decode, b64encode
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.conversation.content import ThinkingContent
from segue.conversation.messages import AssistantMessage
from segue.envelope.envelopes import MARK, Envelopes, find_envelopes
from segue.envelope.state import Piece, State, dump_state, endpoint_label, finish_state, load_state, make_state
from segue.errors import MissingExtra, SettingsError
from segue.models.model import Model

KEY = b"k" * 32


def _state(size: int, dice: Random) -> State:
    signature = "".join(dice.choice("abcdefghijklmnop+/=_é漢") for _ in range(size))
    thought = ThinkingContent(thinking="because", thinking_signature=signature)
    return State(
        protocol="p", provider="q", model="m", endpoint=endpoint_label("https://x"), pieces=(Piece(0, thought),)
    )


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
    whole = text.rstrip("=")  # padding may be missing
    assert Envelopes([KEY]).read(whole[: dice.randrange(len(whole))]) is None


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


def _signed(state: State, tenant: str, key: bytes, *, compressed: bool) -> str:
    """Write an envelope as versions before the encryption did."""
    payload = dump_state(state)
    before = b64decode(MARK) + (b"\x02" + zlib.compress(payload, 1) if compressed else b"\x01" + payload)
    name = tenant.encode()
    code = hmac.digest(key, len(name).to_bytes(4, "big") + name + before, "sha256")[:16]
    return b64encode(before + code).decode()


@pytest.mark.parametrize("compressed", [False, True])
def test_an_envelope_that_was_only_signed_is_still_read(compressed: bool) -> None:
    state = _state(700, Random(3))
    text = _signed(state, "t", KEY, compressed=compressed)
    assert Envelopes([b"n" * 32, KEY]).read(text, "t") == state
    assert Envelopes([KEY]).read(text, "other") is None
    assert Envelopes([b"n" * 32]).read(text, "t") is None
    at = len(text) // 2
    assert Envelopes([KEY]).read(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :], "t") is None


@pytest.mark.parametrize("size", [30, 3000])
def test_an_envelope_reveals_nothing_of_the_state(size: int) -> None:
    thought = ThinkingContent(thinking="a secret thought", thinking_signature="signature" * size)
    state = State(protocol="protocol-p", provider="provider-q", model="model-m", pieces=(Piece(0, thought),))
    data = b64decode(Envelopes([KEY]).write(state, "tenant-t"))
    unpacked = [data, *(_inflated(data[at:]) for at in range(len(data)))]
    for word in (b"secret", b"signature", b"protocol-p", b"provider-q", b"model-m", b"tenant-t"):
        assert all(word not in each for each in unpacked)


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data)
    except zlib.error:
        return b""


def test_the_same_state_gives_the_same_envelope() -> None:
    state = _state(900, Random(4))
    assert Envelopes([KEY]).write(state, "t") == Envelopes([KEY]).write(state, "t")
    assert Envelopes([KEY]).write(state, "t") != Envelopes([KEY]).write(state, "u")


URL = "https://user:pass-word@proxy.example/v1"


def test_no_state_holds_the_address_of_the_provider() -> None:
    model = Model("m", "q", "openai-chat", base_url=URL)
    message = AssistantMessage(content=(), protocol="openai-chat", provider="q", model="m")
    for state in (make_state(model, URL, ()), finish_state(message, URL, (), message)):
        data = dump_state(state)
        assert state.endpoint == endpoint_label("https://proxy.example/v1")
        assert not any(word in data for word in (b"proxy.example", b"user", b"pass-word", b"https"))


def test_a_state_that_an_earlier_version_stored_has_the_same_label() -> None:
    old = dump_state(State(protocol="p", provider="q", model="m", endpoint=URL))
    assert load_state(old) == State(protocol="p", provider="q", model="m", endpoint=endpoint_label(URL))


@pytest.mark.parametrize(
    "same",
    [
        "https://proxy.example/v1/",
        "HTTPS://Proxy.Example/v1",
        "https://proxy.example:443/v1",
        "https://other:credentials@proxy.example/v1",
        "https://p@ss@proxy.example/v1",
        "https://proxy.example/v1?key=value#fragment",
    ],
)
def test_a_label_is_that_of_scheme_host_port_and_path(same: str) -> None:
    assert endpoint_label(same) == endpoint_label(URL)


@pytest.mark.parametrize(
    "other",
    [
        None,
        "http://proxy.example/v1",
        "https://proxy.example/v2",
        "https://proxy.example:8443/v1",
        "https://example/v1",
    ],
)
def test_another_endpoint_has_another_label(other: str | None) -> None:
    assert endpoint_label(other) != endpoint_label(URL)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingExtra, match="gateway"):
        Envelopes([KEY])
