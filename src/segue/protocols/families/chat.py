"""The conversation of a chat request, both ways: the system message, the tools, and the messages.

Facts:
- Roles are system, user, assistant and tool; a result names its call by id, which the types make optional.
                                                                 (mistralai 3.7.0, cohere 7.3.1; read 2026-11-15)

The first message is the system prompt if it has that role; later ones are instructions in mid-conversation. A message
of an unknown role becomes native content. A result without an id belongs to the first call of the preceding assistant
message that has no result yet. Assistant messages are read and written by each protocol.

`extra` of the context has two keys: `system`, the difference between the received and the default system message, and
`tools`, if it was null or an empty list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from msgspec.structs import replace

from segue.conversation.content import AssistantContent, Extra, SystemContent
from segue.conversation.context import Context, Tool
from segue.conversation.messages import (
    AssistantMessage,
    Diagnostic,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from segue.errors import Path
from segue.protocols.families.chat_content import (
    Blocks,
    as_instruction,
    decode_content,
    decode_message,
    encode_content,
    is_default,
    keep_message,
)
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import EMPTY, MISSING, Block, Wire
from segue.protocols.kit.reading import text_of
from segue.protocols.kit.verbatim import keep, restore

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_frame(blocks: Blocks, context: Context, tools: Wire) -> Wire:
    """Write the body without the conversation: its tools, and the system message as its only message.

    `tools` are the keys of the body for the tools of the context.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    prompt = context.system_prompt
    frame: Wire = {**_encode_system(blocks, prompt), **tools}
    if context.extra is not None:
        restore(frame, context.extra, blocks.protocol)
    system = frame.get("system")
    # If the system prompt was removed from the context, its data may remain in `extra`: an object without a role.
    is_written = prompt is not None and isinstance(system, dict) and "role" in system
    body: Wire = {"messages": [cast("Wire", system)] if is_written else []}
    if "tools" in frame:
        body["tools"] = frame["tools"]
    return body


def _encode_system(blocks: Blocks, prompt: str | tuple[SystemContent, ...] | None) -> Wire:
    if prompt is None or prompt == ():
        return {}
    content: object = prompt
    if not isinstance(prompt, str):
        content = [blocks.encode(piece, ("system_prompt", index)) for index, piece in enumerate(prompt)]
    return {"system": {"role": "system", "content": content}}


def encode_result(blocks: Blocks, message: ToolResultMessage, path: Path, named: Block = EMPTY) -> Wire:
    """Write a tool result; `named` is the key with the name of its tool, if the protocol has one.

    Raises:
        EncodeError: content that the protocol does not support.
    """
    wire: Wire = {"role": "tool", "tool_call_id": message.tool_call_id, **named}
    wire["content"] = encode_content(blocks, message.content, (*path, "content"))
    return wire if message.extra is None else restore(wire, message.extra, blocks.protocol)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


class ChatBody(NamedTuple):
    """A request body, and the model that it names."""

    wire: Block
    model: str | None


def open_body(body: JsonObject | Sequence[object], endpoint: Endpoint) -> ChatBody:
    """Return the body and its model; a bare list of messages becomes a body with the endpoint's model."""
    if not isinstance(body, Mapping):
        return ChatBody({"model": endpoint.model.id, "messages": list(body)}, None)
    return ChatBody(body, text_of(body.get("model")))


class ChatTurn(NamedTuple):
    """The content of an assistant message, and diagnostics of its calls."""

    content: tuple[AssistantContent, ...]
    notes: tuple[Diagnostic, ...]


