"""The messages of a request, both ways.

The first message is the system prompt if it has such a role; later ones are instructions in mid-conversation.

Choices that messages keep, in addition to `content` (see `content.py`):
- `message`: "native" for a message of an unknown role, which is kept whole.
- `role`: "function", not "tool", for the result of a `function_call`.
- `name`: whether a tool result has the name of its tool.

The fast path for assistant messages of text, thinking in its own field, and calls.

`assistant` writes every message, these with the same result; whatever the fast path does not support is left to it.

Facts:
- Roles are system, developer, user, assistant, tool, and in older requests function. The instructions of a reasoning
  model have the role developer where the provider supports it.    (openai 3.49.0; pi-ai 1.5.0; read 2026-11-15)
- A tool result names its call by id; some vendors require the name of the tool as well.     (pi-ai 1.5.0)
- Marks are on content blocks, so that of a tool result is on its text part.
                               (OpenRouter SDK: AnthropicCacheControlDirective, read 2026-11-15; pydantic-ai #4392)

Facts (measured with CPython 3.11, 2026-11-15):
- Two thirds of the time to write a request goes into its assistant messages, half of that into arguments of calls.
- To compare the class of a piece is faster than to compare its `kind`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import (
    Extra,
    NativeContent,
    SystemContent,
    TextContent,
    ToolCall,
    UserContent,
)
from segue.conversation.messages import (
    AssistantMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import Path
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import MISSING, Block, Wire
from segue.protocols.kit.reading import is_of_reply
from segue.protocols.kit.verbatim import choose, chosen, keep, restore
from segue.protocols.openai_chat.assistant import OLD_ID, decode_assistant, empty_content, encode_assistant, fast_encode
from segue.protocols.openai_chat.content import (
    LIST_EXTRA,
    choice_extra,
    decode_content,
    encode_content,
    encode_mark,
    encode_native,
    encode_part,
    encode_parts,
    keep_native,
    mark_text,
)
from segue.protocols.openai_chat.reasoning import REASONING_KEYS, add_required_reasoning, plain_field
from segue.protocols.openai_chat.rules import PROTOCOL

_STOP, _TOOL_USE = StopReason.STOP, StopReason.TOOL_USE  # with CPython 3.11, to look up a member takes 0.2 us
SYSTEM_ROLES: Final = ("system", "developer")
_NATIVE: Final = choice_extra(choose("message", "user", "native"))


def system_role(endpoint: Endpoint) -> str:
    """Return the role of instructions at this endpoint."""
    return "developer" if endpoint.dialect.developer_role and endpoint.model.reasoning else "system"


def required_field(endpoint: Endpoint) -> str | None:
    """Return the field of reasoning that the provider requires on every assistant message.

    None when it requires none.
    """
    return plain_field(endpoint) if endpoint.rules.reasoning_replay == "required" else None


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_messages(given: Sequence[Message], endpoint: Endpoint) -> list[Wire]:
    """Write the messages of a conversation.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    is_named = endpoint.dialect.result_name
    field = None if endpoint.dialect.think_tags else plain_field(endpoint)
    empty, required = empty_content(endpoint), required_field(endpoint)
    messages: list[Wire] = []
    wire: Wire | None
    for index, message in enumerate(given):
        if type(message) is ToolResultMessage:
            content = message.content
            piece = content[0] if len(content) == 1 else None
            if (
                type(piece) is TextContent
                and piece.extra is message.extra is None
                and piece.cache_mark is message.cache_mark is None
                and not is_named
            ):
                # The fast path: these are most of an agent's messages.
                wire = {"role": "tool", "tool_call_id": message.tool_call_id, "content": piece.text}
            else:
                wire = encode_result(message, endpoint, ("messages", index))
        elif type(message) is AssistantMessage:
            is_common = not message.prefix and (message.extra is None or is_of_reply(message.extra))
            wire = fast_encode(message.content, field, empty) if is_common else None
            if wire is None:
                extra, prefix, path = message.extra, message.prefix, ("messages", index)
                wire = encode_assistant(message.content, endpoint, path, extra=extra, prefix=prefix, required=required)
            elif required is not None and required not in wire:
                add_required_reasoning(wire, required)
        else:
            role = "user" if message.role == "user" else system_role(endpoint)
            wire = _encode_message(role, message.content, message.extra, ("messages", index))
        messages.append(wire)
    return messages


def _encode_message(role: str, content: Sequence[UserContent], extra: Extra | None, path: Path) -> Wire:
    only = content[0] if len(content) == 1 else None
    if extra is None:
        if type(only) is TextContent and only.extra is only.cache_mark is None:
            return {"role": role, "content": only.text}
        return {"role": role, "content": encode_content(content, None, (*path, "content"))}
    if only is not None and only.kind == "native" and chosen(extra, PROTOCOL, "message", role) == "native":
        return encode_native(only, path)
    wire: Wire = {"role": role, "content": encode_content(content, extra, (*path, "content"))}
    return restore(wire, extra, PROTOCOL)


