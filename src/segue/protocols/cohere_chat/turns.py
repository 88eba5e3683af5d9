"""Assistant messages, in requests and in replies, both ways.

Facts:
- Content is a string, or blocks of text and thinking; `tool_plan`, `tool_calls` and `citations` are other keys.
                                                                                   (cohere 7.3.1, read 2026-11-15)
- "text content is not allowed when tool_calls are provided. If you wish to pass a tool plan, either pass thinking
  content (with thinking enabled) or use 'tool_plan'".                                  (vercel/ai #5794, 2025-04-15)
- The plan is the text of the model before its calls: "I will use the weather tool".            (recorded traffic)

So the texts of a turn with calls are its plan, and the plan is read as a text that comes before the calls. Citations
belong to the turn: they are data of the message, and are sent back with it.

Choice (`kit.verbatim`): `field` of a text is the key that held it, "content" or "tool_plan", where the default is the
other one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import Path
from segue.protocols.cohere_chat.content import decode_native
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.families.chat import ChatTurn
from segue.protocols.families.chat_content import (
    decode_text,
    encode_text,
    is_call,
    is_default,
    join_blocks,
    keep_place,
)
from segue.protocols.families.functions import decode_call, encode_call
from segue.protocols.kit.json_values import MISSING, Block, Wire
from segue.protocols.kit.reading import expect_list, expect_objects, native_block
from segue.protocols.kit.verbatim import choose, chosen, keep, restore

CITATIONS: Final = "citations"
_CONTENT: Final = "content"
_PLAN: Final = "tool_plan"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_assistant(wire: Block, path: Path, tool_names: Mapping[str, str], *, reply: bool) -> ChatTurn:
    """Read the content of an assistant message; in a reply it has no format.

    Raises:
        DecodeError: content or calls are of another type than the protocol defines.
    """
    notes: list[Diagnostic] = []
    calls = _decode_calls(wire.get("tool_calls"), (*path, "tool_calls"), tool_names, notes, reply=reply)
    field = _PLAN if calls else _CONTENT
    pieces = _decode_blocks(wire.get(_CONTENT, MISSING), (*path, _CONTENT), field, reply=reply)
    plan = wire.get(_PLAN)
    if isinstance(plan, str) and plan:
        pieces.append(_text_in(TextContent(text=plan), {}, field, _PLAN, reply=reply))
    return ChatTurn((*pieces, *calls), tuple(notes))


def keep_assistant(wire: Block, content: Sequence[AssistantContent], path: Path) -> Extra | None:
    """Return the `extra` of an assistant message of a request."""
    if _has_default_format(wire, content):
        return None
    known = ("tool_calls", _PLAN) if isinstance(wire.get(_PLAN), str) else ("tool_calls",)
    return keep(PROTOCOL, wire, encode_assistant(content, path), known)


def _has_default_format(wire: Block, content: Sequence[AssistantContent]) -> bool:
    """Whether a message is surely in the default format: found without writing it again."""
    value, plan = wire.get(_CONTENT, MISSING), wire.get(_PLAN)
    if not wire.get("tool_calls"):
        return len(wire) == 2 and is_default(value, content)
    has_plan, has_content = isinstance(plan, str) and plan != "", value is not MISSING
    return len(wire) == 2 + has_plan + has_content and (not has_content or (isinstance(value, list) and value != []))


def _decode_calls(
    value: object, path: Path, tool_names: Mapping[str, str], notes: list[Diagnostic], *, reply: bool
) -> list[AssistantContent]:
    calls: list[AssistantContent] = []
    for call in expect_objects(value, path) if value is not None else ():
        decoded = decode_call(PROTOCOL, call, tool_names, notes, reply=reply)
        calls.append(decoded or NativeContent(protocol=PROTOCOL, block={"tool_calls": [call]}))
    return calls


def _decode_blocks(value: object, path: Path, field: str, *, reply: bool) -> list[AssistantContent]:
    """Read content; `field` is the key that holds texts by default."""
    if isinstance(value, str):
        return [_text_in(TextContent(text=value), {}, field, _CONTENT, reply=reply)] if value else []
    if value is MISSING or value is None:
        return []
    pieces: list[AssistantContent] = []
    for block in expect_objects(value, path):
        text, thinking = decode_text(PROTOCOL, block), block.get("thinking")
        if text is not None:
            pieces.append(_text_in(text, block, field, _CONTENT, reply=reply))
        elif block.get("type") == "thinking" and isinstance(thinking, str):
            extra: Extra | None = None
            if not reply and len(block) != 2:
                extra = keep(PROTOCOL, block, {"type": "thinking", "thinking": thinking})
            pieces.append(ThinkingContent(thinking=thinking, extra=extra))
        else:
            pieces.append(keep_place(PROTOCOL, decode_native(block)))
    return pieces


def _text_in(text: TextContent, block: Block, default: str, field: str, *, reply: bool) -> TextContent:
    """Return a text with the key that held it."""
    if reply:
        return TextContent(text=text.text)
    if field == default:
        return text
    written: Wire = {"type": "text", "text": text.text}
    return replace(text, extra=keep(PROTOCOL, block or written, written, choices=choose("field", default, field)))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_assistant(content: Sequence[AssistantContent], path: Path, extra: Extra | None = None) -> Wire:
    """Write an assistant message.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    plain = _encode_plain(content) if extra is None else None
    if plain is not None:
        return plain
    calls = _encode_calls(content, path)
    field = _PLAN if calls else _CONTENT
    blocks: list[Wire] = []
    plan: list[str] = []
    for index, piece in enumerate(content):
        match piece.kind:
            case "text":
                if (field if piece.extra is None else chosen(piece.extra, PROTOCOL, "field", field)) == _CONTENT:
                    blocks.append(encode_text(PROTOCOL, piece))
                elif piece.text:
                    plan.append(piece.text)
            case "thinking":
                wire: Wire = {"type": "thinking", "thinking": piece.thinking}
                blocks.append(wire if piece.extra is None else restore(wire, piece.extra, PROTOCOL))
            case "native":
                block = native_block(PROTOCOL, piece, (*path, _CONTENT, index))
                if not is_call(PROTOCOL, piece):
                    blocks.append(dict(block))
            case "toolCall":
                pass
    message = _message(blocks, plan, calls)
    return message if extra is None else restore(message, extra, PROTOCOL)


