"""Bedrock content blocks, both ways.

Facts this file rests on:
- A block is a union: an object with exactly one key, which says what it is.
                                                                     (botocore 1.44.0 service model, read 2026-11-15)
- Reasoning of Claude replays only with its signature, unchanged; with its text withheld it is still a block, and the
  text has to be there, if empty.                                  (AWS ReasoningTextBlock; strands #2704)
- The bytes of redacted reasoning are the text that Anthropic's own wire calls `data`.   (pydantic-ai, read 2026-11-15)
- Everyone but Claude refuses a signature: "This model doesn't support the reasoningContent.reasoningText.signature
  field".                                                                      (strands #682, pi #1505)
- `toolUse.input` is an object. Replies of Claude say `type: tool_use` in it, which a request may not.
                                                                            (service model; recorded traffic, 2026-11)
- Words with their sources (`citationsContent`) come as text and citations in a stream.          (service model)
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Final, assert_never, cast

from segue.conversation.arguments import parse_arguments
from segue.conversation.content import (
    AssistantContent,
    Extra,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.errors import EncodeError
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.media import decode_file, decode_image, encode_file, encode_image
from segue.protocols.bedrock_converse.native import decode_native, json_text, name_documents
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.verbatim import (
    NOTHING,
    Block,
    Wire,
    is_of_reply_alone,
    keep,
    mark_of,
    object_of,
    plain,
    put_back,
)
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, native_block, verbatim_of

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
"""What a block can be besides a text."""
SERVER_CALL: Final = "server_tool_use"
CITATIONS: Final = "citations"

_TEXT_KEYS: Final = frozenset({"text"})
_CALL_KEYS: Final = frozenset({"toolUseId", "name", "input"})
_REASONING_KEYS: Final = frozenset({"text", "signature"})
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+={0,2}")


def kind_of(block: Block) -> str:
    """Give the member that a block is; nothing for one that is no union, which only its own wire understands."""
    if len(block) == 1:
        return next(iter(block))
    # Some write a text the way Anthropic's own wire does, with a type.
    return "text" if "text" in block and block.get("type", "text") == "text" and MEMBERS.isdisjoint(block) else ""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_system_block(block: Block) -> TextContent | NativeContent:
    """Read a block of instructions."""
    text = block.get("text")
    if kind_of(block) == "text" and isinstance(text, str):
        return TextContent(text=text, extra=None if len(block) == 1 else keep(block, _TEXT_KEYS))
    return decode_native(block)


def decode_user_block(block: Block, names: DocumentNames) -> UserContent:
    """Read a block of a user turn or of a tool's result; results themselves are messages, not content."""
    read: UserContent | None = None
    match kind_of(block):
        case "text":
            return decode_system_block(block)
        case "json":
            value = plain(block["json"])
            return TextContent(text=json_text(value), extra={PROTOCOL: {VERBATIM: {"json": value}}})
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


def decode_assistant_block(
    block: Block, endpoint: Endpoint, tool_names: Mapping[str, str], *, reply: bool = False
) -> AssistantContent:
    """Read a block of an assistant turn; `tool_names` maps the wire's names of tools back to the given ones."""
    read: AssistantContent | None = None
    match kind_of(block):
        case "text" if isinstance(text := block["text"], str):
            read = TextContent(text=text, extra=None if len(block) == 1 else keep(block, _TEXT_KEYS, reply=reply))
        case "toolUse":
            read = decode_call(object_of(block["toolUse"]), tool_names, reply=reply)
        case "reasoningContent":
            read = decode_reasoning(object_of(block["reasoningContent"]), endpoint, reply=reply)
        case "citationsContent":
            read = _decode_cited(object_of(block["citationsContent"]))
        case _:
            pass
    return decode_native(block) if read is None else read


def decode_call(call: Block, tool_names: Mapping[str, str], *, reply: bool = False) -> ToolCall | None:
    """Read a call. Input that is no object is read as far as it can be, and kept as it was."""
    call_id, name, given = call.get("toolUseId"), call.get("name"), call.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str) or call.get("type") == SERVER_CALL:
        return None
    name = tool_names.get(name, name)
    if isinstance(given, dict):
        extra = None if len(call) == 3 else keep(call, _CALL_KEYS, reply=reply)
        return ToolCall(id=call_id, name=name, arguments=cast("Wire", given), extra=extra)
    extra = keep(call, _CALL_KEYS, {"input": plain(given)} if "input" in call else {"no_input": True}, reply=reply)
    return ToolCall(id=call_id, name=name, arguments=best_effort(given), extra=extra)


