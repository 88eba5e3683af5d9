"""`ChatMessage` of LlamaIndex: a role and blocks.

Facts this file rests on (llama-index-core 0.14.25, 2026-11-15):
- Blocks have a `block_type`: text, image, document, audio, video, thinking, tool_call, cache, citations.
- Signatures and encrypted contents stand in `additional_information` of a thinking block. Redacted thinking is lost by
  the framework itself; here it is a block without words.
- Versions before 0.13 have calls in `additional_kwargs.tool_calls`, as Chat has them.
- The id of the call that a result answers is in `additional_kwargs.tool_call_id`. There is no error flag, no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    UserContent,
)
from segue.conversation.context import Origin
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import UNKNOWN, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    Shown,
    arguments_text,
    image_of,
    is_base64,
    is_media,
    item_of,
    item_signature,
    make_call,
    media_of,
    note_flag,
    note_unsupported,
    shown,
    string_of,
)
from segue.projection.report import ChangeCode

NAME: Final = "llama-index"
TITLE: Final = "LlamaIndex"
_INFO: Final = "additional_information"
_KWARGS: Final = "additional_kwargs"
_RESPONSES: Final = Origin(protocol="openai-responses", provider="openai", model="")
_CLAUDE: Final = Origin(protocol="anthropic-messages", provider="anthropic", model="")


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    blocks, kwargs = objects_of(entry.get("blocks")), object_of(entry.get(_KWARGS))
    if not blocks and isinstance(entry.get("content"), str):
        blocks = [{"block_type": "text", "text": entry["content"]}]
    match text_of(entry.get("role")):
        case "system" | "developer":
            texts = [TextContent(text=block["text"]) for block in blocks if isinstance(block.get("text"), str)]
            return [SystemMessage(content=tuple(texts))]
        case "user":
            return [UserMessage(content=tuple(_read_block(block) for block in blocks))]
        case "assistant" | "chatbot" | "model":
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            return [_read_assistant(blocks, kwargs)]
        case "tool" | "function":
            content = tuple(_read_block(block) for block in blocks)
            call_id, name = string_of(kwargs.get("tool_call_id")) or "", text_of(kwargs.get("name")) or ""
            return [ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content)]
        case _:
            return []


def _read_block(block: Mapping[str, Any]) -> UserContent:
    kind = text_of(block.get("block_type"))
    if kind == "text" and isinstance(block.get("text"), str):
        return TextContent(text=block["text"])
    media: Media | None = None
    if kind == "image":
        media = image_of(block.get("image_mimetype"), data=block.get("image"), url=block.get("url"))
    elif kind == "document":
        mime, name = block.get("document_mimetype"), block.get("title")
        media = media_of(mime, data=block.get("data"), url=block.get("url"), name=name)
    elif kind in {"audio", "video"}:
        mime = f"{kind}/{block.get('format') or ('wav' if kind == 'audio' else 'mp4')}"
        media = media_of(mime, data=block.get(kind), url=block.get("url"))
    return media or NativeContent(protocol=NAME, block=dict(block))


def _origin_of(blocks: Sequence[Mapping[str, Any]]) -> Origin:
    """Tell who wrote a turn by what stands beside its thinking."""
    for block in blocks:
        info = object_of(block.get(_INFO))
        if "encrypted_content" in info or text_of(info.get("type")) == "reasoning":
            return _RESPONSES
        if "signature" in info:
            return _CLAUDE
    return UNKNOWN


def _read_assistant(blocks: list[dict[str, Any]], kwargs: Mapping[str, Any]) -> AssistantMessage:
    origin = marked_origin(_origin_of(blocks), kwargs)
    pieces = tuple(_read_piece(block, origin) for block in blocks)
    if all(piece.kind != "toolCall" for piece in pieces):
        pieces += tuple(_read_kwargs_call(call) for call in objects_of(kwargs.get("tool_calls")))
        if call := object_of(kwargs.get("function_call")):
            pieces += (_read_kwargs_call(call),)
    calls = any(piece.kind == "toolCall" for piece in pieces)
    stop = StopReason.TOOL_USE if calls else StopReason.STOP
    return set_origin(AssistantMessage(content=pieces, stop_reason=stop), origin)


def _read_kwargs_call(call: Mapping[str, Any]) -> AssistantContent:
    """Read a call in the form of Chat, which older versions stored beside the blocks."""
    function = object_of(call.get("function")) or call
    call_id = call.get("id") or call.get("tool_call_id")
    return make_call(call_id, function.get("name"), function.get("arguments"))


def _read_piece(block: dict[str, Any], origin: Origin) -> AssistantContent:
    info = object_of(block.get(_INFO))
    match text_of(block.get("block_type")):
        case "text":
            return TextContent(text=text_of(block.get("text")) or "")
        case "thinking":
            signature = string_of(info.get("signature"))
            if signature is None and origin.protocol == _RESPONSES.protocol:
                signature = item_signature(id=info.get("id"), encrypted_content=info.get("encrypted_content"))
            words = text_of(block.get("content")) or ""
            return ThinkingContent(thinking=words, thinking_signature=signature, redacted=info.get("redacted") is True)
        case "tool_call":
            return make_call(block.get("tool_call_id"), block.get("tool_name"), block.get("tool_kwargs"))
        case _:
            content = _read_block(block)
            fallback = () if isinstance(content, NativeContent) else (content,)
            return NativeContent(protocol=NAME, block=block, fallback=fallback)


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [_write_message(message, writing) for message in messages]


def _write_message(message: Message, writing: Writing) -> Entry:
    kwargs: Entry = {}
    if message.role == "toolResult":
        note_flag(message, writing, TITLE)
        kwargs = {"tool_call_id": message.tool_call_id}
        kwargs |= {"name": message.tool_name} if message.tool_name else {}
    blocks: list[Entry] = []
    for piece in message.content:
        if piece.kind == "native" and piece.protocol == NAME:
            blocks.append(dict(piece.block))
        else:
            for each in shown(message, writing, [piece]):
                block = _write_piece(each, message, writing)
                blocks += [] if block is None else [block]
    if isinstance(message, AssistantMessage):
        kwargs |= origin_mark(message, _origin_of(blocks))
    role = {"toolResult": "tool"}.get(message.role, message.role)
    return {"role": role, _KWARGS: kwargs, "blocks": blocks}


def _write_piece(piece: Shown, message: Message, writing: Writing) -> Entry | None:
    if is_media(piece):
        return _write_media(piece, message, writing)
    match piece.kind:
        case "text":
            return {"block_type": "text", "text": piece.text}
        case "toolCall":
            arguments: object = dict(piece.arguments) if piece.arguments_text is None else arguments_text(piece)
            call: Entry = {"block_type": "tool_call", "tool_call_id": piece.id, "tool_name": piece.name}
            return {**call, "tool_kwargs": arguments}
        case "thinking":
            return _write_thinking(piece, message)
        case _:
            return None


def _write_thinking(piece: ThinkingContent, message: Message) -> Entry:
    info: Entry = {}
    item = item_of(piece.thinking_signature)
    is_responses = isinstance(message, AssistantMessage) and message.protocol == "openai-responses"
    if is_responses and item and item.keys() <= {"id", "encrypted_content"}:
        info = {**item, "type": "reasoning", "status": None}
    elif piece.thinking_signature is not None:
        info = {"signature": piece.thinking_signature, "type": "thinking"}
    if piece.redacted:
        info["redacted"] = True
    return {"block_type": "thinking", "content": piece.thinking, "num_tokens": None, _INFO: info}


def _write_media(piece: Media, message: Message, writing: Writing) -> Entry | None:
    broken = piece.data is not None and not is_base64(piece.data)
    if broken or (isinstance(piece, FileContent) and piece.data is None and piece.url is None):
        note_unsupported(message, writing, piece, TITLE)
        return None
    if piece.kind == "image":
        fields = {
            "image": piece.data,
            "path": None,
            "url": piece.url,
            "image_mimetype": piece.mime_type,
            "detail": None,
        }
        return {"block_type": "image", **fields}
    data: Entry = {"data": piece.data, "path": None, "url": piece.url, "title": piece.name}
    return {"block_type": "document", **data, "document_mimetype": piece.mime_type}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)