class MessagesReader(ABC):
    """Reads the messages of a body in order, and tracks the calls that have no result yet."""

    def __init__(self, blocks: Blocks, endpoint: Endpoint, model: str | None) -> None:
        self.blocks = blocks
        self.endpoint = endpoint
        self.model: str = model or endpoint.model.id
        self._system: Block | None = None
        self._system_prompt: str | tuple[SystemContent, ...] | None = None
        self._messages: list[Message] = []
        self._waiting: dict[str, str] = {}  # calls of the last assistant message without a result -> their names
        self._names: dict[str, str] = {}

    @abstractmethod
    def read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:
        """Read an assistant message."""

    @abstractmethod
    def read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        """Read a tool result."""

    def read(self, wires: Sequence[Block]) -> None:
        """Read all messages.

        Raises:
            DecodeError: content or calls are of another type than the protocol defines; has the path.
        """
        blocks, messages = self.blocks, self._messages
        last = len(wires) - 1
        for index, wire in enumerate(wires):
            path: Path = ("messages", index)
            match wire.get("role"):
                case "system" if index == 0:
                    self._read_prompt(wire, (*path, "content"))
                case "user":
                    content, extra = decode_message(blocks, wire, path)
                    messages.append(UserMessage(content=content, extra=extra))
                case "assistant":
                    messages.append(self.read_assistant(wire, path, last=index == last))
                case "tool":
                    messages.append(self.read_result(wire, path))
                case "system":
                    content, extra = decode_message(blocks, wire, path)
                    pieces = tuple(as_instruction(blocks, piece) for piece in content)
                    messages.append(SystemMessage(content=pieces, extra=extra))
                case _:
                    messages.append(keep_message(blocks, wire))

    def _read_prompt(self, wire: Block, path: Path) -> None:
        value = wire.get("content", MISSING)
        content = decode_content(self.blocks, value, path)
        self._system = wire
        self._system_prompt = (
            value if isinstance(value, str) else tuple(as_instruction(self.blocks, piece) for piece in content)
        )

    def message_of(
        self, content: tuple[AssistantContent, ...], extra: Extra | None, *, prefix: bool = False
    ) -> AssistantMessage:
        """Make an assistant message; the results that follow belong to its calls."""
        self._names = {piece.id: piece.name for piece in content if piece.kind == "toolCall"}
        self._waiting = dict(self._names)
        return AssistantMessage(
            content=content,
            protocol=self.blocks.protocol,
            provider=self.endpoint.model.provider,
            model=self.model,
            stop_reason=StopReason.TOOL_USE if self._names else StopReason.STOP,
            prefix=prefix,
            extra=extra,
        )

    def answered(self, received_id: object) -> tuple[str, str]:
        """Return the id and the tool of a result's call: the call it names, else the first without a result."""
        call_id = received_id if isinstance(received_id, str) else next(iter(self._waiting), "")
        self._waiting.pop(call_id, None)
        return call_id, self._names.get(call_id, "")

    def result_of(
        self,
        message: ToolResultMessage,
        wire: Block,
        path: Path,
        named: Block = EMPTY,
        *,
        known: tuple[str, ...] = (),
        choices: Block = EMPTY,
    ) -> ToolResultMessage:
        """Add the `extra` to a result that was read; `named` is the default key with the name of its tool."""
        is_complete = len(wire) == 3 + len(named) and isinstance(wire.get("tool_call_id"), str) and not choices
        if is_complete and named.items() <= wire.items() and is_default(wire.get("content"), message.content):
            return message
        default = encode_result(self.blocks, message, path, named)
        extra = keep(self.blocks.protocol, wire, default, known, choices)
        return message if extra is None else replace(message, extra=extra)

    def context(self, tools: tuple[Tool, ...], body: Block) -> Context:
        """Return the conversation that was read."""
        prompt = self._system_prompt
        received: Wire = {}
        if self._system is not None and (len(self._system) != 2 or not prompt):
            received["system"] = self._system
        if not tools and "tools" in body:
            received["tools"] = body["tools"]
        extra: Extra | None = None
        if received:
            default = _encode_system(self.blocks, prompt) if "system" in received else {}
            extra = keep(self.blocks.protocol, received, default, ("system", "tools"))
        return Context(system_prompt=prompt, messages=tuple(self._messages), tools=tools, extra=extra)
