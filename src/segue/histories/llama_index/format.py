"""The record of LlamaIndex: a list of `ChatMessage`, or the JSON of a `SimpleChatStore`.

`ChatMessage` of LlamaIndex: a role and blocks.

Facts (llama-index-core 0.14.25, 2026-11-15):
- Blocks have a `block_type`: text, image, document, audio, video, thinking, tool_call, cache, citations.
- Signatures and encrypted contents are in `additional_information` of a thinking block. Redacted thinking is lost by
  the framework itself; here it is a block without words.
- Versions before 0.13 have calls in `additional_kwargs.tool_calls`, as Chat has them.
- The id of the call that a result answers is in `additional_kwargs.tool_call_id`. There is no error flag, no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

from segue.conversation.content import AssistantContent, ThinkingContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, dumped_by, framework_format, give_json, list_of
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import UNKNOWN, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    item_of,
    item_signature,
    make_call,
    media_of,
    note_flag,
    stop_of,
    string_of,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms
from segue.projection.report import ChangeCode

NAME: Final = "llama-index"
TITLE: Final = "LlamaIndex"
_INFO: Final = "additional_information"
_KWARGS: Final = "additional_kwargs"
_RESPONSES: Final = Origin(protocol="openai-responses", provider="openai", model="")
_CLAUDE: Final = Origin(protocol="anthropic-messages", provider="anthropic", model="")


def _read_timed(block: Mapping[str, Any]) -> Media | None:
    kind = block["block_type"]
    mime = f"{kind}/{block.get('format') or ('wav' if kind == 'audio' else 'mp4')}"
    return media_of(mime, data=block.get(kind), url=block.get("url"))


def _read_thinking(block: Mapping[str, Any]) -> ThinkingContent:
    info = object_of(block.get(_INFO))
    signature = string_of(info.get("signature"))
    if signature is None and _origin_of([block]) is _RESPONSES:
        signature = item_signature(id=info.get("id"), encrypted_content=info.get("encrypted_content"))
    words = text_of(block.get("content")) or ""
    return ThinkingContent(thinking=words, thinking_signature=signature, redacted=info.get("redacted") is True)


def _write_thinking(piece: ThinkingContent) -> Entry:
    info: Entry = {}
    item = item_of(piece.thinking_signature)
    if item and item.keys() <= {"id", "encrypted_content"}:
        info = {**item, "type": "reasoning", "status": None}
    elif piece.thinking_signature is not None:
        info = {"signature": piece.thinking_signature, "type": "thinking"}
    if piece.redacted:
        info["redacted"] = True
    return {"block_type": "thinking", "content": piece.thinking, "num_tokens": None, _INFO: info}


_IMAGE: Final = {"block_type": "image", "image": "$base64", "path": None, "url": "$url"} | {
    "image_mimetype": "$mime_type",
    "detail": None,
}
_DOCUMENT: Final = {"block_type": "document", "data": "$base64", "path": None, "url": "$url", "title": "$name"} | {
    "document_mimetype": "$mime_type"
}
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="block_type",
    keeps=True,
    readers={"audio": _read_timed, "video": _read_timed, "thinking": _read_thinking},
    text={"block_type": "text", "text": "$text"},
    toolCall={
        "block_type": "tool_call",
        "tool_call_id": "$id",
        "tool_name": "$name",
        "tool_kwargs": "$arguments_or_text",
    },
    thinking=_write_thinking,
    image=(_IMAGE | {"image": "$base64!"}, _IMAGE | {"url": "$url!"}),
    file=(_DOCUMENT | {"data": "$base64!"}, _DOCUMENT | {"url": "$url!"}),
)


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    blocks, kwargs = objects_of(entry.get("blocks")), object_of(entry.get(_KWARGS))
    if not blocks and isinstance(entry.get("content"), str):
        blocks = [{"block_type": "text", "text": entry["content"]}]
    match text_of(entry.get("role")):
        case "system" | "developer":
            return [SystemMessage(content=_FORMS.read_texts(blocks))]
        case "user":
            return [UserMessage(content=_FORMS.read_content(blocks))]
        case "assistant" | "chatbot" | "model":
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            return [_read_assistant(blocks, kwargs)]
        case "tool" | "function":
            content = _FORMS.read_content(blocks)
            call_id, name = string_of(kwargs.get("tool_call_id")) or "", text_of(kwargs.get("name")) or ""
            return [ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content)]
        case _:
            return []


def _origin_of(blocks: Sequence[Mapping[str, Any]]) -> Origin:
    """Find who wrote a turn by the fields next to its thinking."""
    for block in blocks:
        info = object_of(block.get(_INFO))
        if "encrypted_content" in info or text_of(info.get("type")) == "reasoning":
            return _RESPONSES
        if "signature" in info:
            return _CLAUDE
    return UNKNOWN


def _read_assistant(blocks: list[dict[str, Any]], kwargs: Mapping[str, Any]) -> AssistantMessage:
    origin = marked_origin(_origin_of(blocks), kwargs)
    pieces = _FORMS.read_reply(blocks)
    if all(piece.kind != "toolCall" for piece in pieces):
        calls = [*objects_of(kwargs.get("tool_calls")), object_of(kwargs.get("function_call"))]
        pieces += [_read_kwargs_call(call) for call in calls if call]
    return set_origin(AssistantMessage(content=tuple(pieces), stop_reason=stop_of(None, pieces)), origin)


def _read_kwargs_call(call: Mapping[str, Any]) -> AssistantContent:
    """Read a call in the form of Chat, which older versions stored next to the blocks."""
    function = object_of(call.get("function")) or call
    call_id = call.get("id") or call.get("tool_call_id")
    return make_call(call_id, function.get("name"), function.get("arguments"))


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [_write_message(message, writing) for message in messages]


def _write_message(message: Message, writing: Writing) -> Entry:
    kwargs: Entry = {}
    if message.role == "toolResult":
        note_flag(message, writing, TITLE)
        kwargs = {"tool_call_id": message.tool_call_id}
        kwargs |= {"name": message.tool_name} if message.tool_name else {}
    blocks = _FORMS.write(message, writing)
    if isinstance(message, AssistantMessage):
        kwargs |= origin_mark(message, _origin_of(blocks))
    role = {"toolResult": "tool"}.get(message.role, message.role)
    return {"role": role, _KWARGS: kwargs, "blocks": blocks}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)


def _is_message(entry: Mapping[str, Any]) -> bool:
    return text_of(entry.get("role")) is not None and isinstance(entry.get("blocks"), list)


def _open(value: object, session: str | None) -> EntryList | None:
    store = object_of(object_of(value).get("store"))
    rest: dict[str, Any] = {}
    key: str | None = None
    if store:
        key = session if session in store else next(iter(store))
        rest = {"whole": {**object_of(value), "store": {**store, key: None}}, "key": key}
        value = cast("object", store[key])
    entries = list_of(value)
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    return EntryList(entries, rest, id=key, others=max(0, len(store) - 1))


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    whole, key = object_of(rest.get("whole")), rest.get("key")
    return {**whole, "store": {**object_of(whole.get("store")), key: entries}} if whole else entries


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("llama_index.core.llms")
    document = _open(give_json(files), None)
    return [types.ChatMessage.model_validate(entry) for entry in ([] if document is None else document.entries)]


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=_open, close=_close, plain=dumped_by("model_dump_json", "llama_index")
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="llama-index-core 0.14.25, run against a scripted model",
)
