"""Where cache points go when the options ask for caching and the conversation carries none of its own.

Facts this file rests on:
- A cache point is a block behind what it caches: behind the tools, the system prompt, the content of a turn. Nova takes
  none behind the tools.                                    (AWS documentation: prompt caching, read 2026-11-15)
- `ttl` is five minutes unless it says one hour.                     (botocore 1.44.0 service model, read 2026-11-15)
"""

from __future__ import annotations

from typing import cast

from segue.conversation.context import CacheRetention
from segue.protocols.bedrock_converse.verbatim import MARK, Wire, object_of
from segue.protocols.kit.codec import Endpoint


def place_marks(body: Wire, endpoint: Endpoint, retention: CacheRetention) -> None:
    """Put cache points into a body that was just written; nothing happens where it has some already."""
    dialect = endpoint.dialect
    if dialect.cache_format != "bedrock" or not endpoint.rules.cache_marks or _is_marked(body):
        return
    mark: Wire = {"type": "default"}
    if retention == "long" and dialect.cache_long == "1h":
        mark["ttl"] = "1h"
    tools = object_of(body.get("toolConfig")).get("tools")
    if dialect.cache_on_tools and isinstance(tools, list) and tools:
        cast("list[object]", tools).append({MARK: mark})
    system = body.get("system")
    if isinstance(system, list) and system:
        cast("list[object]", system).append({MARK: mark})
    turns = cast("list[Wire]", body["messages"])
    last = next((turn for turn in reversed(turns) if turn.get("role") == "user"), None)
    if last is not None and isinstance(blocks := last.get("content"), list) and blocks:
        cast("list[object]", blocks).append({MARK: mark})


def _is_marked(body: Wire) -> bool:
    if _any_marked(object_of(body.get("toolConfig")).get("tools")) or _any_marked(body.get("system")):
        return True
    return any(_any_marked(turn.get("content")) for turn in cast("list[Wire]", body["messages"]))


def _any_marked(blocks: object) -> bool:
    return isinstance(blocks, list) and any(MARK in block for block in cast("list[Wire]", blocks))
