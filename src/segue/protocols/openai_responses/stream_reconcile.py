"""What was streamed, brought to what a finished item or the terminal reply says of it.

Facts this file rests on:
- Vendors leave events out: deltas, `content_part.*`, even `output_item.added`; some end with `output` empty.
                                                      (llama.cpp server; recorded traffic, 2026-11: Azure, xAI)

The terminal reply has the last word: what was streamed becomes what it says, so that a folded stream and a whole reply
are the same message. Whoever follows the events sees it happen: what had not been streamed yet is streamed then.
"""

from __future__ import annotations

from collections.abc import Sequence

from segue.conversation.arguments import encode_arguments
from segue.conversation.content import AssistantContent
from segue.protocols.kit.assembly import Assembly, Part, join_chunks
from segue.protocols.openai_responses.items import thinking_of
from segue.protocols.openai_responses.native import Item


def catch_up(part: Part, text: str, out: Assembly) -> None:
    """Bring a part to its whole text when deltas were left out."""
    if not part.chunks:
        if text:
            out.grow(part, text)
        return
    so_far = join_chunks(part.chunks)
    if len(text) > len(so_far) and text.startswith(so_far):
        out.grow(part, text[len(so_far) :])


def reconcile(parts: dict[int, Part], item: Item, contents: Sequence[AssistantContent], out: Assembly) -> None:
    """Give the parts of an item, by their place in it, what the finished item says, and close them."""
    for index, content in enumerate(contents):
        part = parts.get(index)
        if part is None and content.kind in ("text", "native"):
            part = parts[index] = _opened(content, out)
        if part is None or part.closed is not None:
            continue
        if part.kind == content.kind:
            _fill(part, content, item, out)
            out.close(part)
        else:
            # It was announced as something that segue reads, and turned out otherwise.
            out.close(part)
            part.kind, part.closed = content.kind, content


def align(contents: Sequence[AssistantContent], out: Assembly) -> None:
    """Let the terminal reply have the last word; what it lacks stays as it was streamed."""
    if any(part.kind != content.kind for part, content in zip(out.parts, contents, strict=False)):
        # Items grew side by side, or became what they were not announced as: the reply's order is the one to keep.
        out.close_all()
        out.parts = [_closed(content, index) for index, content in enumerate(contents)]
        return
    for index, content in enumerate(contents):
        part = out.parts[index] if index < len(out.parts) else _opened(content, out)
        if part.closed is None:
            _take(part, content, out)
            out.close(part)
        part.closed = content


def _fill(part: Part, content: AssistantContent, item: Item, out: Assembly) -> None:
    """Put what a finished item says into its part; what had not been streamed yet is streamed now."""
    part.extra = content.extra
    match content.kind:
        case "text":
            _whole(part, content.text, out)
            part.signature = content.text_signature
        case "thinking":
            _whole(part, thinking_of(item), out)
            part.signature = content.thinking_signature
        case "toolCall":
            part.id, part.name = content.id, content.name
            part.signature = content.thought_signature
            custom = item.get("type") == "custom_tool_call"
            _whole(part, str(item.get("input" if custom else "arguments")), out)
            if custom:
                part.chunks, part.arguments = [], content.arguments
        case "native":
            part.block, part.fallback = content.block, content.fallback


def _whole(part: Part, text: str, out: Assembly) -> None:
    catch_up(part, text, out)
    if join_chunks(part.chunks) != text:
        part.chunks = [text]


def _closed(content: AssistantContent, index: int) -> Part:
    part = Part(content.kind, index)
    part.closed = content
    return part


def _opened(content: AssistantContent, out: Assembly) -> Part:
    """Begin a part for what was never announced."""
    match content.kind:
        case "text":
            return out.open_text()
        case "thinking":
            return out.open_thinking()
        case "toolCall":
            return out.open_call(content.id, content.name)
        case "native":
            return out.add_native(content.block, content.fallback)


def _take(part: Part, content: AssistantContent, out: Assembly) -> None:
    """Bring a part to what the terminal reply says of it, with the events that it would have had."""
    part.extra = content.extra
    match content.kind:
        case "text":
            _whole(part, content.text, out)
            part.signature = content.text_signature
        case "thinking":
            _whole(part, content.thinking, out)
            part.signature = content.thinking_signature
        case "toolCall":
            part.id, part.name, part.signature = content.id, content.name, content.thought_signature
            text = content.arguments_text
            catch_up(part, encode_arguments(content.arguments) if text is None else text, out)
            part.chunks = [] if text is None else [text]
            part.arguments = content.arguments if text is None else None
        case "native":
            part.block, part.fallback = content.block, content.fallback
