"""What replies of Gemini's protocol hold of other replies.

Facts this file rests on:
- The pages that a reply rests on, and what was searched for, are `groundingMetadata` of its candidate. Clients do not
  send them back.                                                                (google-genai 3.1.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage
from segue.protocols.google_genai.response import encode_response
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.replies import keep_reply
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.sources import Source


def _cite_in_reply(
    message: AssistantMessage, endpoint: Endpoint, pages: Sequence[Source], queries: Sequence[str]
) -> AssistantMessage:
    default = encode_response(message, endpoint)
    first, *others = cast("list[Wire]", default["candidates"])
    grounding: Wire = {
        **({"webSearchQueries": list(queries)} if queries else {}),
        "groundingChunks": [{"web": {"uri": page.url, "title": page.title or page.url}} for page in pages],
    }
    received = {**default, "candidates": [{**first, "groundingMetadata": grounding}, *others]}
    return replace(message, extra=keep_reply(PROTOCOL, default, received, message.extra))


REPLY_FORM: Final = ReplyForm(
    refusals=(
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "IMAGE_OTHER",
        "MODEL_ARMOR",
    ),  # google-genai 3.1.0: FinishReason, and BlockedReason for the last; read 2026-11-17
    cite_in_reply=_cite_in_reply,
    searches_in_reply=True,
)
