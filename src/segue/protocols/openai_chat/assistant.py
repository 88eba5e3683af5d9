"""An assistant message, in a request and in a reply, both ways.

Facts this file rests on:
- Its text is one string: some models imitate a list.                                           (pi-ai 1.5.0)
- Content is null beside calls; vendors also send an empty string or leave it out.          (recorded traffic, 2026-11)
- Where null is refused, an empty string stands for it.                      (`null_content` of the dialect)
- Other fields of a reply (`annotations`, null fields, the index of a call) are refused by strict vendors in a request.
                                                                                    (LibreChat #6724, freellmapi #1093)
- `prefix` asks the model to continue the message.
                                     (DeepSeek API guides: chat prefix completion; LiteLLM: prefix; read 2026-11-15)

Content is read in this order: thinking, text, refusal, native fields, calls.

Choices that messages keep: `content`, see `content.py`, and `field`, see `reasoning.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError, Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import MISSING, Block, Wire
from segue.protocols.kit.reading import JoinedText, expect_list, expect_object, join_texts
from segue.protocols.kit.verbatim import chosen, data_of, keep, restore
from segue.protocols.openai_chat.calls import (
    decode_call,
    decode_old_call,
    decode_plain_call,
    encode_call,
    encode_signature,
    find_signature,
    is_old,
)
from segue.protocols.openai_chat.content import LIST, decode_part, dump_value, encode_part
from segue.protocols.openai_chat.fast_decode import Json
from segue.protocols.openai_chat.native import (
    choice_extra,
    decode_fields,
    decode_refusal_part,
    encode_fields,
    encode_native,
    encode_refusal_part,
    is_part,
    keep_assistant_part,
    text_field,
)
from segue.protocols.openai_chat.reasoning import (
    FIELDS,
    REASONING_KEYS,
    add_required_reasoning,
    decode_reasoning,
    encode_reasoning,
    is_tagged,
)
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.think_tags import in_tags, split_tags, write_text, write_thinking

_Part: TypeAlias = TextContent | ThinkingContent | NativeContent

_THINKING: Final = FIELDS[0]
_COMMON: Final = frozenset({"role", "content", "tool_calls", _THINKING})
"""The keys of most messages."""


class AssistantTurn(NamedTuple):
    """An assistant message that was read: content, whether it is a prefix, extra, and diagnostics."""

    content: tuple[AssistantContent, ...]
    prefix: bool
    extra: Extra | None
    notes: tuple[Diagnostic, ...]


def empty_content(endpoint: Endpoint) -> str | None:
    """Give the content of a message without text."""
    return None if endpoint.dialect.null_content else ""


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_assistant(wire: Block, endpoint: Endpoint, path: Path, *, required: str | None = None) -> AssistantTurn:
    """Read an assistant message of a request; `required` is the field that the provider requires on each of them.

    Raises:
        DecodeError: content or calls are not in the format of the protocol.
    """
    notes: list[Diagnostic] = []
    if wire.keys() <= _COMMON:
        common = _decode_common(wire, endpoint, path, notes)
        if common is not None:
            return AssistantTurn(common, prefix=False, extra=None, notes=tuple(notes))
    known: set[str] = set()
    pieces, choices = _decode_pieces(wire, endpoint, path, notes, known=known)
    prefix = wire.get("prefix")
    if isinstance(prefix, bool):
        known.add("prefix")
    default = encode_assistant(
        pieces,
        endpoint,
        path,
        extra=choice_extra(choices),
        prefix=prefix is True,
        required=None if REASONING_KEYS.isdisjoint(wire) else required,
    )
    return AssistantTurn(tuple(pieces), prefix is True, keep(PROTOCOL, wire, default, known, choices), tuple(notes))


def decode_reply(
    wire: Block, endpoint: Endpoint, path: Path, tool_names: Mapping[str, str]
) -> tuple[tuple[AssistantContent, ...], tuple[Diagnostic, ...]]:
    """Read the content of an assistant message of a reply. Its format is kept with the reply.

    Raises:
        DecodeError: content or calls are not in the format of the protocol.
    """
    notes: list[Diagnostic] = []
    pieces, _ = _decode_pieces(wire, endpoint, path, notes, known=set(), tool_names=tool_names)
    return tuple(pieces), tuple(notes)


def _decode_common(
    wire: Block, endpoint: Endpoint, path: Path, notes: list[Diagnostic]
) -> tuple[AssistantContent, ...] | None:
    """Read a message of common keys in the default format; None when it has another."""
    thinking, text, calls = wire.get(_THINKING, MISSING), wire.get("content", MISSING), wire.get("tool_calls", MISSING)
    pieces: list[AssistantContent] = []
    if isinstance(thinking, str) and thinking:
        pieces.append(ThinkingContent(thinking=thinking, thinking_signature=_THINKING))
    elif thinking is not MISSING:
        return None
    if isinstance(text, str) and not endpoint.dialect.think_tags:
        if text or endpoint.dialect.null_content:
            pieces.append(TextContent(text=text))
    elif text is not None or not endpoint.dialect.null_content:
        return None
    if isinstance(calls, list) and calls:
        for index, call in enumerate(cast("list[Json]", calls)):
            plain = decode_plain_call(call, notes)
            pieces.append(plain or decode_call(call, endpoint, (*path, "tool_calls", index), notes))
    elif calls is not MISSING:
        return None
    return tuple(pieces)


def _decode_pieces(
    wire: Block,
    endpoint: Endpoint,
    path: Path,
    notes: list[Diagnostic],
    *,
    known: set[str],
    tool_names: Mapping[str, str] | None = None,
) -> tuple[list[AssistantContent], Wire]:
    """Read the content, and the choices to keep; add the understood keys to `known`. Only a reply has `tool_names`."""
    reply = tool_names is not None
    thinking, choices = decode_reasoning(wire, known)
    pieces: list[AssistantContent] = [] if thinking is None else [thinking]
    value = wire.get("content", MISSING)
    content = _decode_content(value, endpoint, (*path, "content"), reply=reply)
    if content and isinstance(value, list) and not any(map(_needs_list, content)):
        choices = {**choices, **LIST}
    pieces += content
    if "extra_content" in wire:
        _add_signature(pieces, wire["extra_content"], endpoint)
    pieces += decode_fields(wire, known, reply=reply)
    old, calls, names = wire.get("function_call"), wire.get("tool_calls"), tool_names or {}
    if old:
        place = (*path, "function_call")
        pieces.append(decode_old_call(expect_object(old, place), endpoint, place, notes, names, reply=reply))
    if calls:
        for index, call in enumerate(expect_list(calls, (*path, "tool_calls"))):
            place = (*path, "tool_calls", index)
            pieces.append(decode_call(call, endpoint, place, notes, names, reply=reply))
    known.update(key for key, found in (("function_call", old), ("tool_calls", calls)) if found or found == [])
    return pieces, choices


def _decode_content(value: object, endpoint: Endpoint, path: Path, *, reply: bool) -> Sequence[AssistantContent]:
    if value is None or value is MISSING:
        return ()
    if isinstance(value, str):
        if (not value and reply) or value == empty_content(endpoint):
            return ()
        return split_tags(value) if endpoint.dialect.think_tags else (TextContent(text=value),)
    if reply and (text := dump_value(value)) is not None:
        return (TextContent(text=text),)
    return [_decode_part(block, (*path, index)) for index, block in enumerate(expect_list(value, path))]


def _decode_part(block: object, path: Path) -> TextContent | NativeContent:
    part = expect_object(block, path)
    if part.get("type") == "text":
        content = decode_part(part, path)
        if content.kind == "text":
            return content
    return decode_refusal_part(part) or keep_assistant_part(part)


def _add_signature(pieces: list[AssistantContent], extra_content: object, endpoint: Endpoint) -> None:
    """Put Gemini's signature on the text of the message, if it has exactly one."""
    signature = find_signature(extra_content, endpoint)
    texts = [index for index, piece in enumerate(pieces) if piece.kind == "text" and text_field(piece) == "content"]
    if signature is not None and len(texts) == 1:
        pieces[texts[0]] = replace(cast("TextContent", pieces[texts[0]]), text_signature=signature)


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_assistant(
    content: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    *,
    reply: bool = False,
    extra: Extra | None = None,
    prefix: bool = False,
    required: str | None = None,
) -> Wire:
    """Write an assistant message.

    Raises:
        EncodeError: a block of another protocol, or arguments that are no JSON.
    """
    message: Wire = {"role": "assistant", "content": None}
    texts: list[str] = []
    thought: ThinkingContent | None = None
    calls: list[object] = []
    is_common = extra is None or PROTOCOL not in extra
    try:
        for piece in content:
            match piece.kind:
                case "toolCall":
                    call = encode_call(piece, endpoint)
                    if is_old(piece):
                        message["function_call"] = call
                    else:
                        calls.append(call)
                case "text":
                    texts.append(piece.text)
                    if piece.extra is not None or piece.text_signature is not None or piece.cache_mark is not None:
                        is_common = False
                case "thinking" if thought is None and piece.thinking and piece.thinking_signature in FIELDS:
                    thought = piece
                case "native" if "tool_calls" in piece.block and piece.protocol == PROTOCOL:
                    calls += cast("list[object]", piece.block["tool_calls"])
                case _:
                    is_common = False
    except EncodeError as error:
        raise EncodeError(error.reason, path=path) from error
    message["content"] = join_texts(texts) if texts else empty_content(endpoint)
    if not is_common:
        _encode_pieces(message, content, endpoint, path, extra, reply=reply)
    elif thought is not None and thought.thinking_signature is not None:
        message[thought.thinking_signature] = thought.thinking
    if calls:
        message["tool_calls"] = calls
    if prefix:
        message["prefix"] = True
    if required is not None:
        add_required_reasoning(message, required)
    return restore(message, extra, PROTOCOL)


