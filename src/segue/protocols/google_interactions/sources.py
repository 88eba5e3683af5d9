"""Pages that a reply cites.

Facts this file rests on:
- A text of the model has `annotations`; a `url_citation` has an address, a title and its place in bytes of the text.
                                                          (google-genai 3.1.0: URLCitationParam, read 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.messages import AssistantMessage
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, objects_in
from segue.protocols.kit.verbatim import data_of


def cited_sources(message: AssistantMessage) -> Sequence[Source]:
    """Give the pages that the texts of a message cite."""
    return [
        Source(url, text_of(annotation.get("title")) or "")
        for piece in message.content
        if piece.kind == "text" and piece.extra is not None
        for annotation in objects_in(data_of(piece.extra, PROTOCOL).get("annotations"))
        if annotation.get("type") == "url_citation" and (url := text_of(annotation.get("url")))
    ]
