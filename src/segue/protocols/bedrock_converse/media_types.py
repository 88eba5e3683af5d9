"""The format names of this wire for types of media.

Facts:
- The formats of images, documents, video and audio.                    (botocore 1.44.0 service model, read 2026-11-15)
- The MIME types of these formats.                          (IANA media types; MDN: common media types; 2026-11-15)

Where several formats name one type, the first is written; where several types share one format, the first is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["image", "document", "video", "audio"]

FORMATS: Final[Mapping[Kind, Mapping[str, str]]] = {
    "image": {
        "image/png": "png",
        "image/jpeg": "jpeg",
        "image/gif": "gif",
        "image/webp": "webp",
    },
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
    "video": {
        "video/mp4": "mp4",
        "video/quicktime": "mov",
        "video/webm": "webm",
        "video/x-matroska": "mkv",
        "video/x-flv": "flv",
        "video/mpeg": "mpeg",
        "video/x-ms-wmv": "wmv",
        "video/3gpp": "three_gp",
    },
    "audio": {
        "audio/mpeg": "mp3",
        "audio/mp3": "mp3",
        "audio/wav": "wav",
        "audio/x-wav": "wav",
        "audio/wave": "wav",
        "audio/flac": "flac",
        "audio/ogg": "ogg",
        "audio/opus": "opus",
        "audio/aac": "aac",
        "audio/x-aac": "x-aac",
        "audio/mp4": "mp4",
        "audio/x-m4a": "m4a",
        "audio/m4a": "m4a",
        "audio/webm": "webm",
        "audio/x-matroska": "mka",
        "audio/pcm": "pcm",
    },
}
"""Type -> format, by kind of block."""


def _first_types(formats: Mapping[str, str]) -> dict[str, str]:
    types: dict[str, str] = {}
    for mime, name in formats.items():
        types.setdefault(name, mime)
    return types


TYPES: Final[Mapping[Kind, Mapping[str, str]]] = {kind: _first_types(formats) for kind, formats in FORMATS.items()}
"""Format -> type."""

ALIASES: Final[Mapping[Kind, Mapping[str, str]]] = {
    "image": {"jpg": "image/jpeg"},
    "document": {},
    "video": {"mpg": "video/mpeg"},
    "audio": {"mpeg": "audio/mpeg", "mpga": "audio/mpeg", "mkv": "audio/x-matroska"},
}
"""Formats that are read, and written with another name."""

EXTENSIONS: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset({name, *others})
    for name, others in {
        **dict.fromkeys(FORMATS["document"].values(), ()),
        "html": ("htm",),
        "txt": ("text",),
        "md": ("markdown",),
    }.items()
}
"""The extensions of the files of a format."""


def kind_of(mime_type: str | None) -> tuple[Kind, str]:
    """Return the block that holds a type, and the type without its parameters."""
    mime = (mime_type or "").partition(";")[0].strip().lower()
    match mime.partition("/")[0]:
        case "image" | "video" | "audio" as family:
            return family, mime
        case _:
            return "document", mime
