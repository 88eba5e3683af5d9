"""Assistant messages, in requests and in replies, both ways.

Facts:
- Content is a string, or chunks of text and thinking; calls are in their own key. A thinking chunk holds a list
  of texts and references, an optional signature, and `closed`, which is false only in a prefix.
                                                                                (mistralai 3.7.0, read 2026-11-15)
- With calls content is an empty string; clients also send an empty list.               (recorded traffic, 2026-11)
- A call may come without an id, which the SDK writes as the text "null".               (mistralai 3.7.0; pi-ai 1.5.0)
- `prefix: true` makes the model continue the last message.             (Mistral documentation: prefix; mistralai 3.7.0)
- Where the provider ran tools itself, a choice has `messages` in place of a `message`: the calls, their results, the
  answer.                                                                                           (mistralai 3.7.0)

Content is read as: chunks in their order, then calls. A call that names no function, and a message of a tool that the
provider ran, are native content: the block of the first is `{"tool_calls": [call]}`, that of the second the whole
message with its `role`. Both are written back in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, NativeContent, TextContent, ThinkingContent, ToolCall
from segue.conversation.messages import Diagnostic
from segue.errors import Path
from segue.protocols.families.chat import ChatTurn
from segue.protocols.families.chat_content import (
    decode_text,
    encode_text,
    is_block,
    is_call,
    is_default,
    join_blocks,
    keep_place,
)
from segue.protocols.families.functions import decode_call, encode_call
from segue.protocols.kit.json_values import MISSING, Block, Wire, object_of
from segue.protocols.kit.reading import expect_objects, native_block
from segue.protocols.kit.verbatim import data_of, keep, restore
from segue.protocols.mistral_chat.content import decode_native, join_thoughts
from segue.protocols.mistral_chat.rules import PROTOCOL

_THINKING: Final = "thinking"

NO_ID: Final = frozenset({"", "null"})
"""What a reply has in place of an id where it gives none: the SDK writes `null` as a text."""


def made_id(index: int) -> str:
    """Make an id for a call that came without one, in the provider's format: nine letters and digits."""
    return f"call{index:05d}"


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_assistant(wire: Block, path: Path, tool_names: Mapping[str, str], *, reply: bool) -> ChatTurn:
    """Read the content of an assistant message; in a reply it has no format.

    Raises:
        DecodeError: content or calls are of another type than the protocol defines.
    """
    notes: list[Diagnostic] = []
    pieces = decode_chunks(wire.get("content", MISSING), (*path, "content"), reply=reply)
    calls = wire.get("tool_calls")
    listed = expect_objects(calls, (*path, "tool_calls")) if calls is not None else ()
    for index, given in enumerate(listed):
        decoded = decode_call(PROTOCOL, given, tool_names, notes, reply=reply)
        if decoded is None:
            pieces.append(NativeContent(protocol=PROTOCOL, block={"tool_calls": [given]}))
        elif reply and decoded.id in NO_ID:
            pieces.append(replace(decoded, id=made_id(index)))
        else:
            pieces.append(decoded)
    return ChatTurn(tuple(pieces), tuple(notes))


def keep_assistant(wire: Block, content: Sequence[AssistantContent], path: Path, *, prefix: bool) -> Extra | None:
    """Return the `extra` of an assistant message of a request.

    `prefix` is whether it is written with one by default.
    """
    calls, value = wire.get("tool_calls"), wire.get("content", MISSING)
    count = len(content) - len(cast("Sequence[object]", calls)) if calls else len(content)
    if not prefix and len(wire) == (3 if calls else 2) and is_default(value, content[:count]):
        return None
    default = encode_assistant(content, path, prefix=prefix)[-1]
    known = ("tool_calls", "prefix") if isinstance(wire.get("prefix"), bool) else ("tool_calls",)
    return keep(PROTOCOL, wire, default, known)


def decode_chunks(value: object, path: Path, *, reply: bool) -> list[AssistantContent]:
    """Read the content of an assistant message: a string, or chunks.

    Raises:
        DecodeError: it is something else.
    """
    if isinstance(value, str):
        return [TextContent(text=value)] if value else []
    if value is MISSING or value is None:
        return []
    return [_decode_chunk(chunk, reply=reply) for chunk in expect_objects(value, path)]


