"""What other models can read of blocks that only this wire has.

So results, summaries and references have a readable fallback; calls, handover blocks and encrypted data have none.

Results of server tools as text that other models can read: what was done, then what it gave.

Cache marks of the Anthropic wire: read, written, and placed where the options ask for caching.

Images and documents of the Anthropic wire, both ways.

Media are not inspected. A block whose source has none of these forms is native. An image with a file id is a file of
the type `image/*`: the id does not show which image it is.

Choices kept in `extra`: `source`, the type of the source of a document.

Pages that a reply of Claude cites.

Facts:
- Server tools leave their calls (`server_tool_use`, `mcp_tool_use`) and results (`*_tool_result`) in the
  assistant turn; pages and search results are partly encrypted, titles and addresses are not.
                                                                                          (anthropic 2.8.0, 2026-11-15)
- A `compaction` block replaces everything before it: its summary is the only readable part.           (beta, the same)
- Calls written as text make other models write such text instead of calling.             (vscode copilot api #171)
- The fields of each result.                                                       (anthropic 2.8.0, read 2026-11-15)
- A result that failed has an `error_code`; the text of pages found is encrypted, titles and addresses are not.
- A mark is `cache_control: {"type": "ephemeral"}` on a block or a tool; its `ttl` is "5m" (the default) or "1h".
                                                                                   (anthropic 2.8.0, read 2026-11-15)
- The prompt is read in the order tools, system, messages; a mark caches everything up to its block. So marks go on the
  last tool, the last block of the system prompt and the last block of the last user turn.
                                                          (Anthropic documentation: prompt caching, read 2026-11-15)
- A mark on an empty text, on thinking or on a tool whose loading is deferred is refused.                     (the same)
- The source of an image is base64, a URL or a file id; that of a document is base64 (a PDF), plain text as text, the
  URL of a PDF, a file id, or a list of blocks.           (anthropic 2.8.0: image and document sources, read 2026-11-15)
- The model sees `title` and `context` of a document; `title` is the name of the file.                      (the same)
- Neither a URL nor a file id states a type. URLs of documents are URLs of PDFs by the SDK's own name for them; most
  files with an id are PDFs too, and nothing but the neutral type needs one.                               (the same)
- A text has `citations`; those of type `web_search_result_location` have `url` and `title`, those of a search result
  of the caller's have `source`.                                                   (anthropic 2.8.0, read 2026-11-15)
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    CacheMark,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
)
from segue.conversation.context import CacheRetention
from segue.conversation.media_types import plain_type
from segue.conversation.messages import AssistantMessage
from segue.errors import EncodeError
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.families.citations import read_span
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, object_of
from segue.protocols.kit.option_table import wire_ttl
from segue.protocols.kit.reading import standard_base64, text_of
from segue.protocols.kit.replay import Pair, Replay
from segue.protocols.kit.sources import CitedPage, labelled, objects_in
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore

_LABELS: Final[Mapping[str, str]] = {
    "web_search_tool_result": "web search results",
    "web_fetch_tool_result": "fetched web page",
    "code_execution_tool_result": "output of executed code",
    "bash_code_execution_tool_result": "output of an executed command",
    "text_editor_code_execution_tool_result": "result of editing a file",
    "tool_search_tool_result": "tools found",
    "mcp_tool_result": "result of an MCP tool",
    "advisor_tool_result": "advice",
}


def label_of(block: Block) -> str:
    """Name what a result is the result of; empty for a result of the application's own tools."""
    kind = text_of(block.get("type")) or ""
    if kind == "tool_result" or not kind.endswith("_tool_result"):
        return ""
    label = _LABELS.get(kind) or f"result of {kind.removesuffix('_tool_result').replace('_', ' ')}"
    failed = object_of(block.get("content")).get("error_code") is not None or block.get("is_error") is True
    return f"{label}: failed" if failed else label


def result_lines(inner: Block) -> list[str]:
    """Read the plain fields of one result: pages, output of a program, names of tools, a reason of failure."""
    lines: list[str] = []
    if (url := text_of(inner.get("url"))) is not None:
        page = object_of(inner.get("content"))
        lines.append(CitedPage(url, text_of(inner.get("title")) or text_of(page.get("title")) or "").line())
        source = object_of(page.get("source"))
        if source.get("type") == "text" and (text := text_of(source.get("data"))):
            lines.append(text)
    elif title := text_of(inner.get("title")):
        lines.append(title)
    lines += [text.rstrip("\n") for key in ("stdout", "stderr") if (text := text_of(inner.get(key)))]
    if isinstance(code := inner.get("return_code"), int) and code:
        lines.append(f"return code {code}")
    named = [inner, *objects_in(inner.get("tool_references"))]
    lines += [name for found in named if (name := text_of(found.get("tool_name")))]
    if (code := text_of(inner.get("error_code"))) is not None:
        lines.append(code)
    return lines


