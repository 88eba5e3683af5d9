"""What this wire says beyond segue's words, kept in `extra` and put back; cache points among it.

A key with a value is data, and told to nobody but this wire. A key that is null says what its absence says, so it is
spelling: it stands in the shape. What only a reply says beyond the request's words is spelling too, under `reply`: the
service answers unknown members of a request with an error, and so does boto3.      (botocore 1.44.0, tried 2026-11-15)

A cache point is a block of its own, behind what it caches. It is kept in `extra` of the piece, result or tool which
stands before it, where marks are counted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, Extra
from segue.conversation.context import Tool
from segue.conversation.messages import ToolResultMessage
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.kit.reading import VERBATIM, verbatim_of

Wire: TypeAlias = dict[str, object]
Block: TypeAlias = Mapping[str, object]

MARK: Final = "cachePoint"
REPLY: Final = "reply"
"""The key of a shape that holds what only a reply said."""
NOTHING: Final[Mapping[str, object]] = {}
_NULL: Final = "null"


def object_of(value: object) -> Mapping[str, object]:
    """Give an object as it is, anything else as an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, (dict, Mapping)) else NOTHING


def keep(
    wire: Block, known: Collection[str], verbatim: Mapping[str, object] | None = None, *, reply: bool = False
) -> Extra | None:
    """Keep what a wire object says beyond the known keys, and how it was spelt; None when there is nothing."""
    left: Wire = {}
    nulls: list[str] = []
    for key, value in wire.items():
        if key in known:
            continue
        if value is None and not reply:
            nulls.append(key)
        else:
            left[key] = plain(value)
    original: Wire = dict(verbatim or {})
    if reply and left:
        original[REPLY] = left
        left = {}
    if nulls:
        original[_NULL] = nulls
    if original:
        left[VERBATIM] = original
    return {PROTOCOL: left} if left else None


def put_back(extra: Extra | None, *, reply: bool = False) -> Mapping[str, object]:
    """Give back the keys that `keep` kept, without shape and cache point; those of a reply to a reply alone."""
    if extra is None or PROTOCOL not in extra:
        return NOTHING
    part = extra[PROTOCOL]
    left = {key: value for key, value in part.items() if key not in (VERBATIM, MARK)}
    verbatim = verbatim_of(extra, PROTOCOL)
    nulls = verbatim.get(_NULL)
    for key in cast("Sequence[str]", nulls) if isinstance(nulls, list | tuple) else ():
        left.setdefault(key, None)
    if reply and REPLY in verbatim:
        left.update(object_of(verbatim[REPLY]))
    return left


def is_of_reply_alone(extra: Extra) -> bool:
    """Whether all that is kept of a piece is what only a reply said: no request repeats it."""
    part = extra.get(PROTOCOL)
    if part is None or len(part) != 1 or len(extra) != 1:
        return False
    verbatim = part.get(VERBATIM)
    # No `cast`: every turn of a long history comes by here, and a call costs as much as all the rest.
    return isinstance(verbatim, dict) and REPLY in verbatim and len(verbatim) == 1  # pyright: ignore[reportUnknownArgumentType]


def plain(value: object) -> object:
    """Give a value as JSON has it: bytes, which boto3 gives, as base64; the same object when there are none."""
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        given = cast("Mapping[str, object]", value)
        items = {key: plain(inner) for key, inner in given.items()}
        return items if any(items[key] is not inner for key, inner in given.items()) else given
    if isinstance(value, (list, tuple)):
        inners = cast("Sequence[object]", value)
        made = [plain(inner) for inner in inners]
        return made if any(new is not old for new, old in zip(made, inners, strict=True)) else cast("object", value)
    return value


# -- cache points ------------------------------------------------------------------------------------------------------

_Marked = TypeVar("_Marked", bound=AnyContent | ToolResultMessage | Tool)


def mark_of(extra: Extra | None) -> object:
    """Give the cache point behind a piece, a result or a tool; None when there is none."""
    return None if extra is None else extra.get(PROTOCOL, NOTHING).get(MARK)


def lone_mark(block: Block) -> object:
    """Give the cache point that a block is; None when it is something else."""
    return block[MARK] if len(block) == 1 and isinstance(block.get(MARK), Mapping) else None


def marked(value: _Marked, mark: object) -> _Marked | None:
    """Put a cache point on what stands before it; None when there is one already."""
    extra = value.extra or {}
    part = extra.get(PROTOCOL, NOTHING)
    if MARK in part:
        return None
    return replace(value, extra={**extra, PROTOCOL: {**part, MARK: mark}})
