"""Images and documents of the Anthropic wire, both ways.

Facts this file rests on:
- An image is base64, a URL or a file id; a document is base64 (a PDF), plain text as text, a URL of a PDF, a file id,
  or a list of blocks of one's own.                     (anthropic 2.8.0: image and document sources, read 2026-11-15)
- `title` and `context` of a document are told to the model; `title` is what a file is called.            (the same)
- Neither a URL nor a file id says what type it leads to. URLs of documents are URLs of PDFs by the SDK's own name for
  them; most files by id are PDFs too, and nothing but the type asks for it.                               (the same)

Pictures are carried, not looked at. A source that has none of these forms makes the block a native one.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from segue.conversation.content import Extra, FileContent, ImageContent, NativeContent
from segue.errors import EncodeError
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.verbatim import keep, put_back
from segue.protocols.kit.reading import standard_base64, verbatim_of

Block: TypeAlias = Mapping[str, object]

_PDF: Final = "application/pdf"
_PLAIN: Final = "text/plain"
_IMAGE_KEYS: Final = frozenset({"type", "source"})
_DOCUMENT_KEYS: Final = frozenset({"type", "source", "title"})
_SOURCE_KEYS: Final[Mapping[object, frozenset[str]]] = {
    "base64": frozenset({"type", "media_type", "data"}),
    "text": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
}


def _source_of(block: Block) -> Block:
    source = block.get("source")
    return cast("Mapping[str, object]", source) if isinstance(source, Mapping) else {}


def _extra(block: Block, known: frozenset[str], verbatim: Mapping[str, object]) -> Extra | None:
    """Keep what block and source say beyond the words segue has for them; the source's share under `source`."""
    source = _source_of(block)
    beyond = {key: value for key, value in source.items() if key not in _SOURCE_KEYS[source.get("type")]}
    extra = keep(block, known, verbatim)
    if not beyond:
        return extra
    return {PROTOCOL: {**(extra or {}).get(PROTOCOL, {}), "source": beyond}}


def decode_image(block: Block) -> ImageContent | NativeContent | None:
    """Read an image; None when its source has no form that is known. One by file id has no neutral word: native."""
    source = _source_of(block)
    kind, mime, data = source.get("type"), source.get("media_type"), source.get("data")
    if kind == "base64" and isinstance(mime, str) and isinstance(data, str):
        return ImageContent(data=standard_base64(data), mime_type=mime, extra=_extra(block, _IMAGE_KEYS, {}))
    if kind == "url" and isinstance(url := source.get("url"), str):
        return ImageContent(url=url, extra=_extra(block, _IMAGE_KEYS, {}))
    if kind == "file" and isinstance(file_id := source.get("file_id"), str):
        spare = FileContent(file_id=file_id, mime_type="image/*")
        return NativeContent(protocol=PROTOCOL, block=block, fallback=(spare,))
    return None


def decode_document(block: Block) -> FileContent | None:
    """Read a document; None when its source has no form that is known, or is made of blocks."""
    source, title = _source_of(block), block.get("title")
    kind, mime, data = source.get("type"), source.get("media_type"), source.get("data")
    name = title if isinstance(title, str) else None
    verbatim: dict[str, object] = {"title": title} if "title" in block and name is None else {}
    if kind == "base64" and isinstance(mime, str) and isinstance(data, str):
        if mime != _PDF:
            verbatim["source"] = "base64"
        extra = _extra(block, _DOCUMENT_KEYS, verbatim)
        return FileContent(data=standard_base64(data), mime_type=mime, name=name, extra=extra)
    if kind == "text" and isinstance(mime, str) and isinstance(data, str):
        if mime != _PLAIN:
            verbatim["source"] = "text"
        encoded = base64.b64encode(data.encode("utf-8", "surrogatepass")).decode("ascii")
        return FileContent(data=encoded, mime_type=mime, name=name, extra=_extra(block, _DOCUMENT_KEYS, verbatim))
    if kind == "url" and isinstance(url := source.get("url"), str):
        return FileContent(url=url, mime_type=_PDF, name=name, extra=_extra(block, _DOCUMENT_KEYS, verbatim))
    if kind == "file" and isinstance(file_id := source.get("file_id"), str):
        return FileContent(file_id=file_id, mime_type=_PDF, name=name, extra=_extra(block, _DOCUMENT_KEYS, verbatim))
    return None


def encode_image(image: ImageContent) -> dict[str, object]:
    """Write an image.

    Raises:
        EncodeError: it has neither data nor a URL, or data of no named type.
    """
    return _block("image", _image_source(image.data, image.url, None, image.mime_type), image.extra)


def encode_file(file: FileContent) -> dict[str, object]:
    """Write a file: an image by its type, else a document.

    Raises:
        EncodeError: the wire has no document of this type, or there is nothing to send.
    """
    mime = (file.mime_type or "").partition(";")[0].strip().lower()
    if mime.startswith("image/"):
        return _block("image", _image_source(file.data, file.url, file.file_id, mime), file.extra)
    verbatim = verbatim_of(file.extra, PROTOCOL)
    if file.data is not None:
        if mime == _PDF:
            source: dict[str, object] = {"type": "base64", "media_type": mime, "data": file.data}
        elif verbatim.get("source") == "base64":
            source = {"type": "base64", "media_type": file.mime_type, "data": file.data}
        elif mime == _PLAIN or verbatim.get("source") == "text":
            source = {"type": "text", "media_type": mime, "data": _text_of(file.data)}
        else:
            raise EncodeError(f"this wire has no document of type {file.mime_type or 'unknown'}")
    elif file.url is not None:
        source = {"type": "url", "url": file.url}
    elif file.file_id is not None:
        source = {"type": "file", "file_id": file.file_id}
    else:
        raise EncodeError("a file without data, URL or file id")
    block = _block("document", source, file.extra)
    if file.name is not None:
        block["title"] = file.name
    elif "title" in verbatim:
        block["title"] = verbatim["title"]
    return block


def _image_source(data: str | None, url: str | None, file_id: str | None, mime: str | None) -> dict[str, object]:
    if data is not None:
        if mime is None:
            raise EncodeError("an image without a MIME type")
        return {"type": "base64", "media_type": mime, "data": data}
    if url is not None:
        return {"type": "url", "url": url}
    if file_id is not None:
        return {"type": "file", "file_id": file_id}
    raise EncodeError("an image without data or URL")


def _block(kind: str, source: dict[str, object], extra: Extra | None) -> dict[str, object]:
    if extra is None:
        return {"type": kind, "source": source}
    left = dict(put_back(extra))
    beyond = left.pop("source", None)
    if isinstance(beyond, Mapping):
        source = {**source, **cast("Mapping[str, object]", beyond)}
    return {"type": kind, "source": source, **left}


def _text_of(data: str) -> str:
    """Read a text file's base64. The wire takes text alone: what is none is told as far as it can be read."""
    try:
        raw = base64.b64decode(data)
    except binascii.Error:
        return data
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
