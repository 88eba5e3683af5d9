"""Tools that Google runs, as the Interactions API writes them.

Facts this file rests on:
- A tool is an object with a `type`. The search has no domains and no place of the user.
                              (google-genai 3.1.0: GoogleSearchParam, URLContextParam, FileSearchParam; 2026-11-17)
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.protocols.kit.server_tools import ServerTool

_READ: Final = "2026-11-17"
_SOURCE: Final = "google-genai 3.1.0"

_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    _TOOL(
        name="google_search",
        kind="web_search",
        pattern="google_search",
        template={"type": "google_search"},
        ignored=frozenset({"search_types"}),
    ),
    _TOOL(name="url_context", kind="web_fetch", pattern="url_context", template={"type": "url_context"}),
    _TOOL(name="code_execution", kind="code_execution", pattern="code_execution", template={"type": "code_execution"}),
    _TOOL(
        name="file_search",
        kind="file_search",
        pattern="file_search",
        template={"type": "file_search"},
        options={"stores": ("file_search_store_names",), "max_results": ("top_k",)},
    ),
    _TOOL(name="google_maps", kind="other", pattern="google_maps"),
    _TOOL(name="retrieval", kind="other", pattern="retrieval"),
    _TOOL(name="mcp_server", kind="other", pattern="mcp_server"),
    _TOOL(name="computer_use", kind="other", pattern="computer_use"),
)
