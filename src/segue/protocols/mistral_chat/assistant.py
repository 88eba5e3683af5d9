"""An assistant message, in a request and in a reply, both ways.

Facts this file rests on:
- Content is a string, or chunks of text and thinking; calls stand beside it. A thinking chunk holds a list of texts and
  references, an optional signature, and `closed`, which only a prefix says.       (mistralai 3.7.0, read 2026-11-15)
- Beside calls content is an empty string; clients also send an empty list.               (recorded traffic, 2026-11)
- A call may come without an id, which the SDK then spells "null".                      (mistralai 3.7.0; pi-ai 1.5.0)
- `prefix: true` makes the last message the beginning of the answer.    (Mistral documentation: prefix; mistralai 3.7.0)
- Where the provider ran tools itself, a choice has `messages` in place of a `message`: the calls, what came of them,
  the answer.                                                                                       (mistralai 3.7.0)

Content is read as: chunks in their order, then calls. A call that names no function, and a message of a tool that the
provider ran, are native content: the block of the first is `{"tool_calls": [call]}`, that of the second the whole
message with its `role`. Both are put back where they belong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

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
from segue.errors import Path
from segue.protocols.chat_family.chat import Turn
from segue.protocols.chat_family.message_content import encode_nothing, encode_text, is_string
from segue.protocols.kit.functions import decode_call, encode_call
from segue.protocols.kit.reading import expect_list, expect_object, left_over, native_block, verbatim_of
from segue.protocols.kit.retired_format import MISSING, Block, Wire, keep, object_of, put_back
from segue.protocols.mistral_chat.content import (
    decode_native,
    join_thoughts,
    listed_of,
)
from segue.protocols.mistral_chat.rules import PROTOCOL

_TEXT_KEYS: Final = frozenset({"type", "text"})
_THINKING_KEYS: Final = frozenset({"type", "thinking", "signature"})
_TURN_KEYS: Final = frozenset({"role", "content", "tool_calls", "prefix"})
_THINKING: Final = "thinking"


NO_ID: Final = frozenset({"", "null"})
"""What stands in the place of an id where a reply gave none: the SDK writes `null` as a text."""


def made_id(index: int) -> str:
    """Make an id for a call that came without one, as this wire wants them: nine letters and digits."""
    return f"call{index:05d}"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_assistant(wire: Block, path: Path, tool_names: Mapping[str, str], *, reply: bool) -> Turn:
    """Read an assistant message; how a reply spelt it is not kept here, but by who reads the reply.

    Raises:
        DecodeError: content or calls are not what the protocol says.
    """
    notes: list[Diagnostic] = []
    value = wire.get("content", MISSING)
    pieces = decode_text_content(value, (*path, "content"), reply=reply)
    verbatim: Wire = {}
    if not isinstance(value, str) and (not pieces or is_string(pieces)):
        verbatim["content"] = "absent" if value is MISSING else "null" if value is None else "list"
    calls = wire.get("tool_calls", MISSING)
    if calls is None:
        verbatim["tool_calls"] = "null"
    elif calls is not MISSING:
        listed = expect_list(calls, (*path, "tool_calls"))
        if not listed:
            verbatim["tool_calls"] = "empty"
        for index, call in enumerate(listed):
            given = expect_object(call, (*path, "tool_calls", index))
            read = decode_call(PROTOCOL, given, tool_names, notes, reply=reply)
            if read is None:
                pieces.append(NativeContent(protocol=PROTOCOL, block={"tool_calls": [given]}))
            elif reply and read.id in NO_ID:
                pieces.append(replace(read, id=made_id(index)))
            else:
                pieces.append(read)
    if "prefix" in wire:
        verbatim["prefix"] = wire["prefix"]
    extra = (
        None if reply or (not verbatim and wire.keys() <= _TURN_KEYS) else keep(PROTOCOL, wire, _TURN_KEYS, verbatim)
    )
    return Turn(tuple(pieces), extra, tuple(notes))


def decode_text_content(value: object, path: Path, *, reply: bool) -> list[AssistantContent]:
    """Read the content of an assistant message: a string, or chunks.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, str):
        return [TextContent(text=value)] if value else []
    if value is MISSING or value is None:
        return []
    chunks = enumerate(expect_list(value, path))
    return [_decode_chunk(expect_object(chunk, (*path, index)), reply=reply) for index, chunk in chunks]


def _decode_chunk(chunk: Block, *, reply: bool) -> AssistantContent:
    match chunk.get("type"):
        case "text" if isinstance(text := chunk.get("text"), str):
            extra = None if reply or len(chunk) == 2 else keep(PROTOCOL, chunk, _TEXT_KEYS)
            return TextContent(text=text, extra=extra)
        case "thinking":
            return decode_thinking(chunk, reply=reply) or decode_native(chunk)
        case _:
            return decode_native(chunk)


