"""Checks of media that several protocols share: bytes that are not what they claim to be, addresses of a refused type.

Refused: "The image was specified using the image/jpeg media type, but the image appears to be a image/png image"
(Anthropic: llxprt-code #2130, 2026-06-23); "You uploaded an unsupported image. Please make sure your image is ... of
one the following formats: ['png', 'jpeg', 'gif', 'webp']." (OpenAI: gptpdf #6, 2024-06-30); "The file type you uploaded
is not supported. Please try again with a pdf" for the URL of an MP3 (OpenAI: recorded by pydantic-ai, 2026-01-28).

Bytes without a known signature are left to the provider, and so is one image format under the name of another, except
where the target's rules say that it is checked.
"""

from __future__ import annotations

import re

from segue.conversation.media_sources import has_scheme
from segue.conversation.media_types import (
    class_of,
    plain_type,
    shows_other_class,
    size_of_image,
    type_of_address,
    type_of_data,
    type_of_image_address,
)
from segue.errors import Path
from segue.protocols.kit.check_codes import CheckCode
from segue.protocols.kit.checking import Found
from segue.protocols.kit.codec import Violation
from segue.protocols.kit.reading import split_data_url

ANY_IMAGE = "image/*"
"""The type to check against where a block says that it is an image, and not which."""

_FOREIGN = re.compile(r"[^A-Za-z0-9+/=_\-\s]")
"""A character that neither alphabet of base64 has."""


_PNG, _PNG_START = "iVBOR", "iVBORw0KGgo"
"""The first bytes of a PNG in base64: its name, and all eight of its signature."""


def check_bytes(data: object, mime_type: object, path: Path, *, exact: bool = False) -> Found:
    """Find base64 data whose first bytes show another type than the claimed one; `exact` compares images by format."""
    if not isinstance(data, str) or not isinstance(mime_type, str):
        return
    if _FOREIGN.search(data):
        # "Invalid base64 data" (Anthropic, Mistral), "Invalid base64 image_url." (OpenAI: comfyui-art-venture #75),
        # "Base64 decoding failed" (Google: protobuf's mapping); read 2026-11-17
        yield Violation(CheckCode.MEDIA_BASE64_INVALID, path, "the data is not base64; encode it so")
        return
    if data.startswith(_PNG) and not data.startswith(_PNG_START):
        # "Could not process image": line ends were changed by a shell (Anthropic: claude-code #12293, 2025-11-24)
        yield Violation(CheckCode.MEDIA_BYTES_INVALID, path, "the PNG is damaged; send the original bytes")
        return
    claimed, found = plain_type(mime_type), type_of_data(data)
    if found is None or not claimed:
        return
    differs = exact and found != claimed and class_of(found) == class_of(claimed) == "image"
    if differs or shows_other_class(claimed, found):
        message = f"the data is {found}, not {claimed}; correct the type, or send the data of another file"
        yield Violation(CheckCode.MEDIA_BYTES_INVALID, path, message)


def check_edge(data: object, path: Path, most: int) -> Found:
    """Find an image in base64 with more pixels on an edge than a target takes; 0: any number."""
    size = size_of_image(data) if most and isinstance(data, str) else None
    if size is not None and max(size) > most:
        message = f"the image has {size[0]} by {size[1]} pixels, and at most {most} are supported; scale it"
        yield Violation(CheckCode.MEDIA_TOO_LARGE, path, message)


def check_scheme(url: object, schemes: frozenset[str], path: Path) -> Found:
    """Find a URL whose scheme the target does not read."""
    if isinstance(url, str) and not has_scheme(url, schemes):
        known = " or ".join(sorted(schemes))
        message = f"only {known} URLs are supported; use one, or send the data"
        yield Violation(CheckCode.MEDIA_SOURCE_UNSUPPORTED, path, message)


def check_image_url(url: object, path: Path, *, exact: bool = False, schemes: frozenset[str] = frozenset()) -> Found:
    """Find a URL of an image that is the address or the data of something else."""
    if not isinstance(url, str):
        return
    parts = split_data_url(url)
    if parts is not None:
        mime = plain_type(parts[0])
        if mime.partition("/")[0] in ("audio", "video", "text") or mime == "application/pdf":
            message = f"an image cannot have the type {mime}; send it as a file, or convert it"
            yield Violation(CheckCode.MEDIA_TYPE_UNSUPPORTED, path, message)
        else:
            yield from check_bytes(parts[1], ANY_IMAGE if class_of(mime) != "image" else mime, path, exact=exact)
        return
    yield from check_scheme(url, schemes, path)
    shown = type_of_image_address(url)
    if shown is not None and class_of(shown) != "image":
        message = f"the address is that of {shown}, not of an image; send it as a file"
        yield Violation(CheckCode.MEDIA_TYPE_UNSUPPORTED, path, message)


def check_address(url: object, allowed: tuple[str, ...], path: Path) -> Found:
    """Find the URL of a file whose name shows a type that is not allowed."""
    shown = type_of_address(url) if isinstance(url, str) else None
    if shown is None or any(pattern in ("*", shown, f"{shown.partition('/')[0]}/*") for pattern in allowed):
        return
    message = f"files of the type {shown} are not supported; convert it or remove it"
    yield Violation(CheckCode.MEDIA_TYPE_UNSUPPORTED, path, message)
