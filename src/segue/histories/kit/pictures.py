"""Pictures in a column of a row: URLs, base64 or bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from segue.conversation.media_sources import encode_bytes, is_base64
from segue.conversation.media_types import type_of_data
from segue.errors import DecodeError, Path

PICTURES: Final = ("images", "image")
"""Columns of the pictures of a row; no protocol has a field of that name."""


def picture_addresses(value: object, column: str) -> list[str]:
    """Return the pictures of a column as URLs: those that it names, and data URLs of the bytes that it holds.

    Raises:
        DecodeError: a picture is a name of a file, or nothing that is known.
    """
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    return [_address_of(item, (column, at)) for at, item in enumerate(items)]


def _address_of(item: object, path: Path) -> str:
    data = cast("Mapping[str, object]", item).get("bytes") if isinstance(item, dict) else item
    if isinstance(data, str) and is_address(data):
        return data
    text = encode_bytes(data) if isinstance(data, bytes) else data
    mime_type = type_of_data(text) if isinstance(text, str) and is_base64(text) else None
    if mime_type is None or not mime_type.startswith("image/"):
        shown = f", not {item[:60]!r}" if isinstance(item, str) else ""
        raise DecodeError(
            f"expected a picture as a URL, base64 or bytes{shown}; put the picture into the row", path=path
        )
    return f"data:{mime_type};base64,{text}"


def is_address(text: str) -> bool:
    """Whether a text is a URL, of data or of a server."""
    return text.startswith(("data:", "http://", "https://", "gs://", "s3://"))
