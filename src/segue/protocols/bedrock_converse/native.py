"""Blocks that only this wire has, and what other models can read of them.

Results of tools that Amazon ran, and the pages that an answer cites.

Cache points of Bedrock requests: typed marks both ways, and the default places when options request caching.

A cache point becomes the `cache_mark` of the content, tool or tool result before it. It stays a native block where
nothing precedes it, where another cache point precedes it, and where it is of an unknown type.

Names of documents: valid, unique in a request, and the same in every later request.

The extension is removed, because the format contains it; characters that are not allowed become a space. A name that
is taken gets the next number. Only earlier documents decide, so a request that was answered stays a prefix of the next.

Images, documents, video and audio of the Bedrock wire, both ways.

An S3 location is a file id here: only this provider can reach it.

The choice `field` is "text" where the data of a document was in `source.text`; the default is "bytes".

Pages that a reply of the Converse protocol cites.

Facts:
- Tools that the provider runs (`systemTool`) leave their calls (`type: server_tool_use`) and results in the turn of the
  assistant; results are texts, JSON and media.         (botocore 1.44.0 service model; recorded traffic, 2026-11)
- Guarded content, search results and documents made of texts are text that a guardrail or the citations process; the
  model reads it like any other text.                                         (AWS documentation, read 2026-11-15)
- Calls written as text make other models write such text instead of calling.           (vscode copilot api #171)
- The result of a system tool has a `type` (`nova_code_interpreter_result`) and may have the status `error`.
                                                              (botocore 1.44.0 service model, read 2026-11-15)
- A citation has a `title`, and the address of a page in `location.web.url`.                            (the same)
- A cache point is a block after what it caches: after the tools, the system prompt, the content of a turn. Nova
  accepts none after the tools.                            (AWS documentation: prompt caching, read 2026-11-15)
- `ttl` is five minutes unless it is set to one hour.                (botocore 1.44.0 service model, read 2026-11-15)
- A name has 1 to 200 letters, digits, hyphens, brackets and spaces, never two spaces in a row: "The document file name
  can only contain ...".                                 (AWS DocumentBlock; vercel/ai #20365, opencode #19964; 2026-09)
- Letters are those of ASCII. Underscores are refused according to some reports and accepted according to others.
                                                                         (vercel/ai #20366 and opencode #48756, 2026-09)
- "Messages can't contain duplicate document names": anywhere in a request, results included.
                                                                  (bifrost #7003, litellm #30093, opencode #48756; 2026)
- A source is bytes (base64 in JSON, real bytes in boto3) or an S3 location; that of a document may also be a text or a
  list of texts.                                                     (botocore 1.44.0 service model, read 2026-11-15)
- The type of media is a short format name, not a MIME type; other names than the documented ones were answered, too
  (`video/mp4`).                                                            (the same; recorded traffic, 2026-11)
- A text with citations has the address of a page in `location.web.url`.       (botocore 1.44.0, read 2026-11-15)
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AnyContent,
    CacheMark,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
)
from segue.conversation.context import CacheRetention, NativeTool, Tool
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.media_types import ALIASES, EXTENSIONS, FORMATS, TYPES, Kind, kind_of
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.families.citations import read_span
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, object_of
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.reading import standard_base64, text_of
from segue.protocols.kit.replay import Pair, Replay
from segue.protocols.kit.sources import CitedPage, labelled, objects_in, write_sources
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore

_LABELS: Final[Mapping[str, str]] = {
    "nova_code_interpreter_result": "output of executed code",
    "nova_grounding_result": "web search results",
}


def label_of(result: Block) -> str:
    """Name what a result is the result of; empty for a result of the application's own tools."""
    kind = text_of(result.get("type"))
    if kind is None:
        return ""
    label = _LABELS.get(kind) or f"result of {kind.removesuffix('_result').replace('_', ' ')}"
    return f"{label}: failed" if result.get("status") == "error" else label


