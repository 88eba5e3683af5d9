"""Messages in the form of Chat Completions, as LiteLLM, Hugging Face and many data sets store them.

Facts (LiteLLM 1.106.2, transformers templates, datasets 5.2.0, 2026-11-15):
- Arguments of a call are JSON text (OpenAI) or an object (Transformers). A result has the id of its call, or only the
  name of the tool: then results follow their calls in order.
- Thinking is in `thinking_blocks` (LiteLLM, with signatures), in `reasoning_content`, `reasoning` or `thinking`, or
  in the text between `<think>` tags. OpenRouter's `reasoning_details` are in `provider_specific_fields`.
- There is no error flag, no usage and no model.

The codec of openai-chat does not read these: it keeps what it does not know (`thinking_blocks`, arguments that are
objects, results without an id) as that of a request, which projection would send to a provider of Chat. Calls, media
and `reasoning_details` are read by what both share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from segue.conversation.content import AssistantContent, TextContent, ThinkingContent, ToolCall, UserContent
from segue.conversation.context import Origin, Tool, ToolDefinition
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import DecodeError, EncodeError
from segue.histories.kit.entries import Entry, EntryCodec, Reading, Writing
from segue.histories.kit.framework import items_of
from segue.histories.kit.lines import object_of, objects_of, text_of
from segue.histories.kit.origins import marked_origin, origin_mark, set_origin
from segue.histories.kit.pieces import (
    Media,
    arguments_text,
    is_media,
    make_call,
    media_address,
    note_flag,
    note_signatures,
    read_media,
    shown,
    string_of,
)
from segue.histories.kit.unread import with_content
from segue.histories.kit.wire import TurnCodec
from segue.projection.report import ChangeCode, Loss

_CHAT: Final = TurnCodec("openai-chat", "messages", lead={"role": "user", "content": "-"})
_THINK: Final = re.compile(r"\A<think>\n?(.*?)\n?</think>\n*", re.DOTALL)
_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
_SPECIFIC: Final = "provider_specific_fields"


@final
@dataclass(frozen=True, kw_only=True)
class ChatForm:
    """How one format writes such messages.

    `text_arguments` writes arguments as text, `blocks` writes signed thinking as `thinking_blocks` and marks the origin
    of turns, `thinking` is the field for thinking without a signature.
    """

    name: str
    title: str
    text_arguments: bool = True
    blocks: bool = False
    thinking: str = "reasoning_content"

    def codec(self) -> EntryCodec:
        """Return the codec of this form."""
        return EntryCodec(name=self.name, read=_read, write=self.write)

    def write(self, messages: Sequence[Message], writing: Writing) -> list[Entry]:
        """Write messages, each as one entry."""
        return [self._write(message, writing) for message in messages]

    def _write(self, message: Message, writing: Writing) -> Entry:
        match message.role:
            case "assistant":
                return self._write_assistant(message, writing)
            case "toolResult":
                note_flag(message, writing, self.title)
                entry: Entry = {"role": "tool", "tool_call_id": message.tool_call_id}
                if message.tool_name:
                    entry["name"] = message.tool_name
                return {**entry, "content": write_content(message, writing)}
            case "system" | "user":
                return {"role": message.role, "content": write_content(message, writing)}

    def _write_assistant(self, message: AssistantMessage, writing: Writing) -> Entry:
        entry: Entry = {"role": "assistant"}
        content = write_content(message, writing)
        calls = [self._write_call(call) for call in message.tool_calls()]
        entry["content"] = content
        if calls:
            entry["tool_calls"] = calls
        entry |= self._write_thoughts(message, writing)
        if self.blocks and (mark := origin_mark(message, _origin_of(entry))):
            entry[_SPECIFIC] = {**object_of(entry.get(_SPECIFIC)), **mark}
        return entry

    def _write_thoughts(self, message: AssistantMessage, writing: Writing) -> Entry:
        thoughts = [piece for piece in message.content if piece.kind == "thinking"]
        if not thoughts:
            return {}
        words = "\n".join(piece.thinking for piece in thoughts if piece.thinking)
        signature = thoughts[0].thinking_signature
        if len(thoughts) == 1 and words and signature in _FIELDS:
            return {signature: words}
        if not self.blocks:
            note_signatures(message, writing, self.title)
            if len(thoughts) > 1 or not words:
                code = ChangeCode.TURN_MERGED if words else ChangeCode.THINKING_BLANK
                writing.note(message, code, Loss.NONE, f"{self.title} has one text for thinking")
            return {self.thinking: words}
        if message.protocol == "openai-chat" and (details := _details_of(message)):
            return {self.thinking: words, _SPECIFIC: {"reasoning_details": details}}
        return {self.thinking: words, "thinking_blocks": [_write_block(piece) for piece in thoughts]}

    def _write_call(self, call: ToolCall) -> Entry:
        arguments: object = arguments_text(call) if self.text_arguments else dict(call.arguments)
        made: Entry = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
        if call.thought_signature is not None and self.blocks:
            made[_SPECIFIC] = {"thought_signature": call.thought_signature}
        return made


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(run: list[Entry], reading: Reading) -> list[Message]:
    entry = with_content(run[0])
    match text_of(entry.get("role")):
        case "system" | "developer":
            content = read_content(entry.get("content"))
            return [SystemMessage(content=tuple(piece for piece in content if isinstance(piece, TextContent)))]
        case "user":
            return [UserMessage(content=read_content(entry.get("content")))]
        case "assistant" | "model":
            reading.note_once(ChangeCode.MODEL_UNKNOWN, "the messages do not name their model")
            return [_read_assistant(entry, reading)]
        case "tool" | "function" | "ipython":
            return [_read_result(entry, reading)]
        case _:
            return []


def read_content(content: object) -> tuple[UserContent, ...]:
    """Read a text or a list of blocks; a block of another kind is left out by `read_media`."""
    if isinstance(content, str):
        return (TextContent(text=content),) if content else ()
    found: list[UserContent] = []
    for item in items_of(content):
        block = object_of(item)
        text = item if isinstance(item, str) else string_of(block.get("text"))
        if text is not None:
            found.append(TextContent(text=text))
        elif (media := read_media(block)) is not None:
            found.append(media)
    return tuple(found)


def _read_assistant(entry: Entry, reading: Reading) -> AssistantMessage:
    origin = _origin_of(entry)
    specific = object_of(entry.get(_SPECIFIC))
    origin = marked_origin(origin, specific)
    pieces: list[AssistantContent] = list(_read_thoughts(entry, specific))
    content = entry.get("content")
    if isinstance(content, str) and not pieces and (found := _THINK.match(content)):
        pieces.append(ThinkingContent(thinking=found[1]))
        content = content[found.end() :]
    pieces += [piece for piece in read_content(content) if isinstance(piece, TextContent)]
    if (refusal := text_of(entry.get("refusal"))) is not None:
        pieces.append(TextContent(text=refusal))  # what the model wrote in the place of an answer
    calls = [_read_call(call, reading) for call in objects_of(entry.get("tool_calls"))]
    if isinstance(entry.get("function_call"), dict):
        calls.append(_read_call({"function": entry["function_call"]}, reading))
    stop = StopReason.TOOL_USE if calls else StopReason.STOP
    return set_origin(AssistantMessage(content=(*pieces, *calls), stop_reason=stop), origin)


def _origin_of(entry: Mapping[str, Any]) -> Origin:
    """Tell who wrote a turn by how its thinking is stored."""
    if objects_of(entry.get("thinking_blocks")):
        return Origin(protocol="anthropic-messages", provider="anthropic", model="")
    return Origin(protocol="openai-chat", provider="", model="")


def _read_thoughts(entry: Entry, specific: Mapping[str, Any]) -> list[AssistantContent]:
    blocks = objects_of(entry.get("thinking_blocks"))
    if blocks:
        return [_read_block(block) for block in blocks]
    fields = {name: entry[name] for name in _FIELDS if isinstance(entry.get(name), str)}
    details = entry.get("reasoning_details") or specific.get("reasoning_details")
    if details:
        turn = {"role": "assistant", "content": "-", "reasoning_details": details, **fields}
        try:
            (message,) = _CHAT.decode([turn])
        except (DecodeError, ValueError):
            return []
        return [piece for piece in message.content if isinstance(piece, ThinkingContent)]
    if not fields or not any(fields.values()):
        return []
    name, words = next((name, words) for name, words in fields.items() if words)
    return [ThinkingContent(thinking=words, thinking_signature=name if name != "thinking" else None)]


def _read_block(block: Mapping[str, Any]) -> ThinkingContent:
    if block.get("type") == "redacted_thinking":
        return ThinkingContent(thinking="", thinking_signature=string_of(block.get("data")), redacted=True)
    signature = string_of(block.get("signature"))
    return ThinkingContent(thinking=string_of(block.get("thinking")) or "", thinking_signature=signature)


def _write_block(piece: ThinkingContent) -> Entry:
    if piece.redacted and not piece.thinking:
        return {"type": "redacted_thinking", "data": piece.thinking_signature}
    block: Entry = {"type": "thinking", "thinking": piece.thinking}
    return block if piece.thinking_signature is None else {**block, "signature": piece.thinking_signature}


def _details_of(message: AssistantMessage) -> object:
    try:
        (turn,) = _CHAT.encode([message], message.model, message.provider or None)
    except (EncodeError, ValueError, LookupError):
        return None
    return turn.get("reasoning_details")


def _read_call(call: Mapping[str, Any], reading: Reading) -> ToolCall:
    function = object_of(call.get("function")) or call
    given = string_of(call.get("id"))
    call_id = f"call_{reading.line}_{len(reading.open_calls)}" if given is None else given
    signature = string_of(object_of(call.get(_SPECIFIC)).get("thought_signature"))
    made = make_call(call_id, function.get("name"), function.get("arguments"), signature=signature)
    if given is None:
        reading.open_calls.append((made.id, made.name))
    return made


def _read_result(entry: Entry, reading: Reading) -> ToolResultMessage:
    call_id, name = string_of(entry.get("tool_call_id")), text_of(entry.get("name")) or ""
    if call_id is None:
        call_id = take_call(reading, name)
    return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=read_content(entry.get("content")))


def take_call(reading: Reading, name: str) -> str:
    """Return the id of the next open call, of that name if there is one; a result in such a format has no id."""
    for at, (call_id, called) in enumerate(reading.open_calls):
        if not name or called == name:
            del reading.open_calls[at]
            return call_id
    return ""


# -- writing -----------------------------------------------------------------------------------------------------------


def write_content(message: Message, writing: Writing) -> str | list[Entry]:
    """Write the texts, images and files of a message."""
    blocks: list[Entry] = []
    for piece in shown(message, writing):
        if piece.kind == "text":
            blocks.append({"type": "text", "text": piece.text})
        elif is_media(piece):
            blocks.append(_write_media(piece))
    if not blocks:
        return ""
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _write_media(piece: Media) -> Entry:
    address = media_address(piece)
    if piece.kind == "image":
        return {"type": "image_url", "image_url": {"url": address}}
    fields = {"file_data": address, "file_id": piece.file_id if address is None else None, "filename": piece.name}
    if piece.data is None:
        fields["format"] = piece.mime_type
    return {"type": "file", "file": {name: value for name, value in fields.items() if value is not None}}


# -- tools -------------------------------------------------------------------------------------------------------------


def read_tools(value: object) -> tuple[Tool, ...]:
    """Read a list of tools in the form of Chat, or the functions alone."""
    found: list[Tool] = []
    for each in objects_of(value):
        function = object_of(each.get("function")) or each
        name = text_of(function.get("name"))
        if name is not None:
            description = text_of(function.get("description")) or ""
            parameters = object_of(function.get("parameters") or function.get("inputSchema"))
            found.append(ToolDefinition(name=name, description=description, parameters=parameters))
    return tuple(found)


def write_functions(tools: Sequence[Tool]) -> list[Entry]:
    """Write the tools that the application runs, as functions."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in tools
        if isinstance(tool, ToolDefinition)
    ]
