"""Cache marks of an OpenAI chat request: `cache_control` on parts, calls and tools, OpenAI's breakpoints on parts.

Facts this file rests on:
- OpenAI has breakpoints on parts, from GPT-5.6 on: `{"mode": "explicit"}`, with a `ttl` of 30m or 12h.
                                                        (openai 3.49.0: ChatCompletionContentPartTextParam; 2026-11-17)
- Gateways pass marks on to models that need them.                                       (recorded traffic, 2026-11)
- Such a mark is an object of type `ephemeral`, with a `ttl` for the longer time.        (recorded traffic, 2026-11)
- Marks stand on a text part of the first system message and of the last message with text, and on the last tool.
                                                           (pi-ai 1.5.0, cacheControlFormat; recorded traffic, 2026-11)

A conversation that has marks of its own gets no others. Choice kept in `extra` of a mark: `key`, its key on the wire
(default "cache_control"); a target that reads only one of the keys gets that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import CacheMark
from segue.conversation.context import CacheRetention
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.rules import PROTOCOL

MARK: Final = "cache_control"
BREAKPOINT: Final = "prompt_cache_breakpoint"
_TYPE: Final = "ephemeral"
_MODE: Final = "explicit"


# -- the mark of a block -----------------------------------------------------------------------------------------------


def find_mark(block: Block) -> CacheMark | None:
    """Read the mark of a part, a call or a tool. One of another kind is None and stays data."""
    if MARK in block:
        wire = object_of(block[MARK])
        return _read(wire, EMPTY) if wire.get("type") == _TYPE else None
    if BREAKPOINT in block:
        wire = object_of(block[BREAKPOINT])
        return _read(wire, choose("key", MARK, BREAKPOINT)) if wire.get("mode") == _MODE else None
    return None


def _read(wire: Block, choices: Wire | Block) -> CacheMark:
    ttl = wire.get("ttl")
    mark = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    encode = _encode_breakpoint if choices else encode_mark
    extra = keep(PROTOCOL, wire, encode(mark), choices=choices)
    return mark if extra is None else CacheMark(ttl=mark.ttl, extra=extra)


def without_mark(block: Block, mark: CacheMark | None) -> Wire:
    """Give a block without the mark that `find_mark` read."""
    key = None if mark is None else _key(mark)
    return {name: value for name, value in block.items() if name != key}


def write_mark(wire: Wire, mark: CacheMark | None) -> None:
    """Write a mark into a part, a call or a tool."""
    if mark is not None:
        wire[key] = encode_mark(mark) if (key := _key(mark)) == MARK else _encode_breakpoint(mark)


def _key(mark: CacheMark) -> str:
    return MARK if mark.extra is None else str(chosen(mark.extra, PROTOCOL, "key", MARK))


def encode_mark(mark: CacheMark) -> Wire:
    """Write the value of a mark."""
    wire: Wire = {"type": _TYPE}
    if (ttl := wire_ttl(mark.ttl, "5m", "1h")) is not None:
        wire["ttl"] = ttl
    return restore(wire, mark.extra, PROTOCOL)


def _encode_breakpoint(mark: CacheMark) -> Wire:
    wire: Wire = {"mode": _MODE}
    if (ttl := wire_ttl(mark.ttl, "30m", "12h")) is not None:
        wire["ttl"] = ttl
    return restore(wire, mark.extra, PROTOCOL)


def fit_marks(messages: list[Wire], endpoint: Endpoint) -> None:
    """Write the marks of parts under the key that the target reads, if it reads marks at all."""
    wanted = endpoint.rules.cache_mark_key
    other = {MARK: BREAKPOINT, BREAKPOINT: MARK}.get(wanted or "")
    if wanted is None or other is None:
        return
    for index, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list) or not any(other in part for part in cast("list[Wire]", content)):
            continue
        parts = [_with_key(part, wanted) for part in cast("list[Wire]", content)]
        messages[index] = {**message, "content": parts}


def _with_key(part: Wire, wanted: str) -> Wire:
    mark = find_mark(part)
    if mark is None or wanted in part:
        return part
    plain = CacheMark(ttl=mark.ttl)
    return {**without_mark(part, mark), wanted: encode_mark(plain) if wanted == MARK else _encode_breakpoint(plain)}


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
