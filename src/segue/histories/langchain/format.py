"""The record of LangChain, and of LangGraph, whose state holds LangChain messages.

Content blocks of LangChain: those of the provider, or LangChain's own.

Messages of LangChain, as `messages_to_dict` writes them: `{"type": "human", "data": {...}}`.

Facts (langchain-core 1.7.2, langgraph 1.2.20, 2026-11-15):
- `dumpd` writes a message as `{"lc": 1, "type": "constructor", "id": [..., "AIMessage"], "kwargs": {...}}`.
- The state of a graph is an object with `messages` and further channels.
- A checkpoint is msgpack; an object in it is an extension of type 5 with module, class, fields and method.
- The newest checkpoint of a thread has the largest id.

Facts (langchain-core 1.7.2, langchain-anthropic and langchain-openai of the same day, 2026-11-15):
- A message of a model has the blocks of its provider: Anthropic blocks; Responses items, whose messages are flattened
  to text blocks with the id of the item; a plain text over Chat. `response_metadata.model_provider` names it.
- With `output_version: v1` they are LangChain's own: `reasoning`, `text`, `tool_call`, `non_standard`, with the rest in
  `extras`.
- Streaming leaves `index` and `partial_json` in blocks; they are not part of the provider's block.
- Images and files have three forms: `source_type` (0.3), `base64` / `url` / `file_id` (1.x), and the provider's own.

Facts (langchain-core 1.7.2, 2026-11-15):
- `tool_calls` repeats the calls of the blocks; over Chat the calls are there alone. A call whose arguments could not be
  parsed is in `invalid_tool_calls`, with its text.
- `usage_metadata.input_tokens` includes cached tokens.
- `status: error` marks the result of a tool that failed; `artifact` is not sent to the model.
- Versions before 0.1 have calls in `additional_kwargs`: `function_call`, whose result names only the tool, or
  `tool_calls` in the form of Chat. A `ChatMessage` has any role; one that is not a role of a model is read as a user.
- The reasoning of other vendors over Chat is in `additional_kwargs.reasoning_content`, thought signatures of Gemini
  in `additional_kwargs` by the id of the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from segue.conversation.content import (
    AssistantContent,
    FileContent,
    ImageContent,
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
from segue.errors import DecodeError, EncodeError, LoadError
from segue.histories.kit.chat_messages import take_call
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.format import Draft
from segue.histories.kit.framework import EntryList, Framework, framework_format, from_package, items_of, list_of
from segue.histories.kit.history import WrittenFile
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import find_origin, marked_origin, reply_mark, set_origin, with_reply_mark
from segue.histories.kit.pieces import item_signature, make_call, read_media, stop_of, string_of
from segue.histories.kit.samples import read_samples
from segue.histories.kit.source import AgentDatabase
from segue.histories.kit.templates import Template
from segue.histories.kit.wire import TurnCodec

NAME: Final = "langchain"
_WIRES: Final[Mapping[str, TurnCodec]] = {
    "anthropic-messages": TurnCodec("anthropic-messages", "messages"),
    "openai-responses": TurnCodec("openai-responses", "input", lead={"role": "user", "content": "-"}),
}
"""Protocols whose blocks LangChain stores unchanged."""
_STREAMING: Final = frozenset({"index", "partial_json"})
_SIGNATURE: Final = "signature"
"""The type of a block that represents an empty text with a signature, which Gemini sends after its text."""


# -- what the user and tools say ---------------------------------------------------------------------------------------


def read_user_block(block: Mapping[str, Any], protocol: str) -> UserContent:
    """Read a block of the user, of a tool or of instructions."""
    text = block.get("text")
    if text_of(block.get("type")) in {"text", "input_text", "output_text"} and isinstance(text, str):
        return TextContent(text=text)
    return read_media(block) or NativeContent(protocol=protocol, block=dict(block))


def write_user_block(content: UserContent) -> dict[str, Any]:
    """Write a block of the user in the form of LangChain 1.x."""
    match content.kind:
        case "text":
            return {"type": "text", "text": content.text}
        case "image" | "file":
            return _write_media(content)
        case "native":
            return dict(content.block)


def _write_media(content: ImageContent | FileContent) -> dict[str, Any]:
    kind = "image" if content.kind == "image" else (content.mime_type or "").partition("/")[0]
    block: dict[str, Any] = {"type": kind if kind in {"audio", "video"} or content.kind == "image" else "file"}
    if content.data is not None:
        block["base64"] = content.data
    elif content.url is not None:
        block["url"] = content.url
    elif isinstance(content, FileContent) and content.file_id is not None:
        block["file_id"] = content.file_id
    if content.mime_type is not None:
        block["mime_type"] = content.mime_type
    if isinstance(content, FileContent) and content.name is not None:
        block["filename"] = content.name
    return block


# -- what the model says -----------------------------------------------------------------------------------------------


def read_blocks(blocks: list[dict[str, Any]], origin: Origin, *, standard: bool) -> tuple[AssistantContent, ...]:
    """Read the blocks of a model; `standard` says that they are LangChain's own."""
    bare = [{key: value for key, value in block.items() if key not in _STREAMING} for block in blocks]
    wire = None if standard else _WIRES.get(origin.protocol)
    if wire is not None and bare:
        try:
            turns = _as_items(bare) if wire.protocol == "openai-responses" else [{"role": "assistant", "content": bare}]
            (message,) = wire.decode(turns, origin.model, origin.provider or None)
        except (DecodeError, ValueError):
            pass
        else:
            if isinstance(message, AssistantMessage):
                return message.content
    return tuple(_read_standard(block, origin) for block in bare)


