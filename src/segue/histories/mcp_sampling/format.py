"""The record of MCP sampling: the parameters of `sampling/createMessage`, its result, or the messages alone.

Messages of MCP sampling: what a server asks its client to send to a model.

Facts (mcp 2.3.0, 2026-11-15):
- A message has the role user or assistant. Its content is one block or a list: text, image, audio, tool_use,
  tool_result. Any other block, such as reasoning, refuses the whole request.
- A tool_result has blocks of tools: text, image, audio, and `resource` with a `blob`.
- Fields that are not defined are dropped; `_meta` of a message and of a block is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
    NativeContent,
    TextContent,
    UserContent,
)
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from segue.histories.kit.chat_messages import read_tools, write_functions
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing, results_together
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import (
    EntryList,
    Framework,
    dumped_by,
    framework_format,
    give_json,
    items_of,
    list_of,
    prompt_text,
)
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import SEGUE, find_origin, marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    Shown,
    is_media,
    make_call,
    media_of,
    note_unsupported,
    read_thoughts,
    shown,
    stop_of,
    string_of,
    write_thought,
)
from segue.histories.kit.samples import read_samples
from segue.histories.kit.templates import write_turns
from segue.projection.report import ChangeCode, Loss

NAME: Final = "mcp-sampling"
TITLE: Final = "MCP sampling"
BLOCKS: Final = frozenset({"text", "image", "audio", "tool_use", "tool_result"})
_META: Final = "_meta"
_THINKING: Final = "thinking"
"""The field of our own `_meta` with reasoning, each piece with its place among the blocks."""
_UNKNOWN_IMAGE: Final = "image/png"


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = run[0]
    content: object = entry.get("content")
    blocks = [object_of(cast("object", content))] if isinstance(content, dict) else objects_of(content)
    if isinstance(content, str):  # no client writes it, but servers do
        blocks = [{"type": "text", "text": content}]
    if text_of(entry.get("role")) == "assistant":
        if text_of(entry.get("model")) is None and SEGUE not in object_of(entry.get(_META)):
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
        return [_read_assistant(entry, blocks)]
    if text_of(entry.get("role")) != "user":
        return []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    messages: list[Message] = [_read_result(block) for block in results]
    others = tuple(_read_block(block) for block in blocks if block.get("type") != "tool_result")
    if others or not results:
        messages.append(UserMessage(content=others))
    return messages


def _read_block(block: Mapping[str, Any]) -> UserContent:
    kind, mime = text_of(block.get("type")), block.get("mimeType")
    if kind == "text" and isinstance(block.get("text"), str):
        return TextContent(text=block["text"])
    media: Media | None = None
    if kind == "image":
        media = media_of(mime or "image/*", data=block.get("data"))
    elif kind == "audio":
        media = media_of(mime or "audio/wav", data=block.get("data"))
    elif kind == "resource":
        inner = object_of(block.get("resource"))
        if isinstance(inner.get("blob"), str):
            name = text_of(object_of(inner.get(_META)).get("name"))
            media = media_of(inner.get("mimeType"), data=inner["blob"], name=name)
        elif isinstance(inner.get("text"), str):
            return TextContent(text=inner["text"])
    elif kind == "resource_link":
        media = media_of(mime, url=block.get("uri"), name=block.get("name"))
    return media or NativeContent(protocol=NAME, block=dict(block))


def _read_result(block: Mapping[str, Any]) -> ToolResultMessage:
    content = tuple(_read_block(each) for each in objects_of(block.get("content")))
    return ToolResultMessage(
        tool_call_id=text_of(block.get("toolUseId")) or "",
        content=content,
        is_error=block.get("isError") is True,
        details=block.get("structuredContent"),
    )


def _read_assistant(entry: Entry, blocks: Sequence[Mapping[str, Any]]) -> AssistantMessage:
    pieces: list[AssistantContent] = []
    for block in blocks:
        own = object_of(object_of(block.get(_META)).get(SEGUE))
        if block.get("type") == "tool_use":
            given, signature = string_of(own.get("arguments")), string_of(own.get("signature"))
            pieces.append(
                make_call(block.get("id"), block.get("name"), block.get("input"), given=given, signature=signature)
            )
            continue
        piece = _read_block(block)
        if isinstance(piece, TextContent):
            pieces.append(TextContent(text=piece.text, text_signature=string_of(own.get("signature"))))
        else:
            pieces.append(NativeContent(protocol=NAME, block=dict(block)))
    own = object_of(object_of(entry.get(_META)).get(SEGUE))
    read_thoughts(pieces, own.get(_THINKING))
    stop = entry.get("stopReason")
    message = AssistantMessage(content=tuple(pieces), stop_reason=stop_of(stop, pieces), raw_stop_reason=text_of(stop))
    origin = find_origin(text_of(entry.get("model")) or "")
    return set_origin(message, marked_origin(origin, object_of(entry.get(_META))))


# -- writing -----------------------------------------------------------------------------------------------------------


def _write(messages: Sequence[Message], writing: Writing) -> list[Entry]:
    def user(message: Message) -> list[Entry]:
        if message.role == "system":
            writing.note(message, ChangeCode.SYSTEM_AS_USER, Loss.NONE, f"{TITLE} has no role for instructions")
        return [block for piece in shown(message, writing) for block in _write_block(piece, message, writing)]

    return write_turns(
        messages,
        reply=lambda message: _write_assistant(message, writing),
        results=lambda run: {"role": "user", "content": [_write_result(each, writing) for each in run]},
        other=lambda message: {"role": "user", "content": user(message)},
    )


def _write_block(piece: Shown, message: Message, writing: Writing) -> list[Entry]:
    if piece.kind == "text":
        return [{"type": "text", "text": piece.text}]
    if is_media(piece) and piece.data is not None:
        mime = piece.mime_type or (_UNKNOWN_IMAGE if isinstance(piece, ImageContent) else "")
        kind = mime.partition("/")[0]
        if kind in {"image", "audio"}:
            return [{"type": kind, "data": piece.data, "mimeType": mime}]
        if message.role == "toolResult":
            return [{"type": "resource", "resource": _resource(piece.data, piece)}]
    note_unsupported(message, writing, piece, TITLE)
    return []


def _resource(data: str, piece: Media) -> Entry:
    name = piece.name if isinstance(piece, FileContent) else None
    resource: Entry = {"uri": f"file:///{name or 'file'}", "blob": data}
    resource |= {} if piece.mime_type is None else {"mimeType": piece.mime_type}
    return resource if name is None else {**resource, _META: {"name": name}}


def _write_result(message: ToolResultMessage, writing: Writing) -> Entry:
    blocks = [block for piece in shown(message, writing) for block in _write_block(piece, message, writing)]
    result: Entry = {"type": "tool_result", "toolUseId": message.tool_call_id, "content": blocks}
    return {**result, "isError": True} if message.is_error else result


def _write_assistant(message: AssistantMessage, writing: Writing) -> Entry:
    blocks: list[Entry] = []
    thoughts: list[Entry] = []
    for piece in shown(message, writing):
        match piece.kind:
            case "thinking":
                thoughts.append(write_thought(piece, len(blocks) + len(thoughts)))
            case "toolCall":
                own = _given(signature=piece.thought_signature, arguments=piece.arguments_text)
                call: Entry = {"type": "tool_use", "name": piece.name, "id": piece.id, "input": dict(piece.arguments)}
                blocks.append(_with_own(call, own))
            case "text":
                text: Entry = {"type": "text", "text": piece.text}
                blocks.append(_with_own(text, _given(signature=piece.text_signature)))
            case "image" | "file":
                blocks += _write_block(piece, message, writing)
    mark = object_of(origin_mark(message, find_origin("")).get(SEGUE))
    own = {**mark, **({_THINKING: thoughts} if thoughts else {})}
    return _with_own({"role": "assistant", "content": blocks}, own)


def _given(**fields: object) -> Entry:
    return {name: value for name, value in fields.items() if value is not None}


def _with_own(fields: Entry, own: Mapping[str, Any]) -> Entry:
    """Add data that the protocol has no field for: `_meta` is kept, and not sent to a model."""
    return {**fields, _META: {SEGUE: dict(own)}} if own else fields


CODEC: Final = EntryCodec(name=NAME, read=_read, write=_write, join=results_together)


_FORM: Final = "form"
_PROMPT: Final = "systemPrompt"
_PACKAGES: Final = ("mcp", "mcp_types")


def _is_message(entry: Mapping[str, Any]) -> bool:
    blocks = _blocks(entry)
    known = all(text_of(object_of(block).get("type")) in BLOCKS for block in blocks)
    return text_of(entry.get("role")) in {"user", "assistant"} and bool(blocks) and known


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one request, one conversation
    whole = object_of(value)
    whole = object_of(whole.get("params")) or whole
    if _is_message(whole):
        return EntryList([whole], {_FORM: "message"})
    entries = list_of(whole.get("messages", value))
    if not entries or not any(_is_message(entry) for entry in entries):
        return None
    if not whole:
        return EntryList(entries, {_FORM: "messages"})
    rest = {key: item for key, item in whole.items() if key not in {"messages", _PROMPT, "tools"}}
    tools = read_tools(whole.get("tools"))
    rest |= {"tools": whole["tools"]} if "tools" in whole else {}
    return EntryList(entries, rest, system=text_of(whole.get(_PROMPT)), tools=tools)


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:
    if rest.get(_FORM) == "message" and len(entries) == 1:
        return entries[0]
    if rest.get(_FORM) is not None:
        return entries
    context = draft.history.context
    made: dict[str, Any] = {"messages": entries, "maxTokens": draft.model.max_tokens or 1000, **rest}
    if prompt := prompt_text(context):
        made[_PROMPT] = prompt
    if context.tools and read_tools(rest.get("tools")) != context.tools:
        made["tools"] = [_tool(function) for function in write_functions(context.tools)]
    return made


def _tool(function: Mapping[str, Any]) -> Entry:
    schema = {"type": "object", **object_of(function.get("parameters"))}
    described = {"description": function["description"]} if function.get("description") else {}
    return {"name": function["name"], **described, "inputSchema": schema}


def _give(files: tuple[WrittenFile, ...]) -> object:
    types: Any = import_module("mcp.types")
    value = give_json(files)
    if entries := list_of(value):
        return [types.SamplingMessage.model_validate(entry) for entry in entries]
    kind = "CreateMessageRequestParams" if "messages" in object_of(value) else "SamplingMessage"
    return getattr(types, kind).model_validate(value)


def _blocks(entry: Mapping[str, Any]) -> list[object]:
    content: object = entry.get("content")
    return [cast("object", content)] if isinstance(content, dict) else items_of(content)


FRAMEWORK: Final = Framework(
    codec=CODEC,
    title=TITLE,
    open=_open,
    close=_close,
    plain=dumped_by("model_dump", *_PACKAGES, alone=True, mode="json", by_alias=True, exclude_none=True),
    separate_system=True,
    stores_tools=True,
    file_name="request.json",
)
FORMAT: Final = framework_format(
    FRAMEWORK, give=_give, samples=read_samples(__package__), source="mcp 2.3.0: types, and its own dump"
)
