"""Requests to Cohere's v2 chat endpoint, both ways.

Facts:
- Roles are system, user, assistant and tool; a tool message has the id of its call and not the name of the tool.
                                                                                   (cohere 7.3.1, read 2026-11-15)
- `documents` of the body are what the model may cite, each a string or data with an id.             (cohere 7.3.1)

Documents are data of the options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from segue.conversation.content import TextContent
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.errors import DecodeError, Path
from segue.protocols.cohere_chat.content import BLOCKS, REFUSAL, is_first_request
from segue.protocols.cohere_chat.options import decode_options, encode_options
from segue.protocols.cohere_chat.rules import PROTOCOL
from segue.protocols.cohere_chat.turns import decode_assistant, encode_assistant, keep_assistant
from segue.protocols.families.chat import MessagesReader, encode_frame, encode_result, open_body
from segue.protocols.families.chat_content import decode_content, encode_message
from segue.protocols.families.functions import decode_tools, encode_tools
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import MISSING, Block, Wire
from segue.protocols.kit.reading import expect_objects, is_of_reply

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: content, a tool, arguments or an option that the protocol does not support.
    """
    context = prompt.context
    body = encode_frame(BLOCKS, context, encode_tools(PROTOCOL, context, strict_taken=False))
    messages = cast("list[Wire]", body["messages"])
    messages += [_encode_message(message, ("messages", index)) for index, message in enumerate(context.messages)]
    encode_options(body, prompt.options, endpoint, prompt.model)
    return body


def _encode_message(message: Message, path: Path) -> Wire:
    if type(message) is ToolResultMessage:
        content = message.content
        piece = content[0] if len(content) == 1 else None
        if type(piece) is TextContent and piece.extra is message.extra is None:
            # Fast path: most messages of an agent are these.
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": piece.text}
        return encode_result(BLOCKS, message, path)
    if type(message) is AssistantMessage:
        extra = message.extra
        return encode_assistant(message.content, path, None if extra is None or is_of_reply(extra) else extra)
    return encode_message(BLOCKS, message.role, message.content, message.extra, path)


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are of another type than the protocol defines, or it is a v1 request.
    """
    given = open_body(body, endpoint)
    if is_first_request(given.wire):
        raise DecodeError(REFUSAL, path=("messages",))
    reader = _Reader(BLOCKS, endpoint, given.model)
    reader.read(expect_objects(given.wire.get("messages"), ("messages",)))
    context = reader.context(decode_tools(PROTOCOL, given.wire, strict_taken=False), given.wire)
    return Prompt(context=context, options=decode_options(given.wire, endpoint), model=given.model)


class _Reader(MessagesReader):
    """Reads the messages of a body in order."""

    def read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:  # noqa: ARG002 - as others
        """Read an assistant message."""
        content = decode_assistant(wire, path, {}, reply=False).content
        return self.message_of(content, keep_assistant(wire, content, path))

    def read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        """Read a tool result."""
        content = decode_content(BLOCKS, wire.get("content", MISSING), (*path, "content"))
        call_id, name = self.answered(wire.get("tool_call_id"))
        return self.result_of(ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content), wire, path)