def _as_items(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make Responses items of blocks: texts become messages again."""
    items: list[dict[str, Any]] = []
    for block in blocks:
        if text_of(block.get("type")) not in {"text", "refusal"}:
            items.append(block)
            continue
        part = {key: value for key, value in block.items() if key not in {"id", "phase", "type"}}
        kind = "output_text" if block.get("type") == "text" else "refusal"
        item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [{"type": kind, **part}]}
        item |= {key: block[key] for key in ("id", "phase") if block.get(key) is not None}
        items.append({**item, "status": "completed"} if "id" in item else item)
    return items


def _read_standard(block: dict[str, Any], origin: Origin) -> AssistantContent:
    content, fields = _read_fields(block, origin), object_of(object_of(block.get("extras")).get("fields"))
    return replace(content, extra={origin.protocol: fields}) if fields else content


def _read_fields(block: dict[str, Any], origin: Origin) -> AssistantContent:
    extras, kind = object_of(block.get("extras")), text_of(block.get("type"))
    is_item = origin.protocol == "openai-responses"
    if kind == "text" and isinstance(block.get("text"), str):
        item = item_signature(id=text_of(block.get("id"))) if is_item else None
        signature = string_of(extras.get("signature"))
        phase = string_of(extras.get("phase"))
        return TextContent(text=block["text"], text_signature=item if signature is None else signature, phase=phase)
    if kind == "thinking":
        signature = string_of(block.get("signature", extras.get("signature")))
        return ThinkingContent(thinking=text_of(block.get("thinking")) or "", thinking_signature=signature)
    if kind == "redacted_thinking":
        return ThinkingContent(thinking="", thinking_signature=text_of(block.get("data")), redacted=True)
    if kind == "reasoning":
        words = text_of(block.get("reasoning"))
        if words is None:
            words = "\n".join(text_of(part.get("text")) or "" for part in objects_of(block.get("summary")))
        signature = string_of(extras.get("signature", block.get("signature")))
        if signature is None and is_item:
            signature = item_signature(id=block.get("id"), encrypted_content=block.get("encrypted_content"))
        return ThinkingContent(thinking=words, thinking_signature=signature, redacted=extras.get("redacted") is True)
    if kind in {"tool_call", "tool_use", "function_call"}:
        return read_call(block, extras, is_item=is_item)
    if kind == "non_standard" and isinstance(block.get("value"), dict):
        if block["value"] == {"type": _SIGNATURE}:
            return TextContent(text="", text_signature=string_of(extras.get("signature")))
        return NativeContent(protocol=text_of(extras.get("protocol")) or origin.protocol, block=block["value"])
    return NativeContent(protocol=origin.protocol, block=block)


def read_call(block: Mapping[str, Any], extras: Mapping[str, Any], *, is_item: bool = False) -> ToolCall:
    """Read a call: a block, or an item of `tool_calls`."""
    signature = string_of(extras.get("signature"))
    if signature is None and is_item:
        signature = item_signature(id=extras.get("item_id"), status=extras.get("status"))
    arguments = block.get("args", block.get("input", block.get("arguments")))
    given = string_of(extras.get("arguments_text"))
    call_id = block.get("call_id") or block.get("id")
    return make_call(call_id, block.get("name"), arguments, given=given, signature=signature)


def write_blocks(message: AssistantMessage, *, standard: bool = False) -> tuple[str | list[dict[str, Any]], bool]:
    """Write the content of a model, and whether it is in LangChain's own form; `standard` asks for that form."""
    if standard:
        return [_write_standard(content, message.protocol) for content in message.content], True
    wire = _WIRES.get(message.protocol)
    if wire is not None and message.content:
        try:
            turns = wire.encode([message], message.model, message.provider or None)
        except (EncodeError, ValueError, LookupError):
            pass
        else:
            return (_from_items(turns) if wire.protocol == "openai-responses" else turns[0]["content"]), False
    plain = [content for content in message.content if content.kind != "toolCall" or content.thought_signature]
    if not plain:
        return "", False
    if len(plain) == 1 and plain[0].kind == "text" and not plain[0].text_signature and message.content[0] is plain[0]:
        return plain[0].text, False
    return [_write_standard(content, message.protocol) for content in message.content], True


def _from_items(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make blocks of Responses items: messages are flattened to their texts."""
    blocks: list[dict[str, Any]] = []
    for item in items:
        if "role" not in item:
            blocks.append(item)
            continue
        content = item.get("content")
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else objects_of(content)
        for part in parts:
            kind = "text" if part.get("type") == "output_text" else part.get("type")
            block = {**part, "type": kind}
            block |= {key: item[key] for key in ("id", "phase") if item.get(key) is not None}
            blocks.append(block)
    return blocks


def _write_standard(content: AssistantContent, protocol: str) -> dict[str, Any]:
    match content.kind:
        case "text":
            block: dict[str, Any] = {"type": "text", "text": content.text}
            if content.text_signature and not content.text:  # programs show every text block
                block = {"type": "non_standard", "value": {"type": _SIGNATURE}}
            extras: dict[str, Any] = {"signature": content.text_signature, "phase": content.phase}
        case "thinking":
            block = {"type": "reasoning", "reasoning": content.thinking}
            extras = {"signature": content.thinking_signature, "redacted": content.redacted or None}
        case "toolCall":
            block = write_call(content)
            extras = {"signature": content.thought_signature, "arguments_text": content.arguments_text}
        case "native":
            block = {"type": "non_standard", "value": dict(content.block)}
            extras = {"protocol": content.protocol}
    extras["fields"] = (content.extra or {}).get(protocol)
    kept = {key: value for key, value in extras.items() if value is not None}
    return {**block, "extras": kept} if kept else block


def write_call(call: ToolCall) -> dict[str, Any]:
    """Write an item of `tool_calls`."""
    return {"name": call.name, "args": dict(call.arguments), "id": call.id, "type": "tool_call"}


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
    """Return the calls of `tool_calls` that are not blocks."""
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
    """Return the calls of a version that stored them in the provider's form."""
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


_CLASSES: Final[Mapping[str, str]] = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "ChatMessage": "chat",
}
_KINDS: Final = {kind: name for name, kind in _CLASSES.items()}
_TYPES: Final = frozenset({*_KINDS, *(f"{name}Chunk" for name in _CLASSES), "remove"})
_ID: Final = ["langchain", "schema", "messages"]
_OMITTED: Final[Mapping[str, object]] = {"additional_kwargs": {}, "response_metadata": {}, "name": None, "id": None}
"""Values that `dumpd` leaves out."""


# -- forms -------------------------------------------------------------------------------------------------------------


def _from_constructor(entry: Entry) -> Entry:
    names = entry.get("id")
    name = str(cast("list[object]", names)[-1]) if isinstance(names, list) and names else ""
    kwargs = object_of(entry.get("kwargs"))
    kind = text_of(kwargs.get("type")) or _CLASSES.get(name.removesuffix("Chunk"), name)
    return {"type": kind, "data": kwargs}


def _to_constructor(entry: Entry) -> Entry:
    data = object_of(entry.get("data"))
    kept = {key: value for key, value in data.items() if key not in _OMITTED or value != _OMITTED[key]}
    for name in ("artifact", "usage_metadata"):
        if kept.get(name, 0) is None:
            del kept[name]
    kind = str(entry.get("type"))
    return {"lc": 1, "type": "constructor", "id": [*_ID, _KINDS.get(kind, kind)], "kwargs": kept}


def _is_constructor(entry: Mapping[str, Any]) -> bool:
    return entry.get("lc") == 1 and "kwargs" in entry


def _is_message(entry: Mapping[str, Any]) -> bool:
    return _is_constructor(entry) or (text_of(entry.get("type")) in _TYPES and isinstance(entry.get("data"), dict))


def _open(value: object, session: str | None) -> EntryList | None:  # noqa: ARG001 - one list is one conversation
    rest: dict[str, Any] = {}
    if isinstance(value, dict):
        state = object_of(cast("object", value))
        values = state.get("values")
        if "messages" not in state and isinstance(values, dict):  # a snapshot of a state
            rest["around"] = {key: item for key, item in state.items() if key != "values"}
            state = object_of(cast("object", values))
        rest["state"] = {key: item for key, item in state.items() if key != "messages"}
        value = state.get("messages")
    entries = list_of(value)
    if entries is None or not any(_is_message(entry) for entry in entries):
        return None
    if _is_constructor(entries[0]):
        rest["form"] = "constructor"
        entries = [_from_constructor(entry) if _is_constructor(entry) else entry for entry in entries]
    return EntryList(entries, rest)


def _close(entries: list[Entry], rest: Mapping[str, Any], draft: Draft) -> object:  # noqa: ARG001
    found: object = [_to_constructor(entry) for entry in entries] if rest.get("form") == "constructor" else entries
    if isinstance(rest.get("state"), Mapping):
        found = {"messages": found, **rest["state"]}
    if isinstance(rest.get("around"), Mapping):
        found = {"values": found, **rest["around"]}
    return found


# -- checkpoints of LangGraph ------------------------------------------------------------------------------------------

_PYDANTIC: Final = 5


def _extension(code: int, data: memoryview) -> object:
    """Read an object of a checkpoint; one that is not a message is returned as its fields."""
    parts = msgspec.msgpack.decode(bytes(data), ext_hook=_extension)
    if code == _PYDANTIC and isinstance(parts, list) and len(cast("list[object]", parts)) >= 3:
        module, name, fields, *_ = cast("list[object]", parts)
        if isinstance(name, str) and isinstance(fields, dict) and str(module).startswith("langchain_core.messages"):
            found = object_of(cast("object", fields))
            return {"type": text_of(found.get("type")) or _CLASSES.get(name, name), "data": found}
    return cast("object", parts)


def _open_database(database: AgentDatabase, session: str | None) -> EntryList:
    if "checkpoints" not in database.tables():
        raise LoadError("the database has no table checkpoints; it is not one of LangGraph")
    rows = [
        row
        for row in database.rows("checkpoints", **({"thread_id": session} if session else {}))
        if not row.get("checkpoint_ns")
    ]
    if not rows:
        raise LoadError(f"the database has no thread {session!r}" if session else "the database has no checkpoint")
    row = max(rows, key=lambda each: str(each.get("checkpoint_id")))
    data = row.get("checkpoint")
    try:
        checkpoint = msgspec.msgpack.decode(cast("bytes", data), ext_hook=_extension)
    except (msgspec.DecodeError, TypeError, ValueError, RecursionError) as error:
        raise LoadError(f"the newest checkpoint cannot be read: {error}") from error
    values = object_of(object_of(checkpoint).get("channel_values"))
    document = _open(_as_json({key: values[key] for key in values if not key.startswith(("__", "branch:"))}), None)
    if document is None:
        raise LoadError("the newest checkpoint has no messages of LangChain")
    threads = {str(each.get("thread_id")) for each in database.rows("checkpoints")}
    return document._replace(id=text_of(row.get("thread_id")), others=len(threads) - 1)


def _as_json(value: object) -> object:
    """Return a value as JSON; what JSON cannot represent, such as a time, as text."""
    return cast("object", msgspec.json.decode(msgspec.json.encode(value, enc_hook=str)))


# -- objects -----------------------------------------------------------------------------------------------------------


def _plain(value: object) -> object:
    """Make JSON of messages, of a state, or of the snapshot of a state, which has it in `values`."""
    fields = object_of(value) or object_of(cast("object", getattr(value, "values", None)))
    items: object = fields.get("messages", value)
    if not from_package(items, "langchain_core"):
        return value
    messages: Any = import_module("langchain_core.messages")
    dicts = messages.messages_to_dict(items_of(items) or [items])
    return {**fields, "messages": dicts} if "messages" in fields else dicts


def _give(files: tuple[WrittenFile, ...]) -> object:
    messages: Any = import_module("langchain_core.messages")
    value: object = msgspec.json.decode(files[0].data)
    state = object_of(value)
    state = object_of(state.get("values")) or state
    entries = [object_of(entry) for entry in items_of(state.get("messages") if state else value)]
    made = messages.messages_from_dict([_from_constructor(each) if _is_constructor(each) else each for each in entries])
    return {**state, "messages": made} if state else made


# -- the record --------------------------------------------------------------------------------------------------------


FRAMEWORK: Final = Framework(
    codec=CODEC, title="LangChain", open=_open, close=_close, open_database=_open_database, plain=_plain
)
FORMAT: Final = framework_format(
    FRAMEWORK,
    title="LangChain and LangGraph",
    give=_give,
    samples=read_samples(__package__),
    source="langchain-core 1.7.2 and langgraph 1.2.20, run against a scripted model",
)
