"""A request to Mistral's chat endpoint, both ways.

Facts this file rests on:
- Roles are system, user, assistant and tool. A tool message names its call by id and repeats the tool's name, both of
  them optional by the types.                                                   (mistralai 3.7.0, read 2026-11-15)
- Last stands the user, a tool, or an assistant with `prefix: true`, and nothing else may have a prefix.
                                                                                       (mistral-common 1.13.0)

A result without a name has that of the tool whose call it answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from segue.conversation.content import Extra, TextContent
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.errors import Path
from segue.protocols.chat_family.chat import (
    MessagesReader,
    encode_model,
    encode_result,
    encode_system,
    open_body,
)
from segue.protocols.chat_family.message_content import MESSAGE_KEYS, decode_content, encode_message_content
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.functions import decode_tools, encode_tools
from segue.protocols.kit.reading import ASKED_OF, VERBATIM, expect_objects, is_of_reply, verbatim_of
from segue.protocols.kit.retired_format import MISSING, Block, Wire, keep
from segue.protocols.mistral_chat.assistant import decode_assistant, encode_assistant
from segue.protocols.mistral_chat.content import BLOCKS
from segue.protocols.mistral_chat.options import decode_options, encode_options
from segue.protocols.mistral_chat.rules import PROTOCOL

_RESULT_KEYS: Final = frozenset({"role", "content", "tool_call_id", "name"})

# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: content, a tool or arguments that this wire has no word for.
    """
    context, options = prompt.context, prompt.options
    messages = encode_system(BLOCKS, context)
    again = ASKED_OF in verbatim_of(options.extra, PROTOCOL)
    _encode_messages(context.messages, messages, endpoint, again=again)
    body: Wire = {"messages": messages}
    body |= encode_model(PROTOCOL, prompt, endpoint)
    body |= encode_tools(PROTOCOL, context, strict_taken=endpoint.dialect.strict_tools)
    encode_options(body, options, endpoint)
    return body


def _encode_messages(given: Sequence[Message], messages: list[Wire], endpoint: Endpoint, *, again: bool) -> None:
    turn: AssistantMessage | None = None
    is_named = endpoint.dialect.result_name
    last = len(given) - 1
    for index, message in enumerate(given):
        path: Path = ("messages", index)
        if type(message) is ToolResultMessage:
            content = message.content
            piece = content[0] if len(content) == 1 else None
            if type(piece) is TextContent and piece.extra is message.extra is None and message.tool_name and is_named:
                # The short way, for these are most of an agent's messages.
                called = {"tool_call_id": message.tool_call_id, "name": message.tool_name}
                messages.append({"role": "tool", **called, "content": piece.text})
            else:
                named = _encode_name(message, turn, endpoint)
                messages.append(encode_result(BLOCKS, message, path, named))
        elif type(message) is AssistantMessage:
            turn, extra = message, message.extra
            written = encode_assistant(message.content, path, None if extra is None or is_of_reply(extra) else extra)
            if index == last or extra is not None:
                _encode_prefix(written[-1], extra, endpoint, last=index == last, again=again)
            messages += written
        else:
            messages.append(encode_message_content(BLOCKS, message.role, message.content, message.extra, path))


def _encode_prefix(wire: Wire, extra: Extra | None, endpoint: Endpoint, *, last: bool, again: bool) -> None:
    """Say that the answer begins with this turn: where it was said and still may be, or where the turn has to say so.

    Elsewhere a prefix is refused, so a turn that others have followed since loses it, unless the very request that was
    read is written again.
    """
    verbatim = verbatim_of(extra, PROTOCOL)
    received = verbatim.get("prefix", MISSING)
    if received is True:
        if last or again:
            wire["prefix"] = True
    elif received is not MISSING:
        wire["prefix"] = received
    elif last and endpoint.rules.last_assistant and "tool_calls" not in wire and "no_prefix" not in verbatim:
        wire["prefix"] = True


def _encode_name(message: ToolResultMessage, turn: AssistantMessage | None, endpoint: Endpoint) -> Wire:
    """Name the tool of a result, where the endpoint wants it or it was said; a name that was left empty stays so."""
    name = message.tool_name or _called(message.tool_call_id, turn)
    received = verbatim_of(message.extra, PROTOCOL).get("name", endpoint.dialect.result_name)
    if name and received is True:
        return {"name": name}
    return {"name": ""} if received == "" else {}


def _called(call_id: str, turn: AssistantMessage | None) -> str:
    """Name the tool of a call in the turn before, the last one of that id; an empty text when there is none."""
    calls = turn.tool_calls() if turn is not None else ()
    return next((call.name for call in reversed(calls) if call.id == call_id), "")


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are not what the protocol says; names the place.
    """
    given = open_body(body)
    reader = _Reader(BLOCKS, endpoint, given.model)
    reader.read(expect_objects(given.wire.get("messages"), ("messages",)))
    asked = {**given.asked, ASKED_OF: reader.model} if reader.prefixed_before_last else given.asked
    taken = endpoint.dialect.strict_tools
    context = reader.context(decode_tools(PROTOCOL, given.wire, reader.frame, strict_taken=taken))
    return Prompt(context=context, options=decode_options(given.wire, asked, endpoint), model=given.model)


class _Reader(MessagesReader):
    """Reads the messages of a body in order, and notes a prefix where it is refused."""

    prefixed_before_last = False

    def read_assistant(self, wire: Block, path: Path, *, last: bool) -> AssistantMessage:
        """Read a turn of the assistant's."""
        turn = decode_assistant(wire, path, {}, reply=False)
        extra = turn.extra
        if wire.get("prefix") is True and not last:
            self.prefixed_before_last = True
        if last and self.endpoint.rules.last_assistant and "prefix" not in wire and not wire.get("tool_calls"):
            part = (extra or {}).get(PROTOCOL, {})
            extra = {PROTOCOL: {**part, VERBATIM: {**verbatim_of(extra, PROTOCOL), "no_prefix": True}}}
        return self.message_of(turn.content, extra)

    def read_result(self, wire: Block, path: Path) -> ToolResultMessage:
        """Read what came of a call."""
        content, original = decode_content(BLOCKS, wire.get("content", MISSING), (*path, "content"))
        verbatim: Wire = {} if original is None else {"content": original}
        wire_id, wire_name_given = wire.get("tool_call_id"), wire.get("name")
        call_id, called = self.answered(wire_id, verbatim)
        is_given = isinstance(wire_name_given, str)
        name = wire_name_given if is_given and wire_name_given else called
        if wire_name_given == "":
            verbatim["name"] = ""
        elif is_given != (bool(name) and self.endpoint.dialect.result_name):
            verbatim["name"] = is_given
        known = _RESULT_KEYS
        if not (is_given and isinstance(wire_id, str)):
            known = {key for key in _RESULT_KEYS if key in MESSAGE_KEYS or isinstance(wire.get(key), str)}
        extra = keep(PROTOCOL, wire, known, verbatim) if verbatim or not wire.keys() <= known else None
        return ToolResultMessage(tool_call_id=call_id, tool_name=name, content=content, extra=extra)