def encode_result(message: ToolResultMessage, endpoint: Endpoint, path: Path) -> Wire:
    """Write the result of a call.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    extra = message.extra
    is_old = chosen(extra, PROTOCOL, "role", "tool") == "function"
    wire: Wire = {"role": "function"} if is_old else {"role": "tool", "tool_call_id": message.tool_call_id}
    if message.tool_name and chosen(extra, PROTOCOL, "name", is_old or endpoint.dialect.result_name):
        wire["name"] = message.tool_name
    wire["content"] = encode_content(message.content, extra, (*path, "content"), joined=True)
    if message.cache_mark is not None:
        wire = mark_text(wire, encode_mark(message.cache_mark)) or wire
    return restore(wire, extra, PROTOCOL)


def encode_system(prompt: str | tuple[SystemContent, ...], endpoint: Endpoint) -> Wire | None:
    """Write the system prompt as a message; None for one without content.

    Raises:
        EncodeError: content that this protocol does not support.
    """
    if prompt == ():
        return None
    content = prompt if isinstance(prompt, str) else encode_parts(prompt, ("system_prompt",))
    return {"role": system_role(endpoint), "content": content}


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_system(wire: Block, path: Path) -> str | tuple[SystemContent, ...]:
    """Read the message that is the system prompt.

    Raises:
        DecodeError: its content is neither a string nor a list of parts.
    """
    value = wire.get("content", MISSING)
    if isinstance(value, str):
        return value
    content, _ = decode_content(value, path)
    return tuple(map(_as_system, content))


class TurnReader:
    """Reads the messages of a request in order; results get the names of the tools from the calls before them."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.messages: list[Message] = []
        self._endpoint = endpoint
        self._model = model
        self._provider = endpoint.model.provider
        self._names: dict[str, str] = {}
        self._is_named = endpoint.dialect.result_name
        self._required = required_field(endpoint)
        self.lacks_required: bool = False
        """Whether an assistant message lacks the field that the provider requires."""

    def read(self, wire: Block, path: Path) -> None:
        """Read one message.

        Raises:
            DecodeError: content or calls are not in the format of the protocol.
        """
        match wire.get("role"):
            case "user":
                content, extra = self._read_message(wire, path, "user")
                self.messages.append(UserMessage(content=content, extra=extra))
            case "assistant":
                self.messages.append(self._read_assistant(wire, path))
            case "tool" | "function":
                self.messages.append(self._read_result(wire, path))
            case "system" | "developer":
                content, extra = self._read_message(wire, path, system_role(self._endpoint))
                self.messages.append(SystemMessage(content=tuple(map(_as_system, content)), extra=extra))
            case _:
                self.messages.append(UserMessage(content=(keep_native(wire),), extra=_NATIVE))

    def _read_message(self, wire: Block, path: Path, role: str) -> tuple[tuple[UserContent, ...], Extra | None]:
        value = wire.get("content", MISSING)
        if isinstance(value, str) and len(wire) == 2 and wire["role"] == role:
            return (TextContent(text=value),), None
        content, choices = decode_content(value, (*path, "content"))
        if content and len(wire) == 2 and wire["role"] == role and (not choices or content[0].extra is None):
            return content, LIST_EXTRA if choices else None
        default = _encode_message(role, content, choice_extra(choices), path)
        return content, keep(PROTOCOL, wire, default, choices=choices)

    def _read_assistant(self, wire: Block, path: Path) -> AssistantMessage:
        content, prefix, extra = decode_assistant(wire, self._endpoint, path, self._required)
        if self._required is not None and REASONING_KEYS.isdisjoint(wire):
            self.lacks_required = True
        stop_reason = _STOP
        for piece in content:
            if type(piece) is ToolCall:
                stop_reason = _TOOL_USE
                self._names[piece.id] = piece.name
        return AssistantMessage(
            content=content,
            protocol=PROTOCOL,
            provider=self._provider,
            model=self._model,
            stop_reason=stop_reason,
            prefix=prefix,
            extra=extra,
        )

    def _read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        value, call_id, is_old = wire.get("content", MISSING), wire.get("tool_call_id"), wire["role"] == "function"
        if isinstance(value, str) and isinstance(call_id, str) and len(wire) == 3 and not (is_old or self._is_named):
            # The fast path: an id, a text and nothing else.
            tool_name = self._names.get(call_id, "")
            return ToolResultMessage(tool_call_id=call_id, tool_name=tool_name, content=(TextContent(text=value),))
        content, choices = decode_content(value, (*path, "content"), joined=True)
        call_id = OLD_ID if is_old else call_id if isinstance(call_id, str) else ""
        name = wire.get("name")
        is_named = isinstance(name, str) and bool(name)
        tool_name = str(name) if is_named else self._names.get(call_id, "")
        choices = {**choices, **choose("role", "tool", wire["role"])}
        if tool_name:
            choices.update(choose("name", is_old or self._is_named, is_named))
        result = ToolResultMessage(
            tool_call_id=call_id, tool_name=tool_name, content=content, extra=choice_extra(choices)
        )
        default = encode_result(result, self._endpoint, path)
        return replace(result, extra=keep(PROTOCOL, wire, default, choices=choices))


def _as_system(piece: UserContent) -> SystemContent:
    """Return content that instructions can hold; media in them become native content."""
    if piece.kind == "text" or piece.kind == "native":
        return piece
    block = encode_part(replace(piece, cache_mark=None), ())
    spare = replace(piece, cache_mark=None, extra=None)
    return NativeContent(protocol=PROTOCOL, block=block, fallback=(spare,), cache_mark=piece.cache_mark)
