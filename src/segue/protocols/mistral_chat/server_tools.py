"""Tools that Mistral runs.

Facts this file rests on:
- A chat request has document libraries, images and connectors; web search and code are tools of agents and
  conversations, and a chat request with them answers 400.
                                                        (mistralai 3.7.0, read 2026-11-15; litellm #32059, 2026-07-03)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.server_tools import ServerTool

_READ: Final = "2026-11-15"
_SOURCE: Final = "mistralai 3.7.0"

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="document_library",
        kind="file_search",
        pattern="document_library",
        template={"type": "document_library"},
        options={"stores": ("library_ids",)},
        source=_SOURCE,
        read=_READ,
    ),
    ServerTool(
        name="web_search", kind="web_search", pattern="web_search(?:_premium)?", source="litellm #32059", read=_READ
    ),
    ServerTool(
        name="code_interpreter", kind="code_execution", pattern="code_interpreter", source="litellm #32059", read=_READ
    ),
)
