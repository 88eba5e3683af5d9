"""Fit one image or file to a target: keep it, convert it, or replace it by a text.

The checks, in this order: does the model support this kind of media, does the protocol allow its MIME type here or in a
user turn, can the target read the source, is it too large. Content of `Policy.media` passes the same checks.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent, TextContent
from segue.models.model import Modality
from segue.projection.passes.extra import extra_loss, kept_extra, lost_extra
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import Target

Media = ImageContent | FileContent

_FIRST_BYTES: Final[Mapping[str, str]] = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi": "application/pdf",
}
"""First characters of the base64 of a file -> its MIME type (from the magic numbers of the formats)."""

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")

Noted = tuple[ChangeCode, Loss, str]


class Fit:
    """The content that replaces a piece of media, the changes, and the reference that the caller could supply."""

    __slots__ = ("changes", "content", "moves", "needed", "placeholder")

    def __init__(
        self,
        content: Media | TextContent,
        *changes: Noted,
        moves: bool = False,
        needed: str | None = None,
        placeholder: bool = False,
    ) -> None:
        self.content: Media | TextContent = content
        self.changes: tuple[Noted, ...] = changes
        self.moves: bool = moves
        self.needed: str | None = needed
        self.placeholder: bool = placeholder


def kind_of(piece: Media) -> Modality:
    """Give the value of `Model.input` that a piece of media requires."""
    if piece.kind == "image":
        return "image"
    match (piece.mime_type or "").partition("/")[0].lower():
        case "audio" | "video" | "image" as family:
            return family
        case _:
            return "document"


def fit_media(piece: Media, target: Target, patterns: tuple[str, ...], *, in_result: bool) -> Fit:
    """Fit one piece to the target. `patterns` are the MIME types that the protocol allows in this place."""
    kind = kind_of(piece)
    if kind not in target.model.input:
        return _as_text(piece) or _unreadable(kind, target, in_result=in_result)
    if piece.kind == "file" and kind == "image" and piece.file_id is None:
        image = ImageContent(
            data=piece.data, url=piece.url, mime_type=piece.mime_type, cache_mark=piece.cache_mark, extra=piece.extra
        )
        fit = fit_media(image, target, patterns, in_result=in_result)
        fit.changes = ((ChangeCode.FILE_AS_IMAGE, Loss.NONE, piece.name or ""), *fit.changes)
        return fit
    named = _named(piece)
    fits_here = _supports(patterns, named)
    if not fits_here and not (in_result and _supports(target.rules.user_media, named)):
        return _as_text(piece) or _flattened(piece, kind, target)
    if _is_broken(named):
        return _unreachable(piece, kind, target)
    if not _is_reachable(named, target):
        return _supplied(piece, target, patterns, in_result=in_result) or _unreachable(piece, kind, target)
    if _is_too_large(named, kind, target):
        text = fill(target.policy.texts.media_too_large, kind=kind)
        return Fit(TextContent(text=text), (ChangeCode.MEDIA_TOO_LARGE, Loss.CONTENT, ""), placeholder=True)
    if named is not piece:
        return Fit(named, (ChangeCode.MEDIA_TYPE_NAMED, Loss.NONE, named.mime_type or ""), moves=not fits_here)
    return Fit(piece, moves=not fits_here)


def _named(piece: Media) -> Media:
    """Set a missing MIME type from the first bytes of the data."""
    if piece.mime_type is not None or piece.data is None:
        return piece
    mime = next((mime for start, mime in _FIRST_BYTES.items() if piece.data.startswith(start)), None)
    return piece if mime is None else replace(piece, mime_type=mime)


def _supports(patterns: tuple[str, ...], piece: Media) -> bool:
    """Whether the patterns allow a piece. Without a type, an image by URL is allowed, data only if all types are."""
    mime = (piece.mime_type or "").partition(";")[0].strip().lower()
    family = mime.partition("/")[0] if mime else kind_of(piece)
    if not mime and piece.data is not None:
        return "*" in patterns
    if not mime and family == "document":
        return any(pattern.partition("/")[0] not in ("image", "audio", "video") for pattern in patterns)
    return any(
        pattern in ("*", mime, f"{family}/*") or (not mime and pattern.startswith(f"{family}/")) for pattern in patterns
    )


def _is_broken(piece: Media) -> bool:
    """Whether data is not base64, or a text file is not UTF-8. Only the ends of long data are checked."""
    data = piece.data
    if data is None:
        return False
    if not data or len(data) % 4 or not _BASE64.fullmatch(data[:64].rstrip("=") + data[-4:]):
        return True
    return (piece.mime_type or "").lower().startswith("text/") and _as_text(piece) is None


def _is_reachable(piece: Media, target: Target) -> bool:
    rules = target.rules
    sources = rules.image_sources if piece.kind == "image" else rules.file_sources
    if piece.data is not None and "data" in sources:
        return True
    if piece.url is not None and "url" in sources:
        return True
    if piece.kind == "image" or piece.file_id is None or "file_id" not in sources:
        return False
    return rules.file_id_pattern is None or re.fullmatch(rules.file_id_pattern, piece.file_id) is not None


def _is_too_large(piece: Media, kind: Modality, target: Target) -> bool:
    rules = target.rules
    size = len(piece.data or "") * 3 // 4
    narrower = {"image": rules.max_image_bytes, "document": rules.max_document_bytes}.get(kind, 0)
    return any(limit and size > limit for limit in (rules.max_media_bytes, narrower))


# -- replacements ------------------------------------------------------------------------------------------------------


def _supplied(piece: Media, target: Target, patterns: tuple[str, ...], *, in_result: bool) -> Fit | None:
    """Fit the content of `Policy.media` for a URL or file id; None if there is none that the target can read."""
    supplied = target.policy.media.get(_reference(piece) or "")
    if supplied is None or not _is_reachable(supplied, target):
        return None
    loss = lost_extra(piece.extra)
    if supplied.extra is not None:
        kept = kept_extra(supplied.extra, target.model.protocol, target.rules, same_provider=True)
        loss = extra_loss(supplied.extra, kept) if loss == Loss.NONE else loss
        supplied = replace(supplied, extra=kept)
    fit = fit_media(supplied, target, patterns, in_result=in_result)
    change = (ChangeCode.MEDIA_RESOLVED, loss, clean_text(_reference(piece) or ""))
    fit.changes = (change, *fit.changes)
    return fit


def _unreachable(piece: Media, kind: Modality, target: Target) -> Fit:
    reference = _reference(piece)
    change = (ChangeCode.MEDIA_UNREACHABLE, Loss.CONTENT, reference or "")
    text = fill(target.policy.texts.media_unreachable, kind=kind)
    return Fit(TextContent(text=text), change, needed=reference, placeholder=True)


def _reference(piece: Media) -> str | None:
    return piece.url if piece.kind == "image" or piece.url is not None else piece.file_id


def _unreadable(kind: Modality, target: Target, *, in_result: bool) -> Fit:
    texts = target.policy.texts
    if kind == "image":
        text = texts.tool_image_omitted if in_result else texts.image_omitted
    else:
        text = fill(texts.tool_file_omitted if in_result else texts.file_omitted, kind=kind)
    return Fit(TextContent(text=text), (ChangeCode.MEDIA_OMITTED, Loss.CONTENT, kind), placeholder=True)


def _flattened(piece: Media, kind: Modality, target: Target) -> Fit:
    mime = piece.mime_type or "unknown type"
    text = fill(target.policy.texts.media_flattened, kind=kind.capitalize(), mime=mime)
    return Fit(TextContent(text=text), (ChangeCode.MEDIA_FLATTENED, Loss.CONTENT, mime), placeholder=True)


def _as_text(piece: Media) -> Fit | None:
    """Convert a text file to text; None if it is no text file or not valid UTF-8."""
    if piece.kind != "file" or piece.data is None or not (piece.mime_type or "").lower().startswith("text/"):
        return None
    try:
        text = base64.b64decode(piece.data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return Fit(TextContent(text=text), (ChangeCode.FILE_AS_TEXT, lost_extra(piece.extra), piece.name or ""))
