"""How a server is asked to shorten a conversation itself, and how its replies say that it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, final

import msgspec

from segue.protocols.kit.json_values import Block

ServerEdit: TypeAlias = Literal["clear", "compact"]
"""What a server does with the beginning of a long conversation: it clears old tool results, or it summarises."""


@final
class ServerEdits(msgspec.Struct, frozen=True, kw_only=True):
    """The field and the functions for this.

    - `form`: whether `context_management` is an object with `edits`, or a list.
    - `ask(fields, edit, above)`: the fields of a request with an edit for conversations of more than so many tokens
      (None: the server's own number); the given object if they have it already, or if it cannot be next to them.
    - `needed(block)`: the edit without which a request with this block is refused; None if there is none.
    - `covers(block)`: whether the server reads this block in place of everything before it.
    - `applied(reply)`: what the server did, a sentence for each edit.
    - `count(fields, compactions)`: says in a body, or in the frame of a stream that has a place for it, how many tokens
      the compactions before the reply read and wrote; None: they are not counted apart.
    """

    form: Literal["edits", "list"]
    ask: Callable[[Block, ServerEdit, int | None], Block]
    covers: Callable[[Block], bool]
    applied: Callable[[Mapping[str, object]], list[str]]
    needed: Callable[[Block], ServerEdit | None]
    count: Callable[[dict[str, object], Sequence[tuple[int, int]]], None] | None = None
