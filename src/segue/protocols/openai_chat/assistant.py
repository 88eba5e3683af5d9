"""An assistant message, in a request and in a reply, both ways.

Facts this file rests on:
- Its text is one string: written as a list, some models imitate the list.                      (pi-ai 1.5.0)
- Content is null beside calls; vendors also write an empty string or leave it out.         (recorded traffic, 2026-11)
- Where null is refused, an empty string stands for it.                      (`null_content` of the dialect)
- What a reply says beyond that (`annotations`, null fields, the index of a call) is refused by strict vendors when it
  is sent back.                                                                     (LibreChat #6724, freellmapi #1093)

Content is read as: thinking, text, a refusal, fields that only this wire knows (see `fields`), calls. A call of a kind
that nobody knows is kept as a field is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
)
from segue.conversation.messages import Diagnostic
from segue.errors import EncodeError, Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_list, expect_object, join_texts, left_over, verbatim_of
from segue.protocols.openai_chat.calls import (
    decode_call,
    decode_old_call,
    encode_call,
    encode_old_call,
    is_old,
    read_signature,
    take_original,
    with_original,
    write_signature,
)
from segue.protocols.openai_chat.content import decode_part, encode_part, native_block, restore_value
from segue.protocols.openai_chat.message_fields import decode_fields, is_refusal, read_refusal, sent_back
from segue.protocols.openai_chat.reasoning import FIELDS, decode_reasoning, encode_reasoning, is_tagged
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.think_tags import split_tags, write_text, write_thinking
from segue.protocols.openai_chat.verbatim import MISSING, NOTHING, Block, fill_in

_THINKING: Final = FIELDS[0]
_DEFAULT: Final = frozenset({"role", "content", "tool_calls", _THINKING})
"""The keys that most turns have, and no others."""
_TYPELESS: Final[Extra] = {PROTOCOL: {VERBATIM: {"part": True}}}
"""The extra of a part of the content that has no type; without it a block is a field of the message."""


class Turn(NamedTuple):
    """An assistant message, read: its content, what else it said, how it was spelt, what was noteworthy."""

    content: tuple[AssistantContent, ...]
    left: dict[str, object]
    verbatim: dict[str, object]
    notes: tuple[Diagnostic, ...]


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_assistant(
    wire: Block, endpoint: Endpoint, path: Path, *, reply: bool, tool_names: Mapping[str, str]
) -> Turn:
    """Read an assistant message of a request or of a reply.

    Raises:
        DecodeError: content or calls are not what the protocol says.
    """
    notes: list[Diagnostic] = []
    if not reply and wire.keys() <= _DEFAULT:
        default = _fast_decode(wire, endpoint, path, tool_names, notes)
        if default is not None:
            return Turn(default, {}, {}, tuple(notes))
    known = {"role", "content"}
    verbatim: dict[str, object] = {}
    pieces: list[AssistantContent] = []
    thinking = decode_reasoning(wire, known, verbatim)
    if thinking is not None:
        pieces.append(thinking)
    pieces += _decode_content(wire.get("content", MISSING), endpoint, verbatim, (*path, "content"), reply=reply)
    pieces += decode_fields(wire, known, reply=reply)
    known.update(key for key in ("tool_calls", "function_call") if wire.get(key))
    pieces += _decode_calls(wire, endpoint, tool_names, path, notes)
    if reply:
        _take_originals(pieces, verbatim)
    left = {key: value for key, value in wire.items() if key not in known}
    if "extra_content" in left:
        _take_signature(left, pieces, endpoint)
    return Turn(tuple(pieces), left, verbatim, tuple(notes))


def _fast_decode(
    wire: Block, endpoint: Endpoint, path: Path, tool_names: Mapping[str, str], notes: list[Diagnostic]
) -> tuple[AssistantContent, ...] | None:
    """Read a turn that says something in each of its usual keys, the way we would; None when it does not."""
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
        for index, call in enumerate(cast("list[object]", calls)):
            pieces.append(decode_call(call, endpoint, tool_names, (*path, "tool_calls", index), notes))
    elif calls is not MISSING:
        return None
    return tuple(pieces)


def _decode_content(
    value: object, endpoint: Endpoint, verbatim: dict[str, object], path: Path, *, reply: bool
) -> Sequence[AssistantContent]:
    if isinstance(value, str):
        if not value and reply:
            verbatim["content"] = ""
            return ()
        if value == empty_content(endpoint):
            return ()
        if not endpoint.dialect.think_tags:
            return (TextContent(text=value),)
        pieces = split_tags(value)
        if not pieces:
            verbatim["content"] = value
        return pieces
    if value is None:
        if not endpoint.dialect.null_content:
            verbatim["content"] = None
        return ()
    if value is MISSING:
        verbatim["content"] = "absent"
        return ()
    if reply and (original := restore_value(value)) is not None:
        verbatim["value"] = value
        return (TextContent(text=original),)
    verbatim["content"] = "list"
    blocks = expect_list(value, path)
    return [_decode_part(block, (*path, index)) for index, block in enumerate(blocks)]


def _decode_part(block: object, path: Path) -> TextContent | NativeContent:
    part = decode_part(block, path)
    if part.kind == "native":
        return read_refusal(part.block) or (part if "type" in part.block else replace(part, extra=_TYPELESS))
    if part.kind == "text":
        return part
    # Only this wire puts media into an assistant's content; for others they are what the fallback says.
    spare = replace(part, extra=None)
    return NativeContent(protocol=PROTOCOL, block=dict(cast("Block", block)), fallback=(spare,))


def _decode_calls(
    wire: Block,
    endpoint: Endpoint,
    tool_names: Mapping[str, str],
    path: Path,
    notes: list[Diagnostic],
) -> list[ToolCall | NativeContent]:
    calls: list[ToolCall | NativeContent] = []
    if old := wire.get("function_call"):
        calls.append(decode_old_call(expect_object(old, (*path, "function_call")), tool_names, notes))
    if given := wire.get("tool_calls"):
        for index, call in enumerate(expect_list(given, (*path, "tool_calls"))):
            calls.append(decode_call(call, endpoint, tool_names, (*path, "tool_calls", index), notes))
    return calls


def _take_originals(pieces: list[AssistantContent], verbatim: dict[str, object]) -> None:
    original: dict[str, object] = {}
    for index, piece in enumerate(pieces):
        if piece.kind == "toolCall" and piece.extra is not None:
            pieces[index], aside = take_original(piece)
            if aside is not None:
                original[str(index)] = aside
    if original:
        verbatim["calls"] = original


def _take_signature(left: dict[str, object], pieces: list[AssistantContent], endpoint: Endpoint) -> None:
    """Put a seal on the message's text, if there is one to put it on."""
    texts = [index for index, piece in enumerate(pieces) if piece.kind == "text" and not is_refusal(piece)]
    if len(texts) != 1:
        return
    signature, rest = read_signature(left["extra_content"], endpoint)
    if signature is None:
        return
    pieces[texts[0]] = replace(cast("TextContent", pieces[texts[0]]), text_signature=signature)
    if rest is MISSING:
        del left["extra_content"]
    else:
        left["extra_content"] = rest


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_assistant(
    content: Sequence[AssistantContent],
    endpoint: Endpoint,
    path: Path,
    *,
    reply: bool = False,
    left: Mapping[str, object] = NOTHING,
    verbatim: Mapping[str, object] = NOTHING,
) -> dict[str, object]:
    """Write an assistant message.

    Raises:
        EncodeError: a block of another protocol, or arguments that are no JSON.
    """
    message: dict[str, object] = {"role": "assistant", "content": None}
    text: str | None = None
    thought: ThinkingContent | None = None
    calls: list[object] = []
    rare = bool(verbatim)
    try:
        for piece in content:
            match piece.kind:
                case "toolCall":
                    if piece.extra is None or not is_old(piece):
                        calls.append(encode_call(piece, endpoint))
                    else:
                        message["function_call"] = encode_old_call(piece)
                case "text":
                    text = piece.text if text is None else join_texts(text, piece.text)
                    rare = rare or piece.extra is not None or piece.text_signature is not None
                case "thinking" if thought is None and piece.thinking and piece.thinking_signature in FIELDS:
                    thought = piece
                case "native" if "tool_calls" in piece.block and piece.protocol == PROTOCOL:
                    calls += cast("list[object]", piece.block["tool_calls"])
                case _:
                    rare = True
    except EncodeError as error:
        raise EncodeError(error.reason, path=path) from error
    message["content"] = empty_content(endpoint) if text is None else text
    if rare:
        _encode_rare(message, content, _Writing(endpoint, path, left, verbatim, reply))
    elif thought is not None and thought.thinking_signature is not None:
        message[thought.thinking_signature] = thought.thinking
    if calls:
        message["tool_calls"] = calls
    return fill_in(message, left) if left else message