def decode_thinking(chunk: Block, *, reply: bool) -> ThinkingContent | None:
    """Read a thinking chunk; None when it holds something else than texts and references."""
    inner, signature = chunk.get(_THINKING), chunk.get("signature")
    texts = join_thoughts(inner)
    if texts is None or not (signature is None or isinstance(signature, str)):
        return None
    extra = _extra_of_thinking(chunk, inner, texts, reply=reply)
    return ThinkingContent(thinking=texts, thinking_signature=signature, extra=extra)


def _extra_of_thinking(chunk: Block, inner: object, texts: str, *, reply: bool) -> Extra | None:
    """Keep references as data, and other ways to write the same words as spelling."""
    beyond: Wire = {}
    verbatim: Wire = {}
    if inner != _default_thoughts(texts):
        if any(object_of(piece).get("type", "text") != "text" for piece in listed_of(inner)):
            beyond[_THINKING] = inner
        elif not reply:
            verbatim[_THINKING] = inner
    if chunk.get("closed") is False:
        beyond["closed"] = False
    elif "closed" in chunk and not reply:
        verbatim["closed"] = chunk["closed"]
    if "signature" in chunk and chunk["signature"] is None and not reply:
        verbatim["signature"] = None
    rest = {} if reply else {key: value for key, value in chunk.items() if key not in (*_THINKING_KEYS, "closed")}
    return keep(PROTOCOL, {**rest, **beyond}, (), verbatim)


def _default_thoughts(texts: str) -> list[object]:
    return [{"type": "text", "text": texts}] if texts else []


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_assistant(content: Sequence[AssistantContent], path: Path, extra: Extra | None = None) -> list[Wire]:
    """Write an assistant turn: one message, or several where the provider ran tools in between.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    default = _fast_encode(content) if extra is None else None
    if default is not None:
        return [default]
    out: list[Wire] = []
    chunks: list[Wire] = []
    calls: list[object] = []
    pieces: list[AssistantContent] = []  # those that became chunks
    for index, piece in enumerate(content):
        match piece.kind:
            case "text":
                chunks.append(encode_text(PROTOCOL, piece))
                pieces.append(piece)
            case "thinking":
                chunks.append(encode_thinking(piece))
                pieces.append(piece)
            case "toolCall":
                calls.append(encode_call(PROTOCOL, piece))
            case "native":
                block = native_block(PROTOCOL, piece, (*path, "content", index))
                if "role" in block:
                    if chunks or calls:
                        out.append(_message(chunks, calls, pieces, None))
                        chunks, calls, pieces = [], [], []
                    out.append(dict(block))
                elif "type" not in block and isinstance(block.get("tool_calls"), list):
                    calls += cast("list[object]", block["tool_calls"])
                else:
                    chunks.append(dict(block))
                    pieces.append(piece)
    if chunks or calls or not out:
        out.append(_message(chunks, calls, pieces, extra))
    return out


def _fast_encode(content: Sequence[AssistantContent]) -> Wire | None:
    """Write a turn of words, thoughts and calls that say nothing of how they were spelt; None when it is another."""
    chunks: list[Wire] = []
    calls: list[Wire] = []
    text: str | None = None
    for piece in content:
        if piece.extra is not None:
            return None
        if type(piece) is ToolCall:
            calls.append(encode_call(PROTOCOL, piece))
        elif type(piece) is TextContent:
            text = piece.text
            chunks.append({"type": "text", "text": text})
        elif type(piece) is ThinkingContent:
            chunks.append(encode_thinking(piece))
        else:
            return None
    texts: object = chunks
    if len(chunks) < 2 and (text is not None or not chunks):
        texts = text or ""
    return (
        {"role": "assistant", "content": texts, "tool_calls": calls}
        if calls
        else {"role": "assistant", "content": texts}
    )


def _message(chunks: list[Wire], calls: list[object], pieces: Sequence[AssistantContent], extra: Extra | None) -> Wire:
    verbatim = verbatim_of(extra, PROTOCOL)
    original = verbatim.get("content")
    wire: Wire = {"role": "assistant"}
    if not chunks:
        written = encode_nothing(original)
        if written is not MISSING:
            wire["content"] = written
    elif original != "list" and is_string(pieces):
        wire["content"] = chunks[0]["text"]
    else:
        wire["content"] = chunks
    if calls:
        wire["tool_calls"] = calls
    elif "tool_calls" in verbatim:
        wire["tool_calls"] = None if verbatim["tool_calls"] == "null" else []
    return put_back(wire, extra, PROTOCOL)


def encode_thinking(content: ThinkingContent) -> Wire:
    """Write a thinking chunk."""
    wire: Wire = {"type": _THINKING, _THINKING: _default_thoughts(content.thinking)}
    if content.thinking_signature is not None:
        wire["signature"] = content.thinking_signature
    if content.extra is None:
        return wire
    left, verbatim = left_over(content.extra, PROTOCOL), verbatim_of(content.extra, PROTOCOL)
    received = left.get(_THINKING, verbatim.get(_THINKING))
    if received is not None and join_thoughts(received) == content.thinking:
        wire[_THINKING] = received
    if "closed" in verbatim:
        wire["closed"] = verbatim["closed"]
    if "signature" in verbatim:
        wire.setdefault("signature", None)
    return put_back(wire, content.extra, PROTOCOL)
