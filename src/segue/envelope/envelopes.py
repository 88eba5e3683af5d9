"""Envelopes: the state of a reply as one encrypted text, which a client returns in a field that it does not read.

The text is standard base64 with padding, because clients of the Google protocol accept nothing else in a signature. It
begins with `segueEnv`. google-genai writes it back in the URL-safe alphabet, so both alphabets are read.

The bytes: six of the prefix, one of the format, and the payload, encrypted and authenticated together with the format
and the tenant. An envelope of another gateway, of another tenant, or one that was changed is not read, and only the
gateway sees what is in it.

Facts:
- AES-SIV (RFC 5297) computes its 16-byte nonce from key, associated data and text. It needs no random number, so that
  writing an envelope is a pure function, and no nonce can repeat with another text. The same state of the same tenant
  gives the same envelope, which reveals no more than that it is the same.      (cryptography 50, docs/decisions/0020)
- Formats 1 and 2, which are signed and not encrypted, are those of earlier versions. Clients still return them.
"""

from __future__ import annotations

import hmac
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from segue.envelope.canonical import text_bytes
from segue.envelope.state import State, dump_state, load_state
from segue.errors import MissingExtra, SettingsError
from segue.foundation.plurals import counted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

MARK: Final = "segueEnv"
"""The first characters of every envelope."""
_PREFIX: Final = b64decode(MARK)
_TEXT: Final = re.compile(MARK + r"[A-Za-z0-9+/_-]+={0,2}")
_URL_SAFE: Final = str.maketrans("+/", "-_")
_PLAIN: Final = b"\x01"
_COMPRESSED: Final = b"\x02"
_ENCRYPTED: Final = b"\x03"
"""The format of new envelopes. The first byte of their text is one of the two above."""
_CODE_BYTES: Final = 16
_KEY_BYTES: Final = 64
"""Two keys of AES-256: one makes the nonce, one encrypts."""
_PURPOSE: Final = b"segue envelope AES-SIV"
"""Keeps the key of the encryption apart from every other use of the secret."""
_LEAST_TO_COMPRESS: Final = 600
_LARGEST_STATE: Final = 32_000_000
"""Bytes of the largest state that is unpacked: the limit of a request body."""
_SHORTEST_KEY: Final = 16


def join_id(bare: str, envelope: str) -> str:
    """Write an id of a call that has an envelope in it.

    Letters, digits, `-` and `_` alone: opencode 1.18 replaces every other character for Claude models (run 2026-11).
    """
    return f"{bare}-{envelope.translate(_URL_SAFE).rstrip('=')}"


def bare_id(given: str) -> str:
    """Return the id of a call without the envelope in it; earlier ids had another character between the two."""
    bare, mark, _ = given.partition(MARK)
    return bare[:-1] if mark else given


class Envelopes:
    """Writes and reads the envelopes of one gateway. Its repr has no key.

    `keys` are secret; the first one writes, all of them read, so that a key can be replaced.

    Raises:
        SettingsError: there is no key, or one is too short.
        MissingExtra: the package that encrypts is not installed.
    """

    __slots__ = ("_keys", "_ciphers", "_errors")

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) < _SHORTEST_KEY for key in keys):
            raise SettingsError(
                f"the key of the envelopes has to have at least {_SHORTEST_KEY} bytes; use 32 random ones",
                key="state.key",
            )
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF
        except ModuleNotFoundError as error:
            raise MissingExtra("envelopes need cryptography, which is not installed", extra="gateway") from error
        self._keys: tuple[bytes, ...] = tuple(keys)
        self._ciphers: tuple[AESSIV, ...] = tuple(
            AESSIV(HKDF(SHA256(), length=_KEY_BYTES, salt=None, info=_PURPOSE).derive(key)) for key in keys
        )
        self._errors: tuple[type[Exception], ...] = (InvalidTag, ValueError)

    def __repr__(self) -> str:
        return f"Envelopes({counted(len(self._keys), 'key')})"

    def write(self, state: State, tenant: str = "") -> str:
        """Write a state as the text of an envelope."""
        payload, form = dump_state(state), _PLAIN
        if len(payload) >= _LEAST_TO_COMPRESS:
            payload, form = zlib.compress(payload, 1), _COMPRESSED
        head = _PREFIX + _ENCRYPTED
        return b64encode(head + self._ciphers[0].encrypt(form + payload, [head, text_bytes(tenant)])).decode()

    def read(self, text: str, tenant: str = "") -> State | None:
        """Read the text of an envelope; None if it is not one of this gateway and tenant."""
        if not text.startswith(MARK):
            return None
        text = text.replace("-", "+").replace("_", "/").rstrip("=")
        try:
            data = b64decode(text + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            return None
        head = data[: len(_PREFIX) + 1]
        opened = self._decrypt(head, data, tenant) if head[-1:] == _ENCRYPTED else self._verify(data, tenant)
        return None if opened is None else _unpack(opened[:1], opened[1:])

    def _decrypt(self, head: bytes, data: bytes, tenant: str) -> bytes | None:
        for cipher in self._ciphers:
            try:
                return cipher.decrypt(data[len(head) :], [head, text_bytes(tenant)])
            except self._errors:
                continue
        return None

    def _verify(self, data: bytes, tenant: str) -> bytes | None:
        """Return the format and the payload of an envelope that is signed and not encrypted."""
        before, code = data[:-_CODE_BYTES], data[-_CODE_BYTES:]
        is_own = any(hmac.compare_digest(code, _code(key, tenant, before)) for key in self._keys)
        return before[len(_PREFIX) :] if is_own else None


def _unpack(form: bytes, payload: bytes) -> State | None:
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
    """Find the envelopes in a signature or an id, also inside the JSON that some protocols keep there."""
    if text is not None and MARK in text:
        for match in _TEXT.finditer(text):
            yield match[0]


def has_envelope(text: str | None) -> bool:
    """Whether a signature or an id has an envelope, valid or not."""
    return text is not None and MARK in text
