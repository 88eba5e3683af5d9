"""What users, tools and instructions say on Cohere's wire: a string, or a list of blocks, both ways.

Facts this file rests on:
- A user says texts and images (`image_url` with a `detail`), instructions are texts, a tool's result is a JSON string
  or a list of texts and documents.                                                (cohere 7.3.1, read 2026-11-15)
- A document is `{"data": {...}, "id"}`; both names and values of its data are told to the model, and the id is what
  citations refer to.                                                                                (cohere 7.3.1)

Here is one block at a time; how they make up content, and how that is spelt, stands in `spoken`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, assert_never, cast

from segue.conversation.content import (
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.chat_family.message_content import Blocks, encode_text
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.kit.reading import (
    data_url,
    left_over,
    native_block,
    split_data_url,
    standard_base64,
    text_of,
    verbatim_of,
)
from segue.protocols.kit.retired_format import Block, Wire, keep, object_of, put_back

TEXT_KEYS: Final = frozenset({"type", "text"})
_IMAGE_KEYS: Final = frozenset({"type", "image_url"})
_NO_TYPE: Final = "none"
"""The shape of a data URL that names no type."""

# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_block(block: Block) -> UserContent:
    """Read one block; what is not known is kept as it is."""
    match block.get("type"):
        case "text" if isinstance(text := block.get("text"), str):
            return TextContent(text=text, extra=None if len(block) == 2 else keep(PROTOCOL, block, TEXT_KEYS))
        case "image_url":
            return _decode_image(block) or decode_native(block)
        case _:
            return decode_native(block)


def _decode_image(block: Block) -> ImageContent | None:
    given = block.get("image_url")
    verbatim: Wire = {}
    url = object_of(given).get("url")
    if isinstance(given, str):
        url, verbatim["image_url"] = given, "string"
    if not isinstance(url, str):
        return None
    parts = split_data_url(url)
    if parts is not None and parts[0] is None:
        verbatim["mime"] = _NO_TYPE
    extra = keep(PROTOCOL, block, _IMAGE_KEYS, verbatim)
    beyond = {key: value for key, value in object_of(given).items() if key != "url"}
    if beyond:
        extra = {PROTOCOL: {**(extra or {}).get(PROTOCOL, {}), "image_url": beyond}}
    if parts is None:
        return ImageContent(url=url, extra=extra)
    return ImageContent(data=standard_base64(parts[1]), mime_type=parts[0], extra=extra)


def decode_native(block: Block) -> NativeContent:
    """Keep a block that only this wire knows, with what can be read of it for others."""
    return NativeContent(protocol=PROTOCOL, block=block, fallback=_fallback(block))


def _fallback(block: Block) -> tuple[FallbackContent, ...]:
    texts = text_of(block.get("text")) or text_of(block.get("thinking")) or text_of(block.get("content"))
    if block.get("type") == "document":
        data = object_of(block.get("document")).get("data")
        texts = json.dumps(data, ensure_ascii=False) if isinstance(data, Mapping) else text_of(data)
    return (TextContent(text=texts),) if texts else ()


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_block(content: UserContent, path: Path) -> Wire:
    """Write one piece as a block.

    Raises:
        EncodeError: another protocol's block, or a file, which this wire has no word for.
    """
    match content.kind:
        case "text":
            return encode_text(PROTOCOL, content)
        case "image":
            return _encode_image(content, path)
        case "file":
            if (content.mime_type or "").lower().startswith("image/"):
                return _encode_image(content, path)
            raise EncodeError("this wire has no word for a file", path=path)
        case "native":
            return dict(native_block(PROTOCOL, content, path))
        case _:
            assert_never(content)


def _encode_image(content: ImageContent | FileContent, path: Path) -> Wire:
    verbatim = verbatim_of(content.extra, PROTOCOL)
    if content.data is not None:
        untyped = content.mime_type is None and verbatim.get("mime") == _NO_TYPE
        url = f"data:;base64,{content.data}" if untyped else data_url(content.mime_type, content.data)
    elif content.url is not None:
        url = content.url
    else:
        raise EncodeError(f"{content.kind} without data or URL", path=path)
    if content.extra is None:
        return {"type": "image_url", "image_url": {"url": url}}
    beyond = object_of(left_over(content.extra, PROTOCOL).get("image_url"))
    given: object = url if verbatim.get("image_url") == "string" and not beyond else {"url": url, **beyond}
    return put_back({"type": "image_url", "image_url": cast("object", given)}, content.extra, PROTOCOL)


BLOCKS: Final = Blocks(PROTOCOL, decode_block, encode_block, decode_native)
"""What this wire says content with."""
