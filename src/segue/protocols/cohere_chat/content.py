"""Content blocks of user, tool and system messages, one at a time, both ways.

`families.chat_content` makes content of them.

Choices (`kit.verbatim`): `form` is "string" where `image_url` was a string instead of an object; `mime` is the type
that a data URL named, where the default is another one.

Cohere's v1 chat protocol, recognised so that it can be refused by its name.

Facts:
- A user message has texts and images (`image_url` with a `detail`), a system message texts, a tool result is a JSON
  string or a list of texts and documents.                                         (cohere 7.3.1, read 2026-11-15)
- A document is `{"data": {...}, "id"}`; the model sees the keys and values of its data, and citations refer to its id.
                                                                                                     (cohere 7.3.1)
- A request is one `message` next to a `chat_history`; a reply is a `text` with a `generation_id`; a stream is lines of
  JSON, each with an `event_type`.                     (cohere 7.3.1: `chat` of the first client, read 2026-11-15)
- Its endpoint is `v1/chat`; segue supports `v2/chat`.                                                     (the same)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, assert_never

from msgspec.structs import replace

from segue.conversation.content import (
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.families.chat_content import Blocks, decode_text, encode_text
from segue.protocols.kit.codec import JsonObject
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import data_url, native_block, split_data_url, standard_base64, text_of
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

_UNKNOWN: Final = "application/octet-stream"
"""The type that a data URL names by default where the content has none."""

# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_block(block: Block) -> UserContent:
    """Read one block; one of an unknown type becomes native content."""
    return decode_text(PROTOCOL, block) or _decode_image(block) or decode_native(block)


def _decode_image(block: Block) -> ImageContent | None:
    received = block.get("image_url")
    inner = object_of(received)
    url = received if isinstance(received, str) else inner.get("url")
    if block.get("type") != "image_url" or not isinstance(url, str):
        return None
    choices = choose("form", "object", "string" if isinstance(received, str) else "object")
    parts = split_data_url(url)
    content = ImageContent(url=url)
    if parts is not None:
        data = standard_base64(parts[1])
        content = ImageContent(data=data, mime_type=parts[0])
        if parts[0] is None:
            choices |= choose("mime", _UNKNOWN, "")
    if not choices and len(block) == 2 and len(inner) == 1 and (parts is None or content.data is parts[1]):
        return content  # without writing it again: images are large
    if choices:
        content = replace(content, extra=keep(PROTOCOL, {}, {}, choices=choices))
    extra = keep(PROTOCOL, block, _encode_image(content, ()), choices=choices)
    return replace(content, extra=extra)


def decode_native(block: Block) -> NativeContent:
    """Keep a block that only this protocol has, with a fallback for others."""
    return NativeContent(protocol=PROTOCOL, block=block, fallback=_fallback(block))


def _fallback(block: Block) -> tuple[FallbackContent, ...]:
    text = text_of(block.get("text")) or text_of(block.get("thinking")) or text_of(block.get("content"))
    if block.get("type") == "document":
        data = object_of(block.get("document")).get("data")
        text = json.dumps(data, ensure_ascii=False) if isinstance(data, Mapping) else text_of(data)
    return (TextContent(text=text),) if text else ()


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_block(content: UserContent, path: Path) -> Wire:
    """Write content as a block.

    Raises:
        EncodeError: another protocol's block, or a file, which this protocol does not support.
    """
    match content.kind:
        case "text":
            return encode_text(PROTOCOL, content)
        case "image":
            return _encode_image(content, path)
        case "file":
            if (content.mime_type or "").lower().startswith("image/"):
                return _encode_image(content, path)
            raise EncodeError(f"{PROTOCOL} does not support files; remove it or choose another model", path=path)
        case "native":
            return dict(native_block(PROTOCOL, content, path))
        case _:
            assert_never(content)


def _encode_image(content: ImageContent | FileContent, path: Path) -> Wire:
    extra = content.extra
    if content.data is not None:
        is_untyped = content.mime_type is None and chosen(extra, PROTOCOL, "mime", _UNKNOWN) == ""
        url = f"data:;base64,{content.data}" if is_untyped else data_url(content.mime_type, content.data)
    elif content.url is not None:
        url = content.url
    else:
        raise EncodeError(f"the {content.kind} has no data or URL; set one of them", path=path)
    if extra is None:
        return {"type": "image_url", "image_url": {"url": url}}
    value: object = url if chosen(extra, PROTOCOL, "form", "object") == "string" else {"url": url}
    return restore({"type": "image_url", "image_url": value}, extra, PROTOCOL)


BLOCKS: Final = Blocks(PROTOCOL, decode_block, encode_block, decode_native)


REFUSAL: Final = "cohere-chat supports v2/chat and this is v1/chat; send it to the v2 endpoint with `messages`"


def is_first_request(body: JsonObject) -> bool:
    """Whether a request is one of v1."""
    return "messages" not in body and ("chat_history" in body or isinstance(body.get("message"), str))


def is_first_reply(body: JsonObject) -> bool:
    """Whether a reply is one of v1, whole or a line of its stream."""
    return "event_type" in body or ("generation_id" in body and isinstance(body.get("text"), str))
