"""Requests to Mistral's chat endpoint, both ways.

Facts:
- Roles are system, user, assistant and tool. A tool message has the id of its call and the name of the tool, both of
  them optional by the types.                                                   (mistralai 3.7.0, read 2026-11-15)
- The last message is the user's, a tool's, or an assistant's with `prefix: true`; no other message may have a prefix.
                                                                                       (mistral-common 1.13.0)

A result without a name gets that of the tool whose call it answers.

Choices (`kit.verbatim`): `name` is whether a result has the name of its tool. `prefix`, in the options, is "any" where
a message before the last one had a prefix: a body that is decoded and encoded has it again, a new request does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from segue.conversation.content import AssistantContent, TextContent
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.errors import Path
from segue.protocols.families.chat import MessagesReader, encode_frame, encode_result, open_body
from segue.protocols.families.chat_content import decode_content, encode_message, is_call
from segue.protocols.families.functions import decode_tools, encode_tools
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import MISSING, Block, Wire
from segue.protocols.kit.reading import expect_objects, is_of_reply
from segue.protocols.kit.verbatim import choose, chosen
from segue.protocols.mistral_chat.content import BLOCKS
from segue.protocols.mistral_chat.options import decode_options, encode_options
from segue.protocols.mistral_chat.rules import PROTOCOL
from segue.protocols.mistral_chat.turns import decode_assistant, encode_assistant, keep_assistant

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: content, a tool, arguments or an option that the protocol does not support.
    """
    context, options = prompt.context, prompt.options
    body = encode_frame(BLOCKS, context, encode_tools(PROTOCOL, context, strict_taken=endpoint.dialect.strict_tools))
    messages = cast("list[Wire]", body["messages"])
    target = endpoint.model.id if prompt.model is None else prompt.model
    prefixes = chosen(options.extra, PROTOCOL, "prefix", "last", model=target)
    _encode_messages(context.messages, messages, endpoint, any_prefix=prefixes == "any")
    encode_options(body, options, endpoint, prompt.model)
    return body


def _encode_messages(given: Sequence[Message], messages: list[Wire], endpoint: Endpoint, *, any_prefix: bool) -> None:
    turn: AssistantMessage | None = None
    is_named = endpoint.dialect.result_name
    last = len(given) - 1
    for index, message in enumerate(given):
        path: Path = ("messages", index)
        if type(message) is ToolResultMessage:
            content = message.content
            piece = content[0] if len(content) == 1 else None
            if type(piece) is TextContent and piece.extra is message.extra is None and message.tool_name and is_named:
                # Fast path: most messages of an agent are these.
                called = {"tool_call_id": message.tool_call_id, "name": message.tool_name}
                messages.append({"role": "tool", **called, "content": piece.text})
            else:
                named = _encode_name(message, turn, endpoint)
                messages.append(encode_result(BLOCKS, message, path, named))
        elif type(message) is AssistantMessage:
            turn, extra = message, message.extra
            if extra is not None and is_of_reply(extra):
                extra = None
            prefix = index == last and _has_prefix(message.content, endpoint, prefix=message.prefix)
            written = encode_assistant(message.content, path, extra, prefix=prefix)
            if extra is not None and index != last and not any_prefix and written[-1].get("prefix") is True:
                del written[-1]["prefix"]
            messages += written
        else:
            messages.append(encode_message(BLOCKS, message.role, message.content, message.extra, path))


def _has_prefix(content: Sequence[AssistantContent], endpoint: Endpoint, *, prefix: bool) -> bool:
    """Whether a last message is written with a prefix: if it is one, or if it could not be the last one otherwise."""
    if prefix or not endpoint.rules.last_assistant:
        return prefix
    return not any(
        piece.kind == "toolCall" or (piece.kind == "native" and is_call(PROTOCOL, piece)) for piece in content
    )


def _encode_name(message: ToolResultMessage, turn: AssistantMessage | None, endpoint: Endpoint) -> Wire:
    """Write the name of a result's tool, if the endpoint expects it or the received message had it."""
    is_named = endpoint.dialect.result_name
    if message.extra is not None:
        is_named = chosen(message.extra, PROTOCOL, "name", is_named)
    name = message.tool_name or _called(message.tool_call_id, turn)
    return {"name": name} if name and is_named else {}


def _called(call_id: str, turn: AssistantMessage | None) -> str:
    """Return the name of the last call with this id in the turn before; an empty text when there is none."""
    calls = turn.tool_calls() if turn is not None else ()
    return next((call.name for call in reversed(calls) if call.id == call_id), "")


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are of another type than the protocol defines; names the place.
    """
    given = open_body(body, endpoint)
    reader = _Reader(BLOCKS, endpoint, given.model)
    reader.read(expect_objects(given.wire.get("messages"), ("messages",)))
    tools = decode_tools(PROTOCOL, given.wire, strict_taken=endpoint.dialect.strict_tools)
    choices = choose("prefix", "last", "any" if reader.has_earlier_prefix else "last")
    options = decode_options(given.wire, endpoint, choices)
    return Prompt(context=reader.context(tools, given.wire), options=options, model=given.model)


class _Reader(MessagesReader):
    """Reads the messages of a body in order, and notes whether one before the last has a prefix."""

    has_earlier_prefix = False

    def read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:
        """Read an assistant message."""
        content = decode_assistant(wire, path, {}, reply=False).content
        has_prefix = wire.get("prefix") is True
        if has_prefix and not last:
            self.has_earlier_prefix = True
        prefix = last and _has_prefix(content, self.endpoint, prefix=has_prefix)
        extra = keep_assistant(wire, content, path, prefix=prefix)
        return self.message_of(content, extra, prefix=has_prefix and last)

    def read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        """Read a tool result."""
        content = decode_content(BLOCKS, wire.get("content", MISSING), (*path, "content"))
        call_id, called = self.answered(wire.get("tool_call_id"))
        received = wire.get("name")
        is_named = isinstance(received, str)
        name = received if is_named and received else called
        message = ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content)
        named: Wire = {"name": name} if is_named and name else {}
        choices = choose("name", self.endpoint.dialect.result_name, is_named) if name else {}
        return self.result_of(message, wire, path, named, known=("name",) if is_named else (), choices=choices)
