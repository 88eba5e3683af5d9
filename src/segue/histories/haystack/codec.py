"""`ChatMessage` of Haystack: a role, content parts, and `meta`.

Facts this file rests on (haystack-ai 3.4.0, 2026-11-15):
- A part has one key: text, image, file, reasoning, tool_call, tool_call_result. A result repeats its call in `origin`.
- `reasoning.extra` and `tool_call.extra` hold opaque data, `meta` the model and the usage of a reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import AssistantContent, FileContent, TextContent, ThinkingContent, UserContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, Usage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    is_base64,
    is_media,
    make_call,
    media_of,
    note_unsupported,
    shown,
    stop_of,
    string_of,
    usage_of,
    whole_input,
)

NAME: Final = "haystack"
TITLE: Final = "Haystack"


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a message needs nothing around it
    entry = run[0]
    parts = objects_of(entry.get("content"))
    match text_of(entry.get("role")):
        case "system":
            texts = [TextContent(text=part["text"]) for part in parts if isinstance(part.get("text"), str)]
            return [SystemMessage(content=tuple(texts))]
        case "user":
            return [UserMessage(content=_read_parts(parts))]
        case "assistant":
            return [_read_assistant(parts, object_of(entry.get("meta")))]
        case "tool":
            return [_read_result(object_of(part["tool_call_result"])) for part in parts if "tool_call_result" in part]
        case _:
            return []


def _read_parts(parts: Sequence[Mapping[str, Any]]) -> tuple[UserContent, ...]:
    found: list[UserContent] = []
    for part in parts:
        image, file = object_of(part.get("image")), object_of(part.get("file"))
        media = media_of(image.get("mime_type") or "image/*", data=image.get("base64_image")) if image else None
        if file:
            name = file.get("filename")
            media = media_of(file.get("mime_type"), data=file.get("base64_data"), name=name)
        if isinstance(part.get("text"), str):
            found.append(TextContent(text=part["text"]))
        elif media is not None:
            found.append(media)
    return tuple(found)


def _read_result(result: Mapping[str, Any]) -> ToolResultMessage:
    value, origin = result.get("result"), object_of(result.get("origin"))
    text = (TextContent(text=value),) if isinstance(value, str) and value else ()
    return ToolResultMessage(
        tool_call_id=text_of(origin.get("id")) or "",
        tool_name=text_of(origin.get("tool_name")) or "",
        content=_read_parts(objects_of(items_of(value))) or text,
        is_error=result.get("error") is True,
    )


def _read_assistant(parts: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    for part in parts:
        reasoning, call = object_of(part.get("reasoning")), object_of(part.get("tool_call"))
        extra = object_of(reasoning.get("extra")) or object_of(call.get("extra"))
        signature = string_of(extra.get("signature"))
        if reasoning:
            words, redacted = text_of(reasoning.get("reasoning_text")) or "", extra.get("redacted") is True
            pieces.append(ThinkingContent(thinking=words, thinking_signature=signature, redacted=redacted))
        elif call:
            given = string_of(extra.get("arguments_text"))
            name, arguments = call.get("tool_name"), call.get("arguments")
            pieces.append(make_call(call.get("id"), name, arguments, given=given, signature=signature))
        elif isinstance(part.get("text"), str):
            pieces.append(TextContent(text=part["text"]))
    origin = marked_origin(find_origin(text_of(meta.get("model")) or ""), meta)
    word = meta.get("finish_reason")
    message = AssistantMessage(
        content=tuple(pieces),
        usage=_read_usage(object_of(meta.get("usage"))),
        stop_reason=stop_of(word, pieces),
        raw_stop_reason=text_of(word),
    )
    return set_origin(message, origin)


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    if "prompt_tokens" in usage:
        return usage_of(usage["prompt_tokens"], usage.get("completion_tokens"), total=usage.get("total_tokens"))
    read, write = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    counts = (usage.get("input_tokens"), read, write)
    whole = sum(count for count in counts if isinstance(count, int) and count > 0)
    return usage_of(whole, usage.get("output_tokens"), cache_read=read, cache_write=write)


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [_write_message(message, writing) for message in messages]


def _write_message(message: Message, writing: Writing) -> Entry:
    meta: Entry = {}
    match message.role:
        case "toolResult":
            parts = [{"tool_call_result": _write_result(message, writing)}]
        case "assistant":
            parts, meta = _write_assistant(message, writing), _write_meta(message)
        case "user" | "system":
            parts = _write_parts(message, writing)
    role = "tool" if message.role == "toolResult" else message.role
    return {"role": role, "meta": meta, "name": None, "content": parts}


def _write_parts(message: Message, writing: Writing) -> list[Entry]:
    parts: list[Entry] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            parts.append({"text": piece.text})
        elif is_media(piece):
            parts += _write_media(piece, message, writing)
    return parts or [{"text": ""}]


def _write_media(piece: Media, message: Message, writing: Writing) -> list[Entry]:
    if piece.data is None or not is_base64(piece.data):
        note_unsupported(message, writing, piece, TITLE)
        return []
    if isinstance(piece, FileContent):
        file: Entry = {"base64_data": piece.data, "mime_type": piece.mime_type, "filename": piece.name, "extra": {}}
        return [{"file": {**file, "validation": False}}]
    image: Entry = {
        "base64_image": piece.data,
        "mime_type": piece.mime_type,
        "detail": None,
        "meta": {},
        "validation": False,
    }
    return [{"image": image}]


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    call = writing.call_of(message)
    arguments = {} if call is None else dict(call.arguments)
    origin = {"tool_name": message.tool_name, "arguments": arguments, "id": message.tool_call_id, "extra": None}
    parts = _write_parts(message, writing)
    only_text = len(parts) == 1 and "text" in parts[0]
    return {"result": parts[0]["text"] if only_text else parts, "origin": origin, "error": message.is_error}


def _write_assistant(message: AssistantMessage, writing: Writing) -> list[Entry]:
    parts: list[Entry] = []
    for piece in shown(message, writing):
        match piece.kind:
            case "text":
                parts.append({"text": piece.text})
            case "thinking":
                opaque = {"signature": piece.thinking_signature, "redacted": piece.redacted or None}
                kept = {key: value for key, value in opaque.items() if value is not None}
                parts.append({"reasoning": {"reasoning_text": piece.thinking, "extra": kept}})
            case "toolCall":
                opaque = {"signature": piece.thought_signature, "arguments_text": piece.arguments_text}
                kept = {key: value for key, value in opaque.items() if value is not None}
                call: Entry = {"tool_name": piece.name, "arguments": dict(piece.arguments), "id": piece.id}
                parts.append({"tool_call": {**call, "extra": kept or None}})
            case "image" | "file":
                note_unsupported(message, writing, piece, TITLE)
    return parts or [{"text": ""}]


def _write_meta(message: AssistantMessage) -> Entry:
    meta: Entry = {}
    if message.model:
        meta["model"] = message.model
    if message.raw_stop_reason is not None:
        meta["finish_reason"] = message.raw_stop_reason
    if (usage := message.usage) is not None:
        counts = {"prompt_tokens": whole_input(usage), "completion_tokens": usage.output}
        meta["usage"] = {**counts, "total_tokens": usage.total_tokens}
    return {**meta, **origin_mark(message, find_origin(message.model))}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)
