"""The record of Inspect AI: the messages of a sample in an evaluation log, or a list of messages.

Messages of Inspect AI, in an evaluation log or alone.

Facts (inspect-ai 0.3.285, 2026-11-15):
- Images and long texts of a log are stored once, in `attachments`, and named `attachment://<hash>`.
- A reasoning block that is `redacted` has the signature or the encrypted content in `reasoning` and the words in
  `summary`; `signature` is then the id of a Responses item. Otherwise `reasoning` has the words.
- A result that failed has `error {type, message}`, and an empty content; the message is sent.
- `model` names the model of a turn without its provider. Usage is counted for the whole sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

from segue.conversation.content import (
    AssistantContent,
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
    UserMessage,
)
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_of,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    image_of,
    item_of,
    item_signature,
    make_call,
    media_address,
    media_of,
    note_signatures,
    shown,
    string_of,
    texts_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.stamps import milliseconds_of
from segue.histories.kit.templates import ContentForms

NAME: Final = "inspect-ai"
TITLE: Final = "Inspect AI"
_MEDIA: Final[Mapping[str, str]] = {"audio": "audio/wav", "video": "video/mp4"}


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a message needs nothing around it
    entry = run[0]
    content = entry.get("content")
    match text_of(entry.get("role")):
        case "system":
            texts = tuple(piece for piece in _read_content(content) if isinstance(piece, TextContent))
            return [SystemMessage(content=texts)]
        case "user":
            return [UserMessage(content=_read_content(content))]
        case "tool":
            return [_read_result(entry)]
        case "assistant":
            return [_read_assistant(entry)]
        case _:
            return []


def _read_content(content: object) -> tuple[UserContent, ...]:
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    return _FORMS.read_content(block for block in objects_of(content) if block)


def _read_media(block: Mapping[str, Any]) -> Media | None:
    kind = block["type"]
    if kind == "image":
        return image_of(None, url=block.get(kind))
    mime = block.get("mime_type")
    if kind in _MEDIA:
        mime = f"audio/{block['format']}" if kind == "audio" and text_of(block.get("format")) else _MEDIA[kind]
    return media_of(mime, url=block.get(kind), name=block.get("filename") if kind == "document" else None)


def _read_result(entry: Entry) -> ToolResultMessage:
    error = object_of(entry.get("error"))
    content = _read_content(entry.get("content"))
    if error and not content and (text := text_of(error.get("message"))):
        content = (TextContent(text=text),)
    return ToolResultMessage(
        tool_call_id=text_of(entry.get("tool_call_id")) or "",
        tool_name=text_of(entry.get("function")) or "",
        content=content,
        is_error=bool(error),
    )


def _read_assistant(entry: Entry) -> AssistantMessage:
    origin = marked_origin(find_origin(text_of(entry.get("model")) or ""), object_of(entry.get("metadata")))
    content = entry.get("content")
    pieces: list[AssistantContent] = [TextContent(text=content)] if isinstance(content, str) and content else []
    pieces += [_read_piece(object_of(block), origin) for block in items_of(content) if object_of(block)]
    calls = [
        make_call(call.get("id"), call.get("function"), call.get("arguments"))
        for call in objects_of(entry.get("tool_calls"))
    ]
    stop = StopReason.TOOL_USE if calls else StopReason.STOP
    return set_origin(AssistantMessage(content=(*pieces, *calls), stop_reason=stop), origin)


def _read_piece(block: Mapping[str, Any], origin: Origin) -> AssistantContent:
    is_item = origin.protocol == "openai-responses"
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        item = text_of(object_of(block.get("internal")).get("message_id")) if is_item else None
        signature = None if item is None else item_signature(id=item, status="completed")
        return TextContent(text=block["text"], text_signature=signature)
    if block.get("type") != "reasoning":
        return NativeContent(protocol=NAME, block=dict(block))
    reasoning, summary = string_of(block.get("reasoning")) or "", string_of(block.get("summary"))
    signature = string_of(block.get("signature"))
    if block.get("redacted") is not True:
        if is_item and signature is not None and signature.startswith("rs_"):
            signature = item_signature(id=signature)
        return ThinkingContent(thinking=reasoning, thinking_signature=signature)
    if is_item:
        whole = string_of(object_of(block.get("internal")).get("signature"))
        item = whole or item_signature(id=signature, encrypted_content=reasoning)
        return ThinkingContent(thinking=summary or "", thinking_signature=item)
    return ThinkingContent(thinking=summary or "", thinking_signature=reasoning, redacted=summary is None)


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [_write_message(message, writing) for message in messages]


def _write_message(message: Message, writing: Writing) -> Entry:
    match message.role:
        case "assistant":
            return _write_assistant(message, writing)
        case "toolResult":
            return _write_result(message, writing)
        case "user" | "system":
            return {"content": _write_content(message, writing), "role": message.role}


def _write_content(message: Message, writing: Writing) -> str | list[Entry]:
    blocks = _FORMS.write(message, writing)
    if len(blocks) == 1 and blocks[0].get("type") == "text" and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks or ""


def _write_media(piece: Media) -> Entry | None:
    address = media_address(piece)
    if address is None:  # a file that only the provider has: a document is a path, an address or data
        return None
    if piece.kind == "image":
        return {"type": "image", "image": address, "detail": "auto"}
    kind, _, rest = (piece.mime_type or "").partition("/")
    formats = {"audio": {"wav", "mp3"}, "video": {"mp4", "mpeg", "mov"}}
    if rest in formats.get(kind, set()):
        return {"type": kind, kind: address, "format": rest}
    name = piece.name or (address.rpartition("/")[2] if piece.data is None else f"document.{rest or 'bin'}")
    block: Entry = {"type": "document", "document": address, "filename": name}
    mime = {} if piece.mime_type is None else {"mime_type": piece.mime_type}
    return {**block, **mime, "citations": False}


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    text = texts_of(message)
    only_text = all(piece.kind == "text" for piece in message.content)
    content = "" if message.is_error and only_text else _write_content(message, writing)
    entry: Entry = {"content": content, "role": "tool", "tool_call_id": message.tool_call_id}
    if message.tool_name:
        entry["function"] = message.tool_name
    return {**entry, "error": {"type": "unknown", "message": text}} if message.is_error else entry


def _write_assistant(message: AssistantMessage, writing: Writing) -> Entry:
    blocks: list[Entry] = []
    calls: list[Entry] = []
    for piece in message.content:
        match piece.kind:
            case "toolCall":
                calls.append(_write_call(piece))
            case "thinking":
                blocks.append(_write_thinking(piece, message))
            case "text":
                blocks.append(_write_text(piece, message))
            case "native":
                if piece.protocol == NAME:
                    blocks.append(dict(piece.block))
                else:
                    texts = (each for each in shown(message, writing, [piece]) if each.kind == "text")
                    blocks += [{"type": "text", "text": each.text} for each in texts]
    if any(call.thought_signature for call in message.tool_calls()):
        note_signatures(message, writing, TITLE)
    content: object = blocks or ""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        content = blocks[0]["text"]
    entry: Entry = {"content": content, "source": "generate", "role": "assistant"}
    if calls:
        entry["tool_calls"] = calls
    if message.model:
        entry["model"] = message.model
    if mark := origin_mark(message, find_origin(message.model)):
        entry["metadata"] = mark
    return entry


def _write_call(call: ToolCall) -> Entry:
    return {"id": call.id, "function": call.name, "arguments": dict(call.arguments), "type": "function"}


def _write_text(piece: TextContent, message: AssistantMessage) -> Entry:
    block: Entry = {"type": "text", "text": piece.text}
    item = item_of(piece.text_signature) if message.protocol == "openai-responses" else {}
    name = text_of(item.get("id"))
    return block if name is None else {"internal": {"message_id": name}, **block}


def _write_thinking(piece: ThinkingContent, message: AssistantMessage) -> Entry:
    signature = piece.thinking_signature
    item = item_of(signature) if message.protocol == "openai-responses" else {}
    if isinstance(item.get("encrypted_content"), str):
        block: Entry = {"type": "reasoning", "reasoning": item["encrypted_content"], "summary": piece.thinking}
        block |= {"signature": item["id"]} if isinstance(item.get("id"), str) else {}
        block |= {} if item.keys() <= {"id", "encrypted_content"} else {"internal": {"signature": signature}}
        return {**block, "redacted": True}
    if item.keys() == {"id"}:
        return {"type": "reasoning", "reasoning": piece.thinking, "signature": item["id"], "redacted": False}
    if signature is not None and message.protocol == "anthropic-messages":
        summary = {} if piece.redacted and not piece.thinking else {"summary": piece.thinking}
        return {"type": "reasoning", "reasoning": signature, **summary, "redacted": True}
    block = {"type": "reasoning", "reasoning": piece.thinking}
    return {**block, **({} if signature is None else {"signature": signature}), "redacted": False}


_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="type",
    readers=dict.fromkeys(("image", "audio", "video", "document"), _read_media),
    keeps=True,
    text={"type": "text", "text": "$text"},
    image=_write_media,
    file=_write_media,
)
CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)


_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_ATTACHMENT: Final = "attachment://"
_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _replaced(value: object, names: Mapping[str, str]) -> object:
    """Replace texts in a value; used to resolve attachments, and to write them again."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_replaced(item, names) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _replaced(item, names) for key, item in object_of(cast("object", value)).items()}
    return value


