"""The conversation of a chat request, both ways: the system message, the messages behind it, and whom they are for.

Facts this file rests on:
- Roles are system, user, assistant and tool; a result names its call by id, which the types leave out at will.
                                                                 (mistralai 3.7.0, cohere 7.3.1; read 2026-11-15)

The first message is the system prompt if it has that role; later ones are instructions in mid-conversation. A message
of a role that nobody knows is kept as it is. Which call a result without an id answers, and which tool, is read from
the batch of calls right before it, in order. How assistants and tools speak is the affair of each protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from segue.conversation.content import AssistantContent, Extra, SystemContent
from segue.conversation.context import Context, Prompt, Tool
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
from segue.protocols.chat_family.message_content import (
    MESSAGE_KEYS,
    Blocks,
    as_instruction,
    decode_content,
    decode_message_content,
    encode_content,
    keep_message,
)
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.reading import VERBATIM, left_over, verbatim_of
from segue.protocols.kit.retired_format import MISSING, NOTHING, Block, Wire, object_of, put_back

_SYSTEM: Final = "system"
"""Where a context keeps what its system message said beyond its content."""
_MODEL: Final = "model"
"""Where options keep that the body named no model, or what it said in its place."""
_NO_ID: Final = "no_id"
"""The shape of a result that names no call."""

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_system(blocks: Blocks, context: Context) -> list[Wire]:
    """Write the system prompt as the first message; nothing when there is none.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    prompt, frame = context.system_prompt, verbatim_of(context.extra, blocks.protocol)
    if prompt is None or (prompt == () and _SYSTEM not in frame):
        return []
    wire: Wire = {"role": "system"}
    if isinstance(prompt, str):
        wire["content"] = prompt
    else:
        given = object_of(frame.get(_SYSTEM))
        written = encode_content(blocks, prompt, given.get("content", "list"), ("system_prompt",))
        if written is not MISSING:
            wire["content"] = written
    for key, value in object_of(left_over(context.extra, blocks.protocol).get(_SYSTEM)).items():
        wire.setdefault(key, value)
    return [wire]