def cited_pages(content: Block) -> Sequence[CitedPage]:
    """Return the web pages that a text cites."""
    return [
        CitedPage(url, text_of(citation.get("title")) or "")
        for citation in objects_in(content.get("citations"))
        if (url := text_of(object_of(object_of(citation.get("location")).get("web")).get("url")))
    ]


MARK: Final = "cachePoint"

_TYPE: Final = "default"
_MARK_KEYS: Final = frozenset({"type", "ttl"})
_Marked = TypeVar("_Marked", bound=AnyContent | Tool | ToolResultMessage)


# -- one cache point ---------------------------------------------------------------------------------------------------


def add_mark(value: _Marked, block: Block) -> _Marked | None:
    """Return the value with the cache point that the block is; None when the value cannot hold it."""
    mark = _decode_mark(block)
    if mark is None or value.cache_mark is not None or _is_point(value):
        return None
    return replace(value, cache_mark=mark)


def _is_point(value: AnyContent | Tool | ToolResultMessage) -> bool:
    if isinstance(value, NativeContent):
        return MARK in value.block
    return isinstance(value, NativeTool) and MARK in value.definition


def _decode_mark(block: Block) -> CacheMark | None:
    point = block.get(MARK)
    if len(block) != 1 or not isinstance(point, dict):
        return None
    wire = cast("Wire", point)
    ttl = wire.get("ttl")
    if wire.get("type") != _TYPE or not (ttl is None or isinstance(ttl, str)) or wire_ttl(ttl, "5m", "1h") != ttl:
        return None
    mark = CacheMark(ttl=ttl)
    if len(wire) == 1 + (ttl is not None):
        return mark
    return replace(mark, extra=keep(PROTOCOL, wire, _default_point(mark), known=_MARK_KEYS))


def encode_mark(mark: CacheMark) -> Wire:
    """Write a cache point."""
    return {MARK: restore(_default_point(mark), mark.extra, PROTOCOL)}


def _default_point(mark: CacheMark) -> Wire:
    ttl = wire_ttl(mark.ttl, "5m", "1h")
    return {"type": _TYPE} if ttl is None else {"type": _TYPE, "ttl": ttl}


def restore_block(wire: Wire, extra: Extra | None) -> Wire:
    """Restore a wire object, without the cache point that files written before `cache_mark` existed keep in `extra`."""
    restore(wire, extra, PROTOCOL)
    wire.pop(MARK, None)
    return wire


# -- default places ----------------------------------------------------------------------------------------------------


def place_marks(body: Wire, endpoint: Endpoint, retention: CacheRetention, *, anchored: bool) -> None:
    """Add cache points to a new body; a body that has one already is left unchanged, unless segue `anchored` it."""
    dialect = endpoint.dialect
    is_marked = not anchored and _is_marked(body)
    if dialect.cache_format != "bedrock" or not endpoint.rules.cache_marks or is_marked:
        return
    point = encode_mark(CacheMark(ttl="1h" if retention == "long" and dialect.cache_long == "1h" else None))
    tools = object_of(body.get("toolConfig")).get("tools")
    if dialect.cache_on_tools and isinstance(tools, list) and tools:
        cast("list[object]", tools).append(point)
    system = body.get("system")
    if isinstance(system, list) and system:
        cast("list[object]", system).append(point)
    turns = cast("list[Wire]", body["messages"])
    last = next((turn for turn in reversed(turns) if turn.get("role") == "user"), None)
    if last is not None and isinstance(blocks := last.get("content"), list) and blocks:
        cast("list[object]", blocks).append(point)


def _is_marked(body: Wire) -> bool:
    if _any_marked(object_of(body.get("toolConfig")).get("tools")) or _any_marked(body.get("system")):
        return True
    return any(_any_marked(turn.get("content")) for turn in cast("list[Wire]", body["messages"]))


def _any_marked(blocks: object) -> bool:
    return isinstance(blocks, list) and any(MARK in block for block in cast("list[Wire]", blocks))


