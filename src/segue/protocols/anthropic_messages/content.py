"""Anthropic content blocks, both ways.

Facts this file rests on:
- A thinking block replays only with its signature, unchanged; with its text withheld it is still a block.
                                            (Anthropic documentation: extended thinking; strands #2704)
- Redacted thinking is all seal: `data` comes back as it was.                              (the same)
- `tool_use.input` is an object on this wire, not text.                           (anthropic 2.8.0, read 2026-11-15)
- Cache marks, citations, callers and whatever comes next stand beside a block's own fields and are kept.  (our promise)
- A block kind we do not know must come back as it was.                                                  (our promise)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.errors import EncodeError
from segue.protocols.anthropic_messages.media import decode_document, decode_image, encode_file, encode_image
from segue.protocols.anthropic_messages.native import decode_native, marked
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.anthropic_messages.verbatim import keep, put_back
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import native_block, verbatim_of

Block = Mapping[str, object]

TEXT_KEYS: Final = frozenset({"type", "text"})
THINKING_KEYS: Final = frozenset({"type", "thinking", "signature"})
REDACTED_KEYS: Final = frozenset({"type", "data"})
CALL_KEYS: Final = frozenset({"type", "id", "name", "input"})

_DIRECT: Final = {"type": "direct"}
_DIRECT_CALL_KEYS: Final = CALL_KEYS | {"caller"}

_UNSIGNED: Final = frozenset({"open", "required"})
"""The ways of replaying that take thinking without a seal."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_text(block: Block) -> TextContent | NativeContent:
    """Read a text block."""
    text = block.get("text")
    if not isinstance(text, str):
        return decode_native(block)
    return TextContent(text=text, extra=None if len(block) == 2 else keep(block, TEXT_KEYS))


def decode_system_block(block: Block) -> SystemContent:
    """Read a block of instructions."""
    return decode_text(block) if block.get("type") == "text" else decode_native(block)


def decode_user_block(block: Block) -> UserContent:
    """Read a block of a user turn or of a tool's result; results themselves are messages, not content."""
    match block.get("type"):
        case "text":
            return decode_text(block)
        case "image":
            return decode_image(block) or decode_native(block)
        case "document":
            return decode_document(block) or decode_native(block)
        case _:
            return decode_native(block)


