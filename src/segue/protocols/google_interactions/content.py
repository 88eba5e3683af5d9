"""Contents of a step, both ways: text, images, sounds, films, documents.

A content of the model that is not text is native content, whose fallback is the image or file.

Steps and contents that only this protocol has: what other models can read of them, and which belong together.

So results that can be read have a fallback; calls and results without a text have none.

Pages that a reply cites.

Facts:
- A content is an object with a `type`: `text`, `image`, `audio`, `video` or `document`; media have `data` (base64) or a
  `uri`, and a `mime_type`.                          (google-genai 3.1.0: ContentParam and its members, read 2026-11-17)
- A `uri` names a file of the Files API or of Cloud Storage.                (live calls of a public adapter, 2026-11-16)
- Only a video has a name, and only a text annotations.                                        (google-genai 3.1.0)
- A tool that Google runs is a call and a result, two steps of the model's turn; the result names the call by `call_id`.
  Both may be signed, and have to be returned unchanged.          (google-genai 3.1.0: StepParam; read 2026-11-17)
- The result of a search is a piece of HTML for display; what was found is in the annotations of the answer.
                                                                                (google-genai 3.1.0: GoogleSearchResult)
- Calls written as text make other models write such text instead of calling.         (vscode copilot api #171)
- A text of the model has `annotations`; a `url_citation` has an address, a title and its place in bytes of the text.
                                                          (google-genai 3.1.0: URLCitationParam, read 2026-11-17)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import (
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.conversation.media_types import plain_type
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError
from segue.protocols.families.citations import read_span
from segue.protocols.google_interactions.rules import PROTOCOL
from segue.protocols.kit.json_values import Block, Wire, is_object, kind_of, object_of
from segue.protocols.kit.reading import native_block, standard_base64, text_of
from segue.protocols.kit.replay import Pair, Replay, read_type
from segue.protocols.kit.sources import CitedPage, labelled, objects_in
from segue.protocols.kit.verbatim import data_of, keep, restore

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
        wire["mime_type"] = plain_type(mime)  # others are not values of the types (google-genai 3.1.0)
    if kind == "video" and cast("FileContent", piece).name is not None:
        wire["name"] = cast("FileContent", piece).name
    return wire


_LABELS: Final[Mapping[str, str]] = {
    "code_execution_result": "output of executed code",
    "url_context_result": "pages read",
    "mcp_server_tool_result": "result of a server's tool",
    "retrieval_result": "documents found",
    "file_search_result": "documents found",
}


def native_step(step: Block) -> NativeContent:
    """Keep a step, or a content of the model, unchanged; with its fallback."""
    return NativeContent(protocol=PROTOCOL, block=step, fallback=_fallback(step))


def _fallback(step: Block) -> tuple[FallbackContent, ...]:
    media = decode_media(step)
    if media is not None:
        return (media,)
    kind = kind_of(step)
    if kind == "model_output":
        text = text_of(object_of(step.get("error")).get("message"))
        return (TextContent(text=text),) if text and text.strip() else ()
    if kind not in _LABELS:
        return ()
    result = step.get("result")
    lines = _lines(result)
    if not any(line.strip() for line in lines):
        return ()
    label = _LABELS[kind] + (": failed" if step.get("is_error") is True else "")
    return (TextContent(text=labelled(label, lines)),)


def _lines(result: object) -> list[str]:
    """Return what can be read of a result: a text, the texts of contents, addresses, or an object as JSON."""
    if isinstance(result, str):
        return [result.rstrip("\n")]
    if is_object(result):
        return [encode_arguments(result)] if result else []
    found: list[str] = []
    for entry in objects_in(result):
        url, text = text_of(entry.get("url")), text_of(entry.get("text"))
        if text is not None:
            found.append(text)
        elif url is not None:
            found.append(f"- {url} ({text_of(entry.get('status')) or 'read'})")
    return found


_SERVER_TOOLS: Final = (
    "code_execution",
    "google_search",
    "google_maps",
    "url_context",
    "file_search",
    "processing",
    "retrieval",
    "mcp_server_tool",
)

REPLAY: Final = Replay(
    read=read_type,
    # google-genai 3.1.0: `call_id` is "ID to match the ID from the function call block". Whether half a pair is refused
    # is not known; a turn that was cut may end with a call.                                              (2026-11-17)
    pairs=tuple(
        Pair(
            call=f"{tool}_call",
            results=(f"{tool}_result",),
            call_id="id",
            result_id=("call_id",),
            scope="run",
            call_alone=True,
        )
        for tool in _SERVER_TOOLS
    ),
    whole=frozenset({"image", "audio", "video", "document", "model_output"}),
    malformed=frozenset({"function_call", "function_result", "thought", "text", "user_input"}),
    stored=frozenset({"previous_interaction_id", "cached_content"}),
)
"""Calls of tools that Google runs, and their results."""


def cited_sources(message: AssistantMessage) -> Sequence[CitedPage]:
    """Return the pages that the texts of a message cite."""
    return [
        CitedPage(
            url,
            text_of(annotation.get("title")) or "",
            read_span(piece.text, annotation.get("start_index"), annotation.get("end_index"), in_bytes=True),
        )
        for piece in message.content
        if piece.kind == "text" and piece.extra is not None
        for annotation in objects_in(data_of(piece.extra, PROTOCOL).get("annotations"))
        if annotation.get("type") == "url_citation" and (url := text_of(annotation.get("url")))
    ]