def has_page_text(inner: Block) -> bool:
    """Whether a result holds the text of a page, which `result_lines` writes."""
    return object_of(object_of(inner.get("content")).get("source")).get("type") == "text"


CACHE_CONTROL: Final = "cache_control"
_EPHEMERAL: Final = "ephemeral"
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_result", "search_result"})


# -- one mark ----------------------------------------------------------------------------------------------------------


def decode_mark(wire: Block) -> CacheMark | None:
    """Read the mark of a block or a tool; None when it has none, or one of an unknown type, which is data."""
    given = wire.get(CACHE_CONTROL)
    if not isinstance(given, (dict, Mapping)):
        return None
    mark = cast("Block", given)
    if mark.get("type") != _EPHEMERAL:
        return None
    ttl = mark.get("ttl")
    plain = CacheMark(ttl=ttl if isinstance(ttl, str) else None)
    return CacheMark(ttl=plain.ttl, extra=keep(PROTOCOL, mark, encode_mark(plain)))


def encode_mark(mark: CacheMark) -> Wire:
    """Write a mark."""
    wire: Wire = {"type": _EPHEMERAL}
    ttl = wire_ttl(mark.ttl, "5m", "1h")
    if ttl is not None:
        wire["ttl"] = ttl
    return wire if mark.extra is None else restore(wire, mark.extra, PROTOCOL)


def split_mark(native: Block) -> tuple[Block, CacheMark | None]:
    """Take the mark out of a native block or tool, so that all marks are counted in one place."""
    mark = decode_mark(native)
    if mark is None:
        return native, None
    return {key: value for key, value in native.items() if key != CACHE_CONTROL}, mark


def join_mark(native: Block, mark: CacheMark | None) -> Wire:
    """Return a native block or tool with its mark; it holds everything else itself."""
    if mark is not None:
        return {**native, CACHE_CONTROL: encode_mark(mark)}
    return native if isinstance(native, dict) else dict(native)


# -- marks that the options ask for ------------------------------------------------------------------------------------


def place_marks(
    body: Wire, endpoint: Endpoint, retention: CacheRetention, *, anchored: bool, plain_system: bool = False
) -> None:
    """Put marks into a body that was just written; a body with marks is left alone, unless segue `anchored` it.

    A system prompt that has to stay a string (`plain_system`) gets none: the mark of the last turn caches it too.
    """
    dialect = endpoint.dialect
    is_marked = not anchored and _is_marked(body)
    if dialect.cache_format != "anthropic" or not endpoint.rules.cache_marks or is_marked:
        return
    mark = encode_mark(CacheMark(ttl="1h" if retention == "long" and dialect.cache_long == "1h" else None))
    tools, system = body.get("tools"), body.get("system")
    if dialect.cache_on_tools and isinstance(tools, list):
        _mark_last(cast("list[object]", tools), mark, _is_loaded)
    if isinstance(system, str):
        if system.strip() and not plain_system:
            body["system"] = [{"type": "text", "text": system, CACHE_CONTROL: mark}]
    elif isinstance(system, list):
        _mark_last(cast("list[object]", system), mark, _is_markable)
    turns = cast("list[Wire]", body["messages"])
    last = next((turn for turn in reversed(turns) if turn.get("role") == "user"), None)
    if last is not None and isinstance(blocks := last.get("content"), list):
        _mark_last(cast("list[object]", blocks), mark, _is_markable)


def _is_loaded(tool: Block) -> bool:
    return not tool.get("defer_loading")


def _is_markable(block: Block) -> bool:
    kind = block.get("type")
    return kind in _MARKABLE and (kind != "text" or bool(str(block.get("text", "")).strip()))


def _mark_last(blocks: list[object], mark: Block, is_markable: Callable[[Block], bool]) -> None:
    """Mark the last block that may have a mark. It is replaced, not changed: native blocks belong to the history."""
    for at in range(len(blocks) - 1, -1, -1):
        block = cast("Block", blocks[at])
        if is_markable(block):
            blocks[at] = {**block, CACHE_CONTROL: mark}
            return


