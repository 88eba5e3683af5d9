"""The record of pydantic-ai.

Images and files of pydantic-ai: `binary` with base64, or an address of a kind.

Messages of pydantic-ai, as `ModelMessagesTypeAdapter` writes them.

Facts (pydantic-ai 2.66.0, 2026-11-15):
- A `request` holds instructions, prompts and results of tools; a `response` is one reply of a model.
- `instructions` of the newest request are sent as the system prompt; they are not a part.
- A signature is sent only to the provider that `provider_name` of its part names. Responses items have their id in `id`
  and the encrypted content in `signature`; over Chat `id` is the name of the field; redacted thinking has the id
  `redacted_thinking`; thought signatures of Gemini are in `provider_details`.
- `outcome` of a result is `success`, `failed`, `denied`, or `retried` if the model was asked to try again.
- `usage.input_tokens` includes cached tokens.
- Unknown fields are dropped, an unknown part is refused, a missing time is replaced by the current one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import groupby
from mimetypes import guess_type
from typing import Any, Final

import msgspec
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
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UsageCost,
    UserMessage,
)
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    framework_format,
    from_package,
    has_separate_instructions,
    items_of,
    list_of,
    prompt_text,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import number_of, object_of, objects_of, text_of
from segue.histories.kit.origins import SEGUE, find_origin, marked_origin, reply_mark, set_origin, with_reply_mark
from segue.histories.kit.pieces import (
    Media,
    arguments_text,
    encode_json,
    is_base64,
    is_media,
    item_of,
    item_signature,
    make_call,
    media_of,
    note_unsupported,
    shown,
    stop_of,
    string_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import iso_of, milliseconds_of
from segue.histories.kit.templates import Template
from segue.protocols.kit.reading import standard_base64

_URLS: Final[Mapping[str, str]] = {
    "image-url": "image/",
    "audio-url": "audio/",
    "video-url": "video/",
    "document-url": "",
}
MEDIA_KINDS: Final = frozenset({"binary", "uploaded-file", *_URLS})


def read_media_item(item: Mapping[str, Any]) -> Media | None:
    """Read an item; None if it is not an image or a file."""
    kind, mime = text_of(item.get("kind")), item.get("media_type")
    if kind == "binary":
        return media_of(mime, data=item.get("data"))
    if kind == "uploaded-file":
        return media_of(mime, file_id=item.get("file_id"))
    if kind not in _URLS:
        return None
    found = media_of(mime, url=item.get("url"))
    if kind == "image-url" and isinstance(found, FileContent):
        return ImageContent(data=found.data, url=found.url, mime_type=found.mime_type)
    return found


def write_media_item(content: Media) -> dict[str, Any] | None:
    """Write an image or a file; None if there is nothing in it."""
    mime = content.mime_type
    if content.data is not None:
        default = "image/png" if content.kind == "image" else "application/octet-stream"
        if not is_base64(content.data):
            return None
        # pydantic writes base64 with the URL-safe alphabet and reads both.
        data = content.data.replace("+", "-").replace("/", "_")
        item: dict[str, Any] = {"data": data, "media_type": mime or default, "vendor_metadata": None}
        return {**item, "kind": "binary", "identifier": _identifier(content.data)}
    if isinstance(content, FileContent) and content.file_id is not None:
        fields = {"file_id": content.file_id, "provider_name": "openai", "vendor_metadata": None}
        return {**fields, "kind": "uploaded-file", "media_type": mime}
    if content.url is None:
        return None
    kind = "image-url" if content.kind == "image" else "document-url"
    if isinstance(content, FileContent):
        named = (each for each, start in _URLS.items() if start and (mime or "").startswith(start))
        kind = next(named, kind)
    item = {"url": content.url, "force_download": False, "vendor_metadata": None, "kind": kind}
    if mime is None:
        mime = guess_type(content.url.partition("?")[0])[0]
    name = hashlib.sha1(content.url.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:6]
    return {**item, **({} if mime is None else {"media_type": mime, "identifier": name})}


def _identifier(data: str) -> str:
    """Return the name under which pydantic-ai mentions the data: the beginning of its hash."""
    try:
        content = base64.b64decode(standard_base64(data), validate=True)
    except (binascii.Error, ValueError):
        content = data.encode("utf-8", "surrogatepass")
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()[:6]


NAME: Final = "pydantic-ai"
_PROVIDERS: Final[Mapping[str, str]] = {"amazon-bedrock": "bedrock"}
"""Names of providers that pydantic-ai has another name for."""
_REDACTED: Final = "redacted_thinking"
_FAILED: Final = frozenset({"failed", "denied", "retried"})
_FINISH: Final[Mapping[StopReason, str]] = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_USE: "tool_call",
    StopReason.ERROR: "error",
}
_CHAT_FIELDS: Final = frozenset({"reasoning", "reasoning_content", "reasoning_details", "content"})
"""Values of `id` of a thinking part that name the field of a reply over Chat."""
_USAGE: Final = Template(
    "usage",
    {"input_tokens": "$whole_input", "cache_write_tokens": "$cache_write", "cache_write_1h_tokens": 0}
    | {"cache_read_tokens": "$cache_read", "output_tokens": "$output", "output_reasoning_tokens": "$reasoning"}
    | {"input_audio_tokens": 0, "cache_audio_read_tokens": 0, "output_audio_tokens": 0, "audio_seconds": 0.0}
    | {"details": {}},
)
SIGNED_IN_DETAILS: Final = "thought_signature"
NATIVE: Final = "native_blocks"
"""The setting that is `keep` if blocks that only one protocol has are kept, in the details of an empty text; other
programs than segue get them as texts."""


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - an entry needs nothing around it
    entry = run[0]
    if entry.get("kind") == "response":
        return [_read_response(entry)]
    if entry.get("kind") != "request":
        return []
    messages = (_read_part(part, entry) for part in objects_of(entry.get("parts")))
    return [message for message in messages if message is not None]


def _read_part(part: Mapping[str, Any], entry: Mapping[str, Any]) -> Message | None:
    time = milliseconds_of(part.get("timestamp") or entry.get("timestamp"))
    match part.get("part_kind"):
        case "system-prompt":
            return SystemMessage(content=(TextContent(text=text_of(part.get("content")) or ""),))
        case "user-prompt":
            return UserMessage(content=_read_content(part.get("content")), timestamp=time)
        case "tool-return" | "tool-search-return" | "capability-load-return":
            return ToolResultMessage(
                tool_call_id=text_of(part.get("tool_call_id")) or "",
                tool_name=text_of(part.get("tool_name")) or "",
                content=_read_content(part.get("content")),
                is_error=text_of(part.get("outcome")) in _FAILED,
                details=part.get("metadata"),
                timestamp=time,
            )
        case "retry-prompt":
            content = _read_content(part.get("content"))
            name, call_id = text_of(part.get("tool_name")), text_of(part.get("tool_call_id"))
            if name is None or call_id is None:
                return UserMessage(content=content, timestamp=time)
            return ToolResultMessage(
                tool_call_id=call_id, tool_name=name, content=content, is_error=True, timestamp=time
            )
        case _:
            return UserMessage(content=(NativeContent(protocol=NAME, block=dict(part)),), timestamp=time)


_ITEMS: Final = frozenset({"text", "text-content", "cache-point", *MEDIA_KINDS})
"""The kinds of items; a list without any of them is a value."""


def _read_content(content: object) -> tuple[UserContent, ...]:
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    if content is None:
        return ()
    items = items_of(content) or [content]
    read = [_read_item(item) for item in items]
    if None in read and not any(text_of(object_of(item).get("kind")) in _ITEMS for item in items):
        return (TextContent(text=encode_json(content)),)  # the value that a tool returned
    return tuple(
        TextContent(text=encode_json(item)) if found is None else found for item, found in zip(items, read, strict=True)
    )


def _read_item(item: object) -> UserContent | None:
    if isinstance(item, str):
        return TextContent(text=item)
    fields = object_of(item)
    kind = text_of(fields.get("kind"))
    if kind in {"text", "text-content"} and isinstance(fields.get("content"), str):
        return TextContent(text=fields["content"])
    if kind == "cache-point":
        return NativeContent(protocol=NAME, block=fields)
    return read_media_item(fields)


def _read_response(entry: Mapping[str, Any]) -> AssistantMessage:
    origin = marked_origin(_origin_of(entry), object_of(entry.get("metadata")))
    pieces = tuple(_read_piece(part, origin) for part in objects_of(entry.get("parts")))
    word = text_of(entry.get("finish_reason"))
    stop = stop_of(word, pieces)
    if text_of(entry.get("state")) in {"interrupted", "incomplete"}:
        stop = StopReason.ABORTED
    message = AssistantMessage(
        content=pieces,
        response_id=text_of(entry.get("provider_response_id")),
        usage=_read_usage(object_of(entry.get("usage"))),
        stop_reason=stop,
        raw_stop_reason=text_of(object_of(entry.get("provider_details")).get("finish_reason")),
        timestamp=milliseconds_of(entry.get("timestamp")),
    )
    return with_reply_mark(set_origin(message, origin), object_of(entry.get("metadata")))


def _origin_of(entry: Mapping[str, Any]) -> Origin:
    provider, reply = text_of(entry.get("provider_name")) or "", text_of(entry.get("provider_response_id")) or ""
    return find_origin(text_of(entry.get("model_name")) or "", provider, reply[:8])


def _read_piece(part: Mapping[str, Any], origin: Origin) -> AssistantContent:
    own = object_of(object_of(part.get("provider_details")).get(SEGUE))
    if block := object_of(own.get("native")):
        return NativeContent(protocol=text_of(own.get("protocol")) or origin.protocol, block=block)
    piece = _read_fields(part, origin)
    if isinstance(piece, TextContent) and (phase := string_of(own.get("phase"))) is not None:
        piece = replace(piece, phase=phase)
    return replace(piece, extra={origin.protocol: fields}) if (fields := object_of(own.get("fields"))) else piece


def _read_fields(part: Mapping[str, Any], origin: Origin) -> AssistantContent:
    details, item_id = object_of(part.get("provider_details")), text_of(part.get("id"))
    signature = string_of(details.get(SIGNED_IN_DETAILS))
    is_item = origin.protocol == "openai-responses" and signature is None
    match part.get("part_kind"):
        case "text":
            if is_item and item_id is not None:
                signature = item_signature(id=item_id, status="completed")
            return TextContent(text=text_of(part.get("content")) or "", text_signature=signature)
        case "thinking":
            return _read_thinking(part, signature, item_id, is_item=is_item)
        case "tool-call" | "tool-search-call" | "capability-load-call":
            if is_item and item_id is not None:
                signature = item_signature(id=item_id)
            given = string_of(details.get("arguments_text"))
            name, call_id = part.get("tool_name"), part.get("tool_call_id")
            return make_call(call_id, name, part.get("args"), given=given, signature=signature)
        case "file":
            media = read_media_item(object_of(part.get("content")))
            return NativeContent(protocol=NAME, block=dict(part), fallback=() if media is None else (media,))
        case _:
            text = text_of(part.get("content"))
            fallback = () if text is None else (TextContent(text=text),)
            return NativeContent(protocol=NAME, block=dict(part), fallback=fallback)


def _read_thinking(
    part: Mapping[str, Any], signature: str | None, item_id: str | None, *, is_item: bool
) -> ThinkingContent:
    words, own = text_of(part.get("content")) or "", string_of(part.get("signature"))
    if signature is None:
        signature = own
    if is_item and (item_id is not None or own is not None):
        signature = item_signature(id=item_id, encrypted_content=own)
    elif signature is None and item_id in _CHAT_FIELDS:
        signature = item_id
    return ThinkingContent(thinking=words, thinking_signature=signature, redacted=item_id == _REDACTED)


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    found: Usage | None = _USAGE.read(usage)
    try:
        cost = number_of(float(usage.get("cost") or 0))
    except (TypeError, ValueError, OverflowError):
        return found
    return replace(found, cost=UsageCost(total=cost)) if found is not None and cost else found


# -- writing -----------------------------------------------------------------------------------------------------------


def _join(messages: Sequence[Message]) -> list[list[Message]]:
    """Group messages: each reply alone, and everything between two replies as one request."""
    groups: list[list[Message]] = []
    for is_reply, run in groupby(messages, lambda message: message.role == "assistant"):
        group = list(run)
        groups += [[message] for message in group] if is_reply else [group]
    return groups


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for group in _join(messages):
        if isinstance(group[0], AssistantMessage):
            entries.append(_write_response(group[0], writing))
            continue
        parts = [part for message in group for part in _write_parts(message, writing)]
        times = [part["timestamp"] for part in parts if part.get("timestamp")]
        entry: Entry = {"parts": parts, "timestamp": times[-1] if times else None, "instructions": None}
        entry |= {"kind": "request", "run_id": None, "conversation_id": None, "metadata": None, "state": "complete"}
        entries.append(entry)
    return entries


def stamp_of(time: int | None) -> str | None:
    """Write a time as pydantic does: six digits of a second, or none."""
    if time is None:
        return None
    text = iso_of(time)
    return f"{text[:19]}Z" if text[20:23] == "000" else f"{text[:23]}000Z"


def _write_parts(message: Message, writing: Writing) -> list[Entry]:
    if message.role != "system":
        return [_write_part(message, writing)]
    fields = {"dynamic_ref": None, "context_id": None, "scope": "conversation", "metadata": None}
    texts = [piece.text for piece in shown(message, writing) if piece.kind == "text"]
    return [{"content": text, "timestamp": None, **fields, "part_kind": "system-prompt"} for text in texts]


def _write_part(message: Message, writing: Writing) -> Entry:
    if message.role == "toolResult":
        content = _write_content(message, writing)
        has_file = isinstance(content, list)
        return {
            "tool_name": message.tool_name,
            "content": content,
            "tool_call_id": message.tool_call_id,
            "tool_kind": None,
            "metadata": message.details,
            "timestamp": stamp_of(message.timestamp),
            "outcome": "failed" if message.is_error else "success",
            "retry": None,
            "part_kind": "tool-return",
            **({"content_file_digests": []} if has_file else {}),
        }
    if len(message.content) == 1 and isinstance(block := message.content[0], NativeContent) and block.protocol == NAME:
        return dict(block.block)
    stamp = stamp_of(message.timestamp) if isinstance(message, UserMessage) else None
    return {"content": _write_content(message, writing), "timestamp": stamp, "part_kind": "user-prompt"}


def _write_content(message: Message, writing: Writing) -> str | list[object]:
    own = [piece for piece in message.content if piece.kind == "native" and piece.protocol == NAME]
    items: list[object] = []
    for piece in message.content:
        if piece.kind == "native" and piece in own:
            items.append(dict(piece.block))
            continue
        for each in shown(message, writing, [piece]):
            if each.kind == "text":
                items.append(each.text)
            elif is_media(each):
                item = write_media_item(each)
                if item is None:
                    note_unsupported(message, writing, each, NAME)
                else:
                    items.append(item)
    if len(items) == 1 and isinstance(items[0], str):
        return items[0]
    return items or ""


def _write_response(message: AssistantMessage, writing: Writing) -> Entry:
    provider = _PROVIDERS.get(message.provider, message.provider) or None
    details = {"finish_reason": message.raw_stop_reason} if message.raw_stop_reason is not None else None
    entry: Entry = {
        "parts": [part for piece in message.content for part in _write_piece(piece, message, provider, writing)],
        "usage": _write_usage(message.usage),
        "model_name": message.model or None,
        "model_id": f"{provider}:{message.model}" if provider and message.model else None,
        "timestamp": stamp_of(message.timestamp),
        "kind": "response",
        "provider_name": provider,
        "provider_url": None,
        "canonical_system": None,
        "provider_details": details,
        "provider_response_id": message.response_id,
        "finish_reason": _FINISH.get(message.stop_reason),
        "run_id": None,
        "conversation_id": None,
        "metadata": None,
        "workspace_ref": None,
        "history_digest": None,
        "failed_attempts": None,
        "state": "interrupted" if message.stop_reason == StopReason.ABORTED else "complete",
    }
    entry["metadata"] = reply_mark(message, _origin_of(entry)) or None
    return entry


def _write_piece(
    piece: AssistantContent, message: AssistantMessage, provider: str | None, writing: Writing
) -> list[Entry]:
    own: dict[str, Any] = {"phase": piece.phase if piece.kind == "text" else None}
    own["fields"] = (piece.extra or {}).get(message.protocol)
    if piece.kind == "native" and piece.protocol != NAME and writing.settings.get(NATIVE) == "keep":
        own |= {"native": piece.block, "protocol": piece.protocol}
        piece = TextContent(text="")
    kept = {key: value for key, value in own.items() if value is not None}
    parts = _write_fields(piece, message, provider, writing)
    if kept and parts:
        parts[0]["provider_details"] = {**(parts[0].get("provider_details") or {}), SEGUE: kept}
    return parts


def _write_fields(
    piece: AssistantContent, message: AssistantMessage, provider: str | None, writing: Writing
) -> list[Entry]:
    match piece.kind:
        case "text":
            fields = _signed(piece.text_signature, message, provider)
            return [{"content": piece.text, **fields, "citations": None, "part_kind": "text"}]
        case "thinking":
            return [_write_thinking(piece, message, provider)]
        case "toolCall":
            fields = _signed(piece.thought_signature, message, provider)
            return [_write_call(piece, fields)]
        case "native":
            if piece.protocol == NAME:
                return [dict(piece.block)]
            texts = [each for each in shown(message, writing, [piece]) if each.kind == "text"]
            empty = _signed(None, message, provider)
            return [{"content": each.text, **empty, "citations": None, "part_kind": "text"} for each in texts]


def _write_call(call: ToolCall, fields: Mapping[str, Any]) -> Entry:
    text = arguments_text(call)
    kept = dict(fields)
    if call.arguments_text is not None and call.arguments_text != text:
        kept["provider_details"] = {**(kept["provider_details"] or {}), "arguments_text": call.arguments_text}
    args: object = dict(call.arguments) if call.arguments_text is None else text
    entry = {"tool_name": call.name, "args": args, "tool_call_id": call.id, "tool_kind": None}
    return {**entry, **kept, "part_kind": "tool-call"}


def _signed(signature: str | None, message: AssistantMessage, provider: str | None) -> dict[str, Any]:
    """Return the fields with the signature of a text or a call: the id of an item, else in the details."""
    item = item_of(signature) if message.protocol == "openai-responses" else {}
    item_id = text_of(item.get("id"))
    if item_id is not None and item.keys() <= {"id", "status"}:
        return {"id": item_id, "provider_name": provider, "provider_details": None}
    if signature is None:
        return {"id": None, "provider_name": None, "provider_details": None}
    return {"id": None, "provider_name": provider, "provider_details": {SIGNED_IN_DETAILS: signature}}


def _write_thinking(piece: ThinkingContent, message: AssistantMessage, provider: str | None) -> Entry:
    item = item_of(piece.thinking_signature) if message.protocol == "openai-responses" else {}
    item_id: object = _REDACTED if piece.redacted else None
    signature, details = piece.thinking_signature, None
    if item and item.keys() <= {"id", "encrypted_content"} and not piece.redacted:
        item_id, signature = item.get("id"), item.get("encrypted_content")
    elif signature in _CHAT_FIELDS and message.protocol == "openai-chat" and not piece.redacted:
        item_id, signature = signature, None
    elif signature is not None and message.protocol == "openai-responses":
        signature, details = None, {SIGNED_IN_DETAILS: signature}
    fields = {"id": item_id, "signature": signature, "provider_name": provider, "provider_details": details}
    return {"content": piece.thinking, **fields, "part_kind": "thinking"}


def _write_usage(usage: Usage | None) -> dict[str, Any]:
    found = usage or Usage()
    cost = found.cost.total if found.cost is not None else None
    return {**(_USAGE.write(found) or {}), "cost": None if not cost else repr(cost)}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=_join)


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("kind")) in {"request", "response"} and isinstance(entry.get("parts"), list)


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    entries = list_of(value)
    if entries is None or not any(_is_message(entry) for entry in entries):
        return None
    instructions = [text for entry in entries if (text := text_of(entry.get("instructions")))]
    names = (text_of(entry.get("conversation_id")) for entry in entries)
    return EntryList(
        entries,
        id=next((name for name in names if name), None),
        system=instructions[-1] if instructions else None,
    )


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add times, because the framework would replace a missing one by the current time."""
    now = draft.started
    completed: list[Entry] = []
    for entry in entries:
        parts: list[Entry] = []
        for part in objects_of(entry.get("parts")):
            now = milliseconds_of(part.get("timestamp")) or now
            needs = "timestamp" in part and part["timestamp"] is None
            parts.append({**part, "timestamp": stamp_of(now)} if needs else part)
        now = milliseconds_of(entry.get("timestamp")) or now
        needs = entry.get("kind") == "response" and entry.get("timestamp") is None
        completed.append({**entry, "parts": parts, **({"timestamp": stamp_of(now)} if needs else {})})
    return completed


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    """Write the instructions back to the newest request that had them, or else to the newest one."""
    requests = [at for at, entry in enumerate(entries) if entry.get("kind") == "request"]
    if not requests or not has_separate_instructions(draft.history.context, CODEC.name):
        return entries
    newest = max((at for at in requests if text_of(entries[at].get("instructions"))), default=requests[-1])
    entries[newest] = {**entries[newest], "instructions": prompt_text(draft.history.context)}
    return entries


def _plain(value: object) -> object:
    """Make JSON of messages, or of the result of a run."""
    if from_package(value, "pydantic_ai") and hasattr(value, "all_messages"):
        result: Any = value
        value = result.all_messages()
    if not from_package(value, "pydantic_ai"):
        return value
    adapter: Any = import_module("pydantic_ai.messages")
    data = adapter.ModelMessagesTypeAdapter.dump_json(items_of(value) or [value])
    return msgspec.json.decode(data)


def _give(files: tuple[WrittenFile, ...]) -> object:
    adapter: Any = import_module("pydantic_ai.messages")
    return adapter.ModelMessagesTypeAdapter.validate_json(files[0].data)


FRAMEWORK: Final = Framework(
    codec=CODEC, title="pydantic-ai", open=_open, close=_close, complete=_complete, plain=_plain
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="pydantic-ai 2.66.0, run against a scripted model",
)
