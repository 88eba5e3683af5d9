"""Pages that a reply of the Converse protocol cites.

Facts this file rests on:
- A text with citations has the address of a page in `location.web.url`.       (botocore 1.44.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.messages import AssistantMessage
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.server_results import cited_pages
from segue.protocols.kit.sources import Source
from segue.protocols.kit.verbatim import data_of


def cited_sources(message: AssistantMessage) -> Sequence[Source]:
    """Give the pages that the texts of a message cite."""
    return [
        source
        for piece in message.content
        if piece.extra is not None and piece.kind == "text"
        for source in cited_pages(data_of(piece.extra, PROTOCOL))
    ]