def _is_marked(body: Block) -> bool:
    if CACHE_CONTROL in body or _any_marked(body.get("tools")) or _any_marked(body.get("system")):
        return True
    return any(_any_marked(turn.get("content")) for turn in cast("list[Block]", body["messages"]))


def _any_marked(blocks: object) -> bool:
    if isinstance(blocks, list):
        for block in cast("list[Block]", blocks):
            if CACHE_CONTROL in block:
                return True
    return False


_PDF: Final = "application/pdf"
_PLAIN: Final = "text/plain"
_ANY_IMAGE: Final = "image/*"
_SOURCES: Final[Mapping[str, str]] = {_PDF: "base64", _PLAIN: "text"}
"""The default type of source for the data of a document, by MIME type; other types have none."""


def source_of(block: Block) -> Block:
    """Return the source of a block; an empty object where it has none."""
    source = block.get("source")
    return cast("Block", source) if isinstance(source, Mapping) else EMPTY


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_image(block: Block) -> ImageContent | FileContent | None:
    """Read an image; None when its source has an unknown form."""
    source = source_of(block)
    if source.get("type") == "file":
        return _decode_stored_image(block, source.get("file_id"))
    kind, mime, data = source.get("type"), source.get("media_type"), source.get("data")
    mark = decode_mark(block)
    if kind == "base64" and isinstance(mime, str) and isinstance(data, str):
        image = ImageContent(data=standard_base64(data), mime_type=mime, cache_mark=mark)
    elif kind == "url" and isinstance(url := source.get("url"), str):
        image = ImageContent(url=url, cache_mark=mark)
    else:
        return None
    if (
        len(block) == 2
        and len(source) == (3 if image.url is None else 2)
        and (image.data is None or image.data is data)
    ):
        return image
    return replace(image, extra=keep(PROTOCOL, block, encode_image(image)))


def _decode_stored_image(block: Block, file_id: object) -> FileContent | None:
    if not isinstance(file_id, str):
        return None
    file = FileContent(file_id=file_id, mime_type=_ANY_IMAGE, cache_mark=decode_mark(block))
    return replace(file, extra=keep(PROTOCOL, block, encode_file(file)))


def decode_document(block: Block) -> FileContent | None:
    """Read a document; None when its source has an unknown form, or is a list of blocks."""
    source, title = source_of(block), block.get("title")
    kind, mime, data = source.get("type"), source.get("media_type"), source.get("data")
    name, mark = title if isinstance(title, str) else None, decode_mark(block)
    context = text_of(block.get("context")) or None  # an empty one is only format
    choice, keys = Wire(), 2
    if kind in ("base64", "text") and isinstance(mime, str) and isinstance(data, str):
        content = standard_base64(data) if kind == "base64" else _base64_of(data)
        file = FileContent(data=content, mime_type=mime, name=name, context=context, cache_mark=mark)
        choice, keys = choose("source", _default_source(mime), kind), 3
    elif kind == "url" and isinstance(url := source.get("url"), str):
        file = FileContent(url=url, mime_type=_PDF, name=name, context=context, cache_mark=mark)
    elif kind == "file" and isinstance(file_id := source.get("file_id"), str):
        file = FileContent(file_id=file_id, mime_type=_PDF, name=name, context=context, cache_mark=mark)
    else:
        return None
    is_plain = len(source) == keys and (keys == 2 or mime in _SOURCES) and not choice
    is_plain = is_plain and (kind != "base64" or file.data is data)
    if is_plain and len(block) == 2 + (name is not None) + (context is not None):
        return file
    if choice:
        file = replace(file, extra=keep(PROTOCOL, EMPTY, EMPTY, choices=choice))
    return replace(file, extra=keep(PROTOCOL, block, encode_file(file), choices=choice))


