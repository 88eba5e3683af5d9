"""`Message` of Microsoft's Agent Framework: a role and contents.

Facts this file rests on (agent-framework-core 1.23.0, 2026-11-15):
- Contents have a type: text, text_reasoning with `protected_data`, data, uri, function_call, function_result, usage.
- A result that failed has `exception`; its text is in `result` and in `items`.
- `additional_properties` of messages and contents are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import AssistantContent, FileContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    arguments_text,
    is_media,
    make_call,
    media_address,
    media_of,
    note_unsupported,
    shown,
    string_of,
    texts_of,
    usage_of,
    whole_input,
)
from segue.projection.report import ChangeCode, Loss

NAME: Final = "agent-framework"
TITLE: Final = "Agent Framework"
_MORE: Final = "additional_properties"


def _read(run: list[Entry], reading: Reading) -> list[Message]:  # noqa: ARG001 - a message needs nothing around it
    entry = run[0]
    role = entry.get("role")
    contents = objects_of(entry.get("contents"))
    match text_of(role) or text_of(object_of(role).get("value")):
        case "system" | "developer":
            return [SystemMessage(content=tuple(TextContent(text=text) for text in _texts(contents)))]
        case "user":
            return [UserMessage(content=_read_contents(contents))]
        case "tool":
            return [_read_result(each) for each in contents if each.get("type") == "function_result"]
        case "assistant":
            return [_read_assistant(contents, object_of(entry.get(_MORE)))]
        case _:
            return []


def _texts(contents: Sequence[Mapping[str, Any]]) -> list[str]:
    return [each["text"] for each in contents if each.get("type") == "text" and isinstance(each.get("text"), str)]


def _read_contents(contents: Sequence[Mapping[str, Any]]) -> tuple[UserContent, ...]:
    found: list[UserContent] = []
    for each in contents:
        if each.get("type") == "text":
            found.append(TextContent(text=text_of(each.get("text")) or ""))
        elif text_of(each.get("type")) in {"data", "uri", "hosted_file"}:
            media = media_of(each.get("media_type"), url=each.get("uri"), file_id=each.get("file_id"))
            found += [] if media is None else [media]
    return tuple(found)


def _read_result(each: Mapping[str, Any]) -> ToolResultMessage:
    content = _read_contents(objects_of(each.get("items")))
    if all(piece == TextContent(text="") for piece in content):
        content = ()
    result = each.get("result")
    if not content and isinstance(result, str) and result:
        content = (TextContent(text=result),)
    failed = each.get("exception")
    if failed and not content:
        content = (TextContent(text=str(failed)),)
    call_id = text_of(each.get("call_id")) or ""
    return ToolResultMessage(tool_call_id=call_id, content=content, is_error=bool(failed))


def _read_assistant(contents: list[dict[str, Any]], more: Mapping[str, Any]) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    usage: Usage | None = None
    for each in contents:
        own = object_of(each.get(_MORE))
        match text_of(each.get("type")):
            case "text":
                pieces.append(TextContent(text=text_of(each.get("text")) or ""))
            case "text_reasoning":
                signature, words = string_of(each.get("protected_data")), text_of(each.get("text")) or ""
                redacted = own.get("redacted") is True
                pieces.append(ThinkingContent(thinking=words, thinking_signature=signature, redacted=redacted))
            case "function_call":
                signature = string_of(own.get("signature"))
                pieces.append(
                    make_call(each.get("call_id"), each.get("name"), each.get("arguments"), signature=signature)
                )
            case "usage":
                usage = _read_usage(object_of(each.get("usage_details")))
            case _:
                pass
    calls = any(piece.kind == "toolCall" for piece in pieces)
    stop = StopReason.TOOL_USE if calls else StopReason.STOP
    message = AssistantMessage(content=tuple(pieces), usage=usage, stop_reason=stop)
    return set_origin(message, marked_origin(_origin_of(more), more))


def _origin_of(more: Mapping[str, Any]) -> Origin:
    return find_origin(text_of(more.get("model")) or "")


def _read_usage(details: Mapping[str, Any]) -> Usage | None:
    cached = details.get("cache_read_input_token_count")
    total = details.get("total_token_count")
    return usage_of(details.get("input_token_count"), details.get("output_token_count"), cache_read=cached, total=total)


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for run in results_together(messages):
        first, more = run[0], {}
        if isinstance(first, AssistantMessage):
            contents = _write_assistant(first, writing)
            more = {"model": first.model} if first.model else {}
            more |= origin_mark(first, _origin_of(more))
        elif isinstance(first, ToolResultMessage):
            contents = [_write_result(each, writing) for each in run if isinstance(each, ToolResultMessage)]
        else:
            contents = _write_contents(first, writing)
        role = "tool" if first.role == "toolResult" else first.role
        entries.append({"type": "message", "role": role, "contents": contents, _MORE: more})
    return entries


def _content(kind: str, more: Mapping[str, Any] | None = None, **fields: object) -> Entry:
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"type": kind, **kept, _MORE: dict(more or {})}


def _write_contents(message: Message, writing: Writing) -> list[Entry]:
    contents: list[Entry] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            contents.append(_content("text", text=piece.text))
        elif is_media(piece):
            contents += _write_media(piece, message, writing)
    return contents


def _write_media(piece: Media, message: Message, writing: Writing) -> list[Entry]:
    address = media_address(piece)
    if address is not None:
        kind = "data" if piece.data is not None else "uri"
        mime = piece.mime_type or ("image/*" if piece.kind == "image" else "application/octet-stream")
        return [_content(kind, uri=address, media_type=mime)]
    if isinstance(piece, FileContent) and piece.file_id is not None:
        return [_content("hosted_file", file_id=piece.file_id, media_type=piece.mime_type)]
    note_unsupported(message, writing, piece, TITLE)
    return []


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    text = texts_of(message)
    items = _write_contents(message, writing) or [_content("text", text=text)]
    failed = "FunctionInvocationError" if message.is_error else None  # the framework replaces any other name
    if message.is_error and not text:
        writing.note(message, ChangeCode.RESULT_FILLED, Loss.NONE, "an error needs a text")
    return _content("function_result", call_id=message.tool_call_id, exception=failed, result=text, items=items)


def _write_assistant(message: AssistantMessage, writing: Writing) -> list[Entry]:
    contents: list[Entry] = []
    for piece in shown(message, writing):
        match piece.kind:
            case "text":
                contents.append(_content("text", text=piece.text))
            case "thinking":
                more = {"redacted": True} if piece.redacted else {}
                contents.append(
                    _content("text_reasoning", more, text=piece.thinking, protected_data=piece.thinking_signature)
                )
            case "toolCall":
                more = {} if piece.thought_signature is None else {"signature": piece.thought_signature}
                given = piece.arguments_text is not None
                arguments: object = arguments_text(piece) if given else dict(piece.arguments)
                call = {"call_id": piece.id, "name": piece.name, "arguments": arguments}
                contents.append(_content("function_call", more, **call, hosted=False))
            case "image" | "file":
                contents += _write_media(piece, message, writing)
    if (usage := message.usage) is not None:
        counts = {"input_token_count": whole_input(usage), "output_token_count": usage.output}
        counts |= {"total_token_count": usage.total_tokens}
        counts |= {"cache_read_input_token_count": usage.cache_read} if usage.cache_read else {}
        contents.append(_content("usage", usage_details=counts))
    return contents


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)
