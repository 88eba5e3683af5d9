"""Pages that a reply of Gemini is grounded on.

Facts this file rests on:
- `groundingMetadata.groundingChunks[].web` {uri, title} of a candidate; it is never sent back. The title is the domain
  and the address a redirect.                      (google-genai 3.1.0; recorded traffic, 2026-11; read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.messages import AssistantMessage
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.sources import Source, find_in_reply, objects_in


def cited_sources(message: AssistantMessage) -> Sequence[Source]:
    """Give the pages that a message is grounded on."""
    grounding = object_of(find_in_reply(message.extra, PROTOCOL, "candidates", "0", "groundingMetadata"))
    return [
        Source(url, text_of(page.get("title")) or "")
        for chunk in objects_in(grounding.get("groundingChunks"))
        if (url := text_of((page := object_of(chunk.get("web"))).get("uri")))
    ]
