"""The record of Microsoft's Agent Framework: a list of `Message.to_dict()`.

`Message` of Microsoft's Agent Framework: a role and contents.

Facts (agent-framework-core 1.23.0, 2026-11-15):
- Contents have a type: text, text_reasoning with `protected_data`, data, uri, function_call, function_result, usage.
- A result that failed has `exception`; its text is in `result` and in `items`.
- `additional_properties` of messages and contents are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from segue.conversation.content import TextContent
from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
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
from segue.histories.kit.pieces import stop_of, texts_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import ContentForms, Template, TemplateJson, write_turns
from segue.projection.report import ChangeCode, Loss

NAME: Final = "agent-framework"
TITLE: Final = "Agent Framework"
_MORE: Final = "additional_properties"
_MEDIA: Final[tuple[TemplateJson, ...]] = (
    {"type": "data", "uri": "$data_url!", "media_type": "$any_type", _MORE: {}},
    {"type": "uri", "uri": "$url!", "media_type": "$any_type", _MORE: {}},
    {"type": "hosted_file", "file_id": "$file_id!", "media_type": "$mime_type?", _MORE: {}},
)
_FORMS: Final = ContentForms(
    NAME,
    TITLE,
    tag="type",
    text={"type": "text", "text": "$text", _MORE: {}},
    thinking={"type": "text_reasoning", "text": "$thinking"}
    | {"protected_data": "$thinking_signature?", _MORE: {"redacted": "$redacted?"}},
    toolCall={"type": "function_call", "call_id": "$id", "name": "$name", "arguments": "$arguments_or_text"}
    | {"hosted": False, _MORE: {"signature": "$thought_signature?"}},
    media=_MEDIA,
)
_USAGE: Final = Template(
    "usage",
    {"input_token_count": "$whole_input", "output_token_count": "$output", "total_token_count": "$total_tokens"}
    | {"cache_read_input_token_count": "$cache_read?"},
)


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a message needs nothing around it
    entry = run[0]
    role = entry.get("role")
    contents = objects_of(entry.get("contents"))
    match text_of(role) or text_of(object_of(role).get("value")):
        case "system" | "developer":
            return [SystemMessage(content=_FORMS.read_texts(contents))]
        case "user":
            return [UserMessage(content=_FORMS.read_content(contents))]
        case "tool":
            return [_read_result(each) for each in contents if each.get("type") == "function_result"]
        case "assistant":
            return [_read_reply(contents, object_of(entry.get(_MORE)))]
        case _:
            return []


def _read_result(each: Mapping[str, Any]) -> ToolResultMessage:
    content = _FORMS.read_content(objects_of(each.get("items")))
    failed = each.get("exception")
    if all(piece == TextContent(text="") for piece in content):
        text = text_of(each.get("result")) or (str(failed) if failed else "")
        content = (TextContent(text=text),) if text else ()
    call_id = text_of(each.get("call_id")) or ""
    return ToolResultMessage(tool_call_id=call_id, content=content, is_error=bool(failed))


def _read_reply(contents: list[dict[str, Any]], more: Mapping[str, Any]) -> AssistantMessage:
    pieces = _FORMS.read_reply(contents)
    usages = [_USAGE.read(object_of(each.get("usage_details"))) for each in contents if each.get("type") == "usage"]
    message = AssistantMessage(
        content=tuple(pieces), usage=usages[-1] if usages else None, stop_reason=stop_of(None, pieces)
    )
    return set_origin(message, marked_origin(_origin_of(more), more))


def _origin_of(more: Mapping[str, Any]) -> Origin:
    return find_origin(text_of(more.get("model")) or "")


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    def reply(message: AssistantMessage) -> Entry:
        contents = _FORMS.write(message, writing)
        if message.usage is not None:
            contents.append({"type": "usage", "usage_details": _USAGE.write(message.usage), _MORE: {}})
        more: Entry = {"model": message.model} if message.model else {}
        return _entry("assistant", contents, {**more, **origin_mark(message, _origin_of(more))})

    return write_turns(
        messages,
        reply=reply,
        results=lambda run: _entry("tool", [_write_result(each, writing) for each in run]),
        other=lambda message: _entry(message.role, _FORMS.write(message, writing)),
    )


def _entry(role: str, contents: list[Entry], more: Mapping[str, Any] | None = None) -> Entry:
    return {"type": "message", "role": role, "contents": contents, _MORE: more or {}}


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    text = texts_of(message)
    items = _FORMS.write(message, writing) or [{"type": "text", "text": text, _MORE: {}}]
    # The framework replaces any other name.
    failed = {"exception": "FunctionInvocationError"} if message.is_error else {}
    if message.is_error and not text:
        writing.note(message, ChangeCode.RESULT_FILLED, Loss.NONE, "an error needs a text")
    call: Entry = {"type": "function_result", "call_id": message.tool_call_id}
    return {**call, **failed, "result": text, "items": items, _MORE: {}}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)


def _is_message(entry: Mapping[str, Any]) -> bool:
    return "role" in entry and isinstance(entry.get("contents"), list)


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("agent_framework")
    value = give_json(files)
    return [types.Message.from_dict(entry) for entry in items_of(object_of(value).get("messages", value))]


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=list_opener(_is_message),
    close=close_list,
    plain=dumped_by("to_dict", "agent_framework"),
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    give=_give,
    samples=read_samples(__package__),
    title="Microsoft Agent Framework",
    source="agent-framework-core 1.23.0, its own dump",
)
