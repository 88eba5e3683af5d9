"""The record of AG-UI: a list of messages, or the input of a run.

Messages of AG-UI.

Facts (ag-ui-protocol 1.0.0, and pydantic-ai's adapter for it, 2026-11-15):
- Thinking is a separate message, of the role `reasoning`, before the answer; opaque data is in `encryptedValue`,
  which pydantic-ai fills with JSON: id, signature, provider_name.
- Calls are in `toolCalls` of the assistant, with arguments as JSON text; a result is a message of the role `tool`, with
  one text and `error` where it failed.
- Every message has an id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, runs_of
from segue.histories.kit.framework import (
    Framework,
    add_ids,
    close_list,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_opener,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    arguments_text,
    encode_json,
    is_media,
    item_of,
    item_signature,
    make_call,
    note_unsupported,
    read_media,
    shown,
    stop_of,
    string_of,
    texts_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms
from segue.projection.report import ChangeCode, Loss

NAME: Final = "ag-ui"
TITLE: Final = "AG-UI"
_OPAQUE: Final = "encryptedValue"
_REDACTED: Final = "redacted_thinking"
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="type",
    text={"type": "text", "text": "$text"},
    media=[
        {"type": "$modality", "source": {"type": "data", "value": "$data!", "mimeType": "$any_type"}},
        {"type": "$modality", "source": {"type": "url", "value": "$url!", "mimeType": "$mime_type?"}},
    ],
)


def _split(entries: list[Entry]) -> list[list[Entry]]:
    """Group reasoning with the answer that it belongs to."""
    answers = ("reasoning", "assistant")
    return runs_of(entries, lambda before, each: before.get("role") == "reasoning" and each.get("role") in answers)


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    match text_of(entry.get("role")):
        case "system" | "developer":
            return [SystemMessage(content=(TextContent(text=text_of(entry.get("content")) or ""),))]
        case "user":
            return [UserMessage(content=_read_content(entry.get("content")))]
        case "tool":
            text = text_of(entry.get("content")) or text_of(entry.get("error")) or ""
            return [
                ToolResultMessage(
                    tool_call_id=text_of(entry.get("toolCallId")) or "",
                    content=(TextContent(text=text),) if text else (),
                    is_error=bool(entry.get("error")),
                )
            ]
        case "assistant" | "reasoning":
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            return [_read_assistant(run)]
        case _:
            return []


def _read_content(content: object) -> tuple[UserContent, ...]:
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    found: list[UserContent] = []
    for item in items_of(content):
        block = object_of(item)
        if isinstance(block.get("text"), str):
            found.append(TextContent(text=block["text"]))
        elif block.get("type") == "binary":
            data, url = block.get("data"), block.get("url")
            media = read_media({**block, "type": "media", "data": data, "url": url, "file_id": block.get("id")})
            found += [] if media is None else [media]
        elif (media := read_media(block)) is not None:
            found.append(media)
    return tuple(found)


def _opaque(entry: Mapping[str, Any]) -> dict[str, Any]:
    return item_of(string_of(entry.get(_OPAQUE)))


def _origin_of(run: Sequence[Mapping[str, Any]]) -> Origin:
    names = (text_of(_opaque(entry).get("provider_name")) for entry in run)
    provider = next((name for name in names if name), "")
    return find_origin("", provider)


def _read_assistant(run: list[Entry]) -> AssistantMessage:
    origin = marked_origin(_origin_of(run), object_of(run[-1].get("metadata")))
    pieces: list[AssistantContent] = []
    for entry in run:
        if entry.get("role") == "reasoning":
            pieces.append(_read_thinking(entry, origin))
            continue
        pieces += [piece for piece in _read_content(entry.get("content")) if isinstance(piece, TextContent)]
        for call in objects_of(entry.get("toolCalls")):
            function = object_of(call.get("function"))
            signature = string_of(_opaque(call).get("signature"))
            pieces.append(
                make_call(call.get("id"), function.get("name"), function.get("arguments"), signature=signature)
            )
    return set_origin(AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces)), origin)


def _read_thinking(entry: Entry, origin: Origin) -> ThinkingContent:
    opaque = _opaque(entry)
    words, own, name = text_of(entry.get("content")) or "", string_of(opaque.get("signature")), opaque.get("id")
    signature = own if opaque else string_of(entry.get(_OPAQUE))
    if origin.protocol == "openai-responses" and text_of(name) is not None:
        signature = item_signature(id=name, encrypted_content=own)
    return ThinkingContent(thinking=words, thinking_signature=signature, redacted=name == _REDACTED)


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [entry for message in messages for entry in _write_message(message, writing)]


def _write_message(message: Message, writing: Writing) -> list[Entry]:
    match message.role:
        case "system":
            texts = [piece.text for piece in shown(message, writing) if piece.kind == "text"]
            if len(texts) > 1:
                writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for instructions")
            return [{"role": "system", "content": "\n".join(texts)}]
        case "user":
            return [{"role": "user", "content": _write_content(message, writing)}]
        case "toolResult":
            return [_write_result(message, writing)]
        case "assistant":
            return _write_assistant(message, writing)


def _write_content(message: Message, writing: Writing) -> str | list[Entry]:
    blocks = _FORMS.write(message, writing)
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks or ""


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    text = texts_of(message)
    for piece in shown(message, writing):
        if is_media(piece):
            note_unsupported(message, writing, piece, TITLE)
    entry: Entry = {"role": "tool", "content": text, "toolCallId": message.tool_call_id}
    if message.is_error and not text:
        writing.note(message, ChangeCode.RESULT_FILLED, Loss.NONE, "an error needs a text")
    return {**entry, "error": text or "error"} if message.is_error else entry


def _write_assistant(message: AssistantMessage, writing: Writing) -> list[Entry]:
    entries: list[Entry] = [_write_thinking(piece, message) for piece in message.content if piece.kind == "thinking"]
    texts = [piece.text for piece in shown(message, writing) if piece.kind == "text"]
    if len(texts) > 1:
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each answer")
    answer: Entry = {"role": "assistant"}
    if texts or not message.tool_calls():
        answer["content"] = "\n".join(texts)
    if calls := [
        _write_call(call.id, call.name, arguments_text(call), call.thought_signature) for call in message.tool_calls()
    ]:
        answer["toolCalls"] = calls
    if mark := origin_mark(message, _origin_of(entries)):
        answer["metadata"] = mark
    return [*entries, answer]


def _write_call(call_id: str, name: str, arguments: str, signature: str | None) -> Entry:
    call: Entry = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return call if signature is None else {**call, _OPAQUE: encode_json({"signature": signature})}


def _write_thinking(piece: ThinkingContent, message: AssistantMessage) -> Entry:
    entry: Entry = {"role": "reasoning", "content": piece.thinking}
    item = item_of(piece.thinking_signature) if message.protocol == "openai-responses" else {}
    opaque: Entry = {"id": _REDACTED} if piece.redacted else {}
    if item and item.keys() <= {"id", "encrypted_content"} and not piece.redacted and text_of(item.get("id")):
        opaque |= {"id": item["id"], "signature": item.get("encrypted_content")}
    elif piece.thinking_signature is not None:
        opaque["signature"] = piece.thinking_signature
    if not opaque:
        return entry
    known = {key: value for key, value in opaque.items() if value is not None}
    named = {"provider_name": message.provider} if message.provider else {}
    return {**entry, _OPAQUE: encode_json({**known, **named})}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, split=_split)


_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "reasoning", "activity"})


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("role")) in _ROLES and "id" in entry and ("content" in entry or "toolCalls" in entry)


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("ag_ui.core")
    pydantic: Any = import_module("pydantic")
    value = give_json(files)
    entries = object_of(value).get("messages", value)
    return pydantic.TypeAdapter(list[types.Message]).validate_python(entries)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(_is_message),
    close=close_list,
    complete=add_ids,
    plain=dumped_by("model_dump_json", "ag_ui", alone=True, by_alias=True, exclude_none=True),
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="ag-ui-protocol 1.0.0; dumps of pydantic-ai's adapter",
)
