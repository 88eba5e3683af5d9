"""Fit one image or file to a target: keep it, convert it, or replace it by a text.

First the type: the first bytes of the data outrank the MIME type, and both outrank the class of the content, so that a
PDF in an `ImageContent` is sent as a file, and an image in a `FileContent` as an image. Then the checks, in this order:
does the model support this kind of media, does the protocol allow its MIME type here or in a user turn, can the target
read the source, is it too large. Content of `Policy.media` passes the same checks.

Data that is not base64 and a path in place of a URL are mistakes of the calling program, and errors: no provider could
read them. Only in the fallback of a native block, which a provider wrote, they become a placeholder.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent, TextContent
from segue.conversation.media_sources import find_data_fault, find_url_fault, has_scheme
from segue.conversation.media_types import (
    ALIASES,
    UNKNOWN_TYPES,
    class_of,
    is_readable,
    plain_type,
    shows_other_class,
    size_of_image,
    type_of_address,
    type_of_data,
    type_of_image_address,
)
from segue.models.model import Modality
from segue.projection.passes.extra import extra_loss, kept_extra, lost_extra
from segue.projection.policy import fill
from segue.projection.report import ChangeCode, Loss
from segue.projection.workspace.surrogates import clean_text
from segue.projection.workspace.workspace import Target
from segue.protocols.kit.capabilities import refused_input
from segue.protocols.kit.reading import split_data_url, standard_base64

Media = ImageContent | FileContent

_STORED: Final = re.compile(r"(?:s3|gs|file|blob)://", re.IGNORECASE)
"""URLs of files that only one provider or one machine can read: they are file ids."""

Noted = tuple[ChangeCode, Loss, str]
Fault = tuple[str, str]
"""The field with a mistake, and what is wrong with it."""


class MediaFit:
    """The content that replaces a piece of media, the changes, and the reference that the caller could supply.

    A `fault` is a mistake of the program that built the piece: no provider could read it.
    """

    __slots__ = ("changes", "content", "fault", "moves", "needed", "placeholder")

    def __init__(
        self,
        content: Media | TextContent,
        *changes: Noted,
        moves: bool = False,
        needed: str | None = None,
        placeholder: bool = False,
        fault: Fault | None = None,
    ) -> None:
        self.content: Media | TextContent = content
        self.changes: tuple[Noted, ...] = changes
        self.moves: bool = moves
        self.needed: str | None = needed
        self.placeholder: bool = placeholder
        self.fault: Fault | None = fault


def kind_of(piece: Media) -> Modality:
    """Return the value of `Model.input` that a piece of media requires, by its MIME type or its address."""
    mime = _type_of(piece)
    return class_of(mime) if mime else "image" if piece.kind == "image" else "document"


def edge_of(piece: Media) -> int:
    """Return the longest edge of an image in pixels; 0 where the data does not show it."""
    return max(size_of_image(piece.data) or (0,)) if piece.data else 0


def fit_media(piece: Media, target: Target, patterns: tuple[str, ...], *, in_result: bool) -> MediaFit:
    """Fit one piece to the target. `patterns` are the MIME types that the protocol allows in this place."""
    typed, noted = _typed(piece, target, patterns, in_result=in_result)
    kind = kind_of(typed)
    if kind in refused_input(target.model, target.rules):
        return _as_text(typed, piece) or _unreadable(kind, target, in_result=in_result)
    fault = _find_fault(piece, typed, kind, target)  # before the type: that of broken data is not known
    if fault is not None:
        supplied = _supplied(piece, target, patterns, in_result=in_result)
        return supplied or _unreachable(piece, kind, target, fault)
    fits_here = _supports(patterns, typed)
    if not fits_here and not (in_result and _supports(target.rules.user_media, typed)):
        listed = kind in target.model.input
        other = _flattened(typed, kind, target) if listed else _unreadable(kind, target, in_result=in_result)
        return _as_text(typed, piece) or other
    if _is_broken_text(typed):
        return _supplied(piece, target, patterns, in_result=in_result) or _unreachable(piece, kind, target)
    if not _is_reachable(typed, kind, target) or (target.rules.has("untyped_media") and not _is_precise(typed)):
        return _supplied(piece, target, patterns, in_result=in_result) or _unreachable(piece, kind, target)
    if _is_too_large(typed, kind, target):
        text = fill(target.policy.texts.media_too_large, kind=kind)
        return MediaFit(TextContent(text=text), (ChangeCode.MEDIA_TOO_LARGE, Loss.CONTENT, ""), placeholder=True)
    return MediaFit(typed, *noted, moves=not fits_here)


# -- the type ----------------------------------------------------------------------------------------------------------


def _typed(piece: Media, target: Target, patterns: tuple[str, ...], *, in_result: bool) -> tuple[Media, list[Noted]]:
    """Return the piece with the MIME type of its bytes and the class of that MIME type, and the changes.

    Where the class changes, `extra` is removed: it describes a part of another type.
    """
    noted: list[Noted] = []
    parts = None if piece.url is None or piece.data is not None else split_data_url(piece.url, exact=False)
    if parts is not None:
        piece = replace(piece, url=None, data=standard_base64(parts[1]), mime_type=piece.mime_type or parts[0])
        noted.append((ChangeCode.MEDIA_RESOLVED, Loss.NONE, "data URL"))
    allowed = (*patterns, *target.rules.user_media) if in_result else patterns
    mime = _real_type(piece, allowed, exact=target.rules.has("other_image_type"))
    if mime is None and target.rules.has("untyped_media") and not _is_precise(piece):
        mime = _type_of(piece) or type_of_address(None if piece.kind == "image" else piece.file_id)
    if mime is not None:
        piece = replace(piece, mime_type=mime)
        noted.append((ChangeCode.MEDIA_TYPE_NAMED, Loss.NONE, mime))
    kind = kind_of(piece)
    if piece.kind == "image" and kind != "image":
        noted.append((ChangeCode.IMAGE_AS_FILE, lost_extra(piece.extra), _type_of(piece)))
        return _file_of(piece), noted
    if piece.kind == "file" and kind == "image" and (piece.file_id is None or piece.data or piece.url):
        noted.insert(0, (ChangeCode.FILE_AS_IMAGE, lost_extra(piece.extra), piece.name or ""))
        return _image_of(piece), noted
    return piece, noted


def _file_of(image: ImageContent) -> FileContent:
    return FileContent(data=image.data, url=image.url, mime_type=_type_of(image), cache_mark=image.cache_mark)


def _image_of(file: FileContent) -> ImageContent:
    return ImageContent(data=file.data, url=file.url, mime_type=file.mime_type, cache_mark=file.cache_mark)


def _real_type(piece: Media, allowed: tuple[str, ...], *, exact: bool) -> str | None:
    """Return the MIME type that has to replace the given one; None where the given one may stay.

    Bytes of another class always decide. Within a class they decide where no type is named (`image/*`), where the
    target checks the type of images, and where it supports only one of the two types. Capitals and parameters in the
    type of an image are removed where the target supports only the plain type: codecs write that of an image
    unchanged, and that of a file plain.
    """
    given = plain_type(piece.mime_type)
    found = None if piece.data is None else type_of_data(piece.data)
    if found is not None and shows_other_class(given, found):
        named = None if piece.kind == "image" else type_of_address(piece.name)
        return named if named is not None and not shows_other_class(named, found) else found
    is_image = class_of(given) == "image"
    other = found if is_image and found != given and class_of(found or "") == "image" else None
    if other is not None and (
        exact or given.endswith("/*") or _is_allowed(allowed, other) != _is_allowed(allowed, given)
    ):
        return other
    named, written = ALIASES.get(given, given), (piece.mime_type or "") if is_image else given
    return named if _is_allowed(allowed, named) and not _is_allowed(allowed, written) else None


def _type_of(piece: Media) -> str:
    """Return the plain MIME type; that of the address where none is given; an empty string where both are unknown."""
    mime = plain_type(piece.mime_type)
    if mime or piece.data is not None:
        return mime
    if piece.kind == "image":
        return type_of_image_address(piece.url) or ""
    return type_of_address(piece.url) or type_of_address(piece.name) or type_of_address(piece.file_id) or ""


def _is_precise(piece: Media) -> bool:
    """Whether the MIME type names a format, not only a class."""
    mime = plain_type(piece.mime_type)
    return mime not in UNKNOWN_TYPES and not mime.endswith("/*")


def _is_allowed(patterns: tuple[str, ...], mime: str) -> bool:
    """Whether a pattern allows a type; `image/*` as a type is allowed where any image is."""
    family = mime.partition("/")[0]
    if mime.endswith("/*"):
        return any(pattern == "*" or pattern.startswith(f"{family}/") for pattern in patterns)
    return any(pattern in ("*", mime, f"{family}/*") for pattern in patterns)


def _supports(patterns: tuple[str, ...], piece: Media) -> bool:
    """Whether the patterns allow a piece. Without a type, an image by URL is allowed, data only if all types are."""
    mime = _type_of(piece)
    if not mime and piece.data is not None:
        return "*" in patterns
    if piece.kind == "image" and not piece.mime_type:
        mime = "image/*"  # the extension of an address does not prove which image it is
    if mime:
        return _is_allowed(patterns, mime)
    return any(pattern.partition("/")[0] not in ("image", "audio", "video") for pattern in patterns)


def _find_fault(given: Media, typed: Media, kind: Modality, target: Target) -> Fault | None:
    """Find data that is not base64, or a path in place of a URL; `typed` may have the data of a data URL."""
    name = type(given).__name__
    if typed.data is not None:
        fault = find_data_fault(typed.data, name)
        return None if fault is None else ("url" if given.data is None else "data", fault)
    if typed.url is None or _is_stored_at(typed, kind, target):
        return None
    fault = find_url_fault(typed.url, name)
    return None if fault is None else ("url", fault)


def _is_broken_text(piece: Media) -> bool:
    """Whether a text file is not UTF-8."""
    return piece.data is not None and plain_type(piece.mime_type).startswith("text/") and _text_of(piece) is None


def _is_reachable(piece: Media, kind: Modality, target: Target) -> bool:
    rules = target.rules
    sources = rules.image_sources if kind == "image" else rules.file_sources
    if piece.data is not None and "data" in sources:
        return True
    is_web = piece.url is not None and not _STORED.match(piece.url) and has_scheme(piece.url, rules.url_schemes)
    if is_web and not _shows_other(piece) and "url" in sources and _supports(rules.url_media, piece):
        return True
    return _is_stored_at(piece, kind, target)


def _shows_other(piece: Media) -> bool:
    """Whether the address of a document or an image shows another class than the MIME type: a PDF that is an MP3.

    Sound and video share names: `.mpeg` may be either.
    """
    claimed, shown = plain_type(piece.mime_type), type_of_image_address(piece.url)
    if shown is None or claimed in UNKNOWN_TYPES or class_of(claimed) in ("audio", "video"):
        return False
    return shows_other_class(claimed, shown)


def _is_stored_at(piece: Media, kind: Modality, target: Target) -> bool:
    """Whether the target can read a file by its id, or by the URL of its store."""
    rules = target.rules
    sources = rules.image_sources if kind == "image" else rules.file_sources
    is_stored = piece.url is not None and _STORED.match(piece.url) is not None
    file_id = piece.url if is_stored else None if piece.kind == "image" else piece.file_id
    if file_id is None or "file_id" not in sources:
        return False
    return rules.file_id_pattern is None or re.fullmatch(rules.file_id_pattern, file_id) is not None


def _is_too_large(piece: Media, kind: Modality, target: Target) -> bool:
    rules, size = target.rules, len(piece.data or "") * 3 // 4
    if kind == "image" and 0 < rules.most("image_edge") < edge_of(piece):
        return True
    narrower = {"image": rules.most("image_bytes"), "document": rules.most("document_bytes")}.get(kind, 0)
    return any(0 < most < size for most in (rules.most("media_bytes"), narrower))


# -- replacements ------------------------------------------------------------------------------------------------------


def _supplied(piece: Media, target: Target, patterns: tuple[str, ...], *, in_result: bool) -> MediaFit | None:
    """Fit the content of `Policy.media` for a URL or file id; None if there is none that the target can read."""
    supplied = target.policy.media.get(_reference(piece) or "")
    if supplied is None or not _is_reachable(supplied, kind_of(supplied), target):
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


def _unreachable(piece: Media, kind: Modality, target: Target, fault: Fault | None = None) -> MediaFit:
    reference = _reference(piece)
    change = (ChangeCode.MEDIA_UNREACHABLE, Loss.CONTENT, reference or "")
    text = fill(target.policy.texts.media_unreachable, kind=kind)
    return MediaFit(TextContent(text=text), change, needed=reference, placeholder=True, fault=fault)


def _reference(piece: Media) -> str | None:
    return piece.url if piece.kind == "image" or piece.url is not None else piece.file_id


def _unreadable(kind: Modality, target: Target, *, in_result: bool) -> MediaFit:
    texts = target.policy.texts
    if kind == "image":
        text = texts.tool_image_omitted if in_result else texts.image_omitted
    else:
        text = fill(texts.tool_file_omitted if in_result else texts.file_omitted, kind=kind)
    return MediaFit(TextContent(text=text), (ChangeCode.MEDIA_OMITTED, Loss.CONTENT, kind), placeholder=True)


def _flattened(piece: Media, kind: Modality, target: Target) -> MediaFit:
    mime = piece.mime_type or "unknown type"
    text = fill(target.policy.texts.media_flattened, kind=kind.capitalize(), mime=mime)
    return MediaFit(TextContent(text=text), (ChangeCode.MEDIA_FLATTENED, Loss.CONTENT, mime), placeholder=True)


def _as_text(piece: Media, given: Media) -> MediaFit | None:
    """Convert a text file to text; None if it is not a text file or not valid UTF-8. `given` is the piece before."""
    text = _text_of(piece)
    if text is None:
        return None
    name = "" if piece.kind == "image" else piece.name or ""
    return MediaFit(TextContent(text=text), (ChangeCode.FILE_AS_TEXT, lost_extra(given.extra), name))


def _text_of(piece: Media) -> str | None:
    if piece.data is None or not is_readable(plain_type(piece.mime_type)):
        return None
    try:
        return base64.b64decode(piece.data, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