def best_effort(given: object) -> Mapping[str, object]:
    """Read an input that came as text; anything else that is no object says nothing."""
    return parse_arguments(given).arguments if isinstance(given, str) else object_of(given)


def decode_reasoning(content: Block, endpoint: Endpoint, *, reply: bool = False) -> ThinkingContent | None:
    """Read reasoning, readable or redacted; None when it is neither."""
    if len(content) != 1:
        return None
    if "redactedContent" in content:
        blob = plain(content["redactedContent"])
        return decode_redacted(blob) if isinstance(blob, str) else None
    received = object_of(content.get("reasoningText"))
    text, signature = received.get("text"), received.get("signature")
    if not isinstance(text, str) and ("text" in received or not signature):
        return None
    if not (signature is None or isinstance(signature, str)):
        return None
    verbatim = Wire()
    if text is None:
        verbatim["textless"] = "reply" if reply else "request"
    known = _REASONING_KEYS
    if not signature and "signature" in received:
        if reply:
            known = _TEXT_KEYS
        else:
            verbatim["signature"] = signature
    elif not reply and bool(signature) is not (endpoint.rules.reasoning_replay == "signed"):
        verbatim["signed"] = bool(signature)
    is_plain = not verbatim and len(received) == 2 and bool(signature)
    extra = None if is_plain else keep(received, known, verbatim, reply=reply)
    texts = text if isinstance(text, str) else ""
    return ThinkingContent(thinking=texts, thinking_signature=signature or None, extra=extra)


