"""Tools that Google runs.

Facts this file rests on:
- A tool is an object with one key. The place of the user has no equivalent: coordinates only.
                                                                                 (google-genai 3.1.0, read 2026-11-15)
- `excludeDomains` is accepted at Vertex only, `fileSearch` at the Gemini API only.                (google-genai 3.1.0)
- Beside functions Gemini 3 at the Gemini API needs `includeServerSideToolInvocations`: "Please enable
  tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
                                                                  (genkit #4970, 2026-03-20; sub2api #5725, 2026-08-17)
"""

from __future__ import annotations

from functools import partial
from typing import Final, cast

from segue.protocols.kit.facts import SearchForm
from segue.protocols.kit.server_tools import ServerTool

_READ: Final = "2026-11-15"
_SOURCE: Final = "google-genai 3.1.0"
_FLAG: Final[dict[str, object]] = {"toolConfig": {"includeServerSideToolInvocations": True}}

_TOOL: Final = partial(ServerTool, source=_SOURCE, read=_READ)

SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (
    _TOOL(
        name="googleSearch",
        kind="web_search",
        key=("googleSearch",),
        template={"googleSearch": {}},
        beside_functions=_FLAG,
    ),
    _TOOL(
        name="vertex_googleSearch",
        kind="web_search",
        key=("googleSearch",),
        template={"googleSearch": {}},
        options={"blocked_domains": ("googleSearch", "excludeDomains")},
    ),
    _TOOL(
        name="googleSearchRetrieval",
        kind="web_search",
        key=("googleSearchRetrieval",),
        ignored=frozenset({"dynamicRetrievalConfig", "dynamic_retrieval_config"}),
    ),
    _TOOL(
        name="enterpriseWebSearch",
        kind="web_search",
        key=("enterpriseWebSearch",),
        options={"blocked_domains": ("enterpriseWebSearch", "excludeDomains")},
    ),
    _TOOL(
        name="urlContext", kind="web_fetch", key=("urlContext",), template={"urlContext": {}}, beside_functions=_FLAG
    ),
    _TOOL(
        name="codeExecution",
        kind="code_execution",
        key=("codeExecution",),
        template={"codeExecution": {}},
        beside_functions=_FLAG,
    ),
    _TOOL(
        name="fileSearch",
        kind="file_search",
        key=("fileSearch",),
        template={"fileSearch": {}},
        options={"stores": ("fileSearch", "fileSearchStoreNames"), "max_results": ("fileSearch", "topK")},
        beside_functions=_FLAG,
    ),
)


def _count(fields: dict[str, object], searches: int) -> None:
    for candidate in cast("list[dict[str, object]]", fields.get("candidates") or []):
        if "finishReason" in candidate:
            candidate["groundingMetadata"] = {"webSearchQueries": [f"weather {at}" for at in range(searches)]}


SEARCHES: Final = SearchForm(count=_count)
