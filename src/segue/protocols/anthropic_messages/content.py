"""Anthropic content blocks, both ways.

Facts:
- A thinking block is accepted only with its signature, unchanged; a block whose text is withheld is sent back too.
                                            (Anthropic documentation: extended thinking; strands #2704)
- Redacted thinking has a signature only, in `data`, which is sent back unchanged.                         (the same)
- Where a gateway wraps readable thinking as redacted thinking, it is read as thinking; the block is sent back
  unchanged.                                                                        (see `kit.readable_signatures`)
- `tool_use.input` is an object on this wire, not text.                           (anthropic 2.8.0, read 2026-11-15)
- `caller: {"type": "direct"}` of a call is what a call without a caller means.                            (the same)

Keys that segue has no field for are kept in `extra`; blocks of unknown type are kept verbatim as `NativeContent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.arguments import read_arguments
from segue.conversation.content import (
    AssistantContent,
    NativeContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.errors import EncodeError
from segue.protocols.anthropic_messages.native import (
    CACHE_CONTROL,
    decode_document,
    decode_image,
    decode_mark,
    decode_native,
    encode_file,
    encode_image,
    encode_mark,
    join_mark,
)
from segue.protocols.anthropic_messages.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire, detached
from segue.protocols.kit.readable_signatures import WRAPPED, is_wrapped, read_wrapped
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.verbatim import choose, chosen, data_of, keep, restore

_REDACTED: Final = "redacted_thinking"
_DIRECT: Final = {"type": "direct"}
_UNSIGNED: Final = frozenset({"open", "required"})
"""The values of `Rules.reasoning_replay` that allow thinking without a signature."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_text(block: Block) -> TextContent | NativeContent:
    """Read a text block."""
    text = block.get("text")
    if not isinstance(text, str):
        return decode_native(block)
    if len(block) == 2:
        return TextContent(text=text)
    content = TextContent(text=text, cache_mark=decode_mark(block))
    return replace(content, extra=keep(PROTOCOL, block, encode_text(content)))


def decode_system_block(block: Block) -> SystemContent:
    """Read a block of instructions."""
    return decode_text(block) if block.get("type") == "text" else decode_native(block)


def decode_user_block(block: Block) -> UserContent:
    """Read a block of a user turn or of a tool result. Results themselves are messages, not content."""
    match block.get("type"):
        case "text":
            return decode_text(block)
        case "image":
            return decode_image(block) or decode_native(block)
        case "document":
            return decode_document(block) or decode_native(block)
        case _:
            return decode_native(block)


def decode_assistant_block(block: Block, endpoint: Endpoint) -> AssistantContent:
    """Read a block of an assistant turn of a request."""
    match block.get("type"):
        case "text":
            return decode_text(block)
        case "tool_use":
            return _decode_call(block) or decode_native(block)
        case "thinking":
            return _decode_thinking(block, endpoint) or decode_native(block)
        case "redacted_thinking" if isinstance(data := block.get("data"), str):
            text = read_wrapped(data)
            content = ThinkingContent(thinking=text or "", thinking_signature=data, redacted=text is None)
            if len(block) == 2:
                return content
            return _keep_thinking(replace(content, cache_mark=decode_mark(block)), block, endpoint)
        case _:
            return decode_native(block)


def decode_reply_block(block: Block, endpoint: Endpoint, tool_names: Mapping[str, str]) -> AssistantContent:
    """Read a block of a reply; `tool_names` maps the names of tools on the wire back to the given ones.

    The format belongs to the reply as a whole: the next request is written in the default format.
    """
    if block.get("type") == "tool_use":
        block = (
            block if isinstance(block.get("id"), str) else {**block, "id": ""}
        )  # servers leave it out, or write null
    content = decode_assistant_block(block, endpoint)
    if content.kind == "toolCall" and content.name in tool_names:
        content = replace(content, name=tool_names[content.name])
    if content.extra is not None:
        data = data_of(content.extra, PROTOCOL)
        content = replace(content, extra={PROTOCOL: data} if data else None)
    if content.cache_mark is not None:
        content = replace(content, cache_mark=None)
    return content


def _decode_thinking(block: Block, endpoint: Endpoint) -> ThinkingContent | None:
    """Read a thinking block. An empty signature is none where the provider writes a missing one so."""
    thinking, signature = block.get("thinking"), block.get("signature")
    if not isinstance(thinking, str) or not (signature is None or isinstance(signature, str)):
        return None
    if signature and len(block) == 3 and not is_wrapped(signature):
        return ThinkingContent(thinking=thinking, thinking_signature=signature)
    if signature == "" and endpoint.dialect.empty_signature:
        signature = None
    content = ThinkingContent(thinking=thinking, thinking_signature=signature, cache_mark=decode_mark(block))
    choices = choose("type", _REDACTED, "thinking") if is_wrapped(signature) else EMPTY
    return _keep_thinking(content, block, endpoint, choices)


def _keep_thinking(
    content: ThinkingContent, block: Block, endpoint: Endpoint, choices: Block = EMPTY
) -> ThinkingContent:
    chosen_type = replace(content, extra=keep(PROTOCOL, EMPTY, EMPTY, choices=choices)) if choices else content
    return replace(content, extra=keep(PROTOCOL, block, _thinking_block(chosen_type, endpoint), choices=choices))


