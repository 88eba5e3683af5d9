"""A conversation in plain text, both ways: `{"messages": [{"role", "content"}]}` and nothing else.

The form is ours. The first turn is the system prompt if it has that role; later ones of that role are instructions in
mid-conversation. Roles that segue has no word for (an old `tool`) are read as the user's and written as they were.
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
from segue.protocols.kit.reading import expect_objects, extra_of, left_over, text_of, verbatim_of
from segue.protocols.plain_text.content import TURN_KEYS, decode_text_content, encode_turn
from segue.protocols.plain_text.rules import PROTOCOL

_SYSTEM: Final = "system"
"""The role of instructions, and where a context keeps what its system turn said beside its words."""


# -- wire -> neutral ---------------------------------------------------------------------------------------------------


def decode_request(body: Mapping[str, object] | Sequence[object], endpoint: Endpoint) -> Prompt:
    """Read a body, or its bare list of messages.

    Raises:
        DecodeError: it has no messages, or one of them is not a role and a string.
    """
    whole = body if isinstance(body, Mapping) else {"messages": list(body)}
    if "messages" not in whole:
        raise DecodeError("a request has to have messages", path=("messages",))
    turns = expect_objects(whole["messages"], ("messages",))
    model = text_of(whole.get("model"))
    context = Context()
    messages: list[Message] = []
    for index, turn in enumerate(turns):
        role = turn.get("role")
        if not isinstance(role, str):
            raise DecodeError("role has to be a string", path=("messages", index, "role"))
        texts = decode_text_content(turn, ("messages", index))
        if index == 0 and role == _SYSTEM:
            beside = {key: value for key, value in turn.items() if key not in TURN_KEYS}
            extra = {PROTOCOL: {_SYSTEM: beside}} if beside else None
            context = Context(system_prompt=texts[0].text if texts else "", extra=extra)
        else:
            messages.append(_decode_turn(role, texts, turn, endpoint, model))
    known = {"messages", "model"} if model is not None else {"messages"}
    # The form has no place for a model's name: one that was given is given back.
    extra = extra_of(PROTOCOL, whole, known, {"model": True} if model is not None else None)
    return Prompt(context=replace(context, messages=tuple(messages)), options=Options(extra=extra), model=model)


def _decode_turn(
    role: str, texts: tuple[TextContent, ...], turn: Mapping[str, object], endpoint: Endpoint, model: str | None
) -> AssistantMessage | SystemMessage | UserMessage:
    extra = extra_of(PROTOCOL, turn, TURN_KEYS)
    if role == "assistant":
        message = new_assistant_message(endpoint.model, content=texts)
        return replace(message, protocol=PROTOCOL, model=model or endpoint.model.id, extra=extra)
    if role == _SYSTEM:
        return SystemMessage(content=texts, extra=extra)
    verbatim = None if role == "user" else {"role": role}
    return UserMessage(content=texts, extra=extra_of(PROTOCOL, turn, TURN_KEYS, verbatim))


# -- neutral -> wire ---------------------------------------------------------------------------------------------------


def encode_request(prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Write a body.

    Raises:
        EncodeError: there is more than words: a call, media, a tool, an option. Projection tells what can be told.
    """
    context, options = prompt.context, prompt.options
    if context.tools:
        raise EncodeError("plain text has no tools", path=("tools",))
    for name in sorted(endpoint.rules.refused_options):
        if getattr(options, name) is not None:
            raise EncodeError("plain text has no word for it", path=("options", name))
    turns: list[dict[str, object]] = []
    system = context.system_prompt
    if system is not None and system != ():
        pieces = (TextContent(text=system),) if isinstance(system, str) else system
        beside = left_over(context.extra, PROTOCOL).get(_SYSTEM)
        extra = {PROTOCOL: cast("Mapping[str, object]", beside)} if isinstance(beside, Mapping) else None
        turns.append(encode_turn(_SYSTEM, pieces, extra, ("system_prompt",)))
    turns += [_encode_message(message, index) for index, message in enumerate(context.messages)]
    body: dict[str, object] = {"messages": turns}
    if verbatim_of(options.extra, PROTOCOL).get("model") and prompt.model is not None:
        body["model"] = prompt.model
    for key, value in left_over(options.extra, PROTOCOL).items():
        body.setdefault(key, value)
    return body


def _encode_message(message: Message, index: int) -> dict[str, object]:
    role = message.role
    if message.extra is None and role != "toolResult" and len(message.content) == 1:
        piece = message.content[0]
        if piece.kind == "text":
            return {"role": role, "content": piece.text}  # the short way, for these are most
    path = ("messages", index)
    if role == "toolResult":
        raise EncodeError("plain text has no tool results", path=path)
    if role == "user":
        given = text_of(verbatim_of(message.extra, PROTOCOL).get("role"))
        role = "user" if given is None else given
    return encode_turn(role, message.content, message.extra, (*path, "content"))