def empty_content(endpoint: Endpoint) -> str | None:
    """Give the content of a turn without words, unless its shape says otherwise."""
    return None if endpoint.dialect.null_content else ""


class _Writing(NamedTuple):
    """For whom a message is written, where it stands, what else it said, how it was spelt, whether it is a reply."""

    endpoint: Endpoint
    path: Path
    left: Mapping[str, object]
    verbatim: Mapping[str, object]
    reply: bool


def _encode_rare(message: dict[str, object], content: Sequence[AssistantContent], writing: _Writing) -> None:
    """Write what is not simply texts and calls: reasoning, tags, parts with marks, a list, nothing at all."""
    given: list[TextContent | ThinkingContent | NativeContent] = []
    thoughts: list[ThinkingContent] = []
    fields: list[NativeContent] = []
    refusals: list[str] = []
    signature: str | None = None
    as_list = writing.verbatim.get("content") == "list"
    for piece in content:
        match piece.kind:
            case "text":
                refused = verbatim_of(piece.extra, PROTOCOL).get("refusal")
                if refused == "field":
                    refusals.append(piece.text)
                    continue
                given.append(piece)
                as_list = as_list or refused == "part" or bool(left_over(piece.extra, PROTOCOL))
                signature = piece.text_signature or signature
            case "thinking":
                (given if is_tagged(piece, writing.endpoint) else thoughts).append(piece)
            case "native":
                block = native_block(piece, writing.path)
                if "type" in block or "part" in verbatim_of(piece.extra, PROTOCOL):
                    given.append(piece)
                    as_list = True
                elif "tool_calls" not in block:
                    fields.append(piece)
            case "toolCall":
                pass
    if as_list:
        message["content"] = [_part(piece, writing.path) for piece in given]
    else:
        _write_text(message, given, writing.verbatim, empty_content(writing.endpoint))
    if thoughts:
        encode_reasoning(message, thoughts, writing.endpoint, writing.verbatim)
    if refusals:
        message["refusal"] = "".join(refusals)
    for field in fields:
        message.update(field.block if writing.reply else sent_back(field))
    if signature is not None and writing.endpoint.dialect.google_signatures:
        message["extra_content"] = writing.left.get("extra_content")
        write_signature(message, signature)


