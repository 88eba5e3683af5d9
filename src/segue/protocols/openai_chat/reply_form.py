"""What replies of the chat completions protocol hold of other replies.

Facts this file rests on:
- A message has `annotations` with a `url_citation` {url, title, start_index, end_index}. The place of pages that
  another model cites is not known, so they stand at the end.                        (openai 3.49.0, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.replies import keep_reply
from segue.protocols.kit.reply_form import ReplyForm
from segue.protocols.kit.sources import Source
from segue.protocols.openai_chat.native import text_field
from segue.protocols.openai_chat.response import encode_reply
from segue.protocols.openai_chat.rules import PROTOCOL


def _cite_in_reply(
    message: AssistantMessage,
    endpoint: Endpoint,
    pages: Sequence[Source],
    queries: Sequence[str],  # noqa: ARG001 - the format has no place for them
) -> AssistantMessage:
    end = len(message.text())
    annotations = [
        {
            "type": "url_citation",
            "url_citation": {"url": page.url, "title": page.title, "start_index": end, "end_index": end},
        }
        for page in pages
    ]
    default = encode_reply(message, endpoint)
    first, *others = cast("list[Wire]", default["choices"])
    cited = {**first, "message": {**cast("Wire", first["message"]), "annotations": annotations}}
    received = {**default, "choices": [cited, *others]}
    return replace(message, extra=keep_reply(PROTOCOL, default, received, message.extra))


REPLY_FORM: Final = ReplyForm(
    id_prefix="chatcmpl-",
    refusals=("content_filter", "sensitive"),  # openai 3.49.0: Choice.finish_reason; Z.ai's documentation, 2026-11
    is_refusal=lambda text: text_field(text) in ("refusal", "part.refusal"),
    cite_in_reply=_cite_in_reply,
)