def _encode_plain(content: Sequence[AssistantContent]) -> Wire | None:
    """Write a single text, or a turn with calls, without any `extra`; None when it is another."""
    blocks: list[Wire] = []
    plan: list[str] = []
    calls: list[object] = []
    for piece in content:
        if piece.extra is not None:
            return None
        if type(piece) is ToolCall:
            calls.append(encode_call(PROTOCOL, piece))
        elif type(piece) is TextContent:
            if len(content) == 1:
                return {"role": "assistant", "content": piece.text}
            if piece.text:
                plan.append(piece.text)
        elif type(piece) is ThinkingContent:
            blocks.append({"type": "thinking", "thinking": piece.thinking})
        else:
            return None
    return _message(blocks, plan, calls) if calls else None


def _encode_calls(content: Sequence[AssistantContent], path: Path) -> list[object]:
    calls: list[object] = []
    for index, piece in enumerate(content):
        if piece.kind == "toolCall":
            calls.append(encode_call(PROTOCOL, piece))
        elif piece.kind == "native":
            block = native_block(PROTOCOL, piece, (*path, _CONTENT, index))
            if is_call(PROTOCOL, piece):
                calls += expect_list(block["tool_calls"], (*path, _CONTENT, index))
    return calls


def _message(blocks: list[Wire], plan: list[str], calls: list[object]) -> Wire:
    """Write a message in the default format: with calls there is no empty content, and a text is a block."""
    wire: Wire = {"role": "assistant"}
    if not calls:
        wire[_CONTENT] = join_blocks(blocks)
    elif blocks:
        wire[_CONTENT] = blocks
    if plan:
        wire[_PLAN] = "\n".join(plan)
    if calls:
        wire["tool_calls"] = calls
    return wire
