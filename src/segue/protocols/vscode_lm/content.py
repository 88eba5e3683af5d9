"""Parts of a VS Code language model message, both ways.

Facts:
- A part is a text, a tool call with an object as input, a tool result, or data with a MIME type. Unknown parts may
  appear and are to be ignored.                                                (@types/vscode 1.140.0, read 2026-11-15)
- In segue's JSON `$` names the class: text, toolCall, toolResult, data; bytes are base64.                (our format)
- An unknown part, and unknown keys of a known part, are kept and written back.                          (our promise)

Neutral data is standard base64 with padding; data that is not base64 is left as received.

A data part of an assistant stays a native block, because segue has no media in assistant messages. Its image or file
is the fallback for other targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never, cast

from msgspec.structs import replace

from segue.conversation.arguments import read_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ToolCall,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import native_block, standard_base64
from segue.protocols.kit.verbatim import data_of, keep, restore
from segue.protocols.vscode_lm.rules import PROTOCOL

KIND: Final = "$"
RESULT: Final = "toolResult"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_user_part(part: Block) -> UserContent:
    """Read a part of a user message or of a tool result. Results themselves are messages, not content."""
    match part.get(KIND):
        case "text" if isinstance(value := part.get("value"), str):
            return _decode_text(value, part)
        case "data":
            return _decode_media(part) or _native(part)
        case _:
            return _native(part)


def decode_assistant_part(part: Block, *, reply: bool = False) -> AssistantContent:
    """Read a part of an assistant message; a part of a reply keeps its unknown keys and no format."""
    match part.get(KIND):
        case "text" if isinstance(value := part.get("value"), str):
            content = _decode_text(value, part)
        case "toolCall":
            content = _decode_call({"callId": "", **part} if reply else part) or _native(part)
        case "data":
            media = _decode_media(part)
            content = _native(part, () if media is None else (replace(media, extra=None),))
        case _:
            content = _native(part)
    return replace(content, extra=_data_extra(content.extra)) if reply and content.extra is not None else content


def _data_extra(extra: Extra) -> Extra | None:
    data = data_of(extra, PROTOCOL)
    return {PROTOCOL: data} if data else None


def _decode_text(value: str, part: Block) -> TextContent:
    content = TextContent(text=value)
    return content if len(part) == 2 else replace(content, extra=keep(PROTOCOL, part, _encode_text(content)))


def _decode_call(part: Block) -> ToolCall | None:
    call_id, name, given = part.get("callId"), part.get("name"), part.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    if isinstance(given, dict):
        call = ToolCall(id=call_id, name=name, arguments=cast("Wire", given))
        return call if len(part) == 4 else replace(call, extra=keep(PROTOCOL, part, _encode_call(call)))
    parsed = read_arguments(given)
    call = ToolCall(id=call_id, name=name, arguments=parsed.arguments, arguments_text=parsed.text)
    return replace(call, extra=keep(PROTOCOL, part, _encode_call(call), known=("input",)))


def _decode_media(part: Block) -> ImageContent | FileContent | None:
    received, mime = part.get("data"), part.get("mimeType")
    if not isinstance(received, str) or not isinstance(mime, str):
        return None
    data = standard_base64(received)
    content: ImageContent | FileContent
    if mime.startswith("image/"):
        content = ImageContent(data=data, mime_type=mime)
    else:
        content = FileContent(data=data, mime_type=mime)
    if data is received and len(part) == 3:
        return content
    return replace(content, extra=keep(PROTOCOL, part, _encode_media(content, ())))


def _native(part: Block, fallback: tuple[FallbackContent, ...] = ()) -> NativeContent:
    return NativeContent(protocol=PROTOCOL, block=dict(part), fallback=fallback)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_parts(pieces: Sequence[UserContent | AssistantContent], path: Path) -> list[Wire]:
    """Write the parts of a message or of a tool result. `path` leads to the pieces.

    Raises:
        EncodeError: the API does not support a piece.
    """
    parts: list[Wire] = []
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                part = _encode_text(piece)
            case "image" | "file":
                part = _encode_media(piece, (*path, at))
            case "toolCall":
                part = _encode_call(piece)
            case "native":
                parts.append(dict(native_block(PROTOCOL, piece, (*path, at))))
                continue
            case "thinking":
                # The part for it is a proposal; projection converts or drops thinking.  (vscode #326597)
                raise EncodeError(f"{PROTOCOL} does not support thinking; remove it", path=(*path, at))
            case _:
                assert_never(piece)
        parts.append(part if piece.extra is None else restore(part, piece.extra, PROTOCOL))
    return parts


def _encode_text(content: TextContent) -> Wire:
    return {KIND: "text", "value": content.text}


def _encode_call(call: ToolCall) -> Wire:
    given = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    return {KIND: "toolCall", "callId": call.id, "name": call.name, "input": given}


def _encode_media(piece: ImageContent | FileContent, path: Path) -> Wire:
    if piece.data is None:
        raise EncodeError(f"{PROTOCOL} does not support media by reference; supply the bytes", path=path)
    if piece.mime_type is None:
        raise EncodeError("a data part needs a MIME type; set `mime_type`", path=path)
    return {KIND: "data", "data": piece.data, "mimeType": piece.mime_type}
