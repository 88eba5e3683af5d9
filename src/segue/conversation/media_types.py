"""What kind of media a piece is: by its MIME type, by its first bytes, by its address.

Facts:
- The signatures of file formats.     (WHATWG MIME Sniffing; RFC 3533, 8794, 9639; ISO 14496-12; read 2026-11-15)
- MP4, Ogg, WebM and ASF are containers: the same first bytes begin a file with sound alone and one with pictures.
                                                                                                           (the same)
- Claimed types are often wrong: agents name an image after its file extension, and clients send a PDF as an image.
                                              (llxprt-code #2130, 2026-06-23; gptpdf #6, 2024-06-30; read 2026-11-15)

Only the first bytes are decoded, so the cost does not depend on the size of the data.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal, TypeAlias

MediaClass: TypeAlias = Literal["image", "audio", "video", "document"]

PDF: Final = "application/pdf"
PLAIN_TEXT: Final = "text/plain"
SVG: Final = "image/svg+xml"
_ZIP: Final = "application/zip"
_OLE: Final = "application/x-ole-storage"
_ARCHIVES: Final = frozenset({_ZIP, _OLE})
"""Formats that other formats are based on: office documents are ZIP or OLE files."""
_CONTAINERS: Final = frozenset(
    {"video/mp4", "audio/mp4", "video/quicktime", "video/3gpp", "audio/ogg", "video/webm", "video/x-ms-asf"}
)
"""Types of bytes that may be sound or video."""
_SIZE_WITHIN: Final = 64 * 1024
"""How many bytes of an image are read for its size; metadata may come before it in a JPEG."""
UNKNOWN_TYPES: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""MIME types that name no format."""

ALIASES: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "application/x-pdf": PDF,
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
    "video/mov": "video/quicktime",
    "video/avi": "video/x-msvideo",
    "text/x-markdown": "text/markdown",
    "application/csv": "text/csv",
}
"""Other names of a type -> the registered name."""

READABLE_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", SVG}
)
"""Types other than `text/*` whose bytes are text that a model can read."""

_SIGNATURES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"%PDF", PDF),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"FLV\x01", "video/x-flv"),
    (0, b"\x00\x00\x01\xba", "video/mpeg"),
    (0, b"\x00\x00\x01\xb3", "video/mpeg"),
    (0, b"0&\xb2u\x8ef\xcf\x11", "video/x-ms-asf"),
    (0, b"PK\x03\x04", _ZIP),
    (0, b"\xd0\xcf\x11\xe0", _OLE),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (4, b"ftypavi", "image/avif"),
    (4, b"ftyphe", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypmsf1", "image/heif"),
    (4, b"ftypM4", "audio/mp4"),
    (4, b"ftypqt", "video/quicktime"),
    (4, b"ftyp3g", "video/3gpp"),
    (4, b"ftyp", "video/mp4"),
)
"""The position of a format's signature, the signature, the MIME type; a longer signature comes first."""
_RIFF: Final = frozenset({"image/webp", "audio/wav", "video/x-msvideo"})
_HEAD: Final = 64
"""How many characters of base64 are decoded: 48 bytes."""
_PDF_WITHIN: Final = 1368
"""How many characters of base64 the header of a PDF is searched in: readers accept it within the first 1,024 bytes."""
_LEAST_TEXT: Final = 12
"""Fewer bytes of text are not evidence: every signature ends by then."""
_URL_SAFE: Final = str.maketrans("-_", "+/")
_NOT_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")

_EXTENSIONS: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "heif": "image/heif",
    "avif": "image/avif",
    "svg": SVG,
    "pdf": PDF,
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "oga": "audio/ogg",
    "opus": "audio/opus",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
    "mpeg": "video/mpeg",
    "mpg": "video/mpeg",
    "wmv": "video/x-ms-wmv",
    "flv": "video/x-flv",
    "3gp": "video/3gpp",
    "txt": PLAIN_TEXT,
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "json": "application/json",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "zip": _ZIP,
}
"""Extensions of file names -> MIME types (IANA media types; MDN: common media types; read 2026-11-15)."""
_VIDEO_PAGES: Final = re.compile(
    r"https?://(?:www\.|m\.)?(?:youtube\.com/(?:watch|shorts|live|embed)|youtu\.be/)", re.IGNORECASE
)
"""Addresses of videos without a file name. Gemini and OpenRouter read them."""
ANY_VIDEO: Final = "video/*"


def plain_type(mime_type: str | None) -> str:
    """Return a MIME type in lower case, without parameters; an empty string where there is none."""
    return (mime_type or "").partition(";")[0].strip().lower()