def _write_text(
    message: dict[str, object],
    given: Sequence[TextContent | ThinkingContent | NativeContent],
    verbatim: Block,
    nothing: str | None,
) -> None:
    if given:
        text_pieces = _text_of(given[0])
        for earlier, piece in pairwise(given):
            if piece.kind == "text" and earlier.kind == "text" and piece.extra is None:
                text_pieces = join_texts(text_pieces, piece.text)
            else:
                text_pieces += _text_of(piece)
        message["content"] = verbatim["value"] if text_pieces == restore_value(verbatim.get("value")) else text_pieces
    elif verbatim.get("content") == "absent":
        del message["content"]
    else:
        message["content"] = verbatim.get("content", nothing)


def _text_of(piece: TextContent | ThinkingContent | NativeContent) -> str:
    match piece.kind:
        case "text":
            return write_text(piece)
        case "thinking":
            return write_thinking(piece)
        case "native":
            return ""


def _part(piece: TextContent | ThinkingContent | NativeContent, path: Path) -> dict[str, object]:
    if piece.kind == "thinking":
        return {"type": "text", "text": write_thinking(piece)}
    if piece.kind == "text" and is_refusal(piece):
        return fill_in({"type": "refusal", "refusal": piece.text}, left_over(piece.extra, PROTOCOL))
    return encode_part(piece, path)


def restore_calls(content: Sequence[AssistantContent], original: Mapping[str, Block]) -> list[AssistantContent]:
    """Give the calls of a reply back the spelling that was set aside."""
    return [
        with_original(piece, original[str(index)]) if piece.kind == "toolCall" and str(index) in original else piece
        for index, piece in enumerate(content)
    ]
