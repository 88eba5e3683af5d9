"""Parts of a content, both ways.

Facts this file rests on:
- A part has exactly one field of data; other keys (`thought`, `thoughtSignature`, `videoMetadata`, ...) stand beside
  that field.                                                                  (google-genai 3.1.0, read 2026-11-15)
- A signature is sent back on the part it was received on: a text, a call, an empty text, a thought; beside
  `functionCall`, never inside.  (Google documentation: thought signatures, read 2026-11-15; claude-relay #967)
- Calls have ids from Gemini 3 on; older models give none and accept any.              (recorded traffic, 2026-11)
- `args` is an object, not text, and may be absent.                                          (google-genai 3.1.0)
- An unknown part, or one that has a `type` as the blocks of other APIs do, is kept and sent back unchanged.

A call without an id gets one made of its position, so that results can refer to it. That the wire had none is format,
also in a reply: a model without ids gets its calls back without ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar, assert_never, cast

from msgspec.structs import replace

from segue.conversation.arguments import read_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.protocols.google_genai.keys import keep_format, read_keys
from segue.protocols.google_genai.media import MEDIA_FIELDS, decode_media, encode_file, encode_image
from segue.protocols.google_genai.native import decode_native
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Block, Wire, detached, object_of
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.verbatim import data_of, keep, restore

CALL: Final = "functionCall"
RESULT: Final = "functionResponse"
SIGNATURE: Final = "thoughtSignature"

_DATA_FIELDS: Final = frozenset(
    {
        "text",
        *MEDIA_FIELDS,
        CALL,
        RESULT,
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "audioTranscription",
    }
)
_USER_TEXT_KEYS: Final = frozenset({"text", "thought"})
_TEXT_KEYS: Final = frozenset({"text", "thought", SIGNATURE})
_CALL_KEYS: Final = frozenset({SIGNATURE, f"{CALL}.id", f"{CALL}.args"})

_Written = TypeVar("_Written", TextContent, ThinkingContent, ToolCall)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def data_field(wire: Block) -> str | None:
    """Name the field of data of a part: `text` where there is only a signature, None where there is not exactly one."""
    if "type" in wire:
        return None
    found = [key for key in wire if key in _DATA_FIELDS]
    if len(found) == 1:
        return found[0]
    return "text" if not found and (SIGNATURE in wire or "thought" in wire) else None


def call_in(part: Block) -> Block:
    """Give the call of a part."""
    call = part.get(CALL)
    return read_keys(object_of(call if call is not None else part.get("function_call")))


def decode_user_part(part: Block) -> UserContent:
    """Read a part of a user's turn, or of instructions; results are messages, not content."""
    text = part.get("text")
    if len(part) == 1 and isinstance(text, str):
        return TextContent(text=text)
    wire = read_keys(part)
    field = data_field(wire)
    if field == "text" and wire.get("thought") is not True and isinstance(text, str):
        # A signature means nothing on a text that is not the model's: it is data.
        return TextContent(text=text, extra=keep_format(part, {"text": text}, _USER_TEXT_KEYS))
    media = decode_media(wire, field) if field in MEDIA_FIELDS else None
    if media is None:
        return decode_native(part)
    extra = keep_format(part, encode_user_content(media), ())
    return media if extra is None else replace(media, extra=extra)


def decode_assistant_part(
    part: Block, new_id: str, tool_names: Mapping[str, str], endpoint: Endpoint, *, is_reply: bool
) -> AssistantContent:
    """Read a part of the model's turn.

    `new_id` is for a call without one, `tool_names` maps names on the wire back. Content of a reply keeps data only.
    """
    text = part.get("text")
    if isinstance(text, str):  # fast path
        if len(part) == 1:
            return TextContent(text=text)
        if len(part) == 2:
            if part.get("thought") is True:
                return ThinkingContent(thinking=text)
            if isinstance(signature := part.get(SIGNATURE), str) and signature:
                return TextContent(text=text, text_signature=signature)
    call = decode_default_call(part, tool_names, endpoint)
    if call is not None:
        return call
    wire = read_keys(part)
    match data_field(wire):
        case "text":
            text = wire.get("text", "")
            if not isinstance(text, str):
                return decode_native(part)
            if wire.get("thought") is True:
                thought = ThinkingContent(thinking=text, thinking_signature=_signature(wire))
                return _with_extra(thought, part, _TEXT_KEYS, endpoint, is_reply=is_reply)
            content = TextContent(text=text, text_signature=_signature(wire))
            return _with_extra(content, part, _TEXT_KEYS, endpoint, is_reply=is_reply)
        case "functionCall":
            inside = call_in(wire)
            call = _decode_call(wire, inside, new_id, tool_names)
            if call is None:
                return decode_native(part)
            call = _with_extra(call, part, _CALL_KEYS, endpoint, is_reply=is_reply)
            return _without_id(call) if is_reply and inside.get("id") != call.id else call
        case _:
            return decode_native(part)


def _signature(wire: Block) -> str | None:
    signature = wire.get(SIGNATURE)
    return signature if isinstance(signature, str) and signature else None


def _decode_call(wire: Block, inside: Block, new_id: str, tool_names: Mapping[str, str]) -> ToolCall | None:
    """Read a call; arguments that are not an object are parsed as far as possible."""
    name, call_id, given = inside.get("name"), inside.get("id"), inside.get("args")
    if not isinstance(name, str):
        return None
    parsed = read_arguments(given)
    return ToolCall(
        id=call_id if isinstance(call_id, str) and call_id else new_id,
        name=tool_names.get(name, name),
        arguments=parsed.arguments,
        arguments_text=parsed.text,
        thought_signature=_signature(wire),
    )


