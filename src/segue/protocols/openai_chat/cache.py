"""Cache marks in an OpenAI chat request: where a relay passes them on to a model that wants them.

Facts this file rests on:
- Marks stand on a text part: of the first system message, of the last message with words; and on the last tool.
                                                           (pi-ai 1.5.0, cacheControlFormat; recorded traffic, 2026-11)
- The mark is `cache_control`, with a `ttl` for the longer time.                         (recorded traffic, 2026-11)

A conversation that carries marks of its own is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.context import CacheRetention
from segue.protocols.kit.codec import Endpoint

_MARK: Final = "cache_control"


def place_marks(body: dict[str, object], retention: CacheRetention | None, endpoint: Endpoint) -> None:
    """Put marks into a body, if its target takes them and they were asked for."""
    if endpoint.dialect.cache_format != "anthropic" or retention not in ("short", "long"):
        return
    messages = cast("list[dict[str, object]]", body["messages"])
    tools = cast("list[dict[str, object]]", body.get("tools", []))
    if any(_MARK in tool for tool in tools) or any(_is_marked(message) for message in messages):
        return
    mark: dict[str, object] = {"type": "ephemeral"}
    if retention == "long" and endpoint.dialect.cache_long == "1h":
        mark["ttl"] = "1h"
    if messages and messages[0].get("role") in ("system", "developer"):
        messages[0] = _marked(messages[0], mark) or messages[0]
    if tools and endpoint.dialect.cache_on_tools:
        tools[-1] = {**tools[-1], _MARK: mark}
    for index in range(len(messages) - 1, 0, -1):
        if messages[index].get("role") not in ("system", "developer"):
            marked = _marked(messages[index], mark)
            if marked is not None:
                messages[index] = marked
                return


def _is_marked(message: Mapping[str, object]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(
        isinstance(part, Mapping) and _MARK in part for part in cast("list[object]", content)
    )


def _marked(message: dict[str, object], mark: dict[str, object]) -> dict[str, object] | None:
    """Give the message with a mark on its last text; None when it has no words."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [{"type": "text", "text": content, _MARK: mark}]} if content else None
    if not isinstance(content, list):
        return None
    parts = cast("list[dict[str, object]]", content)
    for index in range(len(parts) - 1, -1, -1):
        if parts[index].get("type") == "text" and parts[index].get("text"):
            return {**message, "content": [*parts[:index], {**parts[index], _MARK: mark}, *parts[index + 1 :]]}
    return None