def _decode_chunk(chunk: Block, *, reply: bool) -> AssistantContent:
    if chunk.get("type") == _THINKING:
        return decode_thinking(chunk, reply=reply) or keep_place(PROTOCOL, decode_native(chunk))
    text = decode_text(PROTOCOL, chunk)
    if text is None:
        return keep_place(PROTOCOL, decode_native(chunk))
    return TextContent(text=text.text) if reply else text


def decode_thinking(chunk: Block, *, reply: bool) -> ThinkingContent | None:
    """Read a thinking chunk; None when it holds something else than texts and references.

    References, and that a prefix ends inside the thinking (`closed`), are data, in replies too: they are sent back.
    """
    inner, signature = chunk.get(_THINKING), chunk.get("signature")
    text = join_thoughts(inner)
    if text is None or not (signature is None or isinstance(signature, str)):
        return None
    data: Wire = {}
    if not isinstance(inner, str) and any(
        object_of(piece).get("type", "text") != "text" for piece in cast("Sequence[object]", inner)
    ):
        data[_THINKING] = inner
    if chunk.get("closed") is False:
        data["closed"] = False
    extra: Extra | None = {PROTOCOL: data} if data else None
    content = ThinkingContent(thinking=text, thinking_signature=signature, extra=extra)
    if reply:
        return content
    known = ("signature", "closed") if chunk.get("closed") is True else ("signature",)
    kept = keep(PROTOCOL, chunk, encode_thinking(content), known)
    return content if kept is None else replace(content, extra={PROTOCOL: {**data, **kept[PROTOCOL]}})


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_assistant(
    content: Sequence[AssistantContent], path: Path, extra: Extra | None = None, *, prefix: bool = False
) -> list[Wire]:
    """Write an assistant turn: one message, or several where the provider ran tools in between.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    plain = _encode_plain(content) if extra is None and not prefix else None
    if plain is not None:
        return [plain]
    out: list[Wire] = []
    chunks: list[Wire] = []
    calls: list[object] = []
    for index, piece in enumerate(content):
        match piece.kind:
            case "text":
                chunks.append(encode_text(PROTOCOL, piece))
            case "thinking":
                chunks.append(encode_thinking(piece))
            case "toolCall":
                calls.append(encode_call(PROTOCOL, piece))
            case "native":
                block = native_block(PROTOCOL, piece, (*path, "content", index))
                if "role" in block and not is_block(PROTOCOL, piece):
                    if chunks or calls:
                        out.append(_message(chunks, calls))
                        chunks, calls = [], []
                    out.append(dict(block))
                elif is_call(PROTOCOL, piece):
                    calls += cast("list[object]", block["tool_calls"])
                else:
                    chunks.append(dict(block))
    if chunks or calls or not out:
        wire = _message(chunks, calls)
        if prefix:
            wire["prefix"] = True
        out.append(wire if extra is None else restore(wire, extra, PROTOCOL))
    return out


def _encode_plain(content: Sequence[AssistantContent]) -> Wire | None:
    """Write a turn of texts, thinking and calls without any `extra`; None when it is another."""
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
    value: object = chunks
    if len(chunks) < 2 and (text is not None or not chunks):
        value = text or ""
    wire: Wire = {"role": "assistant", "content": value}
    if calls:
        wire["tool_calls"] = calls
    return wire


def _message(chunks: list[Wire], calls: list[object]) -> Wire:
    wire: Wire = {"role": "assistant", "content": join_blocks(chunks)}
    if calls:
        wire["tool_calls"] = calls
    return wire


def encode_thinking(content: ThinkingContent) -> Wire:
    """Write a thinking chunk, with its references if the text is unchanged."""
    inner: object = [{"type": "text", "text": content.thinking}] if content.thinking else []
    extra = content.extra
    if extra is not None:
        received = data_of(extra, PROTOCOL).get(_THINKING)
        if received is not None and join_thoughts(received) == content.thinking:
            inner = received
    wire: Wire = {"type": _THINKING, _THINKING: inner}
    if content.thinking_signature is not None:
        wire["signature"] = content.thinking_signature
    return wire if extra is None else restore(wire, extra, PROTOCOL)
