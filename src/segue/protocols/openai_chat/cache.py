"""Cache marks of an OpenAI chat request: `cache_control` on parts, calls and tools.

Facts this file rests on:
- OpenAI has no marks. Gateways pass them on to models that need them.                   (recorded traffic, 2026-11)
- A mark is an object of type `ephemeral`, with a `ttl` for the longer time.             (recorded traffic, 2026-11)
- Marks stand on a text part of the first system message and of the last message with text, and on the last tool.
                                                           (pi-ai 1.5.0, cacheControlFormat; recorded traffic, 2026-11)

A conversation that has marks of its own gets no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import CacheMark
from segue.conversation.context import CacheRetention
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.openai_chat.rules import PROTOCOL

MARK: Final = "cache_control"
_TYPE: Final = "ephemeral"


# -- the mark of a block -----------------------------------------------------------------------------------------------


def find_mark(block: Block) -> CacheMark | None:
    """Read the mark of a part, a call or a tool. A `cache_control` of another kind is None and stays data."""
    if MARK not in block:
        return None
    wire = object_of(block[MARK])
    if wire.get("type") != _TYPE:
        return None
    ttl = wire.get("ttl")
    mark = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    extra = keep(PROTOCOL, wire, encode_mark(mark))
    return mark if extra is None else CacheMark(ttl=mark.ttl, extra=extra)


def encode_mark(mark: CacheMark) -> Wire:
    """Write a mark."""
    wire: Wire = {"type": _TYPE}
    if (ttl := wire_ttl(mark.ttl, "5m", "1h")) is not None:
        wire["ttl"] = ttl
    return restore(wire, mark.extra, PROTOCOL)


# -- marks that segue places -------------------------------------------------------------------------------------------


def place_marks(body: Wire, retention: CacheRetention | None, endpoint: Endpoint, *, anchored: bool) -> None:
    """Put marks into a body, if the target supports them, the options ask for them, and it has none of the caller's."""
    if endpoint.dialect.cache_format != "anthropic" or retention not in ("short", "long"):
        return
    messages = cast("list[Wire]", body["messages"])
    tools = cast("list[Wire]", body.get("tools") or [])
    if not anchored and (any(MARK in tool for tool in tools) or any(_is_marked(message) for message in messages)):
        return
    is_long = retention == "long" and endpoint.dialect.cache_long == "1h"
    mark = encode_mark(CacheMark(ttl="1h" if is_long else None))
    if messages and messages[0].get("role") in ("system", "developer"):
        messages[0] = mark_text(messages[0], mark) or messages[0]
    if tools and endpoint.dialect.cache_on_tools:
        tools[-1] = {**tools[-1], MARK: mark}
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].get("role") not in ("system", "developer"):
            marked = mark_text(messages[index], mark)
            if marked is not None:
                messages[index] = marked
                return


def _is_marked(message: Block) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, Mapping) and MARK in part for part in cast("list[object]", content)
    )


def mark_text(message: Wire, mark: Wire) -> Wire | None:
    """Give the message with a mark on its last text; None when it has no text."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, MARK: mark}]} if content else None
    if not isinstance(content, list):
        return None
    parts = cast("list[Wire]", content)
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].get("type") == "text" and parts[index].get("text"):
            return {**message, "content": [*parts[:index], {**parts[index], MARK: mark}, *parts[index + 1 :]]}
    return None
