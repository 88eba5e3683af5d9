"""Where the bytes of an image or a file come from: base64 in the conversation, a URL, or a file on this machine.

Facts:
- Every protocol sends media as standard base64 without line breaks, or by an absolute URL. No provider can read a path
  on the caller's machine.                                                  (the protocols' documentation, 2026-11)
- Checking all of a long text costs more than encoding the request. So for long data the ends are checked, and the
  characters by which other forms of base64 differ: line breaks, spaces, `-` and `_`.            (measured 2026-11-15)
- Joined texts of base64, with padding inside, are decoded by most decoders.               (Python `binascii`, tried)
- Some vendors accept bare base64 in place of a URL, so a very long text without a scheme is not a path.
                                                                             (Z.ai documentation: vision, read 2026-11)
"""

from __future__ import annotations

import os
import re
from binascii import b2a_base64
from pathlib import Path
from typing import Final

from segue.conversation.media_types import (
    SVG,
    UNKNOWN_TYPES,
    class_of,
    shows_other_class,
    type_of_address,
    type_of_data,
)
from segue.errors import ConversationError

MAX_BYTES: Final = 50 * 1024 * 1024
"""The largest file that `from_file` reads by default: no provider accepts more in one request (OpenAI: 50 MB of files;
Gemini API: 100 MB of base64 in a request, 20 MB for most models; Anthropic: 32 MB; documentation, read 2026-11)."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/][A-Za-z0-9+/=]*")
"""Padding inside is accepted: decoders accept several texts of base64 that were joined."""
_OTHER_FORMS: Final = ("\n", "\r", " ", "-", "_")
_CHECKED: Final = 1 << 16
"""Characters of data that are checked one by one; of longer data so many at each end."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")
"""A scheme has two characters or more: `C:` is a drive."""
_LONGEST_PATH: Final = 1024
_NO_TYPE: Final = "application/octet-stream"


def is_base64(data: str) -> bool:
    """Whether a text is standard base64 with padding; of a long text the middle is not checked completely."""
    if len(data) % 4 or not data.isascii():
        return False
    if len(data) <= 2 * _CHECKED:
        return _BASE64.fullmatch(data) is not None
    if any(character in data for character in _OTHER_FORMS):
        return False
    return _BASE64.fullmatch(data[:_CHECKED] + data[-_CHECKED:]) is not None


def find_data_fault(data: str, kind: str) -> str | None:
    """Describe why `data` cannot be sent, and what to write instead; None if it is base64.

    `kind` is the class of the content, `ImageContent` or `FileContent`.
    """
    if data and is_base64(data):
        return None
    if not data:
        return f"the data is empty; pass the bytes of the file, or use {kind}.from_file(path)"
    if data[:5].lower() == "data:":
        return f"the data is a data URL; pass {kind}(url=...), or the bytes"
    if _SCHEME.match(data):
        return f"the data is a URL; pass {kind}(url=...)"
    return f"the data is not standard base64; pass the bytes, or use {kind}.from_file(path)"


def find_url_fault(url: str, kind: str) -> str | None:
    """Describe why `url` cannot be sent, and what to write instead; None if it is an absolute URL."""
    if len(url) > _LONGEST_PATH or (_SCHEME.match(url) and not is_file_url(url)):
        return None
    path = url.partition("://")[2] if is_file_url(url) else url
    return (
        f"{url!r} is not a URL that a provider can read; for a file on this machine use {kind}.from_file({path!r}), for"
        " an address write all of it, with https://"
    )


def is_file_url(url: str) -> bool:
    """Whether a URL is that of a file on some machine."""
    return url[:5].lower() == "file:"


def has_scheme(url: str, schemes: frozenset[str]) -> bool:
    """Whether a URL has one of the schemes that a target reads (`Rules.url_schemes`)."""
    return not schemes or url.partition(":")[0].lower() in schemes


def encode_bytes(data: bytes | bytearray | memoryview) -> str:
    """Write bytes as standard base64."""
    return b2a_base64(data, newline=False).decode("ascii")


def read_media(
    path: str | os.PathLike[str], kind: str, *, mime_type: str | None, max_bytes: int
) -> tuple[str, str, str]:
    """Read a file; return its base64, its MIME type and its name.

    The first bytes decide about the type. The extension decides only between types with the same first bytes, such as
    Markdown and CSV, or the documents of an office program.

    Raises:
        ConversationError: the file is empty, or has more than `max_bytes`.
        OSError: the file cannot be read.
    """
    place = Path(path)
    with place.open("rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        size = max(place.stat().st_size, len(data))
        raise ConversationError(
            f"{place} has {size:,} bytes, more than the limit of {max_bytes:,}; make it smaller, or pass"
            f" {kind}.from_file(path, max_bytes=...)"
        )
    if not data:
        raise ConversationError(f"{place} is empty, so there is nothing to send; check the path")
    encoded = encode_bytes(data)
    return encoded, mime_type or _type_of(encoded, place.name), place.name


def _type_of(data: str, name: str) -> str:
    found, named = type_of_data(data), type_of_address(name)
    if found is None:  # a format without a signature, such as AAC, or a short text
        return named or _NO_TYPE
    # Image formats all have signatures, so the extension of an image decides nothing.
    decides = named is not None and class_of(found) != "image" and not shows_other_class(named, found)
    return named if decides and named is not None else found


def check_is_image(path: str | os.PathLike[str], mime_type: str) -> None:
    """Refuse a file that is not an image.

    Raises:
        ConversationError: its type is that of another class, or unknown.
    """
    if class_of(mime_type) == "image" or mime_type == SVG:
        return
    if mime_type in UNKNOWN_TYPES:
        advice = 'if it is one, pass ImageContent.from_file(path, mime_type="image/...")'
    else:
        advice = f"it is {mime_type}; use FileContent.from_file(path)"
    raise ConversationError(f"{os.fspath(path)} is not an image of a known format; {advice}")
