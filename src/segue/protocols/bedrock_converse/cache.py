"""Cache points of Bedrock requests: typed marks both ways, and the default places when options request caching.

Facts this file rests on:
- A cache point is a block behind what it caches: behind the tools, the system prompt, the content of a turn. Nova
  accepts none behind the tools.                            (AWS documentation: prompt caching, read 2026-11-15)
- `ttl` is five minutes unless it is set to one hour.                (botocore 1.44.0 service model, read 2026-11-15)

A cache point becomes the `cache_mark` of the content, tool or tool result before it. It stays a native block where
nothing precedes it, where another cache point precedes it, and where it is of an unknown type.
"""

from __future__ import annotations

from typing import Final, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import AnyContent, CacheMark, Extra, NativeContent
from segue.conversation.context import CacheRetention, NativeTool, Tool
from segue.conversation.messages import ToolResultMessage
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.verbatim import keep, restore

MARK: Final = "cachePoint"

_TYPE: Final = "default"
_MARK_KEYS: Final = frozenset({"type", "ttl"})
_Marked = TypeVar("_Marked", bound=AnyContent | Tool | ToolResultMessage)


# -- one cache point ---------------------------------------------------------------------------------------------------


def add_mark(value: _Marked, block: Block) -> _Marked | None:
    """Give the value with the cache point that the block is; None when the value cannot hold it."""
    mark = _decode_mark(block)
    if mark is None or value.cache_mark is not None or _is_point(value):
        return None
    return replace(value, cache_mark=mark)


def _is_point(value: AnyContent | Tool | ToolResultMessage) -> bool:
    if isinstance(value, NativeContent):
        return MARK in value.block
    return isinstance(value, NativeTool) and MARK in value.definition


def _decode_mark(block: Block) -> CacheMark | None:
    point = block.get(MARK)
    if len(block) != 1 or not isinstance(point, dict):
        return None
    wire = cast("Wire", point)
    ttl = wire.get("ttl")
    if wire.get("type") != _TYPE or not (ttl is None or isinstance(ttl, str)) or wire_ttl(ttl, "5m", "1h") != ttl:
        return None
    mark = CacheMark(ttl=ttl)
    if len(wire) == 1 + (ttl is not None):
        return mark
    return replace(mark, extra=keep(PROTOCOL, wire, _default_point(mark), known=_MARK_KEYS))


def encode_mark(mark: CacheMark) -> Wire:
    """Write a cache point."""
    return {MARK: restore(_default_point(mark), mark.extra, PROTOCOL)}


def _default_point(mark: CacheMark) -> Wire:
    ttl = wire_ttl(mark.ttl, "5m", "1h")
    return {"type": _TYPE} if ttl is None else {"type": _TYPE, "ttl": ttl}


def restore_block(wire: Wire, extra: Extra | None) -> Wire:
    """Restore a wire object, without the cache point that files written before `cache_mark` existed keep in `extra`."""
    restore(wire, extra, PROTOCOL)
    wire.pop(MARK, None)
    return wire


# -- default places ----------------------------------------------------------------------------------------------------


def place_marks(body: Wire, endpoint: Endpoint, retention: CacheRetention, *, anchored: bool) -> None:
    """Add cache points to a new body; a body that has one already is left unchanged, unless segue `anchored` it."""
    dialect = endpoint.dialect
    is_marked = not anchored and _is_marked(body)
    if dialect.cache_format != "bedrock" or not endpoint.rules.cache_marks or is_marked:
        return
    point = encode_mark(CacheMark(ttl="1h" if retention == "long" and dialect.cache_long == "1h" else None))
    tools = object_of(body.get("toolConfig")).get("tools")
    if dialect.cache_on_tools and isinstance(tools, list) and tools:
        cast("list[object]", tools).append(point)
    system = body.get("system")
    if isinstance(system, list) and system:
        cast("list[object]", system).append(point)
    turns = cast("list[Wire]", body["messages"])
    last = next((turn for turn in reversed(turns) if turn.get("role") == "user"), None)
    if last is not None and isinstance(blocks := last.get("content"), list) and blocks:
        cast("list[object]", blocks).append(point)


def _is_marked(body: Wire) -> bool:
    if _any_marked(object_of(body.get("toolConfig")).get("tools")) or _any_marked(body.get("system")):
        return True
    return any(_any_marked(turn.get("content")) for turn in cast("list[Wire]", body["messages"]))


def _any_marked(blocks: object) -> bool:
    return isinstance(blocks, list) and any(MARK in block for block in cast("list[Wire]", blocks))