def decode_assistant_block(block: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantContent:
    """Read a block of an assistant turn; `tool_names` maps the wire's names of tools back to the given ones."""
    match block.get("type"):
        case "text":
            return decode_text(block)
        case "tool_use":
            return decode_call(block, tool_names) or decode_native(block)
        case "thinking":
            return decode_thinking(block, endpoint) or decode_native(block)
        case "redacted_thinking" if isinstance(data := block.get("data"), str):
            extra = None if len(block) == 2 else keep(block, REDACTED_KEYS)
            return ThinkingContent(thinking="", thinking_signature=data, redacted=True, extra=extra)
        case _:
            return decode_native(block)


def decode_thinking(block: Block, endpoint: Endpoint) -> ThinkingContent | None:
    """Read a thinking block. Where a provider spells a missing signature in its own way, that way says: none."""
    thinking, signature = block.get("thinking"), block.get("signature")
    if not isinstance(thinking, str) or not (signature is None or isinstance(signature, str)):
        return None
    if signature:
        extra = None if len(block) == 3 else keep(block, THINKING_KEYS)
        return ThinkingContent(thinking=thinking, thinking_signature=signature, extra=extra)
    original: dict[str, object] = {"signature": signature} if "signature" in block else {}
    verbatim: dict[str, object] = {}
    if original == _default_refusal(endpoint):
        signature = None
    elif signature is None:
        verbatim = original or {"unsigned": True}
    extra = keep(block, THINKING_KEYS, verbatim)
    return ThinkingContent(thinking=thinking, thinking_signature=signature, extra=extra)


def decode_call(block: Block, tool_names: Mapping[str, str]) -> ToolCall | None:
    """Read a call. Input that is no object is read as far as it can be, and kept as it was."""
    call_id, name, given = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    name = tool_names.get(name, name)
    if isinstance(given, dict):
        extra = None if len(block) == 4 else keep_of_call(block)
        return ToolCall(id=call_id, name=name, arguments=cast("dict[str, object]", given), extra=extra)
    extra = keep_of_call(block, {"input": given} if "input" in block else {"no_input": True})
    return ToolCall(id=call_id, name=name, arguments=_best_effort(given), extra=extra)


def keep_of_call(block: Block, verbatim: Mapping[str, object] | None = None) -> Extra | None:
    """Keep what a call says beyond its fields. That the model itself made it is what calls without a caller say too."""
    if block.get("caller") == _DIRECT:
        return keep(block, _DIRECT_CALL_KEYS, {**(verbatim or {}), "direct": True})
    return keep(block, CALL_KEYS, verbatim)


def _best_effort(given: object) -> Mapping[str, object]:
    """Read the input that some vendors spell as text; anything else that is no object says nothing."""
    if isinstance(given, str):
        return parse_arguments(given).arguments
    return cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {}


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_text(text: TextContent) -> dict[str, object]:
    """Write a text block."""
    if text.extra is None:
        return {"type": "text", "text": text.text}
    return {"type": "text", "text": text.text, **put_back(text.extra)}


def encode_native(content: NativeContent) -> dict[str, object]:
    """Write a block as it was.

    Raises:
        EncodeError: it is a block of another wire.
    """
    return marked(native_block(PROTOCOL, content), content.extra)


def encode_user_blocks(pieces: Sequence[UserContent]) -> list[dict[str, object]]:
    """Write the content of a user turn, of a tool's result or of instructions; plain text, which is most, at once.

    Raises:
        EncodeError: the wire has no word for a piece.
    """
    blocks: list[dict[str, object]] = []
    for piece in pieces:
        if type(piece) is TextContent and piece.extra is None:
            blocks.append({"type": "text", "text": piece.text})
        else:
            blocks.append(encode_user_content(piece))
    return blocks


def encode_assistant_blocks(pieces: Sequence[AssistantContent], endpoint: Endpoint) -> list[dict[str, object]]:
    """Write the content of an assistant turn; what is most, at once.

    To ask for the class is cheaper than to ask for the `kind`, and a line that sees one class only is faster still.

    Raises:
        EncodeError: the wire has no word for a piece, or thinking lacks the seal it demands.
    """
    blocks: list[dict[str, object]] = []
    for piece in pieces:
        if type(piece) is ToolCall:
            if piece.extra is None and isinstance(piece.arguments, dict):
                blocks.append({"type": "tool_use", "id": piece.id, "name": piece.name, "input": piece.arguments})
                continue
        elif type(piece) is TextContent:
            if piece.extra is None:
                blocks.append({"type": "text", "text": piece.text})
                continue
        elif type(piece) is ThinkingContent:
            wire_signature = piece.thinking_signature
            if piece.extra is None and wire_signature is not None and not piece.redacted:
                blocks.append({"type": "thinking", "thinking": piece.thinking, "signature": wire_signature})
                continue
        blocks.append(encode_assistant_content(piece, endpoint))
    return blocks


def encode_user_content(content: UserContent) -> dict[str, object]:
    """Write content of a user turn, of a tool's result or of instructions.

    Raises:
        EncodeError: the wire has no word for it.
    """
    match content.kind:
        case "text":
            return encode_text(content)
        case "image":
            return encode_image(content)
        case "file":
            return encode_file(content)
        case "native":
            return encode_native(content)
        case _:
            assert_never(content)


def encode_assistant_content(content: AssistantContent, endpoint: Endpoint) -> dict[str, object]:
    """Write content of an assistant turn.

    Raises:
        EncodeError: the wire has no word for it, or thinking lacks the seal it demands.
    """
    match content.kind:
        case "text":
            return encode_text(content)
        case "toolCall":
            return _encode_call(content)
        case "thinking":
            return _encode_thinking(content, endpoint)
        case "native":
            return encode_native(content)
        case _:
            assert_never(content)


def _encode_call(call: ToolCall) -> dict[str, object]:
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    block: dict[str, object] = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
    if call.extra is None:
        return block
    block.update(put_back(call.extra))
    verbatim = verbatim_of(call.extra, PROTOCOL)
    if "direct" in verbatim:
        block["caller"] = _DIRECT
    if "no_input" in verbatim and not arguments:
        del block["input"]
    elif "input" in verbatim and _best_effort(verbatim["input"]) == arguments:
        block["input"] = verbatim["input"]
    return block


def _encode_thinking(content: ThinkingContent, endpoint: Endpoint) -> dict[str, object]:
    signature, extra = content.thinking_signature, content.extra
    if content.redacted:
        if signature is None:
            raise EncodeError("redacted thinking without its data")
        block: dict[str, object] = {"type": "redacted_thinking", "data": signature}
    elif signature is not None:
        block = {"type": "thinking", "thinking": content.thinking, "signature": signature}
    else:
        block = {"type": "thinking", "thinking": content.thinking, **_no_signature(content, endpoint)}
    return block if extra is None else {**block, **put_back(extra)}


def _no_signature(content: ThinkingContent, endpoint: Endpoint) -> dict[str, object]:
    """Say that there is no signature, in the way it was said before, else in the provider's own."""
    verbatim = verbatim_of(content.extra, PROTOCOL)
    if "signature" in verbatim:
        return {"signature": verbatim["signature"]}
    if "unsigned" in verbatim:
        return {}
    default = _default_refusal(endpoint)
    if default is None:
        # The API refuses unsigned thinking; projection should have turned it into text.
        raise EncodeError("thinking without a signature")
    return default


def _default_refusal(endpoint: Endpoint) -> dict[str, object] | None:
    """Give the target's own way of saying that thinking is not signed; None where it has to be."""
    if endpoint.dialect.empty_signature:
        return {"signature": ""}
    return {} if endpoint.rules.reasoning_replay in _UNSIGNED else None
