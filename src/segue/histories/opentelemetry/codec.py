"""Messages of OpenTelemetry's conventions for generative AI: `gen_ai.input.messages`.

Facts this file rests on (semantic-conventions-genai b49cb9d; dumps of pydantic-ai, 2026-11-15):
- A message has a role and parts: text, reasoning (pydantic-ai writes `thinking`), tool_call, tool_call_response, blob
  and uri (pydantic-ai writes `binary`). The schema allows further fields.
- There is no error flag and no signature; here both are further fields, under our own name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import UNKNOWN, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    arguments_text,
    encode_json,
    is_media,
    make_call,
    media_of,
    note_unsupported,
    shown,
    stop_of,
    string_of,
)
from segue.projection.report import ChangeCode

NAME: Final = "opentelemetry"
TITLE: Final = "OpenTelemetry"
SEGUE: Final = "segue"
_MODALITIES: Final = frozenset({"image", "video", "audio"})
"""Those of the schema beside `document`."""
_FINISH: Final = {"toolUse": "tool_call", "aborted": "error"}


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    parts = objects_of(entry.get("parts"))
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    role = text_of(entry.get("role"))
    if role == "assistant":
        reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model; their spans do")
        return [_read_assistant(entry, parts)]
    messages: list[Message] = [_read_result(part) for part in results]
    others = tuple(_read_part(part) for part in parts if part not in results)
    if role == "system":
        messages.append(SystemMessage(content=tuple(each for each in others if isinstance(each, TextContent))))
    elif role == "user" and (others or not results):
        messages.append(UserMessage(content=others))
    return messages


def _read_part(part: Mapping[str, Any]) -> UserContent:
    kind, content = text_of(part.get("type")), part.get("content")
    mime = part.get("mime_type") or part.get("media_type") or ("image/*" if part.get("modality") == "image" else None)
    if kind == "text" and isinstance(content, str):
        return TextContent(text=content)
    media: Media | None = None
    if kind in {"blob", "binary"}:
        media = media_of(mime, data=part.get("data") or content)
    elif kind in {"uri", "file"}:
        media = media_of(mime, url=part.get("uri"), file_id=part.get("file_id"))
    return media or NativeContent(protocol=NAME, block=dict(part))


def _read_result(part: Mapping[str, Any]) -> ToolResultMessage:
    value = part.get("response", part.get("result"))
    found: list[UserContent] = []
    for item in items_of(value):
        block = object_of(item)
        if isinstance(item, str):
            found.append(TextContent(text=item))
        elif block:
            kind = block.get("type") or block.get("kind")
            found.append(_read_part({**block, "type": kind}))
    if not found and value not in (None, ""):
        found = [TextContent(text=value if isinstance(value, str) else encode_json(value))]
    return ToolResultMessage(
        tool_call_id=text_of(part.get("id")) or "",
        tool_name=text_of(part.get("name")) or "",
        content=tuple(found),
        is_error=object_of(part.get(SEGUE)).get("is_error") is True,
    )


def _read_assistant(entry: Entry, parts: list[dict[str, Any]]) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    for part in parts:
        own = object_of(part.get(SEGUE))
        signature = string_of(own.get("signature"))
        match text_of(part.get("type")):
            case "text":
                pieces.append(TextContent(text=text_of(part.get("content")) or "", text_signature=signature))
            case "reasoning" | "thinking":
                words, redacted = text_of(part.get("content")) or "", own.get("redacted") is True
                pieces.append(ThinkingContent(thinking=words, thinking_signature=signature, redacted=redacted))
            case "tool_call":
                pieces.append(make_call(part.get("id"), part.get("name"), part.get("arguments"), signature=signature))
            case _:
                pieces.append(NativeContent(protocol=NAME, block=part))
    message = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(entry.get("finish_reason"), pieces))
    return set_origin(message, marked_origin(UNKNOWN, entry))


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for run in results_together(messages):
        first = run[0]
        if isinstance(first, AssistantMessage):
            finish = _FINISH.get(str(first.stop_reason), str(first.stop_reason))
            entry: Entry = {"role": "assistant", "parts": _write_assistant(first, writing), "finish_reason": finish}
            entries.append({**entry, **origin_mark(first, UNKNOWN)})
        elif isinstance(first, ToolResultMessage):
            parts = [_write_result(each, writing) for each in run if isinstance(each, ToolResultMessage)]
            entries.append({"role": "tool", "parts": parts})
        else:
            entries.append({"role": first.role, "parts": _write_parts(first, writing)})
    return entries


def _write_parts(message: Message, writing: Writing) -> list[Entry]:
    parts: list[Entry] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            parts.append({"type": "text", "content": piece.text})
        elif is_media(piece):
            parts += _write_media(piece, message, writing)
    return parts


def _write_media(piece: Media, message: Message, writing: Writing) -> list[Entry]:
    kind = "image" if piece.kind == "image" else (piece.mime_type or "").partition("/")[0]
    part: Entry = {
        "modality": kind if kind in _MODALITIES else "document",
        **({} if piece.mime_type is None else {"mime_type": piece.mime_type}),
    }
    if piece.data is not None:
        return [{"type": "blob", **part, "content": piece.data}]
    if piece.url is not None:
        return [{"type": "uri", **part, "uri": piece.url}]
    if getattr(piece, "file_id", None) is not None:
        return [{"type": "file", **part, "file_id": getattr(piece, "file_id", None)}]
    note_unsupported(message, writing, piece, TITLE)
    return []


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    parts = _write_parts(message, writing)
    texts = [part["content"] for part in parts if part["type"] == "text"]
    response: object = "\n".join(texts) if len(texts) == len(parts) else parts
    part: Entry = {"type": "tool_call_response", "id": message.tool_call_id, "response": response}
    part |= {"name": message.tool_name} if message.tool_name else {}
    return {**part, SEGUE: {"is_error": True}} if message.is_error else part


def _write_assistant(message: AssistantMessage, writing: Writing) -> list[Entry]:
    parts: list[Entry] = []
    for piece in shown(message, writing):
        signature: str | None = None
        match piece.kind:
            case "text":
                part: Entry = {"type": "text", "content": piece.text}
                signature = piece.text_signature
            case "thinking":
                part = {"type": "reasoning", "content": piece.thinking}
                signature = piece.thinking_signature
                part |= {SEGUE: {"redacted": True}} if piece.redacted else {}
            case "toolCall":
                given = piece.arguments_text is not None
                arguments: object = arguments_text(piece) if given else dict(piece.arguments)
                part = {"type": "tool_call", "id": piece.id, "name": piece.name, "arguments": arguments}
                signature = piece.thought_signature
            case "image" | "file":
                parts += _write_media(piece, message, writing)
                continue
        if signature is not None:
            part[SEGUE] = {**object_of(part.get(SEGUE)), "signature": signature}
        parts.append(part)
    return parts


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)
