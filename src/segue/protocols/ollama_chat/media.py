"""Images on Ollama's wire, both ways.

Facts this file relies on:
- `images` is a list of bare base64 without a type; a URL or a data URL answers 400.
                                         (ollama server source @fb30760; litellm convert_to_ollama_image; 2026-11-15)
- The first bytes of image formats.                                                      (the formats' descriptions)

An image that the server refuses is read as well. Its received format is written only with `verbatim`: when the request
is the received body, not a new one. `extra` of an image describes the object `{"image": ...}`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import ImageContent, NativeContent
from segue.errors import DecodeError, EncodeError, Path
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.reading import expect_list, split_data_url, standard_base64
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.ollama_chat.rules import PROTOCOL

_FIRST_BYTES: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
)
"""The position of a format's signature, the signature, the MIME type."""
_IMAGE: Final = "image"


def decode_images(received: object, path: Path) -> tuple[ImageContent, ...]:
    """Read the images of a message.

    Raises:
        DecodeError: it is not a list of strings.
    """
    if received is None:
        return ()
    return tuple(_decode_image(image, (*path, at)) for at, image in enumerate(expect_list(received, path)))


def _decode_image(received: object, path: Path) -> ImageContent:
    if not isinstance(received, str):
        raise DecodeError("an image must be a base64 string", path=path)
    if "://" in received[:16]:
        return ImageContent(url=received)
    mime, data = split_data_url(received) or (None, received)
    data = standard_base64(data)
    extra = None if data == received else keep(PROTOCOL, {_IMAGE: received}, {_IMAGE: data})
    return ImageContent(data=data, mime_type=mime or _find_type(data), extra=extra)


def _find_type(data: str) -> str | None:
    try:
        first = base64.b64decode(data[:24] + "=" * (-len(data[:24]) % 4))
    except (binascii.Error, ValueError):
        return None
    return next((mime for at, signature, mime in _FIRST_BYTES if first.startswith(signature, at)), None)


def is_refused(image: ImageContent) -> bool:
    """Whether the server refuses the image in its received format."""
    return image.data is None or (image.extra is not None and PROTOCOL in image.extra)


def encode_image(image: ImageContent, path: Path, *, verbatim: bool) -> object:
    """Write one image as bare base64; with `verbatim` as it was received.

    Raises:
        EncodeError: the image has a URL and no data.
    """
    if image.data is not None:
        wire: Wire = {_IMAGE: image.data}
        if verbatim and image.extra is not None:
            restore(wire, image.extra, PROTOCOL)
        return wire[_IMAGE]
    if verbatim and image.url is not None:
        return image.url
    raise EncodeError(f"{PROTOCOL} does not support images by reference; supply the bytes", path=path)


def native_images(received: object, images: tuple[ImageContent, ...]) -> NativeContent:
    """Keep images that have no neutral field: those of assistant messages and of system messages."""
    fallback = tuple(replace(image, extra=None) for image in images)
    return NativeContent(protocol=PROTOCOL, block={"images": received}, fallback=fallback)
