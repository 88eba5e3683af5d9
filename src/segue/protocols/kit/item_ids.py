"""`ItemIds`: the ids that a wire gives to the parts of a turn, where a request may hold each of them only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import msgspec

from segue.conversation.content import AssistantContent


@final
class ItemIds(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol keeps the id of an item in the content that was read from it.

    - `find(content)`: the id of the item; None if it has none, or the content is a native block.
    - `remove(content)`: the same content without the id.
    - `start`: how the signature of nearly every item begins: with its id, up to the next quotation mark.
    - `references`: the types of native blocks whose id is that of another item.
    """

    find: Callable[[AssistantContent], str | None]
    remove: Callable[[AssistantContent], AssistantContent]
    start: str
    references: frozenset[str] = frozenset()