LONGEST: Final = 200
NAMELESS: Final = "document"

_REFUSED: Final = re.compile(r"[^a-zA-Z0-9\-()\[\]]+")


class DocumentNames:
    """The names of the documents of one request, in their order."""

    __slots__ = ("_numbers", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        """The number that was found free for a name. Names stay taken, so the lower ones need not be tried again."""

    def fitting(self, name: str | None, form: str | None) -> str:
        """Return the valid name for a document of this format at this place, without reserving it."""
        base = legal_name(name, form)
        if base.casefold() not in self._taken:
            return base
        number = self._numbers.get(base, 2)
        while True:
            suffix = f" ({number})"
            numbered = base[: LONGEST - len(suffix)].rstrip() + suffix
            if numbered.casefold() not in self._taken:
                self._numbers[base] = number
                return numbered
            number += 1

    def take(self, name: object) -> None:
        """Reserve a name."""
        if isinstance(name, str):
            self._taken.add(name.casefold())


def names_documents(message: Message) -> bool:
    """Whether a message has documents: their names are not available to later ones."""
    for piece in message.content:
        if piece.kind == "file" and kind_of(piece.mime_type)[0] == "document":
            return True
        if piece.kind == "native" and "document" in piece.block:
            return True
    return False


def legal_name(name: str | None, form: str | None) -> str:
    """Return a name that the service accepts, as close to the file's own as possible."""
    given = name or ""
    stem, dot, ending = given.rpartition(".")
    if dot and stem and ending.lower() in EXTENSIONS.get(form or "", ()):
        given = stem
    return _REFUSED.sub(" ", given).strip()[:LONGEST].rstrip() or NAMELESS


_KNOWN: Final = frozenset({"format"})
_FIELD: Final = "field"
_BYTES: Final = "bytes"
_TEXT: Final = "text"
_S3: Final = "s3Location"
_S3_SCHEME: Final = "s3://"
_PLAIN: Final = "text/plain"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_image(inner: object, names: DocumentNames) -> ImageContent | FileContent | None:
    """Read an image; None when it is not a known form. An image in S3 is a file."""
    file = decode_file("image", inner, names)
    if file is None or file.data is None:
        return file
    return ImageContent(data=file.data, mime_type=file.mime_type, extra=file.extra)


def decode_file(kind: Kind, inner: object, names: DocumentNames) -> FileContent | None:
    """Read a document, a video or audio; None when it is not a known form."""
    block = object_of(inner)
    source = object_of(without_bytes(block.get("source")))
    if len(source) != 1:
        return None
    field, value = next(iter(source.items()))
    mime = _decode_format(kind, block.get("format"))
    name = block.get("name") if kind == "document" else None
    if (mime is None and field != _TEXT) or (kind == "document" and not isinstance(name, str)):
        return None
    data = file_id = None
    if field == _BYTES and isinstance(value, str):
        data = standard_base64(value)
    elif field == _TEXT and kind == "document" and isinstance(value, str):
        data = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
    elif field == _S3 and isinstance(uri := object_of(value).get("uri"), str) and uri:
        file_id = uri
    else:
        return None
    given = name if isinstance(name, str) else None
    context = text_of(block.get("context")) or None if kind == "document" else None
    media = FileContent(data=data, file_id=file_id, mime_type=mime or _PLAIN, name=given, context=context)
    default = _default_block(media, kind, file_id, names, name=given, as_text=field == _TEXT)
    names.take(given)
    choices = choose(_FIELD, _BYTES, _TEXT) if field == _TEXT else {}
    extra = keep(PROTOCOL, {**block, "source": source}, default, known=_KNOWN, choices=choices)
    return media if extra is None else replace(media, extra=extra)


def _decode_format(kind: Kind, name: object) -> str | None:
    """Return the MIME type of a format; an invented one for an unknown format."""
    if not isinstance(name, str) or not name:
        return None
    mime = TYPES[kind].get(name) or ALIASES[kind].get(name)
    if mime is not None:
        return mime
    return name if "/" in name and kind_of(name)[0] == kind else f"{kind}/{name}"


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent, names: DocumentNames) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has no data, or the wire has no format for its type.
    """
    place = image.url if image.url is not None and image.url.startswith(_S3_SCHEME) else None
    return _encode(image, "image", place, names, name=None)


def encode_file(file: FileContent, names: DocumentNames) -> Wire:
    """Write a file: as an image, a video, audio or a document, by its type.

    Raises:
        EncodeError: it has no data, or the wire has no format for its type.
    """
    kind, _ = kind_of(file.mime_type)
    place = file.file_id
    if place is None and file.url is not None and file.url.startswith(_S3_SCHEME):
        place = file.url
    return _encode(file, kind, place, names, name=file.name)


def _encode(
    media: ImageContent | FileContent, kind: Kind, place: str | None, names: DocumentNames, *, name: str | None
) -> Wire:
    extra = media.extra
    as_text = extra is not None and chosen(extra, PROTOCOL, _FIELD, _BYTES) == _TEXT
    inner = _default_block(media, kind, place, names, name=name, as_text=as_text)
    has_format = "format" in inner
    if extra is not None:
        restore_block(inner, extra)
    if not has_format and "format" not in inner:
        known = ", ".join(dict.fromkeys(FORMATS[kind].values()))
        raise EncodeError(
            f"{PROTOCOL} does not support {kind} of type {media.mime_type or 'unknown'}; convert it to one of {known}"
        )
    if kind == "document":
        names.take(inner.get("name"))
    return {kind: inner}


def _default_block(
    media: ImageContent | FileContent,
    kind: Kind,
    place: str | None,
    names: DocumentNames,
    *,
    name: str | None,
    as_text: bool,
) -> Wire:
    """Write media in the default format; without a format where the type has none."""
    inner: Wire = {}
    form = FORMATS[kind].get(kind_of(media.mime_type)[1])
    if form is not None:
        inner["format"] = form
    if kind == "document":
        inner["name"] = names.fitting(name, form)
    inner["source"] = _encode_source(media.data, place, as_text=as_text)
    if kind == "document" and media.kind == "file" and media.context is not None:
        inner["context"] = media.context
    return inner


def _encode_source(data: str | None, place: str | None, *, as_text: bool) -> Block:
    if data is not None and as_text:
        try:
            return {_TEXT: base64.b64decode(data).decode("utf-8", "surrogatepass")}
        except (binascii.Error, UnicodeDecodeError):
            return {_BYTES: data}
    if data is not None:
        return {_BYTES: data}
    if place is not None:
        return {_S3: {"uri": place}}
    raise EncodeError(f"{PROTOCOL} accepts media as data or in S3 only; supply the data (`Policy.media`)")


Fallback: TypeAlias = tuple[FallbackContent, ...]


def decode_native(block: Block) -> NativeContent:
    """Keep a block verbatim, with its readable part as fallback."""
    kept = object_of(without_bytes(block))
    return NativeContent(protocol=PROTOCOL, block=kept, fallback=fallback_of(kept))


def name_documents(block: Block, names: DocumentNames) -> None:
    """Reserve the name of a document that is kept verbatim."""
    names.take(object_of(block.get("document")).get("name"))


def json_text(value: object) -> str:
    """Write a JSON value as text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def fallback_of(block: Block) -> Fallback:
    """Return the readable part of a block; empty when it has none."""
    for key, value in block.items():
        read = _READABLE.get(key)
        if read is not None:
            return tuple(piece for piece in read(value) if piece.kind != "text" or piece.text.strip())
    return ()


