"""A request to an OpenAI chat endpoint, both ways.

Facts:
- A history with calls and no tools needs an empty list of tools through LiteLLM.             (pi #149, opencode #8246)

The format of the system message and of an empty list of tools is kept with the context, that of the options and of the
body itself with the options; both apply only to the same model at the same provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import Extra
from segue.conversation.context import Context, Prompt
from segue.conversation.messages import has_calls
from segue.protocols.kit.codec import Endpoint, JsonObject
from segue.protocols.kit.json_values import Block, Wire
from segue.protocols.kit.reading import expect_objects, text_of
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.openai_chat.content import fit_marks, place_marks
from segue.protocols.openai_chat.options import decode_options, decode_tools, encode_options, encode_tools
from segue.protocols.openai_chat.reasoning import REASONING_KEYS
from segue.protocols.openai_chat.rules import PROTOCOL
from segue.protocols.openai_chat.turns import (
    SYSTEM_ROLES,
    TurnReader,
    decode_system,
    encode_messages,
    encode_system,
    required_field,
    system_role,
)

_TOOL_KEYS: Final = frozenset({"tools", "functions"})
_FRAME_KEYS: Final = _TOOL_KEYS | {"messages"}


def _target(model: str | None, endpoint: Endpoint) -> str:
    """Name the model that a format applies to."""
    return f"{endpoint.model.provider}/{model or endpoint.model.id}"


# -- writing -----------------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a request body.

    Raises:
        EncodeError: content, a tool or arguments that this protocol does not support.
    """
    context, target = prompt.context, _target(prompt.model, endpoint)
    frame = restore(_encode_frame(context, endpoint), context.extra, PROTOCOL, model=target)
    system = frame.pop("system", None) if context.system_prompt is not None else None
    messages = encode_messages(context.messages, endpoint)
    if system is not None and "role" in cast("Wire", system):
        messages.insert(0, cast("Wire", system))
    body: Wire = {"messages": messages, "model": endpoint.model.id if prompt.model is None else prompt.model}
    body.update({key: value for key, value in frame.items() if key in _TOOL_KEYS})
    encode_options(body, prompt.options, context, endpoint, target)
    fit_marks(messages, endpoint)
    place_marks(body, prompt.options.cache_retention, endpoint, anchored=prompt.anchored)
    return body


def _encode_frame(context: Context, endpoint: Endpoint) -> Wire:
    """Write the system message, as `system`, and the tools."""
    frame = encode_tools(context.tools, endpoint)
    if context.system_prompt is not None:
        frame["system"] = encode_system(context.system_prompt, endpoint)
    if not context.tools and endpoint.dialect.empty_tools and has_calls(context.messages):
        frame["tools"] = []
    return frame


# -- reading -----------------------------------------------------------------------------------------------------------


def decode_request(body: JsonObject | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a request body, or its bare list of messages.

    Raises:
        DecodeError: messages or tools are not in the format of the protocol; names the place.
    """
    whole: Block = body if isinstance(body, (dict, Mapping)) else {"messages": list(body)}
    model = text_of(whole.get("model"))
    target = _target(model, endpoint)
    wires = expect_objects(whole.get("messages"), ("messages",))
    has_system = bool(wires) and wires[0].get("role") in SYSTEM_ROLES
    reader = TurnReader(endpoint, model or endpoint.model.id)
    for index, wire in enumerate(wires):
        if index or not has_system:
            reader.read(wire, ("messages", index))
    context = Context(
        system_prompt=decode_system(wires[0], ("messages", 0, "content")) if has_system else None,
        messages=tuple(reader.messages),
        tools=decode_tools(whole, endpoint),
    )
    extra = _keep_frame(context, wires[0] if has_system else None, whole, endpoint, target)
    if extra is not None:
        context = replace(context, extra=extra)
    if not isinstance(body, (dict, Mapping)):
        return Prompt(context=context)
    received = {key: value for key, value in whole.items() if key not in _FRAME_KEYS}
    default: Wire = {"model": endpoint.model.id if model is None else model}
    required = required_field(endpoint)
    if required is not None and reader.lacks_required:
        # A body whose messages lack the required field is written as it was; a new request has the field.
        received["messages"] = [{} for _ in wires]
        lacking = (wire.get("role") == "assistant" and REASONING_KEYS.isdisjoint(wire) for wire in wires)
        default["messages"] = [{required: ""} if lacks else {} for lacks in lacking]
    options = decode_options(received, default, context, endpoint, target)
    return Prompt(context=context, options=options, model=model)


def _keep_frame(context: Context, system: Block | None, body: Block, endpoint: Endpoint, target: str) -> Extra | None:
    if _is_common(context, system, body, endpoint):
        return None
    default = _encode_frame(context, endpoint)
    received: Wire = {} if system is None else {"system": system}
    for key in _TOOL_KEYS & body.keys():
        # Tools keep their own format, so only null and an empty list are compared here.
        received[key] = default[key] if body[key] and key in default else body[key]
    known = [key for key in _TOOL_KEYS if isinstance(body.get(key), list)]
    extra = keep(PROTOCOL, received, default, known, only_for=target)
    if system is None or default.get("system") is not None or extra is None:
        return extra
    # A message without content is kept as a form; what it has in addition is data, so that its loss is reported.
    data = {key: value for key, value in system.items() if key not in ("role", "content")}
    return {PROTOCOL: {**extra[PROTOCOL], "system": data}} if data else extra


def _is_common(context: Context, system: Block | None, body: Block, endpoint: Endpoint) -> bool:
    """Whether the system message and the list of tools have the default format."""
    if system is not None:
        is_text = type(system.get("content")) is str and len(system) == 2  # with the role
        if not is_text or system["role"] != system_role(endpoint):
            return False
    if "functions" in body:
        return False
    return bool(context.tools) or ("tools" not in body and not endpoint.dialect.empty_tools)
