"""Pictures, documents and sound as chunks of Mistral's wire, both ways.

Facts this file rests on:
- `image_url` is a URL or a data URL, bare or inside an object with a `detail`; the bare one is the documented example.
                                                                                (mistralai 3.7.0, read 2026-11-15)
- `document_url` is a URL or a data URL with a `document_name` beside it; a file that was uploaded goes by `file_id`.
                                                          (mistralai 3.7.0; Mistral documentation: document QnA)
- `input_audio` is a bare string: base64, or where the sound lies. OpenAI's object of data and format is read as well.
                                                     (mistralai 3.7.0; mistral-common 1.13.0; recorded traffic)
- Bare base64 does not name its type; the first bytes of a sound do.                        (RFC 3003, 2361, 5334, 9639)

What a chunk says beyond these words stands in `extra`: its own keys as they are, those of an inner object under its
name. The data are carried, not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, cast

from segue.conversation.content import Extra, FileContent, ImageContent
from segue.errors import EncodeError, Path
from segue.protocols.kit.reading import data_url, left_over, split_data_url, standard_base64, verbatim_of
from segue.protocols.kit.retired_format import Block, Wire, keep, object_of, put_back
from segue.protocols.mistral_chat.rules import PROTOCOL

_SOUNDS: Final[Mapping[str, str]] = {
    "UklGR": "audio/wav",
    "SUQz": "audio/mpeg",
    "//": "audio/mpeg",
    "T2dnUw": "audio/ogg",
    "ZkxhQw": "audio/flac",
}
"""How the base64 of a sound begins -> its type."""
_SOME_SOUND: Final = "audio/*"
_PDF: Final = "application/pdf"
_NO_TYPE: Final = "none"
"""The shape of a data URL that names no type."""
_RECEIVED: Final = "said"
"""The shape of a sound in other letters than base64 has: they may be the name of a file."""
_FORMATS: Final[Mapping[str, str]] = {"mp3": "audio/mpeg"}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_media(chunk: Block) -> ImageContent | FileContent | None:
    """Read a chunk that carries media; None when it is something else, or is spelt in a way nobody knows."""
    kind = chunk.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return None if reader is None else reader(chunk)


def _extra(chunk: Block, key: str, inside: Collection[str], verbatim: Wire, *more: str) -> Extra | None:
    """Keep what a chunk, and an object in its place of honour, say beyond the known keys."""
    extra = keep(PROTOCOL, chunk, ("type", key, *more), verbatim)
    inner = object_of(chunk.get(key))
    beyond = {name: value for name, value in inner.items() if name not in inside}
    return extra if not beyond else {PROTOCOL: {**(extra or {}).get(PROTOCOL, {}), key: beyond}}


def _read_image(chunk: Block) -> ImageContent | None:
    received = chunk.get("image_url")
    url, verbatim = received, Wire()
    if isinstance(received, Mapping):
        url, verbatim["image_url"] = cast("Block", received).get("url"), "object"
    if not isinstance(url, str):
        return None
    parts = split_data_url(url)
    if parts is None:
        return ImageContent(url=url, extra=_extra(chunk, "image_url", ("url",), verbatim))
    if parts[0] is None:
        verbatim["mime"] = _NO_TYPE
    extra = _extra(chunk, "image_url", ("url",), verbatim)
    return ImageContent(data=standard_base64(parts[1]), mime_type=parts[0], extra=extra)


def _read_document(chunk: Block) -> FileContent | None:
    url, name, verbatim = chunk.get("document_url"), chunk.get("document_name"), Wire()
    if not isinstance(url, str):
        return None
    title = name if isinstance(name, str) else None
    known = () if title is None else ("document_name",)
    parts = split_data_url(url)
    if parts is None:
        extra = _extra(chunk, "document_url", (), verbatim, *known)
        return FileContent(url=url, mime_type=_PDF, name=title, extra=extra)
    if parts[0] is None:
        verbatim["mime"] = _NO_TYPE
    elif parts[0].startswith(("image/", "audio/")):
        verbatim["type"] = "document_url"
    extra = _extra(chunk, "document_url", (), verbatim, *known)
    return FileContent(data=standard_base64(parts[1]), mime_type=parts[0], name=title, extra=extra)


def _read_file(chunk: Block) -> FileContent | None:
    file_id = chunk.get("file_id")
    if not isinstance(file_id, str):
        return None
    return FileContent(file_id=file_id, mime_type=_PDF, extra=_extra(chunk, "file_id", (), {}))


def _read_sound(chunk: Block) -> FileContent | None:
    received = chunk.get("input_audio")
    inner, verbatim = object_of(received), Wire()
    form = inner.get("format")
    if isinstance(received, Mapping):
        received, verbatim["input_audio"] = inner.get("data"), "object"
        if isinstance(form, str):
            verbatim["format"] = form
    if not isinstance(received, str):
        return None
    mime = _FORMATS.get(form, f"audio/{form}") if isinstance(form, str) else None
    parts = split_data_url(received)
    if parts is not None:
        verbatim["data_url"] = parts[0]
    elif standard_base64(received) != received and "://" not in received[:10]:
        verbatim[_RECEIVED] = received
    known = ("data", "format") if isinstance(form, str) else ("data",)
    extra = _extra(chunk, "input_audio", known, verbatim)
    if parts is not None:
        return FileContent(data=standard_base64(parts[1]), mime_type=parts[0] or _SOME_SOUND, extra=extra)
    if "://" in received[:10]:
        return FileContent(url=received, mime_type=mime or _SOME_SOUND, extra=extra)
    return FileContent(data=standard_base64(received), mime_type=mime or _type_of_sound(received), extra=extra)


def _type_of_sound(data: str) -> str:
    return next((mime for start, mime in _SOUNDS.items() if data.startswith(start)), _SOME_SOUND)


_READERS: Final[Mapping[str, Callable[[Block], ImageContent | FileContent | None]]] = {
    "image_url": _read_image,
    "document_url": _read_document,
    "file": _read_file,
    "input_audio": _read_sound,
}


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(content: ImageContent | FileContent, path: Path) -> Wire:
    """Write a picture.

    Raises:
        EncodeError: it has neither data nor a URL.
    """
    url = _url_of(content, path)
    if content.extra is None:
        return {"type": "image_url", "image_url": url}
    left = left_over(content.extra, PROTOCOL)
    verbatim = verbatim_of(content.extra, PROTOCOL)
    beyond = object_of(left.get("image_url"))
    received: object = {"url": url, **beyond} if beyond or verbatim.get("image_url") == "object" else url
    return put_back({"type": "image_url", "image_url": received}, content.extra, PROTOCOL)


def encode_file(content: FileContent, path: Path) -> Wire:
    """Write a file: a picture or a sound by its type, else a document.

    Raises:
        EncodeError: it has neither data nor a URL nor an id.
    """
    mime = (content.mime_type or "").partition(";")[0].strip().lower()
    verbatim = verbatim_of(content.extra, PROTOCOL)
    if content.data is None and content.url is None:
        if content.file_id is None:
            raise EncodeError("a file without data, URL or file id", path=path)
        return put_back({"type": "file", "file_id": content.file_id}, content.extra, PROTOCOL)
    if verbatim.get("type") != "document_url":
        if mime.startswith("image/"):
            return encode_image(content, path)
        if mime.startswith("audio/"):
            return _encode_sound(content, verbatim)
    wire: Wire = {"type": "document_url", "document_url": _url_of(content, path)}
    if content.name is not None:
        wire["document_name"] = content.name
    return wire if content.extra is None else put_back(wire, content.extra, PROTOCOL)


def _encode_sound(content: FileContent, verbatim: Block) -> Wire:
    received: object = content.data if content.data is not None else content.url
    if content.data is not None and "data_url" in verbatim:
        mime = verbatim["data_url"]
        received = f"data:{mime if isinstance(mime, str) else ''};base64,{content.data}"
    elif isinstance(given := verbatim.get(_RECEIVED), str) and standard_base64(given) == content.data:
        received = given
    if verbatim.get("input_audio") == "object":
        beyond = object_of(left_over(content.extra, PROTOCOL).get("input_audio"))
        received = {"data": received, **({"format": verbatim["format"]} if "format" in verbatim else {}), **beyond}
    return put_back({"type": "input_audio", "input_audio": received}, content.extra, PROTOCOL)


def _url_of(content: ImageContent | FileContent, path: Path) -> str:
    if content.data is not None:
        if content.mime_type is None and verbatim_of(content.extra, PROTOCOL).get("mime") == _NO_TYPE:
            return f"data:;base64,{content.data}"
        return data_url(content.mime_type, content.data)
    if content.url is not None:
        return content.url
    raise EncodeError(f"{content.kind} without data or URL", path=path)