def _texts_in(value: object) -> set[str]:
    if isinstance(value, str):
        return {value} if value.startswith(_ATTACHMENT) else set()
    inner = object_of(value).values() or items_of(value)
    return {text for item in inner for text in _texts_in(item)}


def _attachments(sample: Mapping[str, Any]) -> dict[str, str]:
    stored = object_of(sample.get("attachments"))
    return {f"{_ATTACHMENT}{name}": text for name, text in stored.items() if isinstance(text, str)}


def _open(value: object, session: str | None) -> EntryList | None:
    whole = object_of(value)
    if not whole:
        entries = list_of(value)
        found = entries and any(text_of(entry.get("role")) in _ROLES for entry in entries)
        return EntryList(entries) if entries and found else None
    samples_ = objects_of(whole.get("samples")) if "samples" in whole else [whole] if "attachments" in whole else []
    if not samples_:
        return None
    chosen = [at for at, sample in enumerate(samples_) if str(sample.get("id")) == session] or [0]
    sample = samples_[chosen[0]]
    entries = list_of(_replaced(sample.get("messages"), _attachments(sample)))
    if entries is None:
        return None
    return EntryList(
        entries,
        {"log": value, "at": chosen[0]},
        id=text_of(sample.get("uuid")),
        created=milliseconds_of(sample.get("started_at")),
        updated=milliseconds_of(sample.get("completed_at")),
        others=len(samples_) - 1,
    )


