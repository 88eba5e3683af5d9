"""Envelopes: the state of a reply as one authenticated text, which a client returns in a field that it does not read.

The text is standard base64 with padding, because clients of the Google protocol accept nothing else in a signature. It
begins with `segueEnv`. google-genai writes it back in the URL-safe alphabet, so both alphabets are read.

The bytes: six of the prefix, one of the format, the payload, and an authentication code over the tenant and everything
before it. An envelope of another gateway, of another tenant, or one that was changed is not read.
"""

from __future__ import annotations

import hmac
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Final

from segue.envelope.canonical import text_bytes
from segue.envelope.state import State, dump_state, load_state
from segue.errors import SettingsError
from segue.plurals import counted

MARK: Final = "segueEnv"
"""The first characters of every envelope."""
ID_JOINT: Final = "."
"""Between the random part of an id of a call and its envelope."""
_PREFIX: Final = b64decode(MARK)
_TEXT: Final = re.compile(MARK + r"[A-Za-z0-9+/_-]+={0,2}")
_PLAIN: Final = b"\x01"
_COMPRESSED: Final = b"\x02"
_CODE_BYTES: Final = 16
_LEAST_TO_COMPRESS: Final = 600
_LARGEST_STATE: Final = 32_000_000
"""Bytes of the largest state that is unpacked: the limit of a request body."""
_SHORTEST_KEY: Final = 16


class Envelopes:
    """Writes and reads the envelopes of one gateway. Its repr has no key.

    `keys` are secret; the first one writes, all of them read, so that a key can be replaced.
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) < _SHORTEST_KEY for key in keys):
            raise SettingsError(
                f"the key of the envelopes has to have at least {_SHORTEST_KEY} bytes; use 32 random ones",
                key="state.key",
            )
        self._keys: tuple[bytes, ...] = tuple(keys)

    def __repr__(self) -> str:
        return f"Envelopes({counted(len(self._keys), 'key')})"

    def write(self, state: State, tenant: str = "") -> str:
        """Write a state as the text of an envelope."""
        payload, form = dump_state(state), _PLAIN
        if len(payload) >= _LEAST_TO_COMPRESS:
            payload, form = zlib.compress(payload, 1), _COMPRESSED
        before = _PREFIX + form + payload
        return b64encode(before + _code(self._keys[0], tenant, before)).decode()

    def read(self, text: str, tenant: str = "") -> State | None:
        """Read the text of an envelope; None if it is not one of this gateway and tenant."""
        if not text.startswith(MARK):
            return None
        text = text.replace("-", "+").replace("_", "/").rstrip("=")
        try:
            data = b64decode(text + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            return None
        before, code = data[:-_CODE_BYTES], data[-_CODE_BYTES:]
        if not any(hmac.compare_digest(code, _code(key, tenant, before)) for key in self._keys):
            return None
        form, payload = before[len(_PREFIX) : len(_PREFIX) + 1], before[len(_PREFIX) + 1 :]
        if form == _COMPRESSED:
            try:
                unpacker = zlib.decompressobj()
                payload = unpacker.decompress(payload, _LARGEST_STATE)
            except zlib.error:
                return None
            return load_state(payload) if unpacker.eof else None
        return load_state(payload) if form == _PLAIN else None


def _code(key: bytes, tenant: str, before: bytes) -> bytes:
    name = text_bytes(tenant)
    return hmac.digest(key, len(name).to_bytes(4, "big") + name + before, "sha256")[:_CODE_BYTES]


def find_envelopes(text: str | None) -> Iterator[str]:
    """Find the envelopes in a signature or an id, also inside of the JSON that some protocols keep there."""
    if text is not None and MARK in text:
        for match in _TEXT.finditer(text):
            yield match[0]


def has_envelope(text: str | None) -> bool:
    """Whether a signature or an id has an envelope, valid or not."""
    return text is not None and MARK in text