def decode_default_call(part: Block, tool_names: Mapping[str, str], endpoint: Endpoint) -> ToolCall | None:
    """Read a call in the default format, as nearly all are; None for every other part. This is a fast path."""
    inside = part.get(CALL)
    if not isinstance(inside, dict) or len(call := cast("Wire", inside)) != 3 or not endpoint.dialect.call_ids:
        return None
    name, call_id, arguments, signature = call.get("name"), call.get("id"), call.get("args"), part.get(SIGNATURE)
    is_default = isinstance(name, str) and isinstance(call_id, str) and call_id and isinstance(arguments, dict)
    if not is_default or len(part) != (1 if signature is None else 2):
        return None
    if signature is not None and not (isinstance(signature, str) and signature):
        return None
    return ToolCall(
        id=cast("str", call_id),
        name=tool_names.get(cast("str", name), cast("str", name)),
        arguments=cast("Wire", arguments),
        thought_signature=signature,
    )


def _with_extra(
    content: _Written, part: Block, known: frozenset[str], endpoint: Endpoint, *, is_reply: bool
) -> _Written:
    extra = keep_format(part, encode_assistant_content(content, endpoint), known)
    if extra is not None and is_reply:
        data = data_of(extra, PROTOCOL)
        extra = {PROTOCOL: data} if data else None
    return content if extra is None else replace(content, extra=extra)


def _without_id(call: ToolCall) -> ToolCall:
    """Keep that a call had no id of its own."""
    made = cast("Extra", keep(PROTOCOL, {CALL: {}}, {CALL: {"id": call.id}}))
    return replace(call, extra={PROTOCOL: {**data_of(call.extra, PROTOCOL), **made[PROTOCOL]}})


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_user_parts(pieces: Sequence[UserContent]) -> list[Wire]:
    """Write the content of a user's turn or of instructions.

    Raises:
        EncodeError: the protocol does not support a piece.
    """
    parts: list[Wire] = []
    for piece in pieces:
        if piece.kind == "text" and piece.extra is None:
            parts.append({"text": piece.text})
        else:
            parts.append(encode_user_content(piece))
    return parts


def encode_assistant_parts(
    pieces: Sequence[AssistantContent], endpoint: Endpoint, calls: dict[str, Block]
) -> list[Wire]:
    """Write the content of the model's turn; `calls` gets its calls as they are written, by their ids.

    Raises:
        EncodeError: the protocol does not support a piece.
    """
    parts: list[Wire] = []
    with_ids, owned = endpoint.dialect.call_ids, endpoint.owned
    for piece in pieces:
        if type(piece) is ToolCall:
            if piece.extra is not None or not with_ids:
                part = encode_assistant_content(piece, endpoint)
                calls[piece.id] = call_in(part)
                parts.append(part)
                continue
            arguments = piece.arguments if isinstance(piece.arguments, dict) else dict(piece.arguments)
            if owned:
                arguments = detached(arguments)
            calls[piece.id] = call = {"id": piece.id, "name": piece.name, "args": arguments}
            part: Wire = {CALL: call}
            signature = piece.thought_signature
        elif type(piece) is TextContent and piece.extra is None:
            part = {"text": piece.text}
            signature = piece.text_signature
        elif type(piece) is ThinkingContent and piece.extra is None:
            part = {"text": piece.thinking, "thought": True}
            signature = piece.thinking_signature
        else:
            parts.append(encode_assistant_content(piece, endpoint))
            continue
        if signature is not None:
            part[SIGNATURE] = signature
        parts.append(part)
    return parts


def encode_user_content(content: UserContent) -> Wire:
    """Write content of a user's turn or of instructions.

    Raises:
        EncodeError: the protocol does not support it.
    """
    match content.kind:
        case "text":
            part: Wire = {"text": content.text}  # a signature on it is another protocol's
        case "image":
            part = encode_image(content)
        case "file":
            part = encode_file(content)
        case "native":
            return _encode_native(content)
        case _:
            assert_never(content)
    return part if content.extra is None else restore(part, content.extra, PROTOCOL)


def encode_assistant_content(content: AssistantContent, endpoint: Endpoint) -> Wire:
    """Write content of the model's turn.

    Raises:
        EncodeError: the protocol does not support it.
    """
    match content.kind:
        case "text":
            part: Wire = {"text": content.text}
            signature = content.text_signature
        case "thinking":
            part = {"text": content.thinking, "thought": True}
            signature = content.thinking_signature
        case "toolCall":
            arguments = content.arguments if isinstance(content.arguments, dict) else dict(content.arguments)
            if endpoint.owned:
                arguments = detached(arguments)
            call: Wire = {"name": content.name, "args": arguments}
            if endpoint.dialect.call_ids and content.id:
                call["id"] = content.id
            part = {CALL: call}
            signature = content.thought_signature
        case "native":
            return _encode_native(content)
        case _:
            assert_never(content)
    if signature is not None:
        part[SIGNATURE] = signature
    return part if content.extra is None else restore(part, content.extra, PROTOCOL)


def _encode_native(content: NativeContent) -> Wire:
    block = native_block(PROTOCOL, content)
    return block if isinstance(block, dict) else dict(block)
