"""Messages of AutoGen: what the model context of an agent stores.

Facts this file rests on (autogen-core 0.7.5, autogen-agentchat 0.7.5, 2026-11-15):
- A message has `type`: SystemMessage, UserMessage, AssistantMessage, FunctionExecutionResultMessage. Fields that are
  not defined are dropped when a state is loaded.
- The content of an AssistantMessage is a text or a list of calls. `thought` is the reasoning beside a text; beside
  calls it is the text that the model wrote before them.
- An image is `{"data": base64}`. It is decoded when it is loaded, and encoded anew as PNG when it is saved.
- A result is one text. There are no signatures, no usage and no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.conversation.content import AssistantContent, ImageContent, TextContent, ThinkingContent, UserContent
from segue.conversation.media_types import type_of_data
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.pieces import (
    arguments_text,
    image_of,
    is_base64,
    make_call,
    note_signatures,
    note_unsupported,
    shown,
    stop_of,
    texts_of,
    usage_of,
)
from segue.histories.kit.stamps import milliseconds_of
from segue.projection.report import ChangeCode, Loss

NAME: Final = "autogen"
TITLE: Final = "AutoGen"
SYSTEM: Final = "SystemMessage"
USER: Final = "UserMessage"
ASSISTANT: Final = "AssistantMessage"
RESULTS: Final = "FunctionExecutionResultMessage"
_USER_NAME: Final = "user"
_AGENT_NAME: Final = "assistant"
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types that the framework's image library reads."""


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    content = entry.get("content")
    time = milliseconds_of(entry.get("created_at"))
    match entry.get("type"):
        case "SystemMessage" if isinstance(content, str):
            return [SystemMessage(content=(TextContent(text=content),))]
        case "UserMessage":
            return [UserMessage(content=_read_content(content), timestamp=time)]
        case "AssistantMessage":
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            return [_read_assistant(entry, time)]
        case "FunctionExecutionResultMessage":
            return [_read_result(result, time) for result in objects_of(content)]
        case _:
            return []


def _read_content(content: object) -> tuple[UserContent, ...]:
    found: list[UserContent] = []
    for item in [content] if isinstance(content, str) else items_of(content):
        if isinstance(item, str):
            found.append(TextContent(text=item))
        elif (image := image_of(None, data=object_of(item).get("data"))) is not None:
            mime = None if image.data is None else type_of_data(image.data)
            found.append(ImageContent(data=image.data, mime_type=mime or "image/png"))
    return tuple(found)


def _read_assistant(entry: Entry, time: int | None) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    content, thought = entry.get("content"), text_of(entry.get("thought"))
    if isinstance(content, str):
        pieces += [] if thought is None else [ThinkingContent(thinking=thought)]
        pieces += [TextContent(text=content)] if content else []
    else:
        pieces += [] if thought is None else [TextContent(text=thought)]
        for item in items_of(content):
            call = object_of(item)
            if call:
                pieces.append(make_call(call.get("id"), call.get("name"), call.get("arguments")))
            elif isinstance(item, str):
                pieces.append(TextContent(text=item))
    counts = object_of(entry.get("models_usage"))
    usage = usage_of(counts.get("prompt_tokens"), counts.get("completion_tokens"))
    return AssistantMessage(content=tuple(pieces), usage=usage, stop_reason=stop_of(None, pieces), timestamp=time)


def _read_result(result: Entry, time: int | None) -> ToolResultMessage:
    text = result.get("content")
    return ToolResultMessage(
        tool_call_id=text_of(result.get("call_id")) or "",
        tool_name=text_of(result.get("name")) or "",
        content=(TextContent(text=text),) if isinstance(text, str) and text else (),
        is_error=result.get("is_error") is True,
        timestamp=time,
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    entries: list[Entry] = []
    for run in results_together(messages):
        first = run[0]
        match first.role:
            case "toolResult":
                results = [_write_result(each, writing) for each in run if isinstance(each, ToolResultMessage)]
                entries.append({"content": results, "type": RESULTS})
            case "assistant":
                entries.append(_write_assistant(first, writing))
            case "user":
                entries.append(_write_user(first, writing))
            case "system":
                if len(first.content) > 1:
                    writing.note(first, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for instructions")
                texts = [piece.text for piece in shown(first, writing) if piece.kind == "text"]
                entries.append({"content": "\n".join(texts), "type": SYSTEM})
    return entries


def _write_user(message: UserMessage, writing: Writing) -> Entry:
    items: list[object] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            items.append(piece.text)
        elif piece.kind == "image" and _is_readable(piece):
            items.append({"data": piece.data})
        else:
            note_unsupported(message, writing, piece, TITLE)
    only_text = items[0] if len(items) == 1 and isinstance(items[0], str) else items
    return {"content": only_text if items else "", "source": _USER_NAME, "type": USER}


def _is_readable(image: ImageContent) -> bool:
    return image.data is not None and is_base64(image.data) and type_of_data(image.data) in _IMAGES


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    for piece in shown(message, writing):
        if piece.kind != "text":
            note_unsupported(message, writing, piece, TITLE)
    called = {"name": message.tool_name, "call_id": message.tool_call_id}
    return {"content": texts_of(message), **called, "is_error": message.is_error}


def _write_assistant(message: AssistantMessage, writing: Writing) -> Entry:
    note_signatures(message, writing, TITLE)
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[Entry] = []
    for piece in shown(message, writing):
        match piece.kind:
            case "text":
                texts.append(piece.text)
            case "thinking":
                thoughts.append(piece.thinking)
            case "toolCall":
                calls.append({"id": piece.id, "arguments": arguments_text(piece), "name": piece.name})
            case "image" | "file":
                note_unsupported(message, writing, piece, TITLE)
    if len(texts) > 1 or len(thoughts) > 1:
        writing.note(message, ChangeCode.TURN_MERGED, Loss.NONE, f"{TITLE} has one text for each turn")
    if calls and thoughts:
        writing.note(message, ChangeCode.THINKING_DROPPED, Loss.CONTENT, f"{TITLE} has no field for it beside calls")
    thought = "\n".join(texts if calls else thoughts) or None
    content = calls or "\n".join(texts)
    return {"content": content, "thought": thought, "source": _AGENT_NAME, "type": ASSISTANT}


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)