def decode_redacted(blob: str) -> ThinkingContent:
    """Read redacted reasoning: the text that its bytes are, else their base64."""
    try:
        wire_signature = base64.b64decode(blob, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        wire_signature = blob
    if _blob_of(wire_signature) == blob:
        return ThinkingContent(thinking="", thinking_signature=wire_signature, redacted=True)
    extra: Extra = {PROTOCOL: {VERBATIM: {"blob": True}}}
    return ThinkingContent(thinking="", thinking_signature=blob, redacted=True, extra=extra)


def _blob_of(wire_signature: str) -> str:
    """Give the base64 of a seal's bytes. Stored histories of others hold that base64 itself: base64 of base64."""
    try:
        inner = base64.b64decode(wire_signature, validate=True)
    except (binascii.Error, ValueError):
        inner = b""
    return (
        wire_signature
        if _BASE64.fullmatch(inner)
        else base64.b64encode(wire_signature.encode("utf-8", "surrogatepass")).decode("ascii")
    )


def _decode_cited(cited: Block) -> TextContent | None:
    """Read words with their sources; None when it is not one text with a list of them."""
    content, citations = cited.get("content"), cited.get(CITATIONS)
    if len(cited) != 2 or not isinstance(citations, list) or not isinstance(content, list):
        return None
    pieces = cast("list[object]", content)
    only = object_of(pieces[0]) if len(pieces) == 1 else NOTHING
    text = only.get("text")
    if not isinstance(text, str) or len(only) != 1:
        return None
    return TextContent(text=text, extra={PROTOCOL: {CITATIONS: plain(cast("object", citations))}})


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_user_blocks(pieces: Sequence[UserContent], names: DocumentNames) -> list[Wire]:
    """Write the content of a user turn, of a tool's result or of instructions; plain text, which is most, at once.

    Raises:
        EncodeError: the wire has no word for a piece.
    """
    blocks: list[Wire] = []
    for piece in pieces:
        if type(piece) is TextContent and piece.extra is None:
            blocks.append({"text": piece.text})
            continue
        blocks.append(encode_user_content(piece, names))
        mark = mark_of(piece.extra)
        if mark is not None:
            blocks.append({"cachePoint": mark})
    return blocks


def encode_user_content(content: UserContent, names: DocumentNames) -> Wire:
    """Write content of a user turn, of a tool's result or of instructions.

    Raises:
        EncodeError: the wire has no word for it.
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
    """Write the content of an assistant turn; what is most, at once.

    Raises:
        EncodeError: the wire has no word for a piece, or reasoning lacks the signature it demands.
    """
    blocks: list[Wire] = []
    signs = endpoint.rules.reasoning_replay == "signed"
    for piece in pieces:
        extra = piece.extra
        if extra is not None and (reply or not is_of_reply_alone(extra)):
            blocks.append(encode_assistant_content(piece, endpoint, names, reply=reply))
            mark = mark_of(extra)
            if mark is not None:
                blocks.append({"cachePoint": mark})
        elif type(piece) is ToolCall:
            arguments = piece.arguments if isinstance(piece.arguments, dict) else dict(piece.arguments)
            blocks.append({"toolUse": {"toolUseId": piece.id, "name": piece.name, "input": arguments}})
        elif type(piece) is TextContent:
            blocks.append({"text": piece.text})
        elif type(piece) is ThinkingContent and signs and piece.thinking_signature and not piece.redacted:
            received = {"text": piece.thinking, "signature": piece.thinking_signature}
            blocks.append({"reasoningContent": {"reasoningText": received}})
        else:
            blocks.append(encode_assistant_content(piece, endpoint, names, reply=reply))
    return blocks


def encode_assistant_content(
    content: AssistantContent, endpoint: Endpoint, names: DocumentNames, *, reply: bool = False
) -> Wire:
    """Write content of an assistant turn.

    Raises:
        EncodeError: the wire has no word for it, or reasoning lacks the signature it demands.
    """
    match content.kind:
        case "text":
            return _encode_text(content, reply=reply)
        case "toolCall":
            return _encode_call(content, reply=reply)
        case "thinking":
            return {"reasoningContent": _encode_reasoning(content, endpoint, reply=reply)}
        case "native":
            return _encode_native(content, names)
        case _:
            assert_never(content)


def _encode_text(text: TextContent, *, reply: bool = False) -> Wire:
    if text.extra is None or PROTOCOL not in text.extra:
        return {"text": text.text}
    if CITATIONS in text.extra[PROTOCOL]:
        cited = {"content": [{"text": text.text}], CITATIONS: text.extra[PROTOCOL][CITATIONS]}
        return {"citationsContent": cited}
    verbatim = verbatim_of(text.extra, PROTOCOL)
    if "json" in verbatim and json_text(verbatim["json"]) == text.text:
        return {"json": verbatim["json"]}
    return {"text": text.text, **put_back(text.extra, reply=reply)}


def _encode_call(call: ToolCall, *, reply: bool) -> Wire:
    arguments = call.arguments if isinstance(call.arguments, dict) else dict(call.arguments)
    inner: Wire = {"toolUseId": call.id, "name": call.name, "input": arguments}
    if call.extra is not None:
        inner.update(put_back(call.extra, reply=reply))
        verbatim = verbatim_of(call.extra, PROTOCOL)
        if "no_input" in verbatim and not arguments:
            del inner["input"]
        elif "input" in verbatim and best_effort(verbatim["input"]) == arguments:
            inner["input"] = verbatim["input"]
    return {"toolUse": inner}


def _encode_reasoning(content: ThinkingContent, endpoint: Endpoint, *, reply: bool) -> Wire:
    signature, verbatim = content.thinking_signature, verbatim_of(content.extra, PROTOCOL)
    if content.redacted:
        if signature is None:
            raise EncodeError("redacted thinking without its data")
        return {"redactedContent": signature if "blob" in verbatim else _blob_of(signature)}
    textless = verbatim.get("textless")
    absent = not content.thinking and (textless == "request" or (reply and textless == "reply"))
    received: Wire = {} if absent else {"text": content.thinking}
    takes = endpoint.rules.reasoning_replay == "signed"
    if signature:
        if takes or reply or verbatim.get("signed") is True:
            received["signature"] = signature
    elif "signature" in verbatim:
        received["signature"] = verbatim["signature"]
    elif takes and not reply and verbatim.get("signed") is not False:
        # The API refuses unsigned thinking; projection should have turned it into text.
        raise EncodeError("thinking without a signature")
    if content.extra is not None:
        received.update(put_back(content.extra, reply=reply))
    return {"reasoningText": received}


def _encode_native(content: NativeContent, names: DocumentNames) -> Wire:
    block = native_block(PROTOCOL, content)
    name_documents(block, names)
    return block if isinstance(block, dict) else dict(block)
