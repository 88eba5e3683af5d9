"""The content of every reply of `replies.py`, and its form in a protocol before it is encoded to bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

THINKING: Final = ("They want ", "the weather, ", "so I look it up.")
WORDS: Final = ("Let me ", "look: ", "naïve ", "日本 ", "🙂.")
TOOL: Final = "get_weather"
ARGUMENTS: Final[Mapping[str, object]] = {"city": "Zürich", "days": 2}
ENCODED: Final = json.dumps(ARGUMENTS, ensure_ascii=False)
PIECES: Final = (ENCODED[:7], ENCODED[7:12], ENCODED[12:])
"""The arguments, as they come in pieces: a character and a number are not cut, a key is."""
SIGNATURE: Final = "c2lnbmF0dXJlIG9mIGEgdGhvdWdodA=="
BUSY: Final = "Slow down: too many requests."

Wire = dict[str, object]
Frame = tuple[str, object]
"""The name of an event, empty where the wire has none, and its data."""


@dataclass(frozen=True)
class EmulatedReply:
    """A stream in two halves, the whole reply, and two errors: one in the middle of the stream, one instead of it."""

    words: Sequence[Frame]
    call: Sequence[Frame]
    whole: object
    failing: Frame
    error: object
    error_headers: Mapping[str, str] = field(default_factory=lambda: {"retry-after": "1"})
