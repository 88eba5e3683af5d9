"""The record of Haystack: a list of `ChatMessage.to_dict()`.

`ChatMessage` of Haystack: a role, content parts, and `meta`.

Facts (haystack-ai 3.4.0, 2026-11-15):
- A part has one key: text, image, file, reasoning, tool_call, tool_call_result. A result repeats its call in `origin`.
- `reasoning.extra` and `tool_call.extra` hold opaque data, `meta` the model and the usage of a reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

from segue.conversation.content import TextContent
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, Usage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.framework import (
    Framework,
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
from segue.histories.kit.pieces import stop_of, usage_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms, Template

NAME: Final = "haystack"
TITLE: Final = "Haystack"
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    media_in_replies=False,
    text={"text": "$text"},
    thinking={
        "reasoning": {
            "reasoning_text": "$thinking",
            "extra": {"signature": "$thinking_signature?", "redacted": "$redacted?"},
        }
    },
    toolCall={
        "tool_call": {"tool_name": "$name", "arguments": "$arguments", "id": "$id"}
        | {"extra|": {"signature": "$thought_signature?", "arguments_text": "$arguments_text?"}}
    },
    image={
        "image": {"base64_image": "$base64!", "mime_type": "$mime_type"}
        | {"detail": None, "meta": {}, "validation": False}
    },
    file={
        "file": {
            "base64_data": "$base64!",
            "mime_type": "$mime_type",
            "filename": "$name",
            "extra": {},
            "validation": False,
        }
    },
)
_RESULT: Final = Template(
    "result",
    {"origin": {"tool_name": "$tool_name", "arguments": "$content", "id": "$tool_call_id", "extra": None}}
    | {"error": "$is_error"},
)
_USAGE: Final = Template(
    "usage", {"prompt_tokens": "$whole_input", "completion_tokens": "$output", "total_tokens": "$total_tokens"}
)


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a message needs nothing around it
    entry = run[0]
    parts = objects_of(entry.get("content"))
    match text_of(entry.get("role")):
        case "system":
            return [SystemMessage(content=_FORMS.read_texts(parts))]
        case "user":
            return [UserMessage(content=_FORMS.read_content(parts))]
        case "assistant":
            return [_read_reply(parts, object_of(entry.get("meta")))]
        case "tool":
            return [_read_result(object_of(part["tool_call_result"])) for part in parts if "tool_call_result" in part]
        case _:
            return []


def _read_result(result: Mapping[str, Any]) -> ToolResultMessage:
    value = result.get("result")
    content = _FORMS.read_content(objects_of(items_of(value)))
    if not content and isinstance(value, str) and value:
        content = (TextContent(text=value),)
    return _RESULT.read(result, content)


def _read_reply(parts: Sequence[Mapping[str, Any]], meta: Mapping[str, Any]) -> AssistantMessage:
    pieces = _FORMS.read_reply(parts)
    word = meta.get("finish_reason")
    message = AssistantMessage(
        content=tuple(pieces),
        usage=_read_usage(object_of(meta.get("usage"))),
        stop_reason=stop_of(word, pieces),
        raw_stop_reason=text_of(word),
    )
    return set_origin(message, marked_origin(find_origin(text_of(meta.get("model")) or ""), meta))


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    if "prompt_tokens" in usage:
        return _USAGE.read(usage)
    read, write = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    counts = (usage.get("input_tokens"), read, write)
    whole = sum(count for count in counts if isinstance(count, int) and count > 0)
    return usage_of(whole, usage.get("output_tokens"), cache_read=read, cache_write=write)


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    return [_write_message(message, writing) for message in messages]


def _write_message(message: Message, writing: Writing) -> Entry:
    role, meta, parts = message.role, {}, _FORMS.write(message, writing) or [{"text": ""}]
    if message.role == "assistant":
        meta = _write_meta(message)
    elif message.role == "toolResult":
        call = writing.call_of(message)
        only_text = len(parts) == 1 and "text" in parts[0]
        value = parts[0]["text"] if only_text else parts
        result = {"result": value, **(_RESULT.write(message, {} if call is None else dict(call.arguments)) or {})}
        role, parts = "tool", [{"tool_call_result": result}]
    return {"role": role, "meta": meta, "name": None, "content": parts}


def _write_meta(message: AssistantMessage) -> Entry:
    meta: Entry = {}
    if message.model:
        meta["model"] = message.model
    if message.raw_stop_reason is not None:
        meta["finish_reason"] = message.raw_stop_reason
    if message.usage is not None:
        meta["usage"] = _USAGE.write(message.usage)
    return {**meta, **origin_mark(message, find_origin(message.model))}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)


def _is_message(entry: Mapping[str, Any]) -> bool:
    content = entry.get("content")
    untyped = (
        all("type" not in object_of(part) for part in cast("list[object]", content))
        if isinstance(content, list)
        else False
    )
    return text_of(entry.get("role")) is not None and "meta" in entry and untyped


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("haystack.dataclasses")
    value = give_json(files)
    return [types.ChatMessage.from_dict(entry) for entry in items_of(object_of(value).get("messages", value))]


FRAMEWORK: Final = Framework(
    codec=CODEC, title=TITLE, open=list_opener(_is_message), close=close_list, plain=dumped_by("to_dict", "haystack")
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    source="haystack-ai 3.4.0, its own dump",
)
