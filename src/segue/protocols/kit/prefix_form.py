"""How a protocol holds what reasoning is bound to: instructions, tools, turns, and the blocks of reasoning in them.

A provider that binds reasoning to its prefix compares values, so key order does not count; cache marks and the blocks
of reasoning themselves are not compared. (Anthropic documentation: preserved thinking, 2026-09; probed 2026-09-26.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

import msgspec

from segue.protocols.kit.json_values import Block, Wire


@final
class PrefixForm(msgspec.Struct, frozen=True, kw_only=True):
    """The functions that read and change a body for this.

    - `system(body)`, `tools(body)`: the values that are compared, without cache marks; None if there are none.
    - `turn(turn)`: a turn without reasoning and cache marks; of two forms with the same meaning, always the same one.
    - `starts(turn)`: whether the compared prefix starts with this turn, whatever comes before it.
    - `signature(block)`: the signature of a block of reasoning; None for every other block.
    - `asks(body)`: whether the body asks the server to drop reasoning that is not valid after its prefix.
    - `ask(body)`: makes it ask, in place; False if this request cannot.
    - `headers`: the headers that a body which asks needs.
    - `system_block(text)`: a system prompt of one text in its other form, which counts as another one; None if there is
      one form.
    """

    system: Callable[[Block], object]
    tools: Callable[[Block], object]
    turn: Callable[[Block], Block]
    starts: Callable[[Block], bool]
    signature: Callable[[Block], str | None]
    asks: Callable[[Block], bool]
    ask: Callable[[Wire], bool]
    system_block: Callable[[str], object] | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