def encode_model(protocol: str, prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write which model is asked, or what a body said in its place that was read."""
    asked = verbatim_of(prompt.options.extra, protocol)
    if _MODEL not in asked:
        return {"model": endpoint.model.id if prompt.model is None else prompt.model}
    return {} if asked[_MODEL] == "absent" else {"model": object_of(asked[_MODEL]).get("said")}


def encode_result(blocks: Blocks, message: ToolResultMessage, path: Path, named: Block = NOTHING) -> Wire:
    """Write what came of a call; `named` is how the wire names its tool, where it does.

    Raises:
        EncodeError: a piece that this wire has no word for.
    """
    extra, protocol = message.extra, blocks.protocol
    wire: Wire = {"role": "tool", "tool_call_id": message.tool_call_id, **named}
    verbatim = verbatim_of(extra, protocol)
    if verbatim.get(_NO_ID) and message.tool_call_id in ("", verbatim[_NO_ID]):
        del wire["tool_call_id"]  # null is put back
    written = encode_content(blocks, message.content, verbatim.get("content"), (*path, "content"))
    if written is not MISSING:
        wire["content"] = written
    return put_back(wire, extra, protocol)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


class ChatBody(NamedTuple):
    """A body, or a bare list of messages in place of one; the model it names, and how it does so if that is odd."""

    wire: Block
    model: str | None
    asked: Wire


def open_body(body: JsonObject | Sequence[object]) -> ChatBody:
    """Find out what was given, and which model is asked."""
    if not isinstance(body, Mapping):
        return ChatBody({"messages": list(body)}, None, {})
    named = body.get("model")
    if isinstance(named, str):
        return ChatBody(body, named, {})
    return ChatBody(body, None, {_MODEL: {"said": named} if "model" in body else "absent"})


class Turn(NamedTuple):
    """An assistant message, read: its content, what else it said and how, what was noteworthy."""

    content: tuple[AssistantContent, ...]
    extra: Extra | None
    notes: tuple[Diagnostic, ...]


class MessagesReader(ABC):
    """Reads the messages of a body in order, remembering the calls that wait for their results.

    `frame` is the shape of the context, to which others may add.
    """

    def __init__(self, blocks: Blocks, endpoint: Endpoint, model: str | None) -> None:
        self.blocks = blocks
        self.endpoint = endpoint
        self.model = model or endpoint.model.id
        self.frame: Wire = {}
        self._system_prompt: str | tuple[SystemContent, ...] | None = None
        self._beyond: Wire = {}
        self._messages: list[Message] = []
        self._waiting: dict[str, str] = {}  # calls of the last batch that have no result yet -> their names
        self._names: dict[str, str] = {}

    @abstractmethod
    def read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:
        """Read a turn of the assistant's."""

    @abstractmethod
    def read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        """Read what came of a call."""

    def read(self, wires: Sequence[Block]) -> None:
        """Read all messages.

        Raises:
            DecodeError: content or calls are not what the protocol says; names the place.
        """
        blocks, messages = self.blocks, self._messages
        last = len(wires) - 1
        for index, wire in enumerate(wires):
            path: Path = ("messages", index)
            match wire.get("role"):
                case "system" if index == 0:
                    self._read_prompt(wire, (*path, "content"))
                case "user":
                    content, extra = decode_message_content(blocks, wire, path)
                    messages.append(UserMessage(content=content, extra=extra))
                case "assistant":
                    messages.append(self.read_assistant(wire, path, last=index == last))
                case "tool":
                    messages.append(self.read_result(wire, path))
                case "system":
                    content, extra = decode_message_content(blocks, wire, path)
                    pieces = tuple(as_instruction(blocks, piece) for piece in content)
                    messages.append(SystemMessage(content=pieces, extra=extra))
                case _:
                    messages.append(keep_message(blocks, wire))

    def _read_prompt(self, wire: Block, path: Path) -> None:
        value = wire.get("content", MISSING)
        content, verbatim = decode_content(self.blocks, value, path)
        if isinstance(value, str):
            self._system_prompt = value
        else:
            self._system_prompt = tuple(as_instruction(self.blocks, piece) for piece in content)
            if not content:
                self.frame[_SYSTEM] = {"content": verbatim}
        self._beyond = {key: given for key, given in wire.items() if key not in MESSAGE_KEYS}

    def message_of(self, content: tuple[AssistantContent, ...], extra: Extra | None) -> AssistantMessage:
        """Make a message of what an assistant said; it is its calls that results answer from here on."""
        self._names = {piece.id: piece.name for piece in content if piece.kind == "toolCall"}
        self._waiting = dict(self._names)
        return AssistantMessage(
            content=content,
            protocol=self.blocks.protocol,
            provider=self.endpoint.model.provider,
            model=self.model,
            stop_reason=StopReason.TOOL_USE if self._names else StopReason.STOP,
            extra=extra,
        )

    def answered(self, wire_id: object, verbatim: Wire) -> tuple[str, str]:
        """Give the id and the tool of the call that a result answers: the one it names, or the first that waits.

        The shape of the result keeps that it named none, and which one it was taken for.
        """
        if isinstance(wire_id, str):
            call_id = wire_id
        else:
            call_id = next(iter(self._waiting), "")
            verbatim[_NO_ID] = call_id or True
        self._waiting.pop(call_id, None)
        return call_id, self._names.get(call_id, "")

    def context(self, tools: tuple[Tool, ...]) -> Context:
        """Give the conversation that was read."""
        beyond: Wire = {_SYSTEM: self._beyond} if self._beyond else {}
        if self.frame:
            beyond[VERBATIM] = self.frame
        return Context(
            system_prompt=self._system_prompt,
            messages=tuple(self._messages),
            tools=tools,
            extra={self.blocks.protocol: beyond} if beyond else None,
        )
