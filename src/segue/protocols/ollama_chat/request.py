"""An Ollama chat request, both ways; the conversation is read in `turns`, what is asked besides in `options`.

Fact this file rests on: the first message is the system prompt if it has that role; more may follow anywhere.
                                                                           (ollama server source @fb30760; 2026-11-15)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from segue.conversation.context import Context, Options, Prompt
from segue.errors import DecodeError, EncodeError
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.reading import VERBATIM, expect_objects, verbatim_of
from segue.protocols.ollama_chat.options import decode_options, encode_model, encode_options, is_verbatim
from segue.protocols.ollama_chat.rules import PROTOCOL
from segue.protocols.ollama_chat.tools import decode_tools, encode_tools
from segue.protocols.ollama_chat.turns import SYSTEM, Reading, encode_turns
from segue.protocols.ollama_chat.verbatim import Wire, object_of, own_part


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or something in it is not what the protocol says.
    """
    whole = body if isinstance(body, Mapping) else {"messages": list(body)}
    if "messages" not in whole:
        raise DecodeError("a request has to have messages", path=("messages",))
    named = whole.get("model")
    model = named if isinstance(named, str) else None
    reading = Reading(endpoint, model or endpoint.model.id)
    reading.read(expect_objects(whole["messages"], ("messages",)))
    beyond: Wire = {SYSTEM: reading.beside_prompt} if reading.beside_prompt else {}
    if "tools" in whole and not whole["tools"]:
        beyond[VERBATIM] = {"tools": whole["tools"]}
    context = Context(
        system_prompt=reading.system_prompt,
        messages=tuple(reading.messages),
        tools=decode_tools(whole.get("tools")),
        extra={PROTOCOL: beyond} if beyond else None,
    )
    if not isinstance(body, Mapping):
        return Prompt(context=context)
    return Prompt(context=context, options=decode_options(whole, endpoint, refused=reading.refused), model=model)


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a body.

    Raises:
        EncodeError: something has no word on this wire; `path` leads to it.
    """
    context, options = prompt.context, prompt.options
    _refuse(options, endpoint)
    verbatim = is_verbatim(options, prompt.model, endpoint)
    beside = None if context.extra is None else object_of((own_part(context.extra) or {}).get(SYSTEM))
    body = encode_model(prompt.model, options, endpoint)
    body["messages"] = encode_turns(context.system_prompt, beside, context.messages, endpoint, verbatim=verbatim)
    verbatim = verbatim_of(context.extra, PROTOCOL)
    if context.tools:
        body["tools"] = encode_tools(context.tools)
    elif "tools" in verbatim:
        body["tools"] = verbatim["tools"]
    body.update(encode_options(options, endpoint))
    return body


def _refuse(options: Options, endpoint: Endpoint) -> None:
    if options.tool_choice is not None and not endpoint.rules.tool_choices:
        raise EncodeError("this wire has no word for a choice of tools", path=("options", "tool_choice"))
    for name in sorted(endpoint.rules.refused_options):
        if getattr(options, name) is not None:
            raise EncodeError("this wire has no word for it", path=("options", name))
