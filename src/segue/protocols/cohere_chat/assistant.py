"""An assistant message, in a request and in a reply, both ways.

Facts this file rests on:
- Content is a string, or blocks of text and thinking; `tool_plan`, `tool_calls` and `citations` stand beside it.
                                                                                   (cohere 7.3.1, read 2026-11-15)
- "text content is not allowed when tool_calls are provided. If you wish to pass a tool plan, either pass thinking
  content (with thinking enabled) or use 'tool_plan'".                                  (vercel/ai #5794, 2025-04-15)
- The plan is what the model says before it calls: "I will use the weather tool".               (recorded traffic)

So what is said in a turn with calls is its plan, and the plan is read as a text that stands before the calls. A text
that stood elsewhere says so in its shape: `field` is `content` beside calls, `tool_plan` without any. Citations belong
to the turn: they are kept beside its content, and sent back with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.messages import Diagnostic
from segue.errors import Path
from segue.protocols.chat_family.chat import Turn
from segue.protocols.chat_family.message_content import encode_nothing, encode_text, is_string
from segue.protocols.cohere_chat.content import (
    TEXT_KEYS,
    decode_native,
)
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.kit.functions import decode_call, encode_call
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, native_block, verbatim_of
from segue.protocols.kit.retired_format import MISSING, Block, Wire, keep, put_back

_THINKING_KEYS: Final = frozenset({"type", "thinking"})
_TURN_KEYS: Final = frozenset({"role", "content", "tool_calls", "tool_plan"})
_IN_CONTENT: Final[Extra] = {PROTOCOL: {VERBATIM: {"field": "content"}}}
_IN_PLAN: Final[Extra] = {PROTOCOL: {VERBATIM: {"field": "tool_plan"}}}
CITATIONS: Final = "citations"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_assistant(wire: Block, path: Path, tool_names: Mapping[str, str], *, reply: bool) -> Turn:
    """Read an assistant message; how a reply spelt it is not kept here, but by who reads the reply.

    Raises:
        DecodeError: content or calls are not what the protocol says.
    """
    notes: list[Diagnostic] = []
    verbatim: Wire = {}
    calls = _decode_calls(wire, path, tool_names, notes, verbatim, reply=reply)
    value = wire.get("content", MISSING)
    pieces = _decode_text_part(value, (*path, "content"), beside_calls=bool(calls), reply=reply)
    _keep_original(value, pieces, bool(calls), verbatim)
    plan = wire.get("tool_plan", MISSING)
    if isinstance(plan, str) and plan:
        pieces.append(TextContent(text=plan, extra=None if calls or reply else _IN_PLAN))
    elif plan is not MISSING:
        verbatim["tool_plan"] = plan
    pieces += calls
    if reply:
        citations = wire.get(CITATIONS)
        cited = cast("list[object]", citations) if isinstance(citations, list) else []
        extra: Extra | None = {PROTOCOL: {CITATIONS: cited}} if cited else None
    else:
        extra = keep(PROTOCOL, wire, _TURN_KEYS, verbatim) if verbatim or not wire.keys() <= _TURN_KEYS else None
    return Turn(tuple(pieces), extra, tuple(notes))


def _decode_calls(
    wire: Block, path: Path, tool_names: Mapping[str, str], notes: list[Diagnostic], verbatim: Wire, *, reply: bool
) -> list[AssistantContent]:
    given = wire.get("tool_calls", MISSING)
    if given is MISSING:
        return []
    if given is None:
        verbatim["tool_calls"] = "null"
        return []
    listed = expect_list(given, (*path, "tool_calls"))
    if not listed:
        verbatim["tool_calls"] = "empty"
    calls: list[AssistantContent] = []
    for index, item in enumerate(listed):
        call = expect_object(item, (*path, "tool_calls", index))
        read = decode_call(PROTOCOL, call, tool_names, notes, reply=reply)
        calls.append(read or NativeContent(protocol=PROTOCOL, block={"tool_calls": [call]}))
    return calls


def _decode_text_part(value: object, path: Path, *, beside_calls: bool, reply: bool) -> list[AssistantContent]:
    marked = _IN_CONTENT if beside_calls and not reply else None
    if isinstance(value, str):
        return [TextContent(text=value, extra=marked)] if value else []
    if value is MISSING or value is None:
        return []
    pieces: list[AssistantContent] = []
    for index, item in enumerate(expect_list(value, path)):
        block = expect_object(item, (*path, index))
        text, thinking = block.get("text"), block.get("thinking")
        if block.get("type") == "text" and isinstance(text, str):
            verbatim = {"field": "content"} if marked else None
            extra = None if reply or (len(block) == 2 and not marked) else keep(PROTOCOL, block, TEXT_KEYS, verbatim)
            pieces.append(TextContent(text=text, extra=extra))
        elif block.get("type") == "thinking" and isinstance(thinking, str):
            extra = None if reply or len(block) == 2 else keep(PROTOCOL, block, _THINKING_KEYS)
            pieces.append(ThinkingContent(thinking=thinking, extra=extra))
        else:
            pieces.append(decode_native(block))
    return pieces


def _keep_original(value: object, pieces: Sequence[AssistantContent], calls: bool, verbatim: Wire) -> None:
    """Note how content was spelt, if that is not how it would be written."""
    if not pieces:
        original = "absent" if value is MISSING else "null" if value is None else "string" if value == "" else "list"
        if original != ("absent" if calls else "string"):
            verbatim["content"] = original
    elif isinstance(value, str):
        if calls:
            verbatim["content"] = "string"
    elif len(pieces) == 1 and isinstance(piece := pieces[0], TextContent) and piece.extra is None:
        verbatim["content"] = "list"


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_assistant(content: Sequence[AssistantContent], path: Path, extra: Extra | None = None) -> Wire:
    """Write an assistant message.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    if extra is None and is_string(content):
        piece = content[0]
        return {"role": "assistant", "content": piece.text if isinstance(piece, TextContent) else ""}
    default = _fast_encode(content) if extra is None else None
    if default is not None:
        return default
    calls = _encode_calls(content, path)
    blocks: list[Wire] = []
    texts: list[TextContent] = []
    plan: list[str] = []
    for index, piece in enumerate(content):
        match piece.kind:
            case "text":
                field = None if piece.extra is None else verbatim_of(piece.extra, PROTOCOL).get("field")
                if field == "tool_plan" or (calls and field != "content"):
                    plan += [piece.text] if piece.text else []
                else:
                    blocks.append(encode_text(PROTOCOL, piece))
                    texts.append(piece)
            case "thinking":
                wire: Wire = {"type": "thinking", "thinking": piece.thinking}
                blocks.append(wire if piece.extra is None else put_back(wire, piece.extra, PROTOCOL))
            case "native":
                block = native_block(PROTOCOL, piece, (*path, "content", index))
                if not _is_call(block):
                    blocks.append(dict(block))
            case "toolCall":
                pass
    return _message(blocks, texts, plan, calls, extra)


