"""Images and files of pydantic-ai: `binary` with base64, or an address of a kind."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from mimetypes import guess_type
from typing import Any, Final

from segue.conversation.content import FileContent, ImageContent
from segue.histories.kit.lines import text_of
from segue.histories.kit.pieces import Media, is_base64, media_of
from segue.protocols.kit.reading import standard_base64

_URLS: Final[Mapping[str, str]] = {
    "image-url": "image/",
    "audio-url": "audio/",
    "video-url": "video/",
    "document-url": "",
}
MEDIA_KINDS: Final = frozenset({"binary", "uploaded-file", *_URLS})


def read_media_item(item: Mapping[str, Any]) -> Media | None:
    """Read an item; None if it is no image or file."""
    kind, mime = text_of(item.get("kind")), item.get("media_type")
    if kind == "binary":
        return media_of(mime, data=item.get("data"))
    if kind == "uploaded-file":
        return media_of(mime, file_id=item.get("file_id"))
    if kind not in _URLS:
        return None
    found = media_of(mime, url=item.get("url"))
    if kind == "image-url" and isinstance(found, FileContent):
        return ImageContent(data=found.data, url=found.url, mime_type=found.mime_type)
    return found


def write_media_item(content: Media) -> dict[str, Any] | None:
    """Write an image or a file; None if there is nothing in it."""
    mime = content.mime_type
    if content.data is not None:
        default = "image/png" if content.kind == "image" else "application/octet-stream"
        if not is_base64(content.data):
            return None
        # pydantic writes base64 with the URL-safe alphabet and reads both.
        data = content.data.replace("+", "-").replace("/", "_")
        item: dict[str, Any] = {"data": data, "media_type": mime or default, "vendor_metadata": None}
        return {**item, "kind": "binary", "identifier": _identifier(content.data)}
    if isinstance(content, FileContent) and content.file_id is not None:
        fields = {"file_id": content.file_id, "provider_name": "openai", "vendor_metadata": None}
        return {**fields, "kind": "uploaded-file", "media_type": mime}
    if content.url is None:
        return None
    kind = "image-url" if content.kind == "image" else "document-url"
    if isinstance(content, FileContent):
        named = (each for each, start in _URLS.items() if start and (mime or "").startswith(start))
        kind = next(named, kind)
    item = {"url": content.url, "force_download": False, "vendor_metadata": None, "kind": kind}
    if mime is None:
        mime = guess_type(content.url.partition("?")[0])[0]
    name = hashlib.sha1(content.url.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:6]
    return {**item, **({} if mime is None else {"media_type": mime, "identifier": name})}


def _identifier(data: str) -> str:
    """Give the name under which pydantic-ai mentions the data: the beginning of its hash."""
    try:
        content = base64.b64decode(standard_base64(data), validate=True)
    except (binascii.Error, ValueError):
        content = data.encode("utf-8", "surrogatepass")
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()[:6]
