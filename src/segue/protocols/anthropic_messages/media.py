"""Images and documents of the Anthropic wire, both ways.

Facts this file relies on:
- The source of an image is base64, a URL or a file id; that of a document is base64 (a PDF), plain text as text, the
  URL of a PDF, a file id, or a list of blocks.           (anthropic 2.8.0: image and document sources, read 2026-11-15)
- The model sees `title` and `context` of a document; `title` is the name of the file.                      (the same)
- Neither a URL nor a file id states a type. URLs of documents are URLs of PDFs by the SDK's own name for them; most
  files with an id are PDFs too, and nothing but the neutral type needs one.                               (the same)

Media are not inspected. A block whose source has none of these forms is native. An image with a file id is a file of
the type `image/*`: the id does not show which image it is.

Choices kept in `extra`: `source`, the type of the source of a document.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import CacheMark, FileContent, ImageContent
from segue.conversation.media_types import plain_type
from segue.errors import EncodeError
from segue.protocols.anthropic_messages.cache import CACHE_CONTROL, decode_mark, encode_mark
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.json_values import EMPTY, Block, Wire
from segue.protocols.kit.reading import standard_base64, text_of
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

_PDF: Final = "application/pdf"
_PLAIN: Final = "text/plain"
_ANY_IMAGE: Final = "image/*"
_SOURCES: Final[Mapping[str, str]] = {_PDF: "base64", _PLAIN: "text"}
"""The default type of source for the data of a document, by MIME type; other types have none."""


def source_of(block: Block) -> Block:
    """Give the source of a block; an empty object where it has none."""
    source = block.get("source")
    return cast("Block", source) if isinstance(source, Mapping) else EMPTY


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_image(block: Block) -> ImageContent | FileContent | None:
    """Read an image; None when its source has an unknown form."""
    source = source_of(block)
    if source.get("type") == "file":
        return _decode_stored_image(block, source.get("file_id"))
    kind, mime, data = source.get("type"), source.get("media_type"), source.get("data")
    mark = decode_mark(block)
    if kind == "base64" and isinstance(mime, str) and isinstance(data, str):
        image = ImageContent(data=standard_base64(data), mime_type=mime, cache_mark=mark)
    elif kind == "url" and isinstance(url := source.get("url"), str):
        image = ImageContent(url=url, cache_mark=mark)
    else:
        return None
    if (
        len(block) == 2
        and len(source) == (3 if image.url is None else 2)
        and (image.data is None or image.data is data)
    ):
        return image
    return replace(image, extra=keep(PROTOCOL, block, encode_image(image)))


def _decode_stored_image(block: Block, file_id: object) -> FileContent | None:
    if not isinstance(file_id, str):
        return None
    file = FileContent(file_id=file_id, mime_type=_ANY_IMAGE, cache_mark=decode_mark(block))
    return replace(file, extra=keep(PROTOCOL, block, encode_file(file)))


def decode_document(block: Block) -> FileContent | None:
    """Read a document; None when its source has an unknown form, or is a list of blocks."""
    source, title = source_of(block), block.get("title")
    kind, mime, data = source.get("type"), source.get("media_type"), source.get("data")
    name, mark = title if isinstance(title, str) else None, decode_mark(block)
    context = text_of(block.get("context")) or None  # an empty one is only format
    choice, keys = Wire(), 2
    if kind in ("base64", "text") and isinstance(mime, str) and isinstance(data, str):
        content = standard_base64(data) if kind == "base64" else _base64_of(data)
        file = FileContent(data=content, mime_type=mime, name=name, context=context, cache_mark=mark)
        choice, keys = choose("source", _default_source(mime), kind), 3
    elif kind == "url" and isinstance(url := source.get("url"), str):
        file = FileContent(url=url, mime_type=_PDF, name=name, context=context, cache_mark=mark)
    elif kind == "file" and isinstance(file_id := source.get("file_id"), str):
        file = FileContent(file_id=file_id, mime_type=_PDF, name=name, context=context, cache_mark=mark)
    else:
        return None
    is_plain = len(source) == keys and (keys == 2 or mime in _SOURCES) and not choice
    is_plain = is_plain and (kind != "base64" or file.data is data)
    if is_plain and len(block) == 2 + (name is not None) + (context is not None):
        return file
    if choice:
        file = replace(file, extra=keep(PROTOCOL, EMPTY, EMPTY, choices=choice))
    return replace(file, extra=keep(PROTOCOL, block, encode_file(file), choices=choice))


def _base64_of(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has neither data nor a URL, or data without a MIME type.
    """
    source = _image_source(image.data, image.url, None, image.mime_type)
    block = _block("image", source, image.cache_mark)
    return block if image.extra is None else restore(block, image.extra, PROTOCOL)


def encode_file(file: FileContent) -> Wire:
    """Write a file: as an image where its type is one, else as a document.

    Raises:
        EncodeError: the wire has no document of this type, or the file has no content.
    """
    mime = plain_type(file.mime_type)
    if mime.startswith("image/"):
        block = _block("image", _image_source(file.data, file.url, file.file_id, mime), file.cache_mark)
    else:
        block = _block("document", _document_source(file, mime), file.cache_mark)
        if file.name is not None:
            block["title"] = file.name
        if file.context is not None:
            block["context"] = file.context
    return block if file.extra is None else restore(block, file.extra, PROTOCOL)


def _document_source(file: FileContent, mime: str) -> Wire:
    if file.data is not None:
        match chosen(file.extra, PROTOCOL, "source", _default_source(file.mime_type)):
            case "base64":
                return {"type": "base64", "media_type": mime if mime == _PDF else file.mime_type, "data": file.data}
            case "text":
                return {"type": "text", "media_type": mime, "data": _text_of(file.data)}
            case _:
                kind = file.mime_type or "unknown"
                raise EncodeError(f"{PROTOCOL} does not support documents of type {kind}; send a PDF or a text")
    if file.url is not None:
        return {"type": "url", "url": file.url}
    if file.file_id is not None:
        return {"type": "file", "file_id": file.file_id}
    raise EncodeError("a file has neither data nor a URL nor a file id; set one of them")


def _default_source(mime_type: str | None) -> str | None:
    return _SOURCES.get(plain_type(mime_type))


def _image_source(data: str | None, url: str | None, file_id: str | None, mime: str | None) -> Wire:
    if data is not None:
        if mime is None:
            raise EncodeError("an image with data has no MIME type; set `mime_type`")
        return {"type": "base64", "media_type": mime, "data": data}
    if url is not None:
        return {"type": "url", "url": url}
    if file_id is not None:
        return {"type": "file", "file_id": file_id}
    raise EncodeError("an image has neither data nor a URL; set one of them")


def _block(kind: str, source: Wire, mark: CacheMark | None) -> Wire:
    block: Wire = {"type": kind, "source": source}
    if mark is not None:
        block[CACHE_CONTROL] = encode_mark(mark)
    return block


def _text_of(data: str) -> str:
    """Read the base64 of a text file. Bytes that are not UTF-8 are replaced: the wire takes text alone."""
    try:
        raw = base64.b64decode(data)
    except binascii.Error:
        return data
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
