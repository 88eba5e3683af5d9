"""A Bedrock request, both ways: the conversation, its tools, the options.

Facts this file rests on:
- `system` is a list of blocks beside the messages, tools stand in `toolConfig`; the address names the model, and
  boto3 names it beside the body (`modelId`).                        (botocore 1.44.0 service model, read 2026-11-15)

`extra` of the context holds a system prompt or a list of tools that was received empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, Prompt
from segue.errors import DecodeError, EncodeError
from segue.protocols.bedrock_converse.cache import place_marks
from segue.protocols.bedrock_converse.content import encode_user_blocks
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.options import decode_options, encode_options
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.tools import decode_tools, encode_tools
from segue.protocols.bedrock_converse.turns import decode_system, decode_turns, encode_turns
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Wire, object_of
from segue.protocols.kit.reading import expect_objects, text_of
from segue.protocols.kit.verbatim import keep, restore

_SYSTEM: Final = "system"
_TOOLS: Final = "tools"
_KNOWN: Final = frozenset({_SYSTEM, _TOOLS})


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, the arguments of boto3, or a bare list of messages.

    Raises:
        DecodeError: it has no messages, or a value of an unexpected type.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "messages" not in body:
        raise DecodeError("the request has no `messages`; add them", path=("messages",))
    model = text_of(body.get("modelId"))
    config = object_of(body.get("toolConfig"))
    system, tools = body.get(_SYSTEM), config.get(_TOOLS)
    empty: Wire = {}
    if not system and _SYSTEM in body:
        empty[_SYSTEM] = system
    if not tools and _TOOLS in config:
        empty[_TOOLS] = tools
    context = Context(
        system_prompt=_decode_system(system) if system else None,
        messages=decode_turns(body["messages"], endpoint, model or endpoint.model.id),
        tools=decode_tools(expect_objects(tools, ("toolConfig", "tools")), endpoint) if tools else (),
        extra=keep(PROTOCOL, empty, EMPTY, known=_KNOWN) if empty else None,
    )
    return Prompt(context=context, options=decode_options(body, endpoint, model), model=model)


def _decode_system(system: object) -> str | tuple[SystemContent, ...]:
    pieces = decode_system(expect_objects(system, ("system",)))
    only = pieces[0] if len(pieces) == 1 else None
    if only is not None and only.kind == "text" and only.extra is None and only.cache_mark is None:
        return only.text
    return pieces


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: the wire does not support something; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    body: Wire = {"messages": encode_turns(context.messages, endpoint)}
    frame: Wire = {}
    if context.system_prompt is not None and context.system_prompt != ():
        frame[_SYSTEM] = _encode_system(context.system_prompt)
    if context.tools:
        frame[_TOOLS] = encode_tools(context.tools, endpoint)
    if context.extra is not None:
        restore(frame, context.extra, PROTOCOL)
    if _SYSTEM in frame:
        body[_SYSTEM] = frame[_SYSTEM]
    body.update(encode_options(options, endpoint, prompt.model))
    if _TOOLS in frame:
        body["toolConfig"] = {_TOOLS: frame[_TOOLS], **object_of(body.get("toolConfig"))}
    if options.cache_retention is not None and options.cache_retention != "none":
        place_marks(body, endpoint, options.cache_retention, anchored=prompt.anchored)
    return body


def _encode_system(system: str | tuple[SystemContent, ...]) -> list[Wire]:
    if isinstance(system, str):
        return [{"text": system}]
    try:
        return encode_user_blocks(system, DocumentNames())
    except EncodeError as error:
        raise EncodeError(error.reason, path=("system_prompt",)) from error
