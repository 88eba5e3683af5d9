"""What this wire says beyond segue's words, kept in `extra` and put back.

A key with a value is data, and told to nobody but this wire. A key that is null says what its absence says, so it is
spelling: it stands in the shape, and to leave it out elsewhere is no loss.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import Extra
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.reading import VERBATIM

_NULL: Final = "null"


def keep(
    wire: Mapping[str, object], known: Collection[str], verbatim: Mapping[str, object] | None = None
) -> Extra | None:
    """Keep what a wire object says beyond the known keys, and how it was spelt; None when there is nothing."""
    left: dict[str, object] = {}
    nulls: list[str] = []
    for key, value in wire.items():
        if key in known:
            continue
        if value is None:
            nulls.append(key)
        else:
            left[key] = value
    if nulls:
        left[VERBATIM] = {**(verbatim or {}), _NULL: nulls}
    elif verbatim:
        left[VERBATIM] = dict(verbatim)
    return {PROTOCOL: left} if left else None


def put_back(extra: Extra | None) -> Mapping[str, object]:
    """Give back the keys that `keep` kept, the shape left out."""
    if extra is None or PROTOCOL not in extra:
        return {}
    part = extra[PROTOCOL]
    verbatim = part.get(VERBATIM)
    if verbatim is None:
        return part
    left = {key: value for key, value in part.items() if key != VERBATIM}
    nulls = cast("Mapping[str, object]", verbatim).get(_NULL) if isinstance(verbatim, Mapping) else None
    for key in cast("Sequence[str]", nulls) if isinstance(nulls, list | tuple) else ():
        left.setdefault(key, None)
    return left
