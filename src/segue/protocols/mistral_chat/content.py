"""Content chunks of user, tool and system messages, one at a time, both ways.

Facts this file rests on:
- Chunks are text, image_url, document_url, file, input_audio, reference, resource, resource_link and thinking; a
  system message has text or thinking.                                          (mistralai 3.7.0, read 2026-11-15)
- Tool results may be lists of chunks as well.                       (mistralai 3.7.0; pi-ai 1.5.0 writes nothing else)
- A resource wraps a text or an image, a resource_link has the URI of one, a reference has the numbers of what was
  cited.                                                                                            (mistralai 3.7.0)

`chat_family.message_content` makes content of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never, cast

from segue.conversation.content import FallbackContent, NativeContent, TextContent, UserContent
from segue.errors import Path
from segue.protocols.chat_family.message_content import Blocks, decode_text, encode_text
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import native_block, text_of
from segue.protocols.kit.sources import Source, labelled
from segue.protocols.mistral_chat.media import decode_media, encode_file, encode_image
from segue.protocols.mistral_chat.rules import PROTOCOL

# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_chunk(chunk: Block) -> UserContent:
    """Read one chunk; one of an unknown type becomes native content."""
    return decode_text(PROTOCOL, chunk) or decode_media(chunk) or decode_native(chunk)


def decode_native(chunk: Block) -> NativeContent:
    """Keep a chunk that only this protocol has, with a fallback for others."""
    return NativeContent(protocol=PROTOCOL, block=chunk, fallback=_fallback(chunk))


def _fallback(chunk: Block) -> tuple[FallbackContent, ...]:
    if chunk.get("type") == "resource":
        inner = decode_chunk(object_of(chunk.get("content")))
        return inner.fallback if inner.kind == "native" else (inner,)
    if chunk.get("type") == "resource_link":
        text = text_of(chunk.get("uri"))
    elif chunk.get("type") == "tool_reference" and (url := text_of(chunk.get("url"))) is not None:
        # A page that a tool of the provider found (mistralai 3.7.0: ToolReferenceChunk).
        label = f"source of {text_of(chunk.get('tool')) or 'a tool'}"
        text = labelled(label, [Source(url, text_of(chunk.get("title")) or "").line()])
    elif chunk.get("type") == "thinking":
        text = join_thoughts(chunk.get("thinking"))
    else:
        text = text_of(chunk.get("text")) or text_of(chunk.get("content"))
    return (TextContent(text=text),) if text else ()


def join_thoughts(thinking: object) -> str | None:
    """Give the text of a thinking chunk; None when it holds something else than texts and references."""
    if isinstance(thinking, str):
        return thinking
    if not isinstance(thinking, (list, tuple)):
        return None
    texts: list[str] = []
    for inner in cast("Sequence[object]", thinking):
        chunk = object_of(inner)
        if not chunk:
            return None
        if chunk.get("type", "text") == "text":
            text = chunk.get("text")
            if not isinstance(text, str):
                return None
            texts.append(text)
    return "".join(texts)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_chunk(content: UserContent, path: Path) -> Wire:
    """Write content as a chunk.

    Raises:
        EncodeError: another protocol's block, or media without a source that this protocol supports.
    """
    match content.kind:
        case "text":
            return encode_text(PROTOCOL, content)
        case "image":
            return encode_image(content, path)
        case "file":
            return encode_file(content, path)
        case "native":
            return dict(native_block(PROTOCOL, content, path))
        case _:
            assert_never(content)


BLOCKS: Final = Blocks(PROTOCOL, decode_chunk, encode_chunk, decode_native)
