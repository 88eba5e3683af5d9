"""Images, documents, video and audio of the Bedrock wire, both ways.

Facts this file rests on:
- A source is bytes (base64 in JSON, real bytes in boto3) or an S3 location; that of a document may also be a text or a
  list of texts.                                                     (botocore 1.44.0 service model, read 2026-11-15)
- The type of media is a short format name, not a MIME type; other names than the documented ones were answered, too
  (`video/mp4`).                                                            (the same; recorded traffic, 2026-11)

An S3 location is a file id here: only this provider can reach it.

The choice `field` is "text" where the data of a document stood in `source.text`; the default is "bytes".
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.cache import restore_block
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.media_types import ALIASES, FORMATS, TYPES, Kind, kind_of
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import standard_base64, text_of
from segue.protocols.kit.verbatim import choose, chosen, keep

_KNOWN: Final = frozenset({"format"})
_FIELD: Final = "field"
_BYTES: Final = "bytes"
_TEXT: Final = "text"
_S3: Final = "s3Location"
_S3_SCHEME: Final = "s3://"
_PLAIN: Final = "text/plain"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_image(inner: object, names: DocumentNames) -> ImageContent | FileContent | None:
    """Read an image; None when it is not a known form. An image in S3 is a file."""
    file = decode_file("image", inner, names)
    if file is None or file.data is None:
        return file
    return ImageContent(data=file.data, mime_type=file.mime_type, extra=file.extra)


def decode_file(kind: Kind, inner: object, names: DocumentNames) -> FileContent | None:
    """Read a document, a video or audio; None when it is not a known form."""
    block = object_of(inner)
    source = object_of(without_bytes(block.get("source")))
    if len(source) != 1:
        return None
    field, value = next(iter(source.items()))
    mime = _decode_format(kind, block.get("format"))
    name = block.get("name") if kind == "document" else None
    if (mime is None and field != _TEXT) or (kind == "document" and not isinstance(name, str)):
        return None
    data = file_id = None
    if field == _BYTES and isinstance(value, str):
        data = standard_base64(value)
    elif field == _TEXT and kind == "document" and isinstance(value, str):
        data = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
    elif field == _S3 and isinstance(uri := object_of(value).get("uri"), str) and uri:
        file_id = uri
    else:
        return None
    given = name if isinstance(name, str) else None
    context = text_of(block.get("context")) or None if kind == "document" else None
    media = FileContent(data=data, file_id=file_id, mime_type=mime or _PLAIN, name=given, context=context)
    default = _default_block(media, kind, file_id, names, name=given, as_text=field == _TEXT)
    names.take(given)
    choices = choose(_FIELD, _BYTES, _TEXT) if field == _TEXT else {}
    extra = keep(PROTOCOL, {**block, "source": source}, default, known=_KNOWN, choices=choices)
    return media if extra is None else replace(media, extra=extra)


def _decode_format(kind: Kind, name: object) -> str | None:
    """Give the MIME type of a format; one of its own for a format that is unknown."""
    if not isinstance(name, str) or not name:
        return None
    mime = TYPES[kind].get(name) or ALIASES[kind].get(name)
    if mime is not None:
        return mime
    return name if "/" in name and kind_of(name)[0] == kind else f"{kind}/{name}"


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent, names: DocumentNames) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has no data, or the wire has no format for its type.
    """
    place = image.url if image.url is not None and image.url.startswith(_S3_SCHEME) else None
    return _encode(image, "image", place, names, name=None)


def encode_file(file: FileContent, names: DocumentNames) -> Wire:
    """Write a file: as an image, a video, audio or a document, by its type.

    Raises:
        EncodeError: it has no data, or the wire has no format for its type.
    """
    kind, _ = kind_of(file.mime_type)
    place = file.file_id
    if place is None and file.url is not None and file.url.startswith(_S3_SCHEME):
        place = file.url
    return _encode(file, kind, place, names, name=file.name)


def _encode(
    media: ImageContent | FileContent, kind: Kind, place: str | None, names: DocumentNames, *, name: str | None
) -> Wire:
    extra = media.extra
    as_text = extra is not None and chosen(extra, PROTOCOL, _FIELD, _BYTES) == _TEXT
    inner = _default_block(media, kind, place, names, name=name, as_text=as_text)
    has_format = "format" in inner
    if extra is not None:
        restore_block(inner, extra)
    if not has_format and "format" not in inner:
        known = ", ".join(dict.fromkeys(FORMATS[kind].values()))
        raise EncodeError(
            f"{PROTOCOL} does not support {kind} of type {media.mime_type or 'unknown'}; convert it to one of {known}"
        )
    if kind == "document":
        names.take(inner.get("name"))
    return {kind: inner}


def _default_block(
    media: ImageContent | FileContent,
    kind: Kind,
    place: str | None,
    names: DocumentNames,
    *,
    name: str | None,
    as_text: bool,
) -> Wire:
    """Write media in the default format; without a format where the type has none."""
    inner: Wire = {}
    form = FORMATS[kind].get(kind_of(media.mime_type)[1])
    if form is not None:
        inner["format"] = form
    if kind == "document":
        inner["name"] = names.fitting(name, form)
    inner["source"] = _encode_source(media.data, place, as_text=as_text)
    if kind == "document" and media.kind == "file" and media.context is not None:
        inner["context"] = media.context
    return inner


def _encode_source(data: str | None, place: str | None, *, as_text: bool) -> Block:
    if data is not None and as_text:
        try:
            return {_TEXT: base64.b64decode(data).decode("utf-8", "surrogatepass")}
        except (binascii.Error, UnicodeDecodeError):
            return {_BYTES: data}
    if data is not None:
        return {_BYTES: data}
    if place is not None:
        return {_S3: {"uri": place}}
    raise EncodeError(f"{PROTOCOL} accepts media as data or in S3 only; supply the data (`Policy.media`)")
