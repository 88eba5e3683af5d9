"""Deltas that bring nothing but more of an open block, which most frames of a stream are: the short way to read them.

Facts this file rests on:
- A delta has one of `text`, `toolUse` with its `input`, and `reasoningContent`, which has text, a signature or bytes;
  beside it stands the index of its block, and padding.     (botocore 1.44.0 service model; recorded traffic, 2026-11)
- To read a frame into these structs costs half of what it costs with dicts.                    (measured 2026-11-15)

A frame that has anything else to say does not fit and is read the long way, so nothing here decides what a wire says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar, final

import msgspec

MISFIT: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a reader raises where a payload does not fit."""


class _Form(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The parent of what has to be known to the last key."""


@final
class TextDeltaBody(_Form, frozen=True, gc=False):
    """More text, or more of a thought without its signature."""

    text: str


class _Input(_Form, frozen=True, gc=False):
    text: str = msgspec.field(name="input")


class Call(_Form, frozen=True, gc=False):
    """More arguments of a call."""

    given: _Input = msgspec.field(name="toolUse")


class Thought(_Form, frozen=True, gc=False):
    """More of a thought."""

    given: TextDeltaBody = msgspec.field(name="reasoningContent")


_Delta = TypeVar("_Delta", TextDeltaBody, Call, Thought)


class FastDelta(msgspec.Struct, Generic[_Delta], frozen=True, gc=False):
    """Which block grows, and by what; the padding beside them means nothing."""

    delta: _Delta
    index: int = msgspec.field(name="contentBlockIndex")


Reader: TypeAlias = Callable[[bytes], FastDelta[TextDeltaBody] | FastDelta[Call] | FastDelta[Thought]]

FAST_READERS: Final[Mapping[str, Reader]] = {
    "text": msgspec.json.Decoder(FastDelta[TextDeltaBody]).decode,
    "toolUse": msgspec.json.Decoder(FastDelta[Call]).decode,
    "reasoningContent": msgspec.json.Decoder(FastDelta[Thought]).decode,
}
"""How to read the growth of a block, by its kind."""
