"""Tools that a provider of the chat completions protocol runs.

Facts:
- OpenAI: `web_search_options` is a field of the body, for search models; a location is one level deeper than on the
  Responses protocol.                                                              (openai 3.49.0, read 2026-11-15)
- OpenRouter: tools with the prefix `openrouter:` and their settings under `parameters`; a search may also be written
  flat, as `web_search`.                                                                      (openrouter 1.3.84)
- Groq: gpt-oss has `browser_search` and `code_interpreter`, without options.                 (Groq documentation)
"""

from __future__ import annotations

from functools import partial
from typing import Final

from segue.protocols.kit.server_tools import KeyPath, ServerTool, ToolOption, location

_READ: Final = "2026-11-15"
_OPENROUTER: Final = "openrouter 1.3.84"
_GROQ: Final = "Groq documentation: built-in tools of gpt-oss"


def _search_options(*path: str) -> dict[ToolOption, KeyPath]:
    return {
        "allowed_domains": (*path, "allowed_domains"),
        "blocked_domains": (*path, "excluded_domains"),
        "max_uses": (*path, "max_uses"),
        "context_size": (*path, "search_context_size"),
        **location(*path, "user_location"),
    }


_OF_OPENROUTER: Final = partial(ServerTool, source=_OPENROUTER, read=_READ)
_OF_GROQ: Final = partial(ServerTool, source=_GROQ, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    ServerTool(
        name="web_search_options",
        kind="web_search",
        key=("web_search_options",),
        template={"web_search_options": {}},
        options={
            "context_size": ("web_search_options", "search_context_size"),
            **location("web_search_options", "user_location", "approximate"),
        },
        constants={("web_search_options", "user_location", "type"): "approximate"},
        place="body",
        source="openai 3.49.0",
        read=_READ,
    ),
    _OF_OPENROUTER(
        name="openrouter:web_search",
        kind="web_search",
        pattern="openrouter:web_search",
        template={"type": "openrouter:web_search"},
        options=_search_options("parameters"),
        constants={("parameters", "user_location", "type"): "approximate"},
        ignored=frozenset({"engine", "mode"}),
        exclusive=True,
    ),
    _OF_OPENROUTER(
        name="openrouter_flat_web_search",
        kind="web_search",
        pattern="web_search",
        options=_search_options(),
        constants={("user_location", "type"): "approximate"},
        ignored=frozenset({"engine", "mode"}),
        exclusive=True,
    ),
    _OF_OPENROUTER(
        name="openrouter:web_fetch",
        kind="web_fetch",
        pattern="openrouter:web_fetch",
        template={"type": "openrouter:web_fetch"},
        options={
            "allowed_domains": ("parameters", "allowed_domains"),
            "blocked_domains": ("parameters", "blocked_domains"),
            "max_uses": ("parameters", "max_uses"),
            "max_content_tokens": ("parameters", "max_content_tokens"),
        },
        ignored=frozenset({"engine"}),
    ),
    _OF_OPENROUTER(
        name="openrouter:bash",
        kind="code_execution",
        pattern="openrouter:bash",
        template={"type": "openrouter:bash", "parameters": {"engine": "openrouter"}},
    ),
    _OF_OPENROUTER(
        name="openrouter:tool_search",
        kind="tool_search",
        pattern="openrouter:tool_search",
        ignored=frozenset({"parameters"}),
    ),
    _OF_OPENROUTER(name="openrouter:other", kind="other", pattern=r"openrouter:\w+"),
    _OF_GROQ(
        name="browser_search",
        kind="web_search",
        pattern="browser_search",
        template={"type": "browser_search"},
        covers=frozenset({"web_fetch"}),
    ),
    _OF_GROQ(
        name="code_interpreter",
        kind="code_execution",
        pattern="code_interpreter",
        template={"type": "code_interpreter"},
    ),
)
