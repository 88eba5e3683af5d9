"""Content blocks of LangChain: those of the provider, or LangChain's own.

Facts this file rests on (langchain-core 1.7.2, langchain-anthropic and langchain-openai of the same day, 2026-11-15):
- A message of a model has the blocks of its provider: Anthropic blocks; Responses items, whose messages are flattened
  to text blocks with the id of the item; a plain text over Chat. `response_metadata.model_provider` names it.
- With `output_version: v1` they are LangChain's own: `reasoning`, `text`, `tool_call`, `non_standard`, with the rest in
  `extras`.
- Streaming leaves `index` and `partial_json` in blocks; they are not part of the provider's block.
- Images and files have three forms: `source_type` (0.3), `base64` / `url` / `file_id` (1.x), and the provider's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UserContent,
)
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage
from segue.errors import DecodeError, EncodeError
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.pieces import item_signature, make_call, read_media, string_of
from segue.histories.kit.wire import TurnCodec

NAME: Final = "langchain"
_WIRES: Final[Mapping[str, TurnCodec]] = {
    "anthropic-messages": TurnCodec("anthropic-messages", "messages"),
    "openai-responses": TurnCodec("openai-responses", "input", lead={"role": "user", "content": "-"}),
}
"""Protocols whose blocks LangChain stores as they are."""
_STREAMING: Final = frozenset({"index", "partial_json"})
_SIGNATURE: Final = "signature"
"""The type of a block that stands for an empty text with a signature, which Gemini sends behind its text."""


# -- what the user and tools say ---------------------------------------------------------------------------------------


def read_user_block(block: Mapping[str, Any], protocol: str) -> UserContent:
    """Read a block of the user, of a tool or of instructions."""
    text = block.get("text")
    if text_of(block.get("type")) in {"text", "input_text", "output_text"} and isinstance(text, str):
        return TextContent(text=text)
    return read_media(block) or NativeContent(protocol=protocol, block=dict(block))


def write_user_block(content: UserContent) -> dict[str, Any]:
    """Write a block of the user in the form of LangChain 1.x."""
    match content.kind:
        case "text":
            return {"type": "text", "text": content.text}
        case "image" | "file":
            return _write_media(content)
        case "native":
            return dict(content.block)


def _write_media(content: ImageContent | FileContent) -> dict[str, Any]:
    kind = "image" if content.kind == "image" else (content.mime_type or "").partition("/")[0]
    block: dict[str, Any] = {"type": kind if kind in {"audio", "video"} or content.kind == "image" else "file"}
    if content.data is not None:
        block["base64"] = content.data
    elif content.url is not None:
        block["url"] = content.url
    elif isinstance(content, FileContent) and content.file_id is not None:
        block["file_id"] = content.file_id
    if content.mime_type is not None:
        block["mime_type"] = content.mime_type
    if isinstance(content, FileContent) and content.name is not None:
        block["filename"] = content.name
    return block


# -- what the model says -----------------------------------------------------------------------------------------------


def read_blocks(blocks: list[dict[str, Any]], origin: Origin, *, standard: bool) -> tuple[AssistantContent, ...]:
    """Read the blocks of a model; `standard` says that they are LangChain's own."""
    bare = [{key: value for key, value in block.items() if key not in _STREAMING} for block in blocks]
    wire = None if standard else _WIRES.get(origin.protocol)
    if wire is not None and bare:
        try:
            turns = _as_items(bare) if wire.protocol == "openai-responses" else [{"role": "assistant", "content": bare}]
            (message,) = wire.decode(turns, origin.model, origin.provider or None)
        except (DecodeError, ValueError):
            pass
        else:
            if isinstance(message, AssistantMessage):
                return message.content
    return tuple(_read_standard(block, origin) for block in bare)


