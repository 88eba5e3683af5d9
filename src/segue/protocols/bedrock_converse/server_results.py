"""Results of tools that Amazon ran, and the pages that an answer cites.

Facts this file rests on:
- The result of a system tool has a `type` (`nova_code_interpreter_result`) and may have the status `error`.
                                                              (botocore 1.44.0 service model, read 2026-11-15)
- A citation has a `title`, and the address of a page in `location.web.url`.                            (the same)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, objects_in

_LABELS: Final[Mapping[str, str]] = {
    "nova_code_interpreter_result": "output of executed code",
    "nova_grounding_result": "web search results",
}


def label_of(result: Block) -> str:
    """Name what a result is the result of; empty for a result of the application's own tools."""
    kind = text_of(result.get("type"))
    if kind is None:
        return ""
    label = _LABELS.get(kind) or f"result of {kind.removesuffix('_result').replace('_', ' ')}"
    return f"{label}: failed" if result.get("status") == "error" else label


def cited_pages(content: Block) -> Sequence[Source]:
    """Give the web pages that a text cites."""
    return [
        Source(url, text_of(citation.get("title")) or "")
        for citation in objects_in(content.get("citations"))
        if (url := text_of(object_of(object_of(citation.get("location")).get("web")).get("url")))
    ]
