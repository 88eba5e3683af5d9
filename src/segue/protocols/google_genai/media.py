"""Images and files of Google's wire, both ways.

Facts this file rests on:
- `inlineData` holds base64 with its MIME type; `fileData` an address: of the Files API, of Cloud Storage (`gs://`), of
  a public page or a video.            (google-genai 3.1.0; Google documentation: file input methods; read 2026-11-15)
- Base64 comes in both alphabets: the official client writes the one for URLs.       (recorded traffic, 2026-11)
- `displayName` is what a file is called; both endpoints take it.                     (google-genai 3.1.0)
- An address says nothing of its type; where neither does the caller, the ending of its name is all there is.

Data are carried, not looked at. A source that has none of these forms makes the part a native one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.content import Extra, FileContent, ImageContent
from segue.errors import EncodeError
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.verbatim import INNER, Block, Wire, keep, object_of, open_object, put_back
from segue.protocols.kit.reading import standard_base64, verbatim_of

INLINE: Final = "inlineData"
FILE: Final = "fileData"
MEDIA_FIELDS: Final = (INLINE, FILE)

_BASE64: Final = "base64"
_UNTYPED: Final = "untyped"
_URL_SAFE: Final = str.maketrans("+/", "-_")
_OWN_FILES: Final = ("gs://", "files/", "https://generativelanguage.googleapis.com/")
"""How addresses begin that only Google itself can follow."""

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
"""Endings of names -> MIME types, of what Gemini reads (Google documentation: file input methods, read 2026-11-15)."""


def type_of_name(url: str) -> str | None:
    """Guess the MIME type from the ending of an address."""
    name = url.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return _ENDINGS.get(name.rpartition(".")[2].lower()) if "." in name else None


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_media(wire: Block, field: str, verbatim: Wire) -> ImageContent | FileContent | None:
    """Read the media of an opened part; None when they have no form that is known."""
    raw = wire[field]
    if not isinstance(raw, dict):
        return None
    inside, inner_verbatim = open_object(cast("Wire", raw))
    mime = inside.get("mimeType")
    if not (mime is None or isinstance(mime, str)):
        return None
    read = _decode_inline if field == INLINE else _decode_file
    return read(wire, inside, mime, verbatim, inner_verbatim)


def _decode_inline(
    wire: Block, inside: Block, mime: str | None, verbatim: Wire, inner_verbatim: Wire
) -> ImageContent | FileContent | None:
    given = inside.get("data")
    if not isinstance(given, str):
        return None
    data = standard_base64(given)
    if data != given:
        original = {"url": "-" in given or "_" in given, "bare": len(given) != len(data)}
        if _restored(data, original) != given:
            return None
        inner_verbatim[_BASE64] = original
    if (mime or "").startswith("image/"):
        extra = _extra(wire, INLINE, inside, ("data", "mimeType"), verbatim=verbatim, inner_verbatim=inner_verbatim)
        return ImageContent(data=data, mime_type=mime, extra=extra)
    name, known = _name(inside, "data", "mimeType")
    extra = _extra(wire, INLINE, inside, known, verbatim=verbatim, inner_verbatim=inner_verbatim)
    return FileContent(data=data, mime_type=mime, name=name, extra=extra)


def _decode_file(
    wire: Block, inside: Block, mime: str | None, verbatim: Wire, inner_verbatim: Wire
) -> ImageContent | FileContent | None:
    uri = inside.get("fileUri")
    if not isinstance(uri, str):
        return None
    kind = mime
    if mime is None:
        kind = type_of_name(uri)
        if kind is not None:
            inner_verbatim[_UNTYPED] = True
    is_own = uri.startswith(_OWN_FILES)
    if (kind or "").startswith("image/") and not is_own:
        extra = _extra(wire, FILE, inside, ("fileUri", "mimeType"), verbatim=verbatim, inner_verbatim=inner_verbatim)
        return ImageContent(url=uri, mime_type=mime, extra=extra)
    name, known = _name(inside, "fileUri", "mimeType")
    extra = _extra(wire, FILE, inside, known, verbatim=verbatim, inner_verbatim=inner_verbatim)
    if is_own:
        return FileContent(file_id=uri, mime_type=mime, name=name, extra=extra)
    return FileContent(url=uri, mime_type=mime, name=name, extra=extra)


def _name(inside: Block, *known: str) -> tuple[str | None, tuple[str, ...]]:
    """Give what a file is called, and the keys that its fields say; a picture's name has no field and is kept."""
    name = inside.get("displayName")
    return (name, (*known, "displayName")) if isinstance(name, str) else (None, known)


def _extra(
    wire: Block, field: str, inside: Block, known: tuple[str, ...], *, verbatim: Wire, inner_verbatim: Wire
) -> Extra | None:
    """Keep what part and media say beyond the words segue has for them; the inner share under its own key."""
    beyond = {key: value for key, value in inside.items() if key not in known}
    if inner_verbatim:
        verbatim[INNER] = inner_verbatim
    if len(wire) == 1 and not beyond and not verbatim:
        return None
    return keep(wire, (field,), verbatim, {field: beyond} if beyond else None)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has neither data nor a URL, or data of no named type.
    """
    if image.data is not None:
        if image.mime_type is None:
            raise EncodeError("an image without a MIME type")
        return _part(INLINE, {"mimeType": image.mime_type, "data": image.data}, image.extra)
    if image.url is not None:
        return _part(FILE, _address(image.url, image.mime_type, image.extra), image.extra)
    raise EncodeError("an image without data or URL")


def encode_file(file: FileContent) -> Wire:
    """Write a file.

    Raises:
        EncodeError: there is nothing to send.
    """
    if file.data is not None:
        inside: Wire = {"data": file.data}
        if file.mime_type is not None:
            inside["mimeType"] = file.mime_type
        field = INLINE
    elif (address := file.url if file.url is not None else file.file_id) is not None:
        inside, field = _address(address, file.mime_type, file.extra), FILE
    else:
        raise EncodeError("a file without data, URL or file id")
    if file.name is not None:
        inside["displayName"] = file.name
    return _part(field, inside, file.extra)


def _address(uri: str, mime: str | None, extra: Extra | None) -> Wire:
    if mime is None and not _inner(extra).get(_UNTYPED):
        mime = type_of_name(uri)
    return {"fileUri": uri} if mime is None else {"mimeType": mime, "fileUri": uri}


def _part(field: str, inside: Wire, extra: Extra | None) -> Wire:
    part: Wire = {field: inside}
    if extra is None:
        return part
    original, data = _inner(extra).get(_BASE64), inside.get("data")
    if isinstance(original, Mapping) and isinstance(data, str):
        inside["data"] = _restored(data, cast("Block", original))
    return put_back(part, extra, field)


def _inner(extra: Extra | None) -> Block:
    if extra is None:
        return {}
    return object_of(verbatim_of(extra, PROTOCOL).get(INNER))


def _restored(data: str, original: Mapping[str, object]) -> str:
    if original.get("url"):
        data = data.translate(_URL_SAFE)
    return data.rstrip("=") if original.get("bare") else data
