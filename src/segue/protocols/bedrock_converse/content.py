"""Bedrock content blocks, both ways.

Choices that content keeps (see `kit.verbatim`):
- `field`: "json" for a text of a tool result that was received as a JSON value; the default is "text".
- `signature`: whether the signature of reasoning is written; the default is what the model accepts.
- `encoding`: "base64" for redacted reasoning whose bytes are not text, so that `thinking_signature` is their base64;
  the default is "text". A reply keeps it as well, because the request that returns the block needs it.

Fast path of a stream: deltas that only extend an open block, which are most of its events, and the ends of blocks.

An event with any other key does not fit and is decoded by `stream`, so this file decides nothing about meaning.

Facts:
- A block is a union: an object with exactly one key, which names its type.
                                                                     (botocore 1.44.0 service model, read 2026-11-15)
- Reasoning of Claude replays only with its signature, unchanged; with its text withheld it is still a block, and the
  text has to be there, if empty.                                  (AWS ReasoningTextBlock; strands #2704)
- The bytes of redacted reasoning are the text that Anthropic's own wire calls `data`.   (pydantic-ai, read 2026-11-15)
- Every model but Claude refuses a signature: "This model doesn't support the
  reasoningContent.reasoningText.signature field".                             (strands #682, pi #1505)
- `toolUse.input` is an object. Replies of Claude have `type: tool_use` in it, which a request may not have.
                                                                            (service model; recorded traffic, 2026-11)
- Text with its sources (`citationsContent`) arrives as text and citations in a stream.          (service model)
- A delta has one of `text`, `toolUse` with its `input`, and `reasoningContent`, which has text, a signature or bytes;
  next to it is the index of its block, and padding.     (botocore 1.44.0 service model; recorded traffic, 2026-11)
- Decoding an event into these structs takes half the time of decoding it into dicts.           (measured 2026-11-15)
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeAlias, TypeVar, assert_never, cast, final

import msgspec
from msgspec.structs import replace

from segue.conversation.arguments import read_arguments
from segue.conversation.content import (
    AssistantContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.native import (
    SERVER_CALL,
    DocumentNames,
    decode_file,
    decode_image,
    decode_native,
    encode_file,
    encode_image,
    encode_mark,
    json_text,
    name_documents,
    restore_block,
)
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.sdk import without_bytes
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, MISSING, Block, Wire, detached, object_of
from segue.protocols.kit.reading import native_block
from segue.protocols.kit.streaming import ClosedForm
from segue.protocols.kit.verbatim import choose, chosen, keep

MEMBERS: Final = frozenset(
    {
        "image",
        "document",
        "video",
        "audio",
        "toolUse",
        "toolResult",
        "guardContent",
        "cachePoint",
        "reasoningContent",
        "citationsContent",
        "searchResult",
        "toolAddition",
        "toolRemoval",
    }
)
"""The types of a block other than text."""
CITATIONS: Final = "citations"

_FIELD: Final = "field"
_SIGNATURE: Final = "signature"
_ENCODING: Final = "encoding"

_TEXT_KEYS: Final = frozenset({"type"})
_CALL_KEYS: Final = frozenset({"input"})
_REASONING_KEYS: Final = frozenset({"signature"})
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2}")


def kind_of(block: Block) -> str:
    """Return the type of a block; an empty text for one that is not a union and stays native."""
    if len(block) == 1:
        return next(iter(block))
    # Some clients write a text as Anthropic's own wire does, with a type.
    return "text" if "text" in block and block.get("type", "text") == "text" and MEMBERS.isdisjoint(block) else ""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_system_block(block: Block) -> TextContent | NativeContent:
    """Read a block of the system prompt."""
    text = block.get("text")
    if isinstance(text, str) and kind_of(block) == "text":
        if len(block) == 1:
            return TextContent(text=text)
        return TextContent(text=text, extra=keep(PROTOCOL, block, {"text": text}, known=_TEXT_KEYS))
    return decode_native(block)


def decode_user_block(block: Block, names: DocumentNames) -> UserContent:
    """Read a block of a user turn or of a tool result; tool results themselves are messages, not content."""
    read: UserContent | None = None
    match kind_of(block):
        case "text":
            return decode_system_block(block)
        case "json":
            extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose(_FIELD, "text", "json"))
            return TextContent(text=json_text(without_bytes(block["json"])), extra=extra)
        case "image":
            read = decode_image(block["image"], names)
        case "document" | "video" | "audio" as kind:
            read = decode_file(kind, block[kind], names)
        case _:
            pass
    if read is None:
        read = decode_native(block)
        name_documents(block, names)
    return read


def decode_assistant_block(block: Block, endpoint: Endpoint, *, reply: bool = False) -> AssistantContent:
    """Read a block of an assistant turn.

    Content of a reply keeps no format: a request returns it in the default format, whatever the reply looked like.
    """
    read: AssistantContent | None = None
    match kind_of(block):
        case "text":
            if reply and isinstance(text := block["text"], str):
                return TextContent(text=text)
            return decode_system_block(block)
        case "toolUse":
            read = decode_call(object_of(block["toolUse"]), reply=reply)
        case "reasoningContent":
            read = decode_reasoning(object_of(block["reasoningContent"]), endpoint, reply=reply)
        case "citationsContent":
            read = _decode_cited(object_of(block["citationsContent"]))
        case _:
            pass
    return decode_native(block) if read is None else read


def decode_call(call: Block, *, reply: bool = False) -> ToolCall | None:
    """Read a call; None when it has no id or name, or is one that the provider runs."""
    call_id, name, given = call.get("toolUseId"), call.get("name"), call.get("input")
    if reply and not isinstance(call_id, str):
        call_id = ""
    if not isinstance(call_id, str) or not isinstance(name, str) or call.get("type") == SERVER_CALL:
        return None
    is_object = isinstance(given, dict)
    parsed = read_arguments(given)
    decoded = ToolCall(id=call_id, name=name, arguments=parsed.arguments, arguments_text=parsed.text)
    if reply or (is_object and len(call) == 3):
        return decoded
    default: Wire = {"toolUseId": call_id, "name": name, "input": parsed.arguments}
    received = call if is_object else object_of(without_bytes(call))
    return replace(decoded, extra=keep(PROTOCOL, received, default, known=_CALL_KEYS))


def decode_reasoning(content: Block, endpoint: Endpoint, *, reply: bool = False) -> ThinkingContent | None:
    """Read reasoning, readable or redacted; None when it is neither."""
    if len(content) != 1:
        return None
    if "redactedContent" in content:
        blob = without_bytes(content["redactedContent"])
        return decode_redacted(blob) if isinstance(blob, str) else None
    wire = object_of(content.get("reasoningText"))
    text, signature = wire.get("text"), wire.get("signature")
    if not isinstance(text, str) and ("text" in wire or not signature):
        return None
    if not (signature is None or isinstance(signature, str)):
        return None
    thinking = ThinkingContent(thinking=text if isinstance(text, str) else "", thinking_signature=signature or None)
    is_signed = endpoint.rules.reasoning_replay == "signed"
    if reply or (is_signed and signature and text is not None and len(wire) == 2):
        return thinking
    choices = choose(_SIGNATURE, is_signed, bool(signature))
    default = _default_reasoning(thinking, with_signature=bool(signature))
    extra = keep(PROTOCOL, wire, default, known=_REASONING_KEYS, choices=choices)
    return ThinkingContent(thinking=thinking.thinking, thinking_signature=thinking.thinking_signature, extra=extra)


def decode_redacted(blob: str) -> ThinkingContent:
    """Read redacted reasoning: the text that its bytes are, else their base64."""
    try:
        signature = base64.b64decode(blob, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        signature = blob
    if _encode_blob(signature) == blob:
        return ThinkingContent(thinking="", thinking_signature=signature, redacted=True)
    extra = keep(PROTOCOL, EMPTY, EMPTY, choices=choose(_ENCODING, "text", "base64"))
    return ThinkingContent(thinking="", thinking_signature=blob, redacted=True, extra=extra)


def _encode_blob(signature: str) -> str:
    """Encode a signature as base64, unless it is that base64 already, as stored by other libraries."""
    try:
        inner = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        inner = b""
    if _BASE64.fullmatch(inner):
        return signature
    return base64.b64encode(signature.encode("utf-8", "surrogatepass")).decode("ascii")


def _decode_cited(cited: Block) -> TextContent | None:
    """Read a text with its sources; None when it is not one text with a list of them."""
    content, citations = cited.get("content"), cited.get(CITATIONS)
    if len(cited) != 2 or not isinstance(citations, list) or not isinstance(content, list):
        return None
    pieces = cast("list[object]", content)
    only = object_of(pieces[0]) if len(pieces) == 1 else EMPTY
    text = only.get("text")
    if not isinstance(text, str) or len(only) != 1:
        return None
    return TextContent(text=text, extra={PROTOCOL: {CITATIONS: without_bytes(cast("object", citations))}})


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_user_blocks(pieces: Sequence[UserContent], names: DocumentNames) -> list[Wire]:
    """Write the content of a user turn, of a tool result or of the system prompt, with its cache points.

    Raises:
        EncodeError: the wire does not support a piece.
    """
    blocks: list[Wire] = []
    for piece in pieces:
        if type(piece) is TextContent and piece.extra is None:
            blocks.append({"text": piece.text})
        else:
            blocks.append(encode_user_content(piece, names))
        if piece.cache_mark is not None:
            blocks.append(encode_mark(piece.cache_mark))
    return blocks


def encode_user_content(content: UserContent, names: DocumentNames) -> Wire:
    """Write content of a user turn, of a tool result or of the system prompt.

    Raises:
        EncodeError: the wire does not support it.
    """
    match content.kind:
        case "text":
            return _encode_text(content)
        case "image":
            return encode_image(content, names)
        case "file":
            return encode_file(content, names)
        case "native":
            return _encode_native(content, names)
        case _:
            assert_never(content)


def encode_assistant_blocks(
    pieces: Sequence[AssistantContent], endpoint: Endpoint, names: DocumentNames, *, reply: bool = False
) -> list[Wire]:
    """Write the content of an assistant turn, with its cache points.

    Raises:
        EncodeError: the wire does not support a piece, or reasoning lacks a required signature.
    """
    blocks: list[Wire] = []
    is_signed, owned = endpoint.rules.reasoning_replay == "signed", endpoint.owned
    for piece in pieces:
        # The default formats of calls, text and signed reasoning are written here: they are most of a history.
        if piece.extra is not None:
            blocks.append(encode_assistant_content(piece, endpoint, names, reply=reply))
        elif type(piece) is ToolCall:
            arguments = piece.arguments if isinstance(piece.arguments, dict) else dict(piece.arguments)
            if owned:
                arguments = detached(arguments)
            blocks.append({"toolUse": {"toolUseId": piece.id, "name": piece.name, "input": arguments}})
        elif type(piece) is TextContent:
            blocks.append({"text": piece.text})
        elif type(piece) is ThinkingContent and is_signed and piece.thinking_signature and not piece.redacted:
            wire = {"text": piece.thinking, "signature": piece.thinking_signature}
            blocks.append({"reasoningContent": {"reasoningText": wire}})
        else:
            blocks.append(encode_assistant_content(piece, endpoint, names, reply=reply))
        if piece.cache_mark is not None:
            blocks.append(encode_mark(piece.cache_mark))
    return blocks


def encode_assistant_content(
    content: AssistantContent, endpoint: Endpoint, names: DocumentNames, *, reply: bool = False
) -> Wire:
    """Write content of an assistant turn.

    Raises:
        EncodeError: the wire does not support it, or reasoning lacks a required signature.
    """
    match content.kind:
        case "text":
            return _encode_text(content)
        case "toolCall":
            return {"toolUse": _encode_call(content)}
        case "thinking":
            return {"reasoningContent": _encode_reasoning(content, endpoint, reply=reply)}
        case "native":
            return _encode_native(content, names)
        case _:
            assert_never(content)


def _encode_text(text: TextContent) -> Wire:
    part = text.extra.get(PROTOCOL) if text.extra is not None else None
    if part is None:
        return {"text": text.text}
    if CITATIONS in part:
        return {"citationsContent": {"content": [{"text": text.text}], CITATIONS: part[CITATIONS]}}
    if chosen(text.extra, PROTOCOL, _FIELD, "text") == "json":
        value = _parse_json(text.text)
        if value is not MISSING:
            return {"json": value}
    return restore_block({"text": text.text}, text.extra)


def _parse_json(text: str) -> object:
    try:
        return cast("object", json.loads(text))
    except (ValueError, RecursionError):
        return MISSING


def _encode_call(call: ToolCall) -> Wire:
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    return restore_block({"toolUseId": call.id, "name": call.name, "input": arguments}, call.extra)


def _encode_reasoning(content: ThinkingContent, endpoint: Endpoint, *, reply: bool) -> Wire:
    signature, extra = content.thinking_signature, content.extra
    if content.redacted:
        if signature is None:
            raise EncodeError(
                "redacted reasoning needs its data in `thinking_signature`; remove the content or project the history"
            )
        is_base64 = chosen(extra, PROTOCOL, _ENCODING, "text") == "base64"
        return {"redactedContent": signature if is_base64 else _encode_blob(signature)}
    is_signed = endpoint.rules.reasoning_replay == "signed"
    with_signature = reply or chosen(extra, PROTOCOL, _SIGNATURE, is_signed) is True
    if with_signature and is_signed and not signature and not reply:
        # The API refuses it; projection turns it into text.
        raise EncodeError(f"{endpoint.model.id} requires a signature on reasoning; remove it or project the history")
    wire = _default_reasoning(content, with_signature=with_signature)
    return {"reasoningText": wire if extra is None else restore_block(wire, extra)}


def _default_reasoning(content: ThinkingContent, *, with_signature: bool) -> Wire:
    wire: Wire = {"text": content.thinking}
    if with_signature and content.thinking_signature:
        wire["signature"] = content.thinking_signature
    return wire


def _encode_native(content: NativeContent, names: DocumentNames) -> Wire:
    block = native_block(PROTOCOL, content)
    name_documents(block, names)
    return block if isinstance(block, dict) else dict(block)


@final
class TextPart(ClosedForm, frozen=True, gc=False):
    """More text, or more reasoning without its signature."""

    text: str


class _InputPart(ClosedForm, frozen=True, gc=False):
    text: str = msgspec.field(name="input")


class CallPart(ClosedForm, frozen=True, gc=False):
    """More arguments of a call."""

    inner: _InputPart = msgspec.field(name="toolUse")


class ReasoningPart(ClosedForm, frozen=True, gc=False):
    """More reasoning."""

    inner: TextPart = msgspec.field(name="reasoningContent")


_Part = TypeVar("_Part", TextPart, CallPart, ReasoningPart)


class BlockDelta(msgspec.Struct, Generic[_Part], frozen=True, gc=False):
    """The delta, and the index of the block that it extends; padding next to them is skipped."""

    delta: _Part
    index: int = msgspec.field(name="contentBlockIndex")


class _BlockStop(msgspec.Struct, frozen=True, gc=False):
    index: int = msgspec.field(name="contentBlockIndex")


DeltaDecoder: TypeAlias = Callable[[bytes], BlockDelta[TextPart] | BlockDelta[CallPart] | BlockDelta[ReasoningPart]]

DELTA_DECODERS: Final[Mapping[str, DeltaDecoder]] = {
    "text": msgspec.json.Decoder(BlockDelta[TextPart]).decode,
    "toolUse": msgspec.json.Decoder(BlockDelta[CallPart]).decode,
    "reasoningContent": msgspec.json.Decoder(BlockDelta[ReasoningPart]).decode,
}
"""The type of a block -> the decoder of its deltas."""
decode_stop: Final = msgspec.json.Decoder(_BlockStop).decode
