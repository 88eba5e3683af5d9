"""What replies of the Interactions API hold of other replies.

Facts this file rests on:
- A text has `annotations`; the place of a `url_citation` is counted in bytes. The place of pages that another model
  cites is not known, so they stand at the end.            (google-genai 3.1.0: URLCitationParam, read 2026-11-17)
- A search is a call with its queries and a result, both signed, so no other search is written as one.    (the same)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import NativeContent, TextContent
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import strings_of
from segue.protocols.kit.reply_form import ReplyForm, Search
from segue.protocols.kit.sources import Source


def _cite_in_text(text: TextContent, pages: Sequence[Source]) -> TextContent:
    end = len(text.text.encode("utf-8", "replace"))
    annotations = [
        {"type": "url_citation", "url": page.url, "title": page.title, "start_index": end, "end_index": end}
        for page in pages
    ]
    return replace(text, extra={PROTOCOL: {"annotations": annotations}})


def _read_search(content: NativeContent) -> Search | None:
    match content.block.get("type"):
        case "google_search_call":
            queries = strings_of(object_of(content.block.get("arguments")).get("queries"))
            return Search(", ".join(queries), is_open=True) if queries else None
        case "google_search_result":
            return Search()  # the pages stand in the annotations of the answer
        case _:
            return None


REPLY_FORM: Final = ReplyForm(
    refusals=(
        "content_blocked",
        "safety",
        "recitation",
        "language",
        "prohibited_content",
        "spii",
        "blocklist",
        "image_safety",
        "image_prohibited_content",
        "image_recitation",
        "image_other",
    ),  # codes of a public adapter's live calls, read 2026-11-16
    cite_in_text=_cite_in_text,
    read_search=_read_search,
)
