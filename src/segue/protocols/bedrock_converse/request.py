"""A Bedrock request, both ways: the conversation, its tools, and what is asked besides.

Facts this file rests on:
- `system` is a list of blocks beside the messages, tools stand in `toolConfig`; the model is named by the address, and
  beside the body by boto3 (`modelId`).                              (botocore 1.44.0 service model, read 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from segue.conversation.content import SystemContent
from segue.conversation.context import Context, Prompt, Tool
from segue.errors import DecodeError, EncodeError
from segue.protocols.bedrock_converse.cache import place_marks
from segue.protocols.bedrock_converse.content import encode_user_blocks
from segue.protocols.bedrock_converse.document_names import DocumentNames
from segue.protocols.bedrock_converse.options import decode_options, encode_options
from segue.protocols.bedrock_converse.rules import PROTOCOL
from segue.protocols.bedrock_converse.tools import decode_tools, encode_tools
from segue.protocols.bedrock_converse.turns import blocks_of, decode_system, decode_turns, encode_turns
from segue.protocols.bedrock_converse.verbatim import Wire, object_of
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, verbatim_of


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, the arguments of boto3, or a bare list of messages.

    Raises:
        DecodeError: it has no messages, or something in it is not what the protocol says.
    """
    if not isinstance(body, Mapping):
        return Prompt(context=Context(messages=decode_turns(body, endpoint, endpoint.model.id)))
    if "messages" not in body:
        raise DecodeError("a request has to have messages", path=("messages",))
    named = body.get("modelId")
    model = named if isinstance(named, str) else None
    verbatim: Wire = {}
    context = Context(
        system_prompt=_decode_system(body, verbatim),
        messages=decode_turns(body["messages"], endpoint, model or endpoint.model.id),
        tools=_decode_tools(body, endpoint, verbatim),
        extra={PROTOCOL: {VERBATIM: verbatim}} if verbatim else None,
    )
    return Prompt(context=context, options=decode_options(body, endpoint), model=model)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: something has no word on this wire; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    verbatim = verbatim_of(context.extra, PROTOCOL)
    body: Wire = {"messages": encode_turns(context.messages, endpoint)}
    _encode_system(context, verbatim, body)
    body.update(encode_options(options, endpoint, prompt.model))
    tools: object = encode_tools(context.tools, endpoint) if context.tools else verbatim.get("tools")
    if context.tools or "tools" in verbatim:
        body["toolConfig"] = {"tools": tools, **object_of(body.get("toolConfig"))}
    if options.cache_retention is not None and options.cache_retention != "none":
        place_marks(body, endpoint, options.cache_retention)
    return body


# -- system prompt -----------------------------------------------------------------------------------------------------


def _decode_system(body: Mapping[str, object], verbatim: Wire) -> str | tuple[SystemContent, ...] | None:
    system = body.get("system")
    if not system:
        if "system" in body:
            verbatim["system"] = system
        return None
    pieces = decode_system(blocks_of(system, ("system",)))
    if len(pieces) == 1 and pieces[0].kind == "text" and pieces[0].extra is None:
        return pieces[0].text
    return pieces


def _encode_system(context: Context, verbatim: Mapping[str, object], body: Wire) -> None:
    system = context.system_prompt
    if isinstance(system, str):
        body["system"] = [{"text": system}]
    elif system:
        try:
            body["system"] = encode_user_blocks(system, DocumentNames())
        except EncodeError as error:
            raise EncodeError(error.reason, path=("system_prompt",)) from error
    elif "system" in verbatim:
        body["system"] = verbatim["system"]


# -- tools -------------------------------------------------------------------------------------------------------------


def _decode_tools(body: Mapping[str, object], endpoint: Endpoint, verbatim: Wire) -> tuple[Tool, ...]:
    config = body.get("toolConfig")
    given = object_of(config).get("tools")
    if not given:
        if "tools" in object_of(config):
            verbatim["tools"] = given
        return ()
    return decode_tools(blocks_of(given, ("toolConfig", "tools")), endpoint)