def _text(value: object) -> Fallback:
    return (TextContent(text=value),) if isinstance(value, str) else ()


def _json(value: object) -> Fallback:
    return (TextContent(text=json_text(value)),)


def _image(value: object) -> Fallback:
    image = decode_image(value, DocumentNames())
    return () if image is None else (image,)


def _document(value: object) -> Fallback:
    file = decode_file("document", value, DocumentNames())
    if file is not None:
        return (file,)
    block = object_of(value)
    return (*_text(block.get("name")), *_blocks(object_of(block.get("source")).get("content")))


def _video(value: object) -> Fallback:
    file = decode_file("video", value, DocumentNames())
    return () if file is None else (file,)


def _audio(value: object) -> Fallback:
    file = decode_file("audio", value, DocumentNames())
    return () if file is None else (file,)


def _blocks(value: object) -> Fallback:
    if not isinstance(value, list | tuple):
        return ()
    blocks = [object_of(item) for item in cast("Sequence[object]", value)]
    return tuple(piece for block in blocks for piece in fallback_of(block))


def _contents(value: object) -> Fallback:
    return _blocks(object_of(value).get("content"))


def _tool_result(value: object) -> Fallback:
    """Read a result; that of a tool which the provider ran is labelled, its media come after it."""
    pieces, label = _contents(value), label_of(object_of(value))
    lines = [piece.text for piece in pieces if piece.kind == "text"]
    if not label or not lines:
        return pieces
    return (TextContent(text=labelled(label, lines)), *(piece for piece in pieces if piece.kind != "text"))


