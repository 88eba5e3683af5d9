"""Parts of a content, both ways.

Facts this file rests on:
- A part has exactly one field of data; what it carries besides (`thought`, `thoughtSignature`, `videoMetadata`, ...)
  stands beside that field.                                                    (google-genai 3.1.0, read 2026-11-15)
- A signature comes back on the very part it came on: a text, a call, an empty text, a thought; beside `functionCall`,
  never inside.                 (Google documentation: thought signatures, read 2026-11-15; claude-relay #967)
- Calls have ids from Gemini 3 on, older models give none and take any.                (recorded traffic, 2026-11)
- `args` is an object on this wire, not text, and may be left out.                           (google-genai 3.1.0)
- A part nobody knows, or one that has a `type` as the blocks of other APIs do, must come back as it was.  (our promise)

A call without an id gets one made of its place, so that results can name it; the shape remembers that the wire had
none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import (
    AssistantContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.protocols.google_genai.media import MEDIA_FIELDS, decode_media, encode_file, encode_image
from segue.protocols.google_genai.native import decode_native
from segue.protocols.google_genai.rules import PROTOCOL
from segue.protocols.google_genai.verbatim import INNER, Block, Wire, keep, open_object, put_back
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import native_block, verbatim_of

CALL: Final = "functionCall"
RESULT: Final = "functionResponse"
SIGNATURE: Final = "thoughtSignature"
ID_MADE: Final = "id_made"
"""The mark in the shape of a call that came without an id."""

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
_TEXT_KEYS: Final = frozenset({"text", "thought", SIGNATURE})
_CALL_KEYS: Final = frozenset({CALL, SIGNATURE})
_CALL_INNER_KEYS: Final = frozenset({"id", "name", "args"})
_NOTHING: Final[Block] = {}


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def data_field(wire: Block) -> str | None:
    """Name the one field of data of an opened part: `text` where there is only a seal, None where none can be told."""
    if "type" in wire:
        return None
    found = [key for key in wire if key in _DATA_FIELDS]
    if len(found) == 1:
        return found[0]
    return "text" if not found and (SIGNATURE in wire or "thought" in wire) else None


def decode_user_part(part: Block) -> UserContent:
    """Read a part of a user's turn, or of instructions; results are messages, not content."""
    if len(part) == 1 and isinstance(text := part.get("text"), str):
        return TextContent(text=text)
    wire, verbatim = open_object(part)
    field = data_field(wire)
    if field == "text" and wire.get("thought") is not True:
        return _decode_text_part(wire, verbatim) or decode_native(part)
    if field in MEDIA_FIELDS:
        return decode_media(wire, field, verbatim) or decode_native(part)
    return decode_native(part)


def decode_assistant_part(part: Block, new_id: str, tool_names: Mapping[str, str]) -> AssistantContent:
    """Read a part of the model's turn. `new_id` is for a call without one; `tool_names` maps the wire's names back."""
    if isinstance(text := part.get("text"), str):
        if len(part) == 1:
            return TextContent(text=text)
        if len(part) == 2:  # what is most, at once
            if part.get("thought") is True:
                return ThinkingContent(thinking=text)
            if isinstance(signature := part.get(SIGNATURE), str) and signature:
                return TextContent(text=text, text_signature=signature)
    wire, verbatim = open_object(part)
    match data_field(wire):
        case "text":
            read = _decode_thought if wire.get("thought") is True else _decode_text
            return read(wire, verbatim) or decode_native(part)
        case "functionCall":
            return _decode_call(wire, verbatim, new_id, tool_names) or decode_native(part)
        case _:
            return decode_native(part)


def _decode_text_part(wire: Block, verbatim: Wire) -> TextContent | None:
    """Read a text that is not the model's: a seal on it means nothing, and is kept."""
    text = wire.get("text")
    return TextContent(text=text, extra=keep(wire, ("text",), verbatim)) if isinstance(text, str) else None


def _encode_signature(wire: Block, verbatim: Wire) -> str | None:
    signature = wire.get(SIGNATURE)
    if isinstance(signature, str) and signature:
        return signature
    if SIGNATURE in wire:
        verbatim["seal"] = signature  # no seal at all, in whatever words
    return None


def _decode_text(wire: Block, verbatim: Wire) -> TextContent | None:
    text, signature = wire.get("text"), _encode_signature(wire, verbatim)
    if "text" not in wire:
        text, verbatim["textless"] = "", True
    if not isinstance(text, str):
        return None
    if "thought" in wire:
        verbatim["thought"] = wire["thought"]
    return TextContent(text=text, text_signature=signature, extra=keep(wire, _TEXT_KEYS, verbatim))


def _decode_thought(wire: Block, verbatim: Wire) -> ThinkingContent | None:
    text, signature = wire.get("text"), _encode_signature(wire, verbatim)
    if "text" not in wire:
        text, verbatim["textless"] = "", True
    if not isinstance(text, str):
        return None
    return ThinkingContent(thinking=text, thinking_signature=signature, extra=keep(wire, _TEXT_KEYS, verbatim))


