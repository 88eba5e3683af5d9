"""Pages that a reply of the Responses protocol cites.

Facts this file rests on:
- A text has `annotations`; a `url_citation` has `url` and `title`, at xAI only `url`.
                                              (openai 3.49.0; recorded traffic, 2026-11; read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, objects_in
from segue.protocols.kit.verbatim import data_of
from segue.protocols.openai_responses.rules import PROTOCOL


def cited_sources(message: AssistantMessage) -> Sequence[Source]:
    """Give the pages that the texts of a message cite."""
    return [
        Source(url, text_of(annotation.get("title")) or "")
        for piece in message.content
        if piece.extra is not None and piece.kind == "text"
        for annotation in objects_in(data_of(piece.extra, PROTOCOL).get("annotations"))
        if annotation.get("type") == "url_citation" and (url := text_of(annotation.get("url")))
    ]