def class_of(mime: str) -> MediaClass:
    """Return the class of a plain MIME type: image, audio, video, or document for everything else."""
    match mime.partition("/")[0]:
        case "image" | "audio" | "video" as family:
            return family
        case _:
            return "document"


def is_readable(mime: str) -> bool:
    """Whether the bytes of a plain MIME type are text."""
    return mime.startswith("text/") or mime in READABLE_TYPES


def type_of_address(address: str | None) -> str | None:
    """Return the MIME type that a URL or a file name implies; None if it implies none."""
    if not address:
        return None
    if _VIDEO_PAGES.match(address):
        return ANY_VIDEO
    name = address.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return _EXTENSIONS.get(name.rpartition(".")[2].lower()) if "." in name else None


def type_of_image_address(url: str | None) -> str | None:
    """Return the MIME type that the URL of an image implies; None for one that may serve an image, such as a page."""
    shown = type_of_address(url)
    return shown if shown == PDF or (shown is not None and class_of(shown) != "document") else None


def type_of_data(data: str) -> str | None:
    """Return the MIME type that the first bytes of base64 data imply; None if they imply none."""
    found = _type_of_head(data[:_HEAD])
    if found == PLAIN_TEXT and b"%PDF" in _decoded(data[:_PDF_WITHIN]):
        return PDF
    return found


@lru_cache(maxsize=256)
def _type_of_head(head: str) -> str | None:
    first = _decoded(head)
    for at, signature, mime in _SIGNATURES:
        if first.startswith(signature, at) and (mime not in _RIFF or first.startswith(b"RIFF")):
            return mime
    if first.startswith(b"BM") and first[6:10] == b"\x00\x00\x00\x00":
        return "image/bmp"
    return PLAIN_TEXT if _is_text(first) else None


def _decoded(head: str) -> bytes:
    """Decode the beginning of base64 data; nothing where it is not base64."""
    try:
        return base64.b64decode(head[: len(head) // 4 * 4].translate(_URL_SAFE), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _is_text(first: bytes) -> bool:
    if len(first) < _LEAST_TEXT:
        return False
    # The last character may be cut: up to three bytes of it are left out.
    for end in range(len(first), len(first) - 4, -1):
        try:
            return not _NOT_TEXT.search(first[:end].decode("utf-8"))
        except UnicodeDecodeError:
            continue
    return False


def shows_other_class(claimed: str, found: str) -> bool:
    """Whether bytes of the type `found` cannot be of the plain MIME type `claimed`, not even of its class.

    Two formats of one class (a PNG that is called a JPEG) do not contradict each other here: many targets accept that.
    """
    if claimed in UNKNOWN_TYPES:
        return True
    asked = class_of(ALIASES.get(claimed, claimed))
    is_pdf = ALIASES.get(claimed, claimed) == PDF
    if found in _CONTAINERS:
        return asked not in ("audio", "video")
    if found == PLAIN_TEXT:
        return (asked != "document" or is_pdf) and claimed != SVG
    if found in _ARCHIVES:
        return asked != "document" or is_pdf or claimed.startswith("text/")
    if found == PDF:
        return not is_pdf
    return asked != class_of(found)


# -- the size of an image ----------------------------------------------------------------------------------------------


def size_of_image(data: str) -> tuple[int, int] | None:
    """Read width and height of an image in base64; None where its first bytes do not show them.

    A PNG, GIF, BMP or WebP has its size in the first 32 bytes, a JPEG in one of its segments.
    """
    return _size_of(_decoded(data[: _SIZE_WITHIN * 4 // 3]))


def _size_of(head: bytes) -> tuple[int, int] | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if head.startswith((b"GIF87a", b"GIF89a")):
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if head.startswith(b"BM"):
        return int.from_bytes(head[18:22], "little"), abs(int.from_bytes(head[22:26], "little", signed=True))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _size_of_webp(head)
    return _size_of_jpeg(head) if head.startswith(b"\xff\xd8") else None


def _size_of_webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8 ":
        return (
            int.from_bytes(head[26:28], "little") & 0x3FFF,
            int.from_bytes(head[28:30], "little") & 0x3FFF,
        )
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    return None


def _size_of_jpeg(head: bytes) -> tuple[int, int] | None:
    """Walk the segments to the start of frame, which has the size."""
    at = 2
    while at + 9 < len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return int.from_bytes(head[at + 7 : at + 9], "big"), int.from_bytes(head[at + 5 : at + 7], "big")
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None
