"""Tools that Anthropic runs.

Facts this file rests on:
- Types, names and options.                                                        (anthropic 2.8.0, read 2026-11-15)
- Versions from 2026 on run inside code execution. Claude has that from 4.6 on, Haiku refuses it; the first versions
  are accepted by all.                 (Anthropic documentation: web search; geode #460, 2026-03-26; read 2026-11-15)
- `allowed_domains` and `blocked_domains` are refused together.                               (anthropic 2.8.0)
"""

from __future__ import annotations

from functools import partial
from typing import Final, cast

from segue.protocols.kit.facts import SearchForm
from segue.protocols.kit.server_tools import KeyPath, ServerTool, ToolOption, location

_READ: Final = "2026-11-15"
_SOURCE: Final = "anthropic 2.8.0"
_COMMON: Final = frozenset({"name", "allowed_callers", "defer_loading", "strict", "response_inclusion", "use_cache"})
_SEARCH: Final[dict[ToolOption, KeyPath]] = {
    "allowed_domains": ("allowed_domains",),
    "blocked_domains": ("blocked_domains",),
    "max_uses": ("max_uses",),
    **location("user_location"),
}
_FETCH: Final[dict[ToolOption, KeyPath]] = {
    "allowed_domains": ("allowed_domains",),
    "blocked_domains": ("blocked_domains",),
    "max_uses": ("max_uses",),
    "max_content_tokens": ("max_content_tokens",),
    "citations": ("citations", "enabled"),
}
_APPROXIMATE: Final[dict[KeyPath, object]] = {("user_location", "type"): "approximate"}

_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    _TOOL(
        name="web_search",
        kind="web_search",
        pattern="web_search_20250305",
        template={"type": "web_search_20250305", "name": "web_search"},
        options=_SEARCH,
        constants=_APPROXIMATE,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="web_search_dynamic",
        kind="web_search",
        pattern=r"web_search_20(?!250305)\d{6}",
        options=_SEARCH,
        constants=_APPROXIMATE,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="web_fetch",
        kind="web_fetch",
        pattern="web_fetch_20250910",
        template={"type": "web_fetch_20250910", "name": "web_fetch"},
        options=_FETCH,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="web_fetch_dynamic",
        kind="web_fetch",
        pattern=r"web_fetch_20(?!250910)\d{6}",
        options=_FETCH,
        ignored=_COMMON,
        exclusive=True,
    ),
    _TOOL(
        name="code_execution",
        kind="code_execution",
        pattern=r"code_execution_20\d{6}",
        template={"type": "code_execution_20250825", "name": "code_execution"},
        ignored=_COMMON,
    ),
    _TOOL(
        name="tool_search", kind="tool_search", pattern=r"tool_search_tool_(?:regex|bm25)(?:_\d{8})?", ignored=_COMMON
    ),
)


def _count(fields: dict[str, object], searches: int) -> None:
    if fields.get("type") in ("message", "message_delta"):
        usage = cast("dict[str, object]", fields["usage"])
        usage["server_tool_use"] = {"web_search_requests": searches, "web_fetch_requests": 0}


SEARCHES: Final = SearchForm(
    blocks=(
        {"type": "server_tool_use", "name": "web_search", "input": {"query": "weather"}, "id": "srvtoolu_s{}"},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_s{}", "content": []},
    ),
    count=_count,
)
"""What one search leaves in a reply. (anthropic 2.8.0, read 2026-11-17)"""
