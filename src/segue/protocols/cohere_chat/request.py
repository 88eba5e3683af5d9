"""A request to Cohere's v2 chat endpoint, both ways.

Facts this file rests on:
- Roles are system, user, assistant and tool; a tool message names its call by id and nothing else.
                                                                                   (cohere 7.3.1, read 2026-11-15)
- `documents` of the body are what the model may cite, each a string or data with an id.             (cohere 7.3.1)

Documents stand beside the options, as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.conversation.content import TextContent
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.errors import DecodeError, Path
from segue.protocols.chat_family.chat import (
    MessagesReader,
    encode_model,
    encode_result,
    encode_system,
    open_body,
)
from segue.protocols.chat_family.message_content import MESSAGE_KEYS, decode_content, encode_message_content
from segue.protocols.cohere_chat.assistant import decode_assistant, encode_assistant
from segue.protocols.cohere_chat.content import BLOCKS
from segue.protocols.cohere_chat.legacy_v1 import REFUSAL, is_first_request
from segue.protocols.cohere_chat.options import decode_options, encode_options
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.functions import decode_tools, encode_tools
from segue.protocols.kit.reading import expect_objects, is_of_reply
from segue.protocols.kit.retired_format import MISSING, Block, Wire, keep

_RESULT_KEYS: Final = frozenset({"role", "content", "tool_call_id"})

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: content, a tool, arguments or an option that this wire has no word for.
    """
    context = prompt.context
    messages = encode_system(BLOCKS, context)
    messages += [_encode_message(message, ("messages", index)) for index, message in enumerate(context.messages)]
    body: Wire = {"messages": messages}
    body |= encode_model(PROTOCOL, prompt, endpoint)
    body |= encode_tools(PROTOCOL, context, strict_taken=False)
    encode_options(body, prompt.options, endpoint)
    return body


def _encode_message(message: Message, path: Path) -> Wire:
    if type(message) is ToolResultMessage:
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and piece.extra is message.extra is None:
            # The short way, for these are most of an agent's messages.
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": piece.text}
        return encode_result(BLOCKS, message, path)
    if type(message) is AssistantMessage:
        extra = message.extra
        return encode_assistant(message.content, path, None if extra is None or is_of_reply(extra) else extra)
    return encode_message_content(BLOCKS, message.role, message.content, message.extra, path)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are not what the protocol says, or it is a request of the first wire.
    """
    given = open_body(body)
    if is_first_request(given.wire):
        raise DecodeError(REFUSAL, path=("messages",))
    reader = _Reader(BLOCKS, endpoint, given.model)
    reader.read(expect_objects(given.wire.get("messages"), ("messages",)))
    context = reader.context(decode_tools(PROTOCOL, given.wire, reader.frame, strict_taken=False))
    return Prompt(context=context, options=decode_options(given.wire, given.asked, endpoint), model=given.model)


class _Reader(MessagesReader):
    """Reads the messages of a body in order."""

    def read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:  # noqa: ARG002 - as others
        """Read a turn of the assistant's."""
        turn = decode_assistant(wire, path, {}, reply=False)
        return self.message_of(turn.content, turn.extra)

    def read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        """Read what came of a call."""
        content, original = decode_content(BLOCKS, wire.get("content", MISSING), (*path, "content"))
        verbatim: Wire = {} if original is None else {"content": original}
        wire_id = wire.get("tool_call_id")
        call_id, name = self.answered(wire_id, verbatim)
        known = _RESULT_KEYS if isinstance(wire_id, str) else MESSAGE_KEYS
        extra = keep(PROTOCOL, wire, known, verbatim) if verbatim or not wire.keys() <= known else None
        return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, extra=extra)