def _decode_call(wire: Block, verbatim: Wire, new_id: str, tool_names: Mapping[str, str]) -> ToolCall | None:
    """Read a call. Arguments that are no object are read as far as they can be, and kept as they were."""
    raw = wire[CALL]
    if not isinstance(raw, dict):
        return None
    inside, inner_verbatim = open_object(cast("Wire", raw))
    name, call_id, given = inside.get("name"), inside.get("id"), inside.get("args")
    if not isinstance(name, str):
        return None
    signature = _encode_signature(wire, verbatim)
    if not (isinstance(call_id, str) and call_id):
        verbatim[ID_MADE] = True
        if "id" in inside:
            verbatim["id"] = call_id
        call_id = new_id
    if isinstance(given, dict):
        arguments = cast("Wire", given)
    else:
        arguments = parse_arguments(given).arguments if isinstance(given, str) else {}
        verbatim["args"] = given
    if inner_verbatim:
        verbatim[INNER] = inner_verbatim
    beyond: Wire = {}
    if len(inside) > 3 or not inside.keys() <= _CALL_INNER_KEYS:
        beyond = {key: value for key, value in inside.items() if key not in _CALL_INNER_KEYS}
    is_plain = not (beyond or verbatim) and wire.keys() <= _CALL_KEYS
    return ToolCall(
        id=call_id,
        name=tool_names.get(name, name),
        arguments=arguments,
        thought_signature=signature,
        extra=None if is_plain else keep(wire, _CALL_KEYS, verbatim, {CALL: beyond} if beyond else None),
    )


def has_made_id(call: ToolCall) -> bool:
    """Whether the wire gave a call no id, so that its result has none either."""
    return call.extra is not None and ID_MADE in verbatim_of(call.extra, PROTOCOL)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_user_parts(pieces: Sequence[UserContent]) -> list[Wire]:
    """Write the content of a user's turn or of instructions; plain text, which is most, at once.

    Raises:
        EncodeError: the wire has no word for a piece.
    """
    parts: list[Wire] = []
    for piece in pieces:
        if piece.kind == "text" and piece.extra is None:
            parts.append({"text": piece.text})
        else:
            parts.append(encode_user_content(piece))
    return parts


def encode_assistant_parts(
    pieces: Sequence[AssistantContent], endpoint: Endpoint, calls: dict[str, ToolCall]
) -> list[Wire]:
    """Write the content of the model's turn; what is most, at once. Its calls are put down in `calls` by their ids.

    Raises:
        EncodeError: the wire has no word for a piece.
    """
    parts: list[Wire] = []
    with_ids = endpoint.dialect.call_ids
    for piece in pieces:
        if type(piece) is ToolCall:
            calls[piece.id] = piece
            if piece.extra is not None or not with_ids:
                parts.append(_encode_call(piece, endpoint))
                continue
            arguments = piece.arguments if isinstance(piece.arguments, dict) else dict(piece.arguments)
            part: Wire = {CALL: {"id": piece.id, "name": piece.name, "args": arguments}}
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
        EncodeError: the wire has no word for it.
    """
    match content.kind:
        case "text":
            part: Wire = {"text": content.text}  # seals are the model's: another's on a user's words is none
            return part if content.extra is None else put_back(part, content.extra)
        case "image":
            return encode_image(content)
        case "file":
            return encode_file(content)
        case "native":
            return encode_native(content)
        case _:
            assert_never(content)


def encode_assistant_content(content: AssistantContent, endpoint: Endpoint) -> Wire:
    """Write content of the model's turn.

    Raises:
        EncodeError: the wire has no word for it.
    """
    match content.kind:
        case "text":
            return _encode_text(content)
        case "toolCall":
            return _encode_call(content, endpoint)
        case "thinking":
            return _encode_thought(content)
        case "native":
            return encode_native(content)
        case _:
            assert_never(content)


def encode_native(content: NativeContent) -> Wire:
    """Write a part as it was.

    Raises:
        EncodeError: it is a block of another wire.
    """
    block = native_block(PROTOCOL, content)
    return block if isinstance(block, dict) else dict(block)


def _put_signature(part: Wire, signature: str | None, verbatim: Block) -> None:
    if signature is not None:
        part[SIGNATURE] = signature
    elif "seal" in verbatim:
        part[SIGNATURE] = verbatim["seal"]


def _encode_text(content: TextContent) -> Wire:
    part: Wire = {"text": content.text}
    verbatim = _NOTHING if content.extra is None else verbatim_of(content.extra, PROTOCOL)
    _put_signature(part, content.text_signature, verbatim)
    if content.extra is None:
        return part
    if "thought" in verbatim:
        part["thought"] = verbatim["thought"]
    if "textless" in verbatim and not content.text:
        del part["text"]
    return put_back(part, content.extra)


def _encode_thought(content: ThinkingContent) -> Wire:
    part: Wire = {"text": content.thinking, "thought": True}
    verbatim = _NOTHING if content.extra is None else verbatim_of(content.extra, PROTOCOL)
    _put_signature(part, content.thinking_signature, verbatim)
    if content.extra is None:
        return part
    if "textless" in verbatim and not content.thinking:
        del part["text"]
    return put_back(part, content.extra)


def _encode_call(call: ToolCall, endpoint: Endpoint) -> Wire:
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    inside: Wire = {"name": call.name, "args": arguments}
    part: Wire = {CALL: inside}
    verbatim = _NOTHING if call.extra is None else verbatim_of(call.extra, PROTOCOL)
    _put_signature(part, call.thought_signature, verbatim)
    if ID_MADE not in verbatim:
        if endpoint.dialect.call_ids and call.id:
            inside["id"] = call.id
    elif "id" in verbatim:
        inside["id"] = verbatim["id"]
    if call.extra is None:
        return part
    if "args" in verbatim and _matches_arguments(verbatim["args"], arguments):
        if verbatim["args"] is None:
            del inside["args"]
        else:
            inside["args"] = verbatim["args"]
    return put_back(part, call.extra, CALL)


def _matches_arguments(given: object, arguments: Block) -> bool:
    """Whether arguments in an odd spelling still say what the call says."""
    return (parse_arguments(given).arguments if isinstance(given, str) else {}) == arguments
