"""Tools that a provider of the Responses protocol runs.

Facts this file rests on:
- Types and options; a code interpreter needs a container.                          (openai 3.49.0, read 2026-11-15)
- `filters.blocked_domains` works, although the SDK does not list it.                   (vercel/ai #18035, 2026-07-28)
- A search also opens single pages (`open_page`).                                       (openai 3.49.0; xai-sdk 1.21.0)
- `max_tool_calls` limits the calls of all server tools together.                       (openai 3.49.0)
- xAI: its own name for blocked domains, at most five domains, allowed or blocked.      (xai-sdk 1.21.0)
- Vector stores, containers and files are known to one provider only.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.protocols.kit.facts import SearchForm
from segue.protocols.kit.server_tools import KeyPath, ServerTool, ServerToolKind, ToolOption, location

_READ: Final = "2026-11-15"
_SOURCE: Final = "openai 3.49.0"
_XAI: Final = "xai-sdk 1.21.0; dive #170, 2026-05-29"
_LIMIT: Final[dict[ToolOption, str]] = {"max_uses": "max_tool_calls"}
_APPROXIMATE: Final[dict[KeyPath, object]] = {("user_location", "type"): "approximate"}
_FETCHES: Final[frozenset[ServerToolKind]] = frozenset({"web_fetch"})
_STORES: Final[dict[ToolOption, KeyPath]] = {"stores": ("vector_store_ids",), "max_results": ("max_num_results",)}

_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)
_OF_XAI: Final = partial(ServerTool, source=_XAI, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="web_search",
        kind="web_search",
        pattern="web_search(?:_2025_08_26)?",
        template={"type": "web_search"},
        options={
            "allowed_domains": ("filters", "allowed_domains"),
            "blocked_domains": ("filters", "blocked_domains"),
            "context_size": ("search_context_size",),
            **location("user_location"),
        },
        body_options=_LIMIT,
        constants=_APPROXIMATE,
        covers=_FETCHES,
        source=f"{_SOURCE}; vercel/ai #18035",
        read=_READ,
    ),
    _TOOL(
        name="web_search_preview",
        kind="web_search",
        pattern=r"web_search_preview(?:_2025_03_11)?",
        options={"context_size": ("search_context_size",), **location("user_location")},
        body_options=_LIMIT,
        constants=_APPROXIMATE,
        covers=_FETCHES,
    ),
    _TOOL(
        name="code_interpreter",
        kind="code_execution",
        pattern="code_interpreter",
        template={"type": "code_interpreter", "container": {"type": "auto"}},
        body_options=_LIMIT,
        ignored=frozenset({"allowed_callers", "memory_limit"}),
    ),
    _TOOL(
        name="file_search",
        kind="file_search",
        pattern="file_search",
        template={"type": "file_search"},
        options=_STORES,
        body_options=_LIMIT,
    ),
    _TOOL(name="tool_search", kind="tool_search", pattern="tool_search"),
    _OF_XAI(
        name="xai_web_search",
        kind="web_search",
        pattern="web_search",
        template={"type": "web_search"},
        options={
            "allowed_domains": ("filters", "allowed_domains"),
            "blocked_domains": ("filters", "excluded_domains"),
            **location("user_location"),
        },
        constants=_APPROXIMATE,
        covers=_FETCHES,
        exclusive=True,
        max_domains=5,
    ),
    _OF_XAI(
        name="xai_code_interpreter",
        kind="code_execution",
        pattern="code_interpreter",
        template={"type": "code_interpreter"},
    ),
    _OF_XAI(
        name="xai_file_search",
        kind="file_search",
        pattern="file_search",
        template={"type": "file_search"},
        options=_STORES,
    ),
    _OF_XAI(name="x_search", kind="other", pattern="x_search"),
)

SEARCHES: Final = SearchForm(
    blocks=(
        {"type": "web_search_call", "id": "ws_{}", "status": "completed", "action": {"type": "search", "query": "w"}},
        # Opening a page costs nothing.
        {"type": "web_search_call", "id": "ws_{}p", "status": "completed", "action": {"type": "open_page", "url": "u"}},
    )
)
"""What one search leaves in a reply. (openai 3.49.0, read 2026-11-17)"""
