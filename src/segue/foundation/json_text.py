"""Write JSON that leaves the program, whatever its strings hold, and read the last of repeated objects.

Facts:
- A string of Python may have half a surrogate pair, and JSON has an escape for it. Titles of pages and other texts that
  were cut inside an emoji have one.                                                  (grounding titles of search tools)
- msgspec refuses to write it and to read the escape; the standard library does both.           (msgspec 0.22.0, tried)
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

_ENCODE: Final = msgspec.json.Encoder().encode


def encode_json(value: object) -> bytes:
    """Write a value on one line; half a surrogate pair is written as an escape."""
    try:
        return _ENCODE(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value, enc_hook=_parse), separators=(",", ":")).encode("ascii")


def encode_valid_json(value: object) -> bytes:
    """Write a value on one line that every reader of JSON accepts; half a surrogate pair is replaced by U+FFFD.

    It is for rows, notes and pages that describe content. Content itself is written by `encode_json`, which loses
    nothing.
    """
    try:
        return _ENCODE(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value, enc_hook=_parse), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _parse(value: object) -> object:
    """Read a part that is JSON already."""
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode
_MAX_SNAPSHOTS: Final = 64


def last_snapshot(text: str) -> dict[str, object] | None:
    """Read the last of several objects, each of which begins like the one before it; None for any other text."""
    at = 0
    for _ in range(_MAX_SNAPSHOTS):
        at, start = text.find("{", at + 1), 0
        if at < 0:
            break
        try:
            last = _DECODE(text[at:])
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        while 0 <= start < at:  # from one beginning to the next
            length = next((i for i in range(at - start) if text[start + i] != text[at + i : at + i + 1]), at - start)
            start = at if start + length == at else text.rfind("{", start + 1, start + length + 1)
        return last if start == at else None
    return None
