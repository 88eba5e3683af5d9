"""What replies of Claude's protocol hold of other replies.

Facts this file rests on:
- `web_search_tool_result` and the citations of its pages hold encrypted data, without which they are refused when the
  client returns them. So searches of other models are text here.                  (anthropic 2.8.0, read 2026-11-15)
"""

from __future__ import annotations

from typing import Final

from segue.conversation.content import NativeContent
from segue.protocols.kit.json_values import object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.reply_form import ReplyForm, Search
from segue.protocols.kit.sources import Source, objects_in


def _read_search(content: NativeContent) -> Search | None:
    block = content.block
    match block.get("type"):
        case "server_tool_use" if block.get("name") == "web_search":
            return Search(text_of(object_of(block.get("input")).get("query")) or "", is_open=True)
        case "web_search_tool_result":
            found = objects_in(block.get("content"))
            return Search(
                pages=tuple(
                    Source(url, text_of(page.get("title")) or "") for page in found if (url := text_of(page.get("url")))
                )
            )
        case _:
            return None


REPLY_FORM: Final = ReplyForm(
    id_prefix="msg_",
    refusals=("refusal", "sensitive"),  # anthropic 2.8.0: StopReason; Z.ai's documentation of its endpoint, 2026-11
    read_search=_read_search,
)
