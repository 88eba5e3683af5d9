"""Images and files, both ways.

Facts this file rests on:
- `inlineData` holds base64 with its MIME type; `fileData` an address: of the Files API, of Cloud Storage (`gs://`), of
  a public page or a video.            (google-genai 3.1.0; Google documentation: file input methods; read 2026-11-15)
- Base64 comes in both alphabets: the official client writes the URL-safe one.       (recorded traffic, 2026-11)
- `displayName` is the name of a file; both endpoints accept it.                      (google-genai 3.1.0)
- An address has no type; where the caller gives none, the extension of its file name decides.

Data are not parsed. A source in none of these forms makes the part a native one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.conversation.content import FileContent, ImageContent
from segue.errors import EncodeError
from segue.protocols.google_genai.keys import read_keys
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.reading import standard_base64, text_of

INLINE: Final = "inlineData"
FILE: Final = "fileData"
MEDIA_FIELDS: Final = (INLINE, FILE)

_OWN_FILES: Final = ("gs://", "files/", "https://generativelanguage.googleapis.com/")
"""How addresses begin that only Google itself can read."""

_ENDINGS: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}
"""Extensions -> MIME types that Gemini reads (Google documentation: file input methods, read 2026-11-15)."""


def type_of_name(url: str) -> str | None:
    """Guess the MIME type from the extension of an address."""
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return _ENDINGS.get(name.rpartition(".")[2].lower()) if "." in name else None


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_media(wire: Block, field: str | None) -> ImageContent | FileContent | None:
    """Read the media of a part; None when they have no known form."""
    inside = read_keys(object_of(wire.get(field or "")))
    mime, data, uri = inside.get("mimeType"), inside.get("data"), inside.get("fileUri")
    if not (mime is None or isinstance(mime, str)):
        return None
    name = text_of(inside.get("displayName"))
    if field == INLINE and isinstance(data, str):
        data = standard_base64(data)
        if (mime or "").startswith("image/"):
            return ImageContent(data=data, mime_type=mime)
        return FileContent(data=data, mime_type=mime, name=name)
    if field != FILE or not isinstance(uri, str):
        return None
    if uri.startswith(_OWN_FILES):
        return FileContent(file_id=uri, mime_type=mime, name=name)
    kind = mime or type_of_name(uri) or ""
    if kind.startswith("image/"):
        return ImageContent(url=uri, mime_type=mime)
    return FileContent(url=uri, mime_type=mime, name=name)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent) -> Wire:
    """Write an image, without what `extra` holds.

    Raises:
        EncodeError: it has neither data nor a URL, or data without a MIME type.
    """
    if image.data is not None:
        if image.mime_type is None:
            raise EncodeError("an image with data has no MIME type; set `mime_type`")
        return {INLINE: {"mimeType": image.mime_type, "data": image.data}}
    if image.url is not None:
        return {FILE: _address(image.url, image.mime_type)}
    raise EncodeError("an image has neither data nor a URL; set one of them")


def encode_file(file: FileContent) -> Wire:
    """Write a file, without what `extra` holds.

    Raises:
        EncodeError: it has no data, URL or file id.
    """
    address = file.url if file.url is not None else file.file_id
    if file.data is not None:
        field, inside = INLINE, Wire(data=file.data)
        if file.mime_type is not None:
            inside["mimeType"] = file.mime_type
    elif address is not None:
        field, inside = FILE, _address(address, file.mime_type)
    else:
        raise EncodeError("a file has no data, URL or file id; set one of them")
    if file.name is not None:
        inside["displayName"] = file.name
    return {field: inside}


def _address(uri: str, mime: str | None) -> Wire:
    if mime is None or mime.endswith("/*"):
        mime = type_of_name(uri)  # a class of types is no type
    return {"fileUri": uri} if mime is None else {"mimeType": mime, "fileUri": uri}
