"""Pages that a reply of Claude cites.

Facts this file rests on:
- A text has `citations`; those of type `web_search_result_location` have `url` and `title`, those of a search result
  of the caller's have `source`.                                                   (anthropic 2.8.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.messages import AssistantMessage
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, objects_in
from segue.protocols.kit.verbatim import data_of


def cited_sources(message: AssistantMessage) -> Sequence[Source]:
    """Give the pages that the texts of a message cite."""
    return [
        Source(url, text_of(citation.get("title")) or "")
        for piece in message.content
        if piece.extra is not None and piece.kind == "text"
        for citation in objects_in(data_of(piece.extra, PROTOCOL).get("citations"))
        if (url := text_of(citation.get("url")))
    ]