def _fast_encode(content: Sequence[AssistantContent]) -> Wire | None:
    """Write a turn with calls in which nothing says how it was spelt, as an agent's are; None when it is another."""
    thoughts: list[Wire] = []
    plan: list[str] = []
    calls: list[Wire] = []
    for piece in content:
        if piece.extra is not None:
            return None
        if type(piece) is ToolCall:
            calls.append(encode_call(PROTOCOL, piece))
        elif type(piece) is TextContent:
            if piece.text:
                plan.append(piece.text)
        elif type(piece) is ThinkingContent:
            thoughts.append({"type": "thinking", "thinking": piece.thinking})
        else:
            return None
    if not calls:
        return None  # then the words are no plan
    wire: Wire = {"role": "assistant"}
    if thoughts:
        wire["content"] = thoughts
    if plan:
        wire["tool_plan"] = "\n".join(plan)
    wire["tool_calls"] = calls
    return wire


def _encode_calls(content: Sequence[AssistantContent], path: Path) -> list[object]:
    calls: list[object] = []
    for index, piece in enumerate(content):
        if piece.kind == "toolCall":
            calls.append(encode_call(PROTOCOL, piece))
        elif piece.kind == "native":
            block = native_block(PROTOCOL, piece, (*path, "content", index))
            if _is_call(block):
                calls += expect_list(block["tool_calls"], (*path, "content", index))
    return calls


def _is_call(block: Block) -> bool:
    return "type" not in block and isinstance(block.get("tool_calls"), list)


def _message(
    blocks: list[Wire], texts: list[TextContent], plan: list[str], calls: list[object], extra: Extra | None
) -> Wire:
    verbatim = verbatim_of(extra, PROTOCOL)
    original = verbatim.get("content")
    wire: Wire = {"role": "assistant"}
    written: object = blocks
    if not blocks:
        written = encode_nothing(original, MISSING if calls else "")
    elif len(blocks) == 1 and len(texts) == 1 and len(blocks[0]) == 2:
        default = "list" if calls else "string"
        written = texts[0].text if (original or default) == "string" else blocks
    if written is not MISSING:
        wire["content"] = written
    if plan:
        wire["tool_plan"] = "\n".join(plan)
    elif "tool_plan" in verbatim:
        wire["tool_plan"] = verbatim["tool_plan"]
    if calls:
        wire["tool_calls"] = calls
    elif "tool_calls" in verbatim:
        wire["tool_calls"] = None if verbatim["tool_calls"] == "null" else []
    return put_back(wire, extra, PROTOCOL)