def _decode_call(block: Block) -> ToolCall | None:
    """Read a call. Input that is not an object is read as far as possible."""
    call_id, name, given = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    if isinstance(given, dict) and len(block) == 4:
        return ToolCall(id=call_id, name=name, arguments=cast("Mapping[str, object]", given))
    parsed = read_arguments(cast("object", given))  # some vendors write text
    call = ToolCall(
        id=call_id,
        name=name,
        arguments=parsed.arguments,
        arguments_text=parsed.text,
        cache_mark=decode_mark(block),
    )
    known = ("caller",) if block.get("caller") == _DIRECT else ()
    return replace(call, extra=keep(PROTOCOL, block, _encode_call(call), known))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_text(text: TextContent) -> Wire:
    """Write a text block."""
    block: Wire = {"type": "text", "text": text.text}
    if text.cache_mark is not None:
        block[CACHE_CONTROL] = encode_mark(text.cache_mark)
    return block if text.extra is None else restore(block, text.extra, PROTOCOL)


def encode_native(content: NativeContent) -> Wire:
    """Write a block verbatim.

    Raises:
        EncodeError: it is a block of another protocol.
    """
    return join_mark(native_block(PROTOCOL, content), content.cache_mark)


def encode_user_blocks(pieces: Sequence[UserContent]) -> list[Wire]:
    """Write the content of a user turn, of a tool result or of instructions. Plain text takes a fast path.

    Raises:
        EncodeError: the protocol does not support a piece.
    """
    blocks: list[Wire] = []
    for piece in pieces:
        if type(piece) is TextContent and piece.extra is None and piece.cache_mark is None:
            blocks.append({"type": "text", "text": piece.text})
        else:
            blocks.append(encode_user_content(piece))
    return blocks


def encode_assistant_blocks(
    pieces: Sequence[AssistantContent], endpoint: Endpoint, *, is_reply: bool = False
) -> list[Wire]:
    """Write the content of an assistant turn. Content without `extra` takes a fast path.

    A test of the class costs less than reading `kind`, and a branch that sees one class only is faster still. In a
    reply (`is_reply`) thinking may lack a signature: requests alone are refused for it.

    Raises:
        EncodeError: the protocol does not support a piece, or thinking lacks the signature that the target requires.
    """
    blocks: list[Wire] = []
    owned = endpoint.owned
    for piece in pieces:
        if type(piece) is ToolCall:
            if piece.extra is None and piece.cache_mark is None and isinstance(piece.arguments, dict):
                arguments = detached(piece.arguments) if owned else piece.arguments
                blocks.append({"type": "tool_use", "id": piece.id, "name": piece.name, "input": arguments})
                continue
        elif type(piece) is TextContent:
            if piece.extra is None and piece.cache_mark is None:
                blocks.append({"type": "text", "text": piece.text})
                continue
        elif type(piece) is ThinkingContent:
            signature = piece.thinking_signature
            if (
                piece.extra is None
                and signature is not None
                and not piece.redacted
                and piece.cache_mark is None
                and not signature.startswith(WRAPPED)
            ):
                blocks.append({"type": "thinking", "thinking": piece.thinking, "signature": signature})
                continue
            if is_reply:
                blocks.append(_thinking_block(piece, endpoint))
                continue
        blocks.append(encode_assistant_content(piece, endpoint))
    return blocks


def encode_user_content(content: UserContent) -> Wire:
    """Write content of a user turn, of a tool result or of instructions.

    Raises:
        EncodeError: the protocol does not support it.
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


def encode_assistant_content(content: AssistantContent, endpoint: Endpoint) -> Wire:
    """Write content of an assistant turn.

    Raises:
        EncodeError: the protocol does not support it, or thinking lacks the signature that the target requires.
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


def _encode_call(call: ToolCall) -> Wire:
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    block: Wire = {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}
    if call.cache_mark is not None:
        block[CACHE_CONTROL] = encode_mark(call.cache_mark)
    return block if call.extra is None else restore(block, call.extra, PROTOCOL)


def _encode_thinking(content: ThinkingContent, endpoint: Endpoint) -> Wire:
    block = _thinking_block(content, endpoint)
    if content.thinking_signature is None and not content.redacted:
        dialect, rules = endpoint.dialect, endpoint.rules
        is_required = not dialect.empty_signature and rules.reasoning_replay not in _UNSIGNED
        if is_required and block.get("signature") == "":  # a block received without a signature is restored without
            raise EncodeError("thinking has no signature, which the target requires; remove it or send it as text")
    return block


def _thinking_block(content: ThinkingContent, endpoint: Endpoint) -> Wire:
    """Write a thinking block; a missing signature is empty, or left out where the target allows that."""
    signature = content.thinking_signature
    if content.redacted and signature is None:
        raise EncodeError("redacted thinking has no data (`thinking_signature`); remove it")
    is_redacted = content.redacted or (
        is_wrapped(signature) and chosen(content.extra, PROTOCOL, "type", _REDACTED) == _REDACTED
    )
    if is_redacted:
        block: Wire = {"type": _REDACTED, "data": signature}
    else:
        block = {"type": "thinking", "thinking": content.thinking}
        if signature is not None:
            block["signature"] = signature
        elif endpoint.dialect.empty_signature or endpoint.rules.reasoning_replay not in _UNSIGNED:
            block["signature"] = ""
    if content.cache_mark is not None:
        block[CACHE_CONTROL] = encode_mark(content.cache_mark)
    return block if content.extra is None else restore(block, content.extra, PROTOCOL)
