"""What other models can read of blocks that only this wire has.

Facts this file relies on:
- Server tools leave their calls (`server_tool_use`, `mcp_tool_use`) and results (`*_tool_result`) in the
  assistant turn; pages and search results are partly encrypted, titles and addresses are not.
                                                                                          (anthropic 2.8.0, 2026-11-15)
- A `compaction` block replaces everything before it: its summary is the only readable part.           (beta, the same)
- Calls written as text make other models write such text instead of calling.             (vscode copilot api #171)

So results, summaries and references have a readable fallback; calls, handover blocks and encrypted data have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.conversation.content import AssistantContent, FallbackContent, FileContent, NativeContent, TextContent
from segue.protocols.anthropic_messages.cache import split_mark
from segue.protocols.anthropic_messages.media import decode_document, decode_image, source_of
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.server_results import has_page_text, label_of, result_lines
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import Pair, Replay
from segue.protocols.kit.sources import labelled

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
    """Give what other models can read of a block; empty when there is nothing."""
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