def _base64_of(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_image(image: ImageContent) -> Wire:
    """Write an image.

    Raises:
        EncodeError: it has neither data nor a URL, or data without a MIME type.
    """
    source = _image_source(image.data, image.url, None, image.mime_type)
    block = _block("image", source, image.cache_mark)
    return block if image.extra is None else restore(block, image.extra, PROTOCOL)


def encode_file(file: FileContent) -> Wire:
    """Write a file: as an image where its type is one, else as a document.

    Raises:
        EncodeError: the wire has no document of this type, or the file has no content.
    """
    mime = plain_type(file.mime_type)
    if mime.startswith("image/"):
        block = _block("image", _image_source(file.data, file.url, file.file_id, mime), file.cache_mark)
    else:
        block = _block("document", _document_source(file, mime), file.cache_mark)
        if file.name is not None:
            block["title"] = file.name
        if file.context is not None:
            block["context"] = file.context
    return block if file.extra is None else restore(block, file.extra, PROTOCOL)


def _document_source(file: FileContent, mime: str) -> Wire:
    if file.data is not None:
        match chosen(file.extra, PROTOCOL, "source", _default_source(file.mime_type)):
            case "base64":
                return {"type": "base64", "media_type": mime if mime == _PDF else file.mime_type, "data": file.data}
            case "text":
                return {"type": "text", "media_type": mime, "data": _text_of(file.data)}
            case _:
                kind = file.mime_type or "unknown"
                raise EncodeError(f"{PROTOCOL} does not support documents of type {kind}; send a PDF or a text")
    if file.url is not None:
        return {"type": "url", "url": file.url}
    if file.file_id is not None:
        return {"type": "file", "file_id": file.file_id}
    raise EncodeError("a file has neither data nor a URL nor a file id; set one of them")


def _default_source(mime_type: str | None) -> str | None:
    return _SOURCES.get(plain_type(mime_type))


def _image_source(data: str | None, url: str | None, file_id: str | None, mime: str | None) -> Wire:
    if data is not None:
        if mime is None:
            raise EncodeError("an image with data has no MIME type; set `mime_type`")
        return {"type": "base64", "media_type": mime, "data": data}
    if url is not None:
        return {"type": "url", "url": url}
    if file_id is not None:
        return {"type": "file", "file_id": file_id}
    raise EncodeError("an image has neither data nor a URL; set one of them")


def _block(kind: str, source: Wire, mark: CacheMark | None) -> Wire:
    block: Wire = {"type": kind, "source": source}
    if mark is not None:
        block[CACHE_CONTROL] = encode_mark(mark)
    return block


def _text_of(data: str) -> str:
    """Read the base64 of a text file. Bytes that are not UTF-8 are replaced: the wire takes text alone."""
    try:
        raw = base64.b64decode(data)
    except binascii.Error:
        return data
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


Fallback: TypeAlias = tuple[FallbackContent, ...]


def decode_native(block: Block) -> NativeContent:
    """Keep a block verbatim, with what other models can read of it."""
    unmarked, mark = split_mark(block)
    return NativeContent(protocol=PROTOCOL, block=unmarked, fallback=fallback_of(unmarked), cache_mark=mark)


def find_writer(content: Sequence[AssistantContent]) -> str | None:
    """Name the model that wrote the end of a turn, if a `fallback` block hands over to another; None if there is none.

    The block marks where the output of one model ends and that of the next begins.      (anthropic 2.8.0, beta)
    """
    for piece in reversed(content):
        if piece.kind == "native" and piece.block.get("type") == "fallback":
            writer = text_of(object_of(piece.block.get("to")).get("model"))
            if writer:
                return writer
    return None


def fallback_of(block: Block) -> Fallback:
    """Return what other models can read of a block; empty when there is nothing."""
    kind = block.get("type")
    read = _READABLE.get(kind) if isinstance(kind, str) else None
    if read is None:
        read = _result if isinstance(kind, str) and kind.endswith("_tool_result") else _text_or_content
    return read(block)


def _nothing(block: Block) -> Fallback:  # noqa: ARG001 - one of the readers below
    return ()


def _text(text: str) -> Fallback:
    return (TextContent(text=text),) if text.strip() else ()


def _blocks(value: object) -> list[Block]:
    if isinstance(value, Mapping):
        return [cast("Block", value)]
    if isinstance(value, list | tuple):
        return [cast("Block", item) for item in cast("Sequence[object]", value) if isinstance(item, Mapping)]
    return []


def _text_or_content(block: Block) -> Fallback:
    """Read a block of an unknown type: its text, or its content."""
    text = block.get("text")
    return _text(text) if isinstance(text, str) else _contents(block.get("content"))


def _contents(value: object) -> Fallback:
    """Read the value of a `content`: a string, one block, or several."""
    if isinstance(value, str):
        return _text(value)
    return tuple(piece for inner in _blocks(value) for piece in _content(inner))


def _content(block: Block) -> Fallback:
    match block.get("type"):
        case "image":
            image = decode_image(block)
            return () if image is None else (image,)
        case "document":
            file = decode_document(block)
            return (file,) if file is not None else _document(block)
        case _:
            return fallback_of(block)


def _document(block: Block) -> Fallback:
    """Read a document made of blocks."""
    return (*_text(text_of(block.get("title")) or ""), *_contents(source_of(block).get("content")))


def _search_result(block: Block) -> Fallback:
    head = "\n".join(part for key in ("title", "source") if (part := text_of(block.get(key))))
    return (*_text(head), *_contents(block.get("content")))


def _result(block: Block) -> Fallback:
    """Read the result of a server tool: what it found, printed or fetched, or why it failed."""
    content, label = block.get("content"), label_of(block)
    lines: list[str] = [content] if isinstance(content, str) else []
    media: list[FallbackContent] = []
    for inner in _blocks(content):
        found = result_lines(inner)
        lines += found
        for piece in () if has_page_text(inner) else _text_or_content(inner):
            if piece.kind == "text" and not found:
                lines.append(piece.text)
            elif piece.kind != "text":
                media.append(piece)
    if any(line.strip() for line in lines) and label:
        return (*_text(labelled(label, lines)), *media)
    return (*_text("\n".join(lines)), *media)


def _reference(block: Block) -> Fallback:
    return _text(text_of(block.get("tool_name")) or "")


def _upload(block: Block) -> Fallback:
    file_id = block.get("file_id")
    return (FileContent(file_id=file_id),) if isinstance(file_id, str) else ()


_READABLE: Final[Mapping[str, Callable[[Block], Fallback]]] = {
    "server_tool_use": _nothing,
    "mcp_tool_use": _nothing,
    "mcp_tool_listing": _nothing,
    "tool_use": _nothing,
    "thinking": _nothing,
    "redacted_thinking": _nothing,
    "fallback": _nothing,
    "image": _content,
    "document": _document,
    "search_result": _search_result,
    "tool_result": _result,
    "tool_reference": _reference,
    "container_upload": _upload,
}
"""How blocks are read that have more than a text or a content."""


# -- pairs -------------------------------------------------------------------------------------------------------------

_SERVER_RESULT: Final = "server_tool_result"
_CLIENT_RESULTS: Final = frozenset({"tool_result", "mcp_tool_result"})
_MEDIA: Final = frozenset({"image", "document"})
_NO_SOURCE: Final = "media_without_source"
"""The kind of a block that marks the place of a picture, as rows of data sets have it: `source` is required."""


def _read(block: Block) -> tuple[str, Block]:
    """Read the kind of a block: every server tool has its own type of result, and new ones come up."""
    kind = text_of(block.get("type")) or ""
    if kind in _MEDIA and not source_of(block):
        return _NO_SOURCE, block
    return _SERVER_RESULT if kind.endswith("_tool_result") and kind not in _CLIENT_RESULTS else kind, block


REPLAY: Final = Replay(
    read=_read,
    pairs=(
        # "`web_search` tool use with id .. was found without a corresponding `web_search_tool_result` block"
        # (sdk-python #961, #1339); "unexpected `tool_use_id` found in `advisor_tool_result` blocks" (claude-code
        # #95406, #89348); unfinished calls: sdk-python #1507, 2026-08-07; pydantic-ai, measured with Claude 4.5
        Pair(call="server_tool_use", results=(_SERVER_RESULT,), call_id="id", result_id=("tool_use_id",), scope="run"),
        Pair(call="mcp_tool_use", results=("mcp_tool_result",), call_id="id", result_id=("tool_use_id",), scope="run"),
    ),
    whole=frozenset({"mcp_tool_listing", "fallback", "compaction", "container_upload", "tool_reference"}),
    malformed=frozenset({"text", "tool_use", "tool_result", "thinking", "redacted_thinking", _NO_SOURCE}),
    forms=frozenset({"@turn", "content:unwrap", "is_error:bool"}),  # recorded traffic, 2026-11
    reference=("caller", "tool_id"),  # anthropic 2.8.0: of calls that code execution made
)
"""Calls of tools that the provider runs, and their results."""


def cited_sources(message: AssistantMessage) -> Sequence[CitedPage]:
    """Return the pages that the texts of a message cite."""
    return [
        CitedPage(url, text_of(citation.get("title")) or "", read_span(piece.text, 0, len(piece.text)))
        for piece in message.content
        if piece.extra is not None and piece.kind == "text"
        for citation in objects_in(data_of(piece.extra, PROTOCOL).get("citations"))
        if (url := text_of(citation.get("url")))
    ]
