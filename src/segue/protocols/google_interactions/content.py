"""Contents of a step, both ways: text, images, sounds, films, documents.

Facts this file rests on:
- A content is an object with a `type`: `text`, `image`, `audio`, `video` or `document`; media have `data` (base64) or a
  `uri`, and a `mime_type`.                          (google-genai 3.1.0: ContentParam and its members, read 2026-11-17)
- A `uri` names a file of the Files API or of Cloud Storage.                (live calls of a public adapter, 2026-11-16)
- Only a video has a name, and only a text annotations.                                        (google-genai 3.1.0)

A content of the model that is no text is native content, whose fallback is the image or file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.content import FileContent, ImageContent, NativeContent, TextContent, UserContent
from segue.conversation.media_types import plain_type
from segue.errors import EncodeError
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.json_values import Block, Wire, kind_of
from segue.protocols.kit.reading import native_block, standard_base64, text_of
from segue.protocols.kit.verbatim import keep, restore

MEDIA: Final = frozenset({"image", "audio", "video", "document"})
CONTENTS: Final = MEDIA | {"text"}
"""The types of contents; no step has one of them."""

_OWN_FILES: Final = ("gs://", "files/", "https://generativelanguage.googleapis.com/")
"""How addresses begin that only Google itself can read."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_contents(given: Sequence[Block]) -> tuple[UserContent, ...]:
    """Read the contents of a user's turn or of a result."""
    return tuple([decode_content(content) for content in given])


def decode_content(wire: Block) -> UserContent:
    """Read one content; an unknown one is native."""
    text = wire.get("text")
    if isinstance(text, str) and wire.get("type") == "text":
        if len(wire) == 2:
            return TextContent(text=text)
        return TextContent(text=text, extra=keep(PROTOCOL, wire, {"type": "text", "text": text}))
    media = decode_media(wire)
    if media is None:
        return NativeContent(protocol=PROTOCOL, block=wire)
    extra = keep(PROTOCOL, wire, _encode_media(media))
    return media if extra is None else replace(media, extra=extra)


def decode_media(wire: Block) -> ImageContent | FileContent | None:
    """Read media; None when they have no known form."""
    kind, data, uri, mime = kind_of(wire), wire.get("data"), wire.get("uri"), wire.get("mime_type")
    if kind not in MEDIA or not (mime is None or isinstance(mime, str)):
        return None
    if mime is None and kind != "document":
        mime = f"{kind}/*"  # the type is all that is known
    name = text_of(wire.get("name")) if kind == "video" else None
    if isinstance(data, str) and uri is None:
        data = standard_base64(data)
        if kind == "image":
            return ImageContent(data=data, mime_type=mime)
        return FileContent(data=data, mime_type=mime, name=name)
    if not isinstance(uri, str) or data is not None:
        return None
    if uri.startswith(_OWN_FILES):
        return FileContent(file_id=uri, mime_type=mime, name=name)
    return ImageContent(url=uri, mime_type=mime) if kind == "image" else FileContent(url=uri, mime_type=mime, name=name)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_contents(pieces: Sequence[UserContent]) -> list[Wire]:
    """Write the content of a user's turn or of a result.

    Raises:
        EncodeError: the protocol does not support a piece; its path begins with the index.
    """
    out: list[Wire] = []
    for index, piece in enumerate(pieces):
        try:
            out.append(encode_content(piece))
        except EncodeError as error:
            raise EncodeError(error.reason, path=(index,)) from error
    return out


def encode_content(piece: UserContent) -> Wire:
    """Write one content.

    Raises:
        EncodeError: the protocol does not support it.
    """
    match piece.kind:
        case "text":
            wire: Wire = {"type": "text", "text": piece.text}
        case "image" | "file":
            wire = _encode_media(piece)
        case "native":
            return dict(native_block(PROTOCOL, piece))
        case _:
            assert_never(piece)
    return wire if piece.extra is None else restore(wire, piece.extra, PROTOCOL)


def _encode_media(piece: ImageContent | FileContent) -> Wire:
    mime = piece.mime_type
    kind = "image" if piece.kind == "image" else plain_type(mime).partition("/")[0]
    wire: Wire = {"type": kind if kind in MEDIA else "document"}
    uri = piece.url if piece.url is not None or piece.kind == "image" else piece.file_id
    if piece.data is not None:
        wire["data"] = piece.data
    elif uri is not None:
        wire["uri"] = uri
    else:
        raise EncodeError("an image or file has no data, URL or file id; set one of them")
    if mime is not None and not mime.endswith("/*"):
        wire["mime_type"] = plain_type(mime)  # others are no values of the types (google-genai 3.1.0)
    if kind == "video" and cast("FileContent", piece).name is not None:
        wire["name"] = cast("FileContent", piece).name
    return wire