def _as_items(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make Responses items of blocks: texts become messages again."""
    items: list[dict[str, Any]] = []
    for block in blocks:
        if text_of(block.get("type")) not in {"text", "refusal"}:
            items.append(block)
            continue
        part = {key: value for key, value in block.items() if key not in {"id", "phase", "type"}}
        kind = "output_text" if block.get("type") == "text" else "refusal"
        item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": kind, **part}]}
        item |= {key: block[key] for key in ("id", "phase") if block.get(key) is not None}
        items.append({**item, "status": "completed"} if "id" in item else item)
    return items


def _read_standard(block: dict[str, Any], origin: Origin) -> AssistantContent:
    content, fields = _read_fields(block, origin), object_of(object_of(block.get("extras")).get("fields"))
    return replace(content, extra={origin.protocol: fields}) if fields else content


def _read_fields(block: dict[str, Any], origin: Origin) -> AssistantContent:
    extras, kind = object_of(block.get("extras")), text_of(block.get("type"))
    is_item = origin.protocol == "openai-responses"
    if kind == "text" and isinstance(block.get("text"), str):
        item = item_signature(id=text_of(block.get("id"))) if is_item else None
        signature = string_of(extras.get("signature"))
        phase = string_of(extras.get("phase"))
        return TextContent(text=block["text"], text_signature=item if signature is None else signature, phase=phase)
    if kind == "thinking":
        signature = string_of(block.get("signature", extras.get("signature")))
        return ThinkingContent(thinking=text_of(block.get("thinking")) or "", thinking_signature=signature)
    if kind == "redacted_thinking":
        return ThinkingContent(thinking="", thinking_signature=text_of(block.get("data")), redacted=True)
    if kind == "reasoning":
        words = text_of(block.get("reasoning"))
        if words is None:
            words = "\n".join(text_of(part.get("text")) or "" for part in objects_of(block.get("summary")))
        signature = string_of(extras.get("signature", block.get("signature")))
        if signature is None and is_item:
            signature = item_signature(id=block.get("id"), encrypted_content=block.get("encrypted_content"))
        return ThinkingContent(thinking=words, thinking_signature=signature, redacted=extras.get("redacted") is True)
    if kind in {"tool_call", "tool_use", "function_call"}:
        return read_call(block, extras, is_item=is_item)
    if kind == "non_standard" and isinstance(block.get("value"), dict):
        if block["value"] == {"type": _SIGNATURE}:
            return TextContent(text="", text_signature=string_of(extras.get("signature")))
        return NativeContent(protocol=text_of(extras.get("protocol")) or origin.protocol, block=block["value"])
    return NativeContent(protocol=origin.protocol, block=block)


def read_call(block: Mapping[str, Any], extras: Mapping[str, Any], *, is_item: bool = False) -> ToolCall:
    """Read a call: a block, or an item of `tool_calls`."""
    signature = string_of(extras.get("signature"))
    if signature is None and is_item:
        signature = item_signature(id=extras.get("item_id"), status=extras.get("status"))
    arguments = block.get("args", block.get("input", block.get("arguments")))
    given = string_of(extras.get("arguments_text"))
    call_id = block.get("call_id") or block.get("id")
    return make_call(call_id, block.get("name"), arguments, given=given, signature=signature)


def write_blocks(message: AssistantMessage, *, standard: bool = False) -> tuple[str | list[dict[str, Any]], bool]:
    """Write the content of a model, and whether it is in LangChain's own form; `standard` asks for that form."""
    if standard:
        return [_write_standard(content, message.protocol) for content in message.content], True
    wire = _WIRES.get(message.protocol)
    if wire is not None and message.content:
        try:
            turns = wire.encode([message], message.model, message.provider or None)
        except (EncodeError, ValueError, LookupError):
            pass
        else:
            return (_from_items(turns) if wire.protocol == "openai-responses" else turns[0]["content"]), False
    plain = [content for content in message.content if content.kind != "toolCall" or content.thought_signature]
    if not plain:
        return "", False
    if len(plain) == 1 and plain[0].kind == "text" and not plain[0].text_signature and message.content[0] is plain[0]:
        return plain[0].text, False
    return [_write_standard(content, message.protocol) for content in message.content], True


def _from_items(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make blocks of Responses items: messages are flattened to their texts."""
    blocks: list[dict[str, Any]] = []
    for item in items:
        if "role" not in item:
            blocks.append(item)
            continue
        content = item.get("content")
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else objects_of(content)
        for part in parts:
            kind = "text" if part.get("type") == "output_text" else part.get("type")
            block = {**part, "type": kind}
            block |= {key: item[key] for key in ("id", "phase") if item.get(key) is not None}
            blocks.append(block)
    return blocks


def _write_standard(content: AssistantContent, protocol: str) -> dict[str, Any]:
    match content.kind:
        case "text":
            block: dict[str, Any] = {"type": "text", "text": content.text}
            if content.text_signature and not content.text:  # programs show every text block
                block = {"type": "non_standard", "value": {"type": _SIGNATURE}}
            extras: dict[str, Any] = {"signature": content.text_signature, "phase": content.phase}
        case "thinking":
            block = {"type": "reasoning", "reasoning": content.thinking}
            extras = {"signature": content.thinking_signature, "redacted": content.redacted or None}
        case "toolCall":
            block = write_call(content)
            extras = {"signature": content.thought_signature, "arguments_text": content.arguments_text}
        case "native":
            block = {"type": "non_standard", "value": dict(content.block)}
            extras = {"protocol": content.protocol}
    extras["fields"] = (content.extra or {}).get(protocol)
    kept = {key: value for key, value in extras.items() if value is not None}
    return {**block, "extras": kept} if kept else block


def write_call(call: ToolCall) -> dict[str, Any]:
    """Write an item of `tool_calls`."""
    return {"name": call.name, "args": dict(call.arguments), "id": call.id, "type": "tool_call"}
