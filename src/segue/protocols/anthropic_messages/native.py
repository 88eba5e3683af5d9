"""What other models can read of blocks that only this wire has.

Facts this file rests on:
- Server tools leave their calls (`server_tool_use`, `mcp_tool_use`) and results (`*_tool_result`) in the turn of the
  assistant; pages and search results are partly encrypted, titles and addresses are not.  (anthropic 2.8.0, 2026-11-15)
- A `compaction` block stands for everything before it: its summary is the only readable trace.        (beta, the same)
- Calls written out as text make other models write such text instead of calling.       (vscode copilot api #171)

So results, summaries and references have words here; calls, hand-over marks and sealed things have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.conversation.content import Extra, FallbackContent, FileContent, NativeContent, TextContent
from segue.protocols.anthropic_messages.media import decode_document, decode_image
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.reading import text_of

Block: TypeAlias = Mapping[str, object]
Fallback: TypeAlias = tuple[FallbackContent, ...]

_MARK: Final = "cache_control"


def decode_native(block: Block) -> NativeContent:
    """Keep a block as it was, with what can be read of it."""
    bare, extra = unmarked(block)
    return NativeContent(protocol=PROTOCOL, block=bare, fallback=fallback_of(bare), extra=extra)


def unmarked(native: Block) -> tuple[Block, Extra | None]:
    """Take the cache mark out of a native block or tool: it stands in `extra`, where all marks are counted."""
    if native.get(_MARK) is None:
        return native, None
    return {key: value for key, value in native.items() if key != _MARK}, {PROTOCOL: {_MARK: native[_MARK]}}


def marked(native: Block, extra: Extra | None) -> dict[str, object]:
    """Put the cache mark back; a native block or tool says everything else itself."""
    mark = None if extra is None else extra.get(PROTOCOL, {}).get(_MARK)
    if mark is not None:
        return {**native, _MARK: mark}
    return native if isinstance(native, dict) else dict(native)


def fallback_of(block: Block) -> Fallback:
    """Give the readable side of a block; empty when it has none."""
    kind = block.get("type")
    read = _READABLE.get(kind) if isinstance(kind, str) else None
    if read is None:
        read = _result if isinstance(kind, str) and kind.endswith("_tool_result") else _text_fallback
    return read(block)


def _nothing(block: Block) -> Fallback:  # noqa: ARG001 - one of several readers
    return ()


def _text(text: str) -> Fallback:
    return (TextContent(text=text),) if text.strip() else ()


def _blocks(value: object) -> list[Block]:
    if isinstance(value, Mapping):
        return [cast("Block", value)]
    if isinstance(value, list | tuple):
        return [cast("Block", item) for item in cast("Sequence[object]", value) if isinstance(item, Mapping)]
    return []


def _text_fallback(block: Block) -> Fallback:
    """Read a block that nobody knows: its text, or the content it wraps."""
    text = block.get("text")
    return _text(text) if isinstance(text, str) else _contents(block.get("content"))


def _contents(value: object) -> Fallback:
    """Read what stands in a `content`: a string, one block, or several."""
    if isinstance(value, str):
        return _text(value)
    return tuple(piece for inner in _blocks(value) for piece in _content(inner))


def _content(block: Block) -> Fallback:
    match block.get("type"):
        case "image":
            image = decode_image(block)
            return image.fallback if image is not None and image.kind == "native" else (image,) if image else ()
        case "document":
            file = decode_document(block)
            return (file,) if file is not None else _document(block)
        case _:
            return fallback_of(block)


def _document(block: Block) -> Fallback:
    """Read a document made of blocks."""
    source = block.get("source")
    inner = _contents(cast("Block", source).get("content")) if isinstance(source, Mapping) else ()
    return (*_text(text_of(block.get("title")) or ""), *inner)


def _search_result(block: Block) -> Fallback:
    head = "\n".join(part for key in ("title", "source") if (part := text_of(block.get(key))))
    return (*_text(head), *_contents(block.get("content")))


def _result(block: Block) -> Fallback:
    """Read a server tool's result: what it found, printed or fetched, or why it failed."""
    content = block.get("content")
    if isinstance(content, str):
        return _text(content)
    lines: list[str] = []
    media: list[FallbackContent] = []
    for inner in _blocks(content):
        code = inner.get("error_code")
        if isinstance(code, str):
            lines.append(f"Error: {code}")
            continue
        found = _found(inner)
        if found:
            lines.append(found)
        for piece in _text_fallback(inner):
            if piece.kind == "text" and not found:
                lines.append(piece.text)
            elif piece.kind != "text":
                media.append(piece)
    return (*_text("\n".join(lines)), *media)


_LINES: Final = ("title", "url", "stdout", "stderr", "tool_name")


def _found(inner: Block) -> str:
    """Read the plain fields of one result: a hit's title and address, what a program printed, a tool that was found."""
    lines = [part.rstrip("\n") for key in _LINES if (part := text_of(inner.get(key)))]
    references = inner.get("tool_references")
    lines += [name for found in _blocks(references) if (name := text_of(found.get("tool_name")))]
    return "\n".join(lines)


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
"""Blocks that are not simply text or content."""
