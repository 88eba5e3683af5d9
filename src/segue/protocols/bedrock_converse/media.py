"""Images, documents, video and audio of the Bedrock wire, both ways.

Facts this file rests on:
- A source is bytes (base64 in JSON, real bytes in boto3) or a place in S3; that of a document may also be a text or a
  list of texts.                                                     (botocore 1.44.0 service model, read 2026-11-15)
- The type of media is a word, not a MIME type; other words than the documented ones were answered, too (`video/mp4`).
                                                                        (the same; recorded traffic, 2026-11)

A place in S3 is a file id here: only this provider can reach it. Pictures are carried, not looked at.
"""

from __future__ import annotations

import base64
from typing import Final

from segue.conversation.content import FileContent, ImageContent
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.media_types import ALIASES, FORMATS, TYPES, Kind, kind_of
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.verbatim import NOTHING, Block, Wire, keep, object_of, plain, put_back
from segue.protocols.kit.reading import standard_base64, verbatim_of

_KEYS: Final = frozenset({"format", "source"})
_DOCUMENT_KEYS: Final = _KEYS | {"name"}
_PLAIN: Final = "text/plain"
_S3: Final = "s3://"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_image(inner: object, names: DocumentNames) -> ImageContent | FileContent | None:
    """Read an image; None when it has no form that is known. One in S3 is a file."""
    file = decode_file("image", inner, names)
    if file is None or file.data is None:
        return file
    return ImageContent(data=file.data, mime_type=file.mime_type, extra=file.extra)


def decode_file(kind: Kind, inner: object, names: DocumentNames) -> FileContent | None:
    """Read a document, a video or a piece of audio; None when it has no form that is known."""
    block, verbatim = object_of(inner), Wire()
    mime = _type_of(kind, block, verbatim)
    found = _read_source(kind, object_of(block.get("source")), verbatim)
    if found is None or (mime is None and verbatim.get("source") != "text"):
        return None
    data, place, beyond = found
    name, known = None, _KEYS
    if kind == "document":
        known = _DOCUMENT_KEYS
        name = block.get("name")
        if not isinstance(name, str):
            return None
        _restore_name(name, verbatim, names, form=block.get("format"))
    return FileContent(
        data=data,
        file_id=place,
        mime_type=mime or _PLAIN,
        name=name,
        extra=keep({**block, "s3Location": beyond} if beyond else block, known, verbatim),
    )


def _read_source(kind: Kind, source: Block, verbatim: Wire) -> tuple[str | None, str | None, Block] | None:
    """Give the data, or the place in S3 and what is said besides it; None when the source is neither, nor a text."""
    if len(source) != 1:
        return None
    form, value = next(iter(source.items()))
    value = plain(value)
    if form == "bytes" and isinstance(value, str):
        return standard_base64(value), None, NOTHING
    if form == "text" and kind == "document" and isinstance(value, str):
        verbatim["source"] = "text"
        return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii"), None, NOTHING
    location = object_of(value) if form == "s3Location" else NOTHING
    place = location.get("uri")
    if not isinstance(place, str) or not place:
        return None
    return None, place, {key: inner for key, inner in location.items() if key != "uri"}


def _type_of(kind: Kind, block: Block, verbatim: Wire) -> str | None:
    """Give the MIME type that a format stands for, and keep the word where another would be written for it."""
    form = block.get("format")
    if not isinstance(form, str) or not form:
        verbatim.update({"format": form} if "format" in block else {"formless": True})
        return None
    mime = TYPES[kind].get(form)
    if mime is None:
        verbatim["format"] = form
        is_type = "/" in form and kind_of(form)[0] == kind
        mime = ALIASES[kind].get(form) or (form if is_type else f"{kind}/{form}")
    return mime


def _restore_name(name: str, verbatim: Wire, names: DocumentNames, *, form: object) -> None:
    """Keep a name that would not be written like this: an illegal one, or one that was used before."""
    if names.fitting(name, form if isinstance(form, str) else None) != name:
        verbatim["name"] = name
    names.take(name)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent, names: DocumentNames) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has no data, or a type that the wire has no word for.
    """
    place = image.url if image.url is not None and image.url.startswith(_S3) else None
    return _encode(image, "image", place, names, name=None)


def encode_file(file: FileContent, names: DocumentNames) -> Wire:
    """Write a file: as an image, a video, audio or a document, by its type.

    Raises:
        EncodeError: the wire has no word for its type, or there is nothing to send.
    """
    kind, _ = kind_of(file.mime_type)
    place = file.file_id
    if place is None and file.url is not None and file.url.startswith(_S3):
        place = file.url
    return _encode(file, kind, place, names, name=file.name)


def _encode(
    media: ImageContent | FileContent, kind: Kind, place: str | None, names: DocumentNames, *, name: str | None
) -> Wire:
    verbatim = verbatim_of(media.extra, PROTOCOL)
    form = _format_of(kind, media.mime_type, verbatim)
    inner: Wire = {} if "formless" in verbatim else {"format": form}
    if kind == "document":
        text = form if isinstance(form, str) else None
        written = verbatim["name"] if verbatim.get("name") == name and name is not None else names.fitting(name, text)
        names.take(written)
        inner["name"] = written
    kept = dict(put_back(media.extra))
    inner["source"] = _source(media.data, place, kept.pop("s3Location", None), verbatim)
    inner.update(kept)
    return {kind: inner}


def _format_of(kind: Kind, mime_type: str | None, verbatim: Block) -> object:
    _, mime = kind_of(mime_type)
    if "format" in verbatim:
        return verbatim["format"]
    form = FORMATS[kind].get(mime)
    if form is None:
        raise EncodeError(f"this wire has no word for {kind} of type {mime_type or 'unknown'}")
    return form


def _source(data: str | None, place: str | None, beyond: object, verbatim: Block) -> Wire:
    if data is not None and verbatim.get("source") == "text":
        return {"text": base64.b64decode(data).decode("utf-8", "surrogatepass")}
    if data is not None:
        return {"bytes": data}
    if place is not None:
        return {"s3Location": {"uri": place, **object_of(beyond)}}
    raise EncodeError("media without data, and not in S3")
