"""Parts of a VS Code language model message, both ways.

Facts this file rests on:
- A part is a text, a tool call with an object as input, a tool result, or data with a MIME type; others may come and
  are to be ignored by who does not know them.                                 (@types/vscode 1.140.0, read 2026-11-15)
- In our JSON `$` names the class: text, toolCall, toolResult, data; bytes are base64.                       (our form)
- Base64 without padding or in the URL alphabet is read as standard base64 and written back as received.  (our promise)
- A part nobody knows, and whatever stands beside a part's own fields, comes back as it was.              (our promise)

What an assistant shows (a data part) has no place among segue's words for a turn, so it is kept as it is, its picture
or file as what other targets see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from segue.conversation.content import (
    AssistantContent,
    FallbackContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ToolCall,
    UserContent,
)
from segue.errors import EncodeError, Path
from segue.protocols.kit.reading import extra_of, left_over, standard_base64, verbatim_of
from segue.protocols.vscode_lm.rules import PROTOCOL

Part = Mapping[str, object]
Wire = dict[str, object]

KIND: Final = "$"
RESULT: Final = "toolResult"
RESULT_KEYS: Final = frozenset({KIND, "callId", "content"})
_TEXT_KEYS: Final = frozenset({KIND, "value"})
_CALL_KEYS: Final = frozenset({KIND, "callId", "name", "input"})
_DATA_KEYS: Final = frozenset({KIND, "data", "mimeType"})


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_user_part(part: Part) -> UserContent:
    """Read a part of a user's message or of a tool's result; results themselves are messages, not content."""
    match part.get(KIND):
        case "text" if isinstance(value := part.get("value"), str):
            return _text(value, part)
        case "data":
            return _media(part) or _native(part)
        case _:
            return _native(part)


def decode_assistant_part(part: Part, tool_names: Mapping[str, str]) -> AssistantContent:
    """Read a part of an assistant's message; `tool_names` maps the wire's names of tools back to the given ones."""
    match part.get(KIND):
        case "text" if isinstance(value := part.get("value"), str):
            return _text(value, part)
        case "toolCall":
            return _call(part, tool_names) or _native(part)
        case "data":
            shown = _media(part)
            return _native(part, () if shown is None else (shown,))
        case _:
            return _native(part)


def _text(value: str, part: Part) -> TextContent:
    return TextContent(text=value, extra=None if len(part) == 2 else extra_of(PROTOCOL, part, _TEXT_KEYS))


def _call(part: Part, tool_names: Mapping[str, str]) -> ToolCall | None:
    call_id, name, given = part.get("callId"), part.get("name"), part.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(given, dict):
        return None
    extra = None if len(part) == 4 else extra_of(PROTOCOL, part, _CALL_KEYS)
    return ToolCall(id=call_id, name=tool_names.get(name, name), arguments=cast("Wire", given), extra=extra)


def _media(part: Part) -> ImageContent | FileContent | None:
    data, mime = part.get("data"), part.get("mimeType")
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    standard = standard_base64(data)
    extra = extra_of(PROTOCOL, part, _DATA_KEYS, None if standard == data else {"data": data})
    if mime.startswith("image/"):
        return ImageContent(data=standard, mime_type=mime, extra=extra)
    return FileContent(data=standard, mime_type=mime, extra=extra)


def _native(part: Part, fallback: tuple[FallbackContent, ...] = ()) -> NativeContent:
    return NativeContent(protocol=PROTOCOL, block=dict(part), fallback=fallback)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_user_parts(pieces: Sequence[UserContent], path: Path) -> list[Wire]:
    """Write the parts of a user's message or of a tool's result. `path` leads to the pieces.

    Raises:
        EncodeError: a piece has no word here.
    """
    parts: list[Wire] = []
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                part: Wire = {KIND: "text", "value": piece.text}
            case "image" | "file":
                part = _encode_media(piece, (*path, at))
            case "native":
                parts.append(_own_block(piece, (*path, at)))
                continue
            case _:
                assert_never(piece)
        parts.append(part if piece.extra is None else _completed(part, piece.extra))
    return parts


def encode_assistant_parts(pieces: Sequence[AssistantContent], path: Path) -> list[Wire]:
    """Write the parts of an assistant's message. `path` leads to the pieces.

    Raises:
        EncodeError: a piece has no word here.
    """
    parts: list[Wire] = []
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "text":
                part: Wire = {KIND: "text", "value": piece.text}
            case "toolCall":
                given = piece.arguments if isinstance(piece.arguments, dict) else dict(piece.arguments)
                part = {KIND: "toolCall", "callId": piece.id, "name": piece.name, "input": given}
            case "native":
                parts.append(_own_block(piece, (*path, at)))
                continue
            case "thinking":
                # The part for it is a proposal; projection should have told or dropped it.  (vscode #326597)
                raise EncodeError("this API has no part for thinking", path=(*path, at))
            case _:
                assert_never(piece)
        parts.append(part if piece.extra is None else _completed(part, piece.extra))
    return parts


def _completed(part: Wire, extra: Mapping[str, Mapping[str, object]]) -> Wire:
    for key, value in left_over(extra, PROTOCOL).items():
        part.setdefault(key, value)
    return part


def _encode_media(piece: ImageContent | FileContent, path: Path) -> Wire:
    if piece.data is None:
        raise EncodeError("this API takes bytes, not where they lie", path=path)
    if piece.mime_type is None:
        raise EncodeError("a data part has to name its type", path=path)
    received = verbatim_of(piece.extra, PROTOCOL).get("data")
    data = received if isinstance(received, str) and standard_base64(received) == piece.data else piece.data
    return {KIND: "data", "data": data, "mimeType": piece.mime_type}


def _own_block(content: NativeContent, path: Path) -> Wire:
    if content.protocol != PROTOCOL:
        raise EncodeError(f"a block of {content.protocol} has no place here", path=path)
    return dict(content.block)
