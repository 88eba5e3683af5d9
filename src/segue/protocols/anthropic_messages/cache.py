"""Cache marks of the Anthropic wire: read, written, and placed where the options ask for caching.

Facts this file relies on:
- A mark is `cache_control: {"type": "ephemeral"}` on a block or a tool; its `ttl` is "5m" (the default) or "1h".
                                                                                   (anthropic 2.8.0, read 2026-11-15)
- The prompt is read in the order tools, system, messages; a mark caches everything up to its block. So marks go on the
  last tool, the last block of the system prompt and the last block of the last user turn.
                                                          (Anthropic documentation: prompt caching, read 2026-11-15)
- A mark on an empty text, on thinking or on a tool whose loading is deferred is refused.                     (the same)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from segue.conversation.content import CacheMark
from segue.conversation.context import CacheRetention
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.verbatim import keep, restore

CACHE_CONTROL: Final = "cache_control"
_EPHEMERAL: Final = "ephemeral"
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_result", "search_result"})


# -- one mark ----------------------------------------------------------------------------------------------------------


def decode_mark(wire: Block) -> CacheMark | None:
    """Read the mark of a block or a tool; None when it has none, or one of an unknown type, which is data."""
    given = wire.get(CACHE_CONTROL)
    if not isinstance(given, (dict, Mapping)):
        return None
    mark = cast("Block", given)
    if mark.get("type") != _EPHEMERAL:
        return None
    ttl = mark.get("ttl")
    plain = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    return CacheMark(ttl=plain.ttl, extra=keep(PROTOCOL, mark, encode_mark(plain)))


def encode_mark(mark: CacheMark) -> Wire:
    """Write a mark."""
    wire: Wire = {"type": _EPHEMERAL}
    ttl = wire_ttl(mark.ttl, "5m", "1h")
    if ttl is not None:
        wire["ttl"] = ttl
    return wire if mark.extra is None else restore(wire, mark.extra, PROTOCOL)


def split_mark(native: Block) -> tuple[Block, CacheMark | None]:
    """Take the mark out of a native block or tool, so that all marks are counted in one place."""
    mark = decode_mark(native)
    if mark is None:
        return native, None
    return {key: value for key, value in native.items() if key != CACHE_CONTROL}, mark


def join_mark(native: Block, mark: CacheMark | None) -> Wire:
    """Give a native block or tool with its mark; it holds everything else itself."""
    if mark is not None:
        return {**native, CACHE_CONTROL: encode_mark(mark)}
    return native if isinstance(native, dict) else dict(native)


# -- marks that the options ask for ------------------------------------------------------------------------------------


def place_marks(
    body: Wire, endpoint: Endpoint, retention: CacheRetention, *, anchored: bool, plain_system: bool = False
) -> None:
    """Put marks into a body that was just written; a body with marks is left alone, unless segue `anchored` it.

    A system prompt that has to stay a string (`plain_system`) gets none: the mark of the last turn caches it too.
    """
    dialect = endpoint.dialect
    is_marked = not anchored and _is_marked(body)
    if dialect.cache_format != "anthropic" or not endpoint.rules.cache_marks or is_marked:
        return
    mark = encode_mark(CacheMark(ttl="1h" if retention == "long" and dialect.cache_long == "1h" else None))
    tools, system = body.get("tools"), body.get("system")
    if dialect.cache_on_tools and isinstance(tools, list):
        _mark_last(cast("list[object]", tools), mark, _is_loaded)
    if isinstance(system, str):
        if system.strip() and not plain_system:
            body["system"] = [{"type": "text", "text": system, CACHE_CONTROL: mark}]
    elif isinstance(system, list):
        _mark_last(cast("list[object]", system), mark, _is_markable)
    turns = cast("list[Wire]", body["messages"])
    last = next((turn for turn in reversed(turns) if turn.get("role") == "user"), None)
    if last is not None and isinstance(blocks := last.get("content"), list):
        _mark_last(cast("list[object]", blocks), mark, _is_markable)


def _is_loaded(tool: Block) -> bool:
    return not tool.get("defer_loading")


def _is_markable(block: Block) -> bool:
    kind = block.get("type")
    return kind in _MARKABLE and (kind != "text" or bool(str(block.get("text", "")).strip()))


def _mark_last(blocks: list[object], mark: Block, is_markable: Callable[[Block], bool]) -> None:
    """Mark the last block that may have a mark. It is replaced, not changed: native blocks belong to the history."""
    for at in range(len(blocks) - 1, -1, -1):
        block = cast("Block", blocks[at])
        if is_markable(block):
            blocks[at] = {**block, CACHE_CONTROL: mark}
            return


def _is_marked(body: Block) -> bool:
    if CACHE_CONTROL in body or _any_marked(body.get("tools")) or _any_marked(body.get("system")):
        return True
    return any(_any_marked(turn.get("content")) for turn in cast("list[Block]", body["messages"]))


def _any_marked(blocks: object) -> bool:
    if isinstance(blocks, list):
        for block in cast("list[Block]", blocks):
            if CACHE_CONTROL in block:
                return True
    return False
