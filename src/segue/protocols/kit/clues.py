"""`Clues`: the keys and values by which detection recognises a body of one protocol.

A clue is a key or a value that this protocol uses and the others use rarely or never, with a weight. Weights are added
over a body and each clue counts once. A key that several protocols share is a clue of each of them.

This module does not import any codec, because detection loads the clues of every protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, final

import msgspec

Weights: TypeAlias = Mapping[str, int]


def _none() -> dict[str, int]:
    return {}


@final
class Clues(msgspec.Struct, frozen=True, kw_only=True):
    """The clues to requests and replies of one protocol; each table maps a key or value to its weight."""

    turns_key: str | None = "messages"
    """The key of a body whose list holds all turns; None where no single list does.

    A body with the key of another protocol and not with this one is never of this protocol, whatever its other clues.
    """
    body_keys: Weights = msgspec.field(default_factory=_none)
    object_keys: Weights = msgspec.field(default_factory=_none)
    """Keys of a body that count only if their value is an object."""
    message_keys: Weights = msgspec.field(default_factory=_none)
    block_keys: Weights = msgspec.field(default_factory=_none)
    types: Weights = msgspec.field(default_factory=_none)
    """Values of `type` in a message or a block."""
    tool_keys: Weights = msgspec.field(default_factory=_none)
    option_keys: Weights = msgspec.field(default_factory=_none)
    """Keys of an object `options` in the body."""
    options_object: int = 0
    """Weight of an object `options` without a key that any protocol names in `option_keys`."""
    object_arguments: int = 0
    """Weight of a tool call whose `function.arguments` is an object and not a string."""
    untyped_text: int = 0
    """Weight of a block with `text` and without `type`."""
    model_ids: Weights = msgspec.field(default_factory=_none)
    """Prefixes of model ids."""
    model_ids_need: str | None = None
    """A key that every request to these models has; `model_ids` do not count in a request without it."""
    plain_messages: int = 0
    """Weight of a list of objects with `role`, used only where no other clue is found."""
    reply_keys: Weights = msgspec.field(default_factory=_none)
    """Keys of a whole reply; the key with the highest weight decides."""
    shared_reply_keys: frozenset[str] = frozenset()
    """Keys of a whole reply that count only where a reply of this protocol is expected: others have them too."""