def _cited(value: object) -> Fallback:
    """Read a text with citations: the text, then the pages that it cites."""
    pages = write_sources(cited_pages(object_of(value)))
    return (*_contents(value), *_text(labelled("sources", pages) if pages else None))


def _guarded(value: object) -> Fallback:
    guarded = object_of(value)
    return (*_text(object_of(guarded.get("text")).get("text")), *_image(guarded.get("image")))


def _search_result(value: object) -> Fallback:
    found = object_of(value)
    head = "\n".join(part for key in ("title", "source") if (part := text_of(found.get(key))))
    return (*_text(head), *_contents(found))


_READABLE: Final[Mapping[str, Callable[[object], Fallback]]] = {
    "text": _text,
    "json": _json,
    "image": _image,
    "document": _document,
    "video": _video,
    "audio": _audio,
    "toolResult": _tool_result,
    "guardContent": _guarded,
    "citationsContent": _cited,
    "searchResult": _search_result,
}
"""Members of a block that have a readable part."""


SERVER_CALL: Final = "server_tool_use"
"""The `type` of a call of a tool that the provider runs."""


def _read(block: Block) -> tuple[str, Block]:
    """Read the kind of a block; a call and a result of the client's tools are their own content."""
    for key in ("toolUse", "toolResult", "text", "reasoningContent"):
        if key in block:
            inner = object_of(block[key])
            is_server_call = key != "toolUse" or inner.get("type") == SERVER_CALL
            return key if is_server_call else "call", inner
    return "", block


REPLAY: Final = Replay(
    read=_read,
    pairs=(
        # Both are in the turn of the model.  (AWS documentation: system tools; botocore 1.44.0, read 2026-11-15). No
        # refusal of a half is recorded; half of any other call is refused (vercel/ai #13013, langchain-aws #192).
        Pair(call="toolUse", results=("toolResult",), call_id="toolUseId", result_id=("toolUseId",), scope="turn"),
    ),
    malformed=frozenset({"call", "text", "reasoningContent"}),
)
"""Calls of tools that the provider runs, and their results."""


def cite_in_text(text: TextContent, pages: Sequence[CitedPage]) -> TextContent:
    """Return a text with citations of pages."""
    citations = [{"title": page.title, "location": {"web": {"url": page.url}}} for page in pages]
    return replace(text, extra={PROTOCOL: {"citations": citations}})


def cited_sources(message: AssistantMessage) -> Sequence[CitedPage]:
    """Return the pages that the texts of a message cite."""
    return [
        replace(source, span=read_span(piece.text, 0, len(piece.text)))
        for piece in message.content
        if piece.extra is not None and piece.kind == "text"
        for source in cited_pages(data_of(piece.extra, PROTOCOL))
    ]
