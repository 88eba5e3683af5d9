"""A conversation in plain text, both ways: `{"messages": [{"role", "content"}]}` and nothing else.

The format is segue's own. The first turn is the system prompt if it has that role; later turns of that role are system
messages. A turn of an unknown role (an old `tool`) is read as a user message and written with its role.

`extra` of the context describes the first turn, if that is the system prompt, under `system`. `extra` of the options
describes the body without its messages; the format has no field for a model, so a received one is format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.content import TextContent
from segue.conversation.context import Context, Options, Prompt
from segue.conversation.messages import AssistantMessage, Message, SystemMessage, UserMessage
from segue.errors import DecodeError, EncodeError
from segue.models.origin import new_assistant_message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import EMPTY, Block, Wire
from segue.protocols.kit.option_table import refuse_options
from segue.protocols.kit.reading import body_with_messages, expect_objects, is_of_reply, text_of
from segue.protocols.kit.verbatim import keep, restore
from segue.protocols.plain_text.content import decode_text_content, encode_turn
from segue.protocols.plain_text.rules import PROTOCOL

_SYSTEM: Final = "system"
_ROLES: Final = (_SYSTEM, "user", "assistant")


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or one of them is not a role and a string.
    """
    whole = body_with_messages(body)
    turns = expect_objects(whole["messages"], ("messages",))
    model = text_of(whole.get("model"))
    context = Context()
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        role = turn.get("role")
        if not isinstance(role, str):
            reason = "`role` must be a string; use system, user or assistant"
            raise DecodeError(reason, path=("messages", index, "role"))
        texts = decode_text_content(turn, ("messages", index))
        if index == 0 and role == _SYSTEM:
            default: Wire = {_SYSTEM: {"role": role, "content": turn["content"]}}
            extra = keep(PROTOCOL, {_SYSTEM: turn}, default)
            context = Context(system_prompt=texts[0].text if texts else "", extra=extra)
        else:
            messages.append(_decode_turn(role, texts, turn, endpoint, model))
    beside = {key: value for key, value in whole.items() if key != "messages"}
    known = () if model is None else ("model",)
    extra = keep(PROTOCOL, beside, EMPTY, known=known, only_for=model or endpoint.model.id) if beside else None
    return Prompt(context=replace(context, messages=tuple(messages)), options=Options(extra=extra), model=model)


def _decode_turn(
    role: str, texts: tuple[TextContent, ...], turn: Block, endpoint: Endpoint, model: str | None
) -> AssistantMessage | SystemMessage | UserMessage:
    extra = None
    if len(turn) != 2 or role not in _ROLES:
        default = {"role": role if role in _ROLES else "user", "content": turn["content"]}
        extra = keep(PROTOCOL, turn, default)
    if role == "assistant":
        message = new_assistant_message(endpoint.model, content=texts)
        return replace(message, protocol=PROTOCOL, model=model or endpoint.model.id, extra=extra)
    if role == _SYSTEM:
        return SystemMessage(content=texts, extra=extra)
    return UserMessage(content=texts, extra=extra)


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> Wire:
    """Write a body.

    Raises:
        EncodeError: it has more than text: a call, media, a tool, an option. `prepare` converts what can be converted.
    """
    context, options = prompt.context, prompt.options
    if context.tools:
        raise EncodeError(f"{PROTOCOL} does not support tools; remove them", path=("tools",))
    refuse_options(PROTOCOL, options, sorted(endpoint.rules.refused_options))
    turns: list[Wire] = []
    system = context.system_prompt
    if system is not None and system != ():
        pieces = (TextContent(text=system),) if isinstance(system, str) else system
        frame: Wire = {_SYSTEM: encode_turn(_SYSTEM, pieces, None, ("system_prompt",))}
        restore(frame, context.extra, PROTOCOL)
        turns.append(cast("Wire", frame[_SYSTEM]))
    turns += [_encode_message(message, index) for index, message in enumerate(context.messages)]
    body: Wire = {"messages": turns}
    return restore(body, options.extra, PROTOCOL, model=prompt.model or endpoint.model.id)


def _encode_message(message: Message, index: int) -> Wire:
    role, extra = message.role, message.extra
    if extra is not None and is_of_reply(extra):
        extra = None
    if extra is None and role != "toolResult" and len(message.content) == 1:
        piece = message.content[0]
        if piece.kind == "text":
            return {"role": role, "content": piece.text}  # fast path: most messages
    path = ("messages", index)
    if role == "toolResult":
        raise EncodeError(f"{PROTOCOL} does not support tool results; convert them to text with `prepare`", path=path)
    return encode_turn(role, message.content, extra, (*path, "content"))
