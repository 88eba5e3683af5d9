"""Blocks that only this wire has, and what other models can read of them.

Facts this file rests on:
- Tools that the provider runs (`systemTool`) leave their calls (`type: server_tool_use`) and results in the turn of the
  assistant; results are texts, JSON and media.         (botocore 1.44.0 service model; recorded traffic, 2026-11)
- Guarded content, search results and documents made of texts are text that a guardrail or the citations process; the
  model reads it like any other text.                                         (AWS documentation, read 2026-11-15)
- Calls written as text make other models write such text instead of calling.           (vscode copilot api #171)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from segue.conversation.content import FallbackContent, NativeContent, TextContent
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.media import decode_file, decode_image
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.bedrock_converse.server_results import cited_pages, label_of
from segue.protocols.kit.json_values import Block, object_of
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.replay import Pair, Replay
from segue.protocols.kit.sources import labelled, write_sources

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
    """Give the readable part of a block; empty when it has none."""
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
    """Read a result; that of a tool which the provider ran is labelled, its media stand behind it."""
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
    """Read the kind of a block; a call and a result of the client's tools are content of their own."""
    for key in ("toolUse", "toolResult", "text", "reasoningContent"):
        if key in block:
            inner = object_of(block[key])
            is_server_call = key != "toolUse" or inner.get("type") == SERVER_CALL
            return key if is_server_call else "call", inner
    return "", block


REPLAY: Final = Replay(
    read=_read,
    pairs=(
        # Both stand in the turn of the model.  (AWS documentation: system tools; botocore 1.44.0, read 2026-11-15). No
        # refusal of a half is recorded; half of any other call is refused (vercel/ai #13013, langchain-aws #192).
        Pair(call="toolUse", results=("toolResult",), call_id="toolUseId", result_id=("toolUseId",), scope="turn"),
    ),
    malformed=frozenset({"call", "text", "reasoningContent"}),
)
"""Calls of tools that the provider runs, and their results."""
