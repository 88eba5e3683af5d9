"""The record of Semantic Kernel: `ChatHistory.serialize()`.

`ChatMessageContent` of Semantic Kernel for Python: a role, and items.

Facts (semantic-kernel 1.45.0, run against a scripted model, 2026-11-17):
- `content_type` is the type of an item. The name of a function is `plugin-function`; its arguments are JSON text or an
  object. A tool message has one result, which is a text; only the text says that a function failed.
- `ai_model_id` is the model that was asked, `metadata.usage` its usage. The connectors of Google keep the signature of
  a call in the `metadata` of the item.
- Items `reasoning` come from agents over the Responses API. The connector of Chat Completions would send them as a part
  of a type that OpenAI refuses, so thinking is written to `metadata` of the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from segue.conversation.content import TextContent
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
from segue.histories.kit.framework import Framework, dumped_by, framework_format, list_opener
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    encode_json,
    is_media,
    note_flag,
    note_unsupported,
    read_thoughts,
    shown,
    stop_of,
    texts_of,
    write_thought,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms, Template

NAME: Final = "semantic-kernel"
TITLE: Final = "Semantic Kernel"
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="content_type",
    keeps=True,
    text={"content_type": "text", "metadata": {}, "text": "$text"},
    thinking={"content_type": "reasoning", "metadata": {}, "text": "$thinking"},
    toolCall={
        "content_type": "function_call",
        "metadata": {"thought_signature": "$thought_signature?"},
        "id": "$id",
        "name": "$name",
        "arguments": "$arguments_or_text",
    },
    image=[
        {"content_type": "image", "metadata": {}, "data_uri": "$data_url!"},
        {"content_type": "image", "metadata": {}, "uri": "$url!", "data_uri": ""},
    ],
    file=[
        {"content_type": "binary", "metadata": {}, "data_uri": "$data_url!"},
        {"content_type": "audio", "metadata": {}, "data_uri": "$data_url!"},
        {"content_type": "file_reference", "metadata": {}, "file_id": "$file_id!", "tools": []},
        {"content_type": "binary", "metadata": {}, "uri": "$url!", "data_uri": ""},
    ],
)
_RESULT: Final = Template(
    "result",
    {
        "content_type": "function_result",
        "metadata": {},
        "id": "$tool_call_id",
        "name": "$tool_name",
        "result": "$content",
    },
)
_REASONS: Final = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_USE: "tool_calls",
}
_USAGE: Final = Template("usage", {"prompt_tokens": "$whole_input", "completion_tokens": "$output"})


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a message needs nothing around it
    entry = run[0]
    parts = objects_of(entry.get("items"))
    match text_of(entry.get("role")):
        case "system" | "developer":
            return [SystemMessage(content=_FORMS.read_texts(parts))]
        case "user":
            return [UserMessage(content=_FORMS.read_content(parts))]
        case "assistant":
            return [_read_reply(entry)]
        case "tool":
            return [_read_result(part) for part in parts if part.get("content_type") == "function_result"]
        case _:
            return []


def _read_result(part: Entry) -> ToolResultMessage:
    value = part.get("result")
    text = value if isinstance(value, str) else "" if value is None else encode_json(value)
    return _RESULT.read(part, (TextContent(text=text),) if text else ())


def _read_reply(entry: Entry) -> AssistantMessage:
    pieces, meta = _FORMS.read_reply(objects_of(entry.get("items"))), object_of(entry.get("metadata"))
    read_thoughts(pieces, meta.get("thinking"))
    word = text_of(entry.get("finish_reason"))
    message = AssistantMessage(
        content=tuple(pieces),
        usage=_USAGE.read(object_of(meta.get("usage"))),
        stop_reason=stop_of(word, pieces),
        raw_stop_reason=word,
    )
    return set_origin(message, marked_origin(find_origin(text_of(entry.get("ai_model_id")) or ""), meta))


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [_write_message(message, writing) for message in messages]


def _write_message(message: Message, writing: Writing) -> Entry:
    entry: Entry = {"content_type": "message", "metadata": {}, "role": message.role}
    if message.role == "toolResult":
        return {**entry, "role": "tool", "items": [_write_result(message, writing)]}
    items = [item for item in _FORMS.write(message, writing) if item.get("content_type") != "reasoning"]
    if message.role == "assistant":
        entry["metadata"] = _write_metadata(message)
        fields = {"ai_model_id": message.model, "finish_reason": _write_reason(message)}
        entry |= {key: value for key, value in fields.items() if value}
        items = [_with_function(item) if item.get("content_type") == "function_call" else item for item in items]
    return {**entry, "items": items}


def _with_function(item: Entry) -> Entry:
    """Add the parts of the name of a function, as Semantic Kernel does."""
    plugin, dash, function = item["name"].partition("-")
    return {**item, "function_name": function, "plugin_name": plugin} if dash else {**item, "function_name": plugin}


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    for piece in shown(message, writing):
        if is_media(piece):
            note_unsupported(message, writing, piece, TITLE)
    note_flag(message, writing, TITLE)
    return _with_function(_RESULT.write(message, texts_of(message)) or {})


def _write_metadata(message: AssistantMessage) -> Entry:
    metadata: Entry = origin_mark(message, find_origin(message.model))
    if message.usage is not None:
        metadata["usage"] = _USAGE.write(message.usage)
    pieces = enumerate(message.content)
    if thoughts := [write_thought(piece, at) for at, piece in pieces if piece.kind == "thinking"]:
        metadata["thinking"] = thoughts
    return metadata


def _write_reason(message: AssistantMessage) -> str | None:
    word = message.raw_stop_reason
    return word if word in _REASONS.values() else _REASONS.get(message.stop_reason)


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)


def _give(files: tuple[WrittenFile, ...]) -> object:
    contents: Any = import_module("semantic_kernel.contents")
    return contents.ChatHistory.restore_chat_history(files[0].data.decode())


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    return {"messages": entries, **object_of(rest.get("around"))}


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(lambda entry: isinstance(entry.get("items"), list)),
    close=_close,
    plain=dumped_by("model_dump_json", "semantic_kernel", alone=True, exclude_none=True),
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="semantic-kernel 1.45.0, run against a scripted model",
    read_on="2026-11-17",
)
