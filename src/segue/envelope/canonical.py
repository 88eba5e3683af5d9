"""One form for equal JSON values, so that digests survive a client that writes them in another form.

Facts:
- Clients in JavaScript write 1.0 as 1, and opencode, pi, qwen-code and cline write arguments without blanks. The order
  of keys mostly survives.                                                          (facts of 2026-11, real clients)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

import msgspec

_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode
_FLAT: Final = frozenset({str, int, bool, type(None)})
_LARGEST_EXACT: Final = 2**53
"""Integers above it are not exact in JavaScript, so they are not compared as floats."""


def canonical_json(value: object) -> bytes:
    """Write a JSON value with sorted keys, without blanks, and whole floats as integers."""
    plain = value if _is_flat(value) else _plain(value)
    try:
        return _ENCODE(plain)
    except (TypeError, ValueError, msgspec.MsgspecError):  # half a surrogate pair
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), default=str).encode()


def _is_flat(value: object) -> bool:
    """Whether a value is an object of texts, integers and such, as most arguments are: those have one form."""
    return type(value) is dict and _FLAT.issuperset(map(type, cast("dict[str, object]", value).values()))


def _plain(value: object) -> object:
    if type(value) is str:  # most values
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_EXACT:
        return int(value)
    if type(value) is dict or isinstance(value, Mapping):  # the second is slow
        return {key: _plain(each) for key, each in cast("Mapping[str, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in cast("list[object]", value)]
    return value


def text_bytes(text: str) -> bytes:
    """Return the bytes of a text; it may have half a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")
