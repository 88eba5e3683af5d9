"""An Ollama chat request, both ways; `turns` reads the conversation, `options` everything else.

Fact this file relies on: the first message is the system prompt if it has that role; more may follow anywhere.
                                                                           (ollama server source @fb30760; 2026-11-15)

`extra` of the context describes the first message, if that is the system prompt, under `system`, and an empty list of
tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from segue.conversation.context import Context, Options, Prompt
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import Wire
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import body_with_messages, expect_objects, text_of
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.ollama_chat.options import decode_options, decode_tools, encode_options, encode_tools, is_verbatim
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.turns import TurnReader, encode_system, encode_turns

_SYSTEM: Final = "system"
_TOOLS: Final = "tools"
_KNOWN: Final = frozenset({_TOOLS, "system.images"})


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or a value of an unexpected type.
    """
    whole = body_with_messages(body)
    model = text_of(whole.get("model"))
    reader = TurnReader(endpoint, endpoint.model.id if model is None else model)
    turns = expect_objects(whole["messages"], ("messages",))
    reader.read(turns)
    received, default = Wire(), Wire()
    if reader.system_prompt is not None:
        received[_SYSTEM], default[_SYSTEM] = turns[0], encode_system(reader.system_prompt, verbatim=True)
    if _TOOLS in whole and not whole[_TOOLS]:
        received[_TOOLS] = whole[_TOOLS]
    context = Context(
        system_prompt=reader.system_prompt,
        messages=tuple(reader.messages),
        tools=decode_tools(whole.get(_TOOLS)),
        extra=keep(PROTOCOL, received, default, known=_KNOWN) if received else None,
    )
    if not isinstance(body, Mapping):
        return Prompt(context=context)
    options = decode_options(whole, endpoint, model, has_refused_format=reader.has_refused_format)
    return Prompt(context=context, options=options, model=model)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: the wire does not support something; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    _check_options(options, endpoint)
    verbatim = is_verbatim(options, endpoint, prompt.model)
    body = encode_options(options, endpoint, prompt.model)
    frame: Wire = {}
    if context.system_prompt is not None and context.system_prompt != ():
        frame[_SYSTEM] = encode_system(context.system_prompt, verbatim=verbatim)
    if context.tools:
        frame[_TOOLS] = encode_tools(context.tools)
    has_system = _SYSTEM in frame
    restore(frame, context.extra, PROTOCOL)
    turns = encode_turns(context.messages, endpoint, verbatim=verbatim)
    body["messages"] = [cast("Wire", frame[_SYSTEM]), *turns] if has_system else turns
    if _TOOLS in frame:
        body[_TOOLS] = frame[_TOOLS]
    return body


def _check_options(options: Options, endpoint: Endpoint) -> None:
    refused = endpoint.rules.refused_options
    if not endpoint.rules.tool_choices:
        refused = refused | {"tool_choice"}
    refuse_options(PROTOCOL, options, sorted(refused))
