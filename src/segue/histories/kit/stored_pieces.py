"""Pieces of messages that many formats store alike: images and files, thinking, numbers of tokens."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from segue.conversation.content import FileContent, ImageContent, ThinkingContent
from segue.conversation.media_types import class_of, type_of_data
from segue.conversation.messages import Usage, UsageCost
from segue.histories.kit.lines import integer_of
from segue.protocols.kit.reading import split_data_url, standard_base64


def media_of(
    *, data: str | bytes | None = None, url: str | None = None, mime: str | None = None, name: str | None = None
) -> ImageContent | FileContent:
    """Make an image or a file of base64 data, bytes or a URL, also one with the data in it."""
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode()
    elif data is not None:
        data = standard_base64(data)
    if url is not None and (split := split_data_url(url)) is not None:
        mime, data, url = mime or split[0], standard_base64(split[1]), None
    mime = mime or (type_of_data(data) if data else None)
    if mime is not None and class_of(mime) == "image":
        return ImageContent(data=data, url=url, mime_type=mime)
    return FileContent(data=data, url=url, mime_type=mime, name=name)


def reasoning_item(text: str, item_id: str | None, encrypted: str | None) -> ThinkingContent:
    """Make thinking of a reasoning item of OpenAI; its signature is the item, as the codec of Responses keeps it."""
    if encrypted is None:
        return ThinkingContent(thinking=text)
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": encrypted}
    try:
        signature = msgspec.json.encode(item).decode()
    except UnicodeEncodeError:  # half a surrogate pair: no signature that a provider has written
        return ThinkingContent(thinking=text)
    return ThinkingContent(thinking=text, thinking_signature=signature)


def usage_of(
    *,
    read: object = 0,
    output: object = 0,
    cache_read: object = 0,
    cache_write: object = 0,
    reasoning: object = 0,
    cost: object = None,
) -> Usage | None:
    """Make the usage of a turn; None if nothing was counted. `read` has no cached tokens."""
    counts = [integer_of(each) for each in (read, output, cache_read, cache_write, reasoning)]
    price = float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost > 0 else None
    if not any(counts) and price is None:
        return None
    return Usage(
        input=counts[0],
        output=counts[1],
        cache_read=counts[2],
        cache_write=counts[3],
        reasoning=min(counts[4], counts[1]),
        total_tokens=sum(counts[:4]),
        cost=None if price is None else UsageCost(total=price),
    )