def _encode_pieces(
    message: Wire,
    content: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    extra: Extra | None,
    *,
    reply: bool,
) -> None:
    """Write the content of a message that holds more than plain texts and calls."""
    parts: list[_Part] = []
    thoughts: list[ThinkingContent] = []
    refusals: list[str] = []
    signature: str | None = None
    for piece in content:
        match piece.kind:
            case "text" if text_field(piece) == "refusal":
                refusals.append(piece.text)
            case "text":
                parts.append(piece)
                signature = piece.text_signature or signature
            case "thinking" if is_tagged(piece, endpoint):
                parts.append(in_tags(piece, endpoint))
            case "thinking":
                thoughts.append(piece)
            case "native" if is_part(piece):
                parts.append(piece)
            case "native":
                block = encode_native(piece, path)
                if "tool_calls" not in block:
                    message.update(encode_fields(piece, reply=reply))
            case "toolCall":
                pass
    if any(map(_needs_list, parts)) or (parts and chosen(extra, PROTOCOL, "content", "string") == "list"):
        message["content"] = [_encode_part(piece, path) for piece in parts]
    else:
        message["content"] = _join_parts(parts) if parts else empty_content(endpoint)
    if thoughts:
        encode_reasoning(message, thoughts, endpoint, extra)
    if refusals:
        message["refusal"] = "".join(refusals)
    if signature is not None and endpoint.dialect.google_signatures:
        message["extra_content"] = encode_signature(signature)


def _needs_list(piece: _Part | ToolCall) -> bool:
    """Whether a piece cannot be written as a string."""
    match piece.kind:
        case "native":
            return True
        case "text":
            is_marked = piece.cache_mark is not None or bool(data_of(piece.extra, PROTOCOL))
            return is_marked or text_field(piece) == "part.refusal"
        case "thinking" | "toolCall":
            return False


def _join_parts(parts: Sequence[_Part]) -> str:
    text = JoinedText()
    text.append(_text_of(parts[0]))
    for earlier, piece in pairwise(parts):
        if piece.kind == "text" and earlier.kind == "text" and piece.extra is None:
            text.join(piece.text)
        else:
            text.append(_text_of(piece))
    return str(text)


def _text_of(piece: _Part) -> str:
    match piece.kind:
        case "text":
            return write_text(piece)
        case "thinking":
            return write_thinking(piece)
        case "native":
            return ""


def _encode_part(piece: _Part, path: Path) -> Wire:
    if piece.kind == "thinking":
        return {"type": "text", "text": write_thinking(piece)}
    if piece.kind == "text" and text_field(piece) == "part.refusal":
        return encode_refusal_part(piece)
    return encode_part(piece, path)
