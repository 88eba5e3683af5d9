"""Where cache marks go when the options ask for caching and the conversation carries no marks of its own.

Facts this file rests on:
- The prompt is read in the order tools, system, messages; a mark caches everything up to its block. So marks go on the
  last tool, the last block of the system prompt and the last one of the last user turn.
                                                          (Anthropic documentation: prompt caching, read 2026-11-15)
- A mark on an empty text, on thinking or on a tool whose loading is deferred is refused.                     (the same)
- `ttl` is five minutes unless it says one hour.                                   (anthropic 2.8.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from segue.conversation.context import CacheRetention
from segue.protocols.kit.codec import Endpoint

_KEY: Final = "cache_control"
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_result", "search_result"})


def place_marks(body: dict[str, object], endpoint: Endpoint, retention: CacheRetention) -> None:
    """Put the marks into a body that was just written; nothing happens where it has some already."""
    dialect = endpoint.dialect
    if dialect.cache_format != "anthropic" or not endpoint.rules.cache_marks or _is_marked(body):
        return
    mark: dict[str, object] = {"type": "ephemeral"}
    if retention == "long" and dialect.cache_long == "1h":
        mark["ttl"] = "1h"
    tools, system = body.get("tools"), body.get("system")
    if dialect.cache_on_tools and isinstance(tools, list):
        _mark_last(cast("list[object]", tools), mark, _is_loaded)
    if isinstance(system, str) and system.strip():
        body["system"] = [{"type": "text", "text": system, _KEY: mark}]
    elif isinstance(system, list):
        _mark_last(cast("list[object]", system), mark, _is_markable)
    turns = cast("list[dict[str, object]]", body["messages"])
    last = next((turn for turn in reversed(turns) if turn.get("role") == "user"), None)
    if last is not None and isinstance(blocks := last.get("content"), list):
        _mark_last(cast("list[object]", blocks), mark, _is_markable)


def _is_loaded(tool: Mapping[str, object]) -> bool:
    return not tool.get("defer_loading")


def _is_markable(block: Mapping[str, object]) -> bool:
    kind = block.get("type")
    return kind in _MARKABLE and (kind != "text" or bool(str(block.get("text", "")).strip()))


def _mark_last(
    blocks: list[object], mark: Mapping[str, object], is_markable: Callable[[Mapping[str, object]], bool]
) -> None:
    """Mark the last block that may have a mark. It is replaced, not changed: native blocks belong to the history."""
    for at in range(len(blocks) - 1, -1, -1):
        block = cast("Mapping[str, object]", blocks[at])
        if is_markable(block):
            blocks[at] = {**block, _KEY: mark}
            return


def _is_marked(body: Mapping[str, object]) -> bool:
    if _KEY in body or _any_marked(body.get("tools")) or _any_marked(body.get("system")):
        return True
    turns = cast("list[Mapping[str, object]]", body["messages"])
    return any(_any_marked(turn.get("content")) for turn in turns)


def _any_marked(blocks: object) -> bool:
    if isinstance(blocks, list):
        for block in cast("list[Mapping[str, object]]", blocks):
            if _KEY in block:
                return True
    return False
