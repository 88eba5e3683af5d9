"""Messages of LangChain, as `messages_to_dict` writes them: `{"type": "human", "data": {...}}`.

Facts this file rests on (langchain-core 1.7.2, 2026-11-15):
- `tool_calls` repeats the calls of the blocks; over Chat the calls are there alone. A call whose arguments could not be
  parsed is in `invalid_tool_calls`, with its text.
- `usage_metadata.input_tokens` includes cached tokens.
- `status: error` marks the result of a tool that failed; `artifact` is not sent to the model.
- Versions before 0.1 have calls in `additional_kwargs`: `function_call`, whose result names only the tool, or
  `tool_calls` in the form of Chat. A `ChatMessage` has any role; one that is no role of a model is read as a user.
- The reasoning of other vendors over Chat stands in `additional_kwargs.reasoning_content`, thought signatures of Gemini
  in `additional_kwargs` by the id of the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from segue.conversation.content import AssistantContent, NativeContent, TextContent, ThinkingContent, UserContent
from segue.conversation.context import Origin
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.histories.kit.chat_messages import take_call
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, reply_mark, set_origin, with_reply_mark
from segue.histories.kit.pieces import make_call, stop_of
from segue.histories.kit.templates import Template
from segue.histories.langchain.blocks import (
    NAME,
    read_blocks,
    read_call,
    read_user_block,
    write_blocks,
    write_call,
    write_user_block,
)

_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "user": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "developer": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
}
_GEMINI_SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
_STOP_FIELDS: Final[Mapping[str, str]] = {"anthropic-messages": "stop_reason", "openai-responses": "status"}
"""The field of `response_metadata` with the stop reason; `finish_reason` for any other protocol."""
_STOP_WORDS: Final[Mapping[tuple[str, StopReason], str]] = {
    ("stop_reason", StopReason.STOP): "end_turn",
    ("stop_reason", StopReason.LENGTH): "max_tokens",
    ("stop_reason", StopReason.TOOL_USE): "tool_use",
    ("status", StopReason.STOP): "completed",
    ("status", StopReason.TOOL_USE): "completed",
    ("status", StopReason.LENGTH): "incomplete",
    ("finish_reason", StopReason.TOOL_USE): "tool_calls",
}
_USAGE: Final = Template(
    "usage",
    {
        "input_tokens": "$whole_input",
        "output_tokens": "$output",
        "total_tokens": "$whole_total",
        "input_token_details?": {"cache_read": "$cache_read?", "cache_creation": "$cache_write?"},
        "output_token_details?": {"reasoning": "$reasoning?"},
    },
)


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    data = object_of(entry.get("data"))
    kind = text_of(entry.get("type")) or ""
    role = _ROLES.get(kind) or (_ROLES.get(text_of(data.get("role")) or "", "user") if kind == "chat" else None)
    content: object = data.get("content")
    if role is None or not (isinstance(content, str) or items_of(content) or content == []):
        return []
    if role == "assistant":
        return [_read_assistant(data, reading)]
    blocks = _read_content(content)
    if role == "tool":
        call_id = text_of(data.get("tool_call_id")) or take_call(reading, text_of(data.get("name")) or "")
        return [
            ToolResultMessage(
                tool_call_id=call_id,
                tool_name=text_of(data.get("name")) or "",
                content=blocks,
                is_error=data.get("status") == "error",
                details=data.get("artifact"),
            )
        ]
    if role == "system":
        return [
            SystemMessage(content=tuple(block for block in blocks if isinstance(block, (TextContent, NativeContent))))
        ]
    return [UserMessage(content=blocks)]


def _read_content(content: object) -> tuple[UserContent, ...]:
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    found: list[UserContent] = []
    for block in items_of(content):
        if isinstance(block, str):
            found.append(TextContent(text=block))
        elif fields := object_of(block):
            found.append(read_user_block(fields, NAME))
    return tuple(found)


def _read_assistant(data: Mapping[str, Any], reading: Reading) -> AssistantMessage:
    meta = object_of(data.get("response_metadata"))
    origin = marked_origin(_origin_of(data, meta), meta)
    content = data.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else _blocks_of(content)
    standard = meta.get("output_version") == "v1" or isinstance(content, str)
    pieces = [*_reasoning(data), *read_blocks(blocks, origin, standard=standard)]
    pieces += _further_calls(data, pieces)
    if all(piece.kind != "toolCall" for piece in pieces):
        pieces += _older_calls(object_of(data.get("additional_kwargs")), reading)
    word = meta.get("stop_reason") or meta.get("finish_reason") or meta.get("status")
    response_model = text_of(meta.get("model"))
    message = AssistantMessage(
        content=tuple(pieces),
        response_model=response_model if response_model != origin.model else None,
        response_id=text_of(meta.get("id")),
        usage=_USAGE.read(object_of(data.get("usage_metadata"))),
        stop_reason=stop_of(word, pieces),
        raw_stop_reason=text_of(word),
    )
    return with_reply_mark(set_origin(message, origin), meta)


def _blocks_of(content: object) -> list[dict[str, Any]]:
    items = items_of(content)
    return [{"type": "text", "text": item} if isinstance(item, str) else object_of(item) for item in items]


def _origin_of(data: Mapping[str, Any], meta: Mapping[str, Any]) -> Origin:
    model = text_of(meta.get("model_name")) or text_of(meta.get("model")) or ""
    reply = text_of(meta.get("id")) or text_of(data.get("id")) or ""
    over_chat = "token_usage" in meta or "finish_reason" in meta
    return find_origin(model, text_of(meta.get("model_provider")) or "", "chatcmpl" if over_chat else reply[:8])


def _reasoning(data: Mapping[str, Any]) -> list[AssistantContent]:
    words = object_of(data.get("additional_kwargs")).get("reasoning_content")
    if not isinstance(words, str):
        return []
    return [ThinkingContent(thinking=words, thinking_signature="reasoning_content")]


def _further_calls(data: Mapping[str, Any], pieces: Sequence[AssistantContent]) -> list[AssistantContent]:
    """Give the calls of `tool_calls` that are no block."""
    known = Counter(piece.id for piece in pieces if piece.kind == "toolCall")
    signatures = object_of(object_of(data.get("additional_kwargs")).get(_GEMINI_SIGNATURES))
    found: list[AssistantContent] = []
    for call in (*objects_of(data.get("tool_calls")), *objects_of(data.get("invalid_tool_calls"))):
        call_id = text_of(call.get("id")) or ""
        if known[call_id] > 0:
            known[call_id] -= 1
            continue
        found.append(read_call(call, {"signature": signatures.get(call_id), **object_of(call.get("extras"))}))
    return found


def _older_calls(kwargs: Mapping[str, Any], reading: Reading) -> list[AssistantContent]:
    """Give the calls of a version that kept them as the provider gave them."""
    calls: list[AssistantContent] = []
    for call in objects_of(kwargs.get("tool_calls")):
        function = object_of(call.get("function"))
        calls.append(make_call(call.get("id"), function.get("name"), function.get("arguments")))
    if function := object_of(kwargs.get("function_call")):
        call_id, name = f"call_{reading.line}", text_of(function.get("name")) or ""
        reading.open_calls.append((call_id, name))
        calls.append(make_call(call_id, name, function.get("arguments")))
    return calls


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    standard = writing.settings.get("output_version") == "v1"
    return [_write_message(message, standard=standard) for message in messages]


def _write_message(message: Message, *, standard: bool) -> Entry:
    match message.role:
        case "user":
            return _entry("human", _write_content(message.content))
        case "system":
            return _entry("system", _write_content(message.content))
        case "assistant":
            return _write_assistant(message, standard=standard)
        case "toolResult":
            fields = {
                "tool_call_id": message.tool_call_id,
                "artifact": message.details,
                "status": "error" if message.is_error else "success",
            }
            return _entry("tool", _write_content(message.content), name=message.tool_name or None, **fields)


def _entry(kind: str, content: object, *, name: str | None = None, **fields: object) -> Entry:
    data: dict[str, Any] = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind}
    data |= {"name": name, "id": None, **fields}
    return {"type": kind, "data": data}


def _write_content(content: Sequence[UserContent]) -> str | list[dict[str, Any]]:
    if not content:
        return ""
    if len(content) == 1 and content[0].kind == "text" and content[0].text:
        return content[0].text
    return [write_user_block(piece) for piece in content]


def _write_assistant(message: AssistantMessage, *, standard: bool) -> Entry:
    content, standard = write_blocks(message, standard=standard)
    field = _STOP_FIELDS.get(message.protocol, "finish_reason")
    word = message.raw_stop_reason or _STOP_WORDS.get((field, message.stop_reason), str(message.stop_reason))
    meta: dict[str, Any] = {}
    if message.model:
        meta = {"model_name": message.model, "model_provider": message.provider, field: word}
    elif message.stop_reason not in {StopReason.STOP, StopReason.TOOL_USE}:
        meta = {field: word}
    if message.response_model is not None:
        meta["model"] = message.response_model
    if message.response_id is not None:
        meta["id"] = message.response_id
    if standard:
        meta["output_version"] = "v1"
    meta |= reply_mark(message, _origin_of({}, meta))
    calls = message.tool_calls()
    entry = _entry("ai", content, tool_calls=[write_call(call) for call in calls], invalid_tool_calls=[])
    usage = None if message.usage is None else _USAGE.write(message.usage)
    entry["data"] |= {"response_metadata": meta, "usage_metadata": usage}
    return entry


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write)