def _complete(entries: list[Entry], draft: Draft) -> list[Entry]:
    """Add ids: 22 characters, as the framework makes them."""
    completed: list[Entry] = []
    for at, entry in enumerate(entries):
        digest = hashlib.sha256(f"{draft.id} {at}".encode()).digest()
        made = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:22])
        completed.append(entry if "id" in entry else {"id": made, **entry})
    return completed


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    log, at = object_of(rest.get("log")), rest.get("at")
    if not log or not isinstance(at, int):
        return entries
    samples_ = items_of(log["samples"]) if "samples" in log else [log]
    sample = object_of(samples_[at])
    used = _texts_in(sample.get("messages"))
    names = {text: name for name, text in _attachments(sample).items() if name in used}
    samples_[at] = {**sample, "messages": _replaced(entries, names)}
    return {**log, "samples": samples_} if "samples" in log else samples_[at]


def _give(files: tuple[WrittenFile, ...]) -> object:
    model: Any = import_module("inspect_ai.model")
    pydantic: Any = import_module("pydantic")
    whole = give_json(files)
    document = _open(whole, None)
    entries: list[Entry] = [] if document is None else document.entries
    return pydantic.TypeAdapter(list[model.ChatMessage]).validate_python(entries)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    close=_close,
    complete=_complete,
    plain=dumped_by("model_dump_json", "inspect_ai", alone=True, exclude_none=True),
    file_name="messages.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="inspect-ai 0.3.285, run against a scripted model",
)
