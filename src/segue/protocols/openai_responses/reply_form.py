"""What replies of the Responses protocol hold of other replies.

Facts this file rests on:
- A text has `annotations`; a `url_citation` has a title and the place in the text. The place of pages that another
  model cites is not known, so they stand at the end.                                (openai 3.49.0, read 2026-11-15)
- A `web_search_call` has a query and sources, and nothing that only the provider can make.               (the same)
- The input of a custom tool is a text; other protocols call it with the argument `input`.                (the same)
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import NativeContent, TextContent, ToolCall
from segue.conversation.context import ToolDefinition
from segue.protocols.kit.json_values import EMPTY, Block, list_of, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.reply_form import ReplyForm, Search
from segue.protocols.kit.sources import Source, objects_in
from segue.protocols.kit.verbatim import choose, chosen, keep
from segue.protocols.openai_responses.rules import PROTOCOL
from segue.protocols.openai_responses.tools import custom_names

_CUSTOM: Final = keep(PROTOCOL, EMPTY, EMPTY, choices=choose("type", "function", "custom")) or {}
"""The extra of a call of a custom tool."""
_CUSTOM_START: Final[Block] = {"type": "custom_tool_call"}


def _cite_in_text(text: TextContent, pages: Sequence[Source]) -> TextContent:
    end = len(text.text)
    annotations = [
        {"type": "url_citation", "url": page.url, "title": page.title, "start_index": end, "end_index": end}
        for page in pages
    ]
    return replace(text, extra={PROTOCOL: {"annotations": annotations}})


def _read_search(content: NativeContent) -> Search | None:
    if content.block.get("type") != "web_search_call":
        return None
    action = object_of(content.block.get("action"))
    queries = action.get("queries")
    query = text_of(action.get("query")) or ", ".join(text for text in map(text_of, list_of(queries)) if text)
    if not query:
        return None  # a page was opened, not searched for
    found = [*objects_in(action.get("sources")), *objects_in(content.block.get("results"))]
    pages = (Source(url, text_of(page.get("title")) or "") for page in found if (url := text_of(page.get("url"))))
    return Search(query, tuple(pages))


def _write_search(search: Search, block: Block) -> Block:
    # The same search may be made again: the block has the id that its provider gave to this one.
    name = sha256(encode_arguments(block).encode("utf-8", "replace"))
    action: Block = {
        "type": "search",
        "query": search.query,
        "sources": [{"type": "url", "url": page.url} for page in search.pages],
    }
    return {"id": f"ws_{name.hexdigest()[:32]}", "type": "web_search_call", "status": "completed", "action": action}


def _as_declared(call: ToolCall, tool: ToolDefinition) -> tuple[ToolCall, Block]:
    if not custom_names((tool,)):
        return call, EMPTY
    own = {**(call.extra or {}).get(PROTOCOL, {}), **_CUSTOM.get(PROTOCOL, {})}
    return replace(call, extra={**(call.extra or {}), PROTOCOL: own}), _CUSTOM_START


REPLY_FORM: Final = ReplyForm(
    id_prefix="resp_",
    refusals=("content_filter",),  # openai 3.49.0: IncompleteDetails
    is_refusal=lambda text: chosen(text.extra, PROTOCOL, "field", "text") == "refusal",
    cite_in_text=_cite_in_text,
    read_search=_read_search,
    write_search=_write_search,
    as_declared=_as_declared,
)
