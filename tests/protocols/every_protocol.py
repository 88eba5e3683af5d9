"""The protocols that can be spoken, and small things the tests of all of them share."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from segue.conversation.context import Context
from segue.conversation.messages import Message
from segue.errors import UnknownProtocol
from segue.protocols.kit.protocol import Protocol
from segue.protocols.registry import PROTOCOLS, get_protocol


def all_codecs() -> list[Protocol]:
    """Give every codec there is, in the registry's order."""
    codecs: list[Protocol] = []
    for name in PROTOCOLS:
        try:
            codecs.append(get_protocol(name))
        except UnknownProtocol:
            continue
    return codecs


def without_fields(value: object, names: Collection[str]) -> object:
    """Give a neutral value as plain values, without some fields, at every depth."""
    if isinstance(value, msgspec.Struct):
        kept = {name: getattr(value, name) for name in value.__struct_fields__ if name not in names}
        return {"kind": type(value).__name__, **{name: without_fields(inner, names) for name, inner in kept.items()}}
    if isinstance(value, dict):
        return {key: without_fields(inner, names) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_fields(inner, names) for inner in value]
    return value


def vouched_for(context: Context) -> Context:
    """Leave out what only a wire's own blocks and keys would say: no provider's types vouch for those."""

    def pieces(given):
        return tuple(msgspec.structs.replace(piece, extra=None) for piece in given if piece.kind != "native")

    prompt = context.system_prompt
    return Context(
        system_prompt=pieces(prompt) if isinstance(prompt, tuple) else prompt,
        messages=tuple(
            msgspec.structs.replace(message, content=pieces(message.content), extra=None)
            for message in context.messages
        ),
        tools=tuple(msgspec.structs.replace(tool, extra=None) for tool in context.tools if tool.kind != "native"),
    )


def joined_turns(context: Context) -> Context:
    """Give a conversation whose neighbouring turns of one role are one, for wires that cannot tell them apart."""
    messages: list[Message] = []
    for message in context.messages:
        earlier = messages[-1] if messages else None
        if earlier is not None and earlier.role == message.role and message.role in ("user", "assistant"):
            messages[-1] = msgspec.structs.replace(earlier, content=earlier.content + message.content)
        else:
            messages.append(message)
    return msgspec.structs.replace(context, messages=tuple(messages))


def message_given(message: Message) -> tuple[object, ...]:
    """Give who spoke, and which words, calls and media, for wires that join the texts of a turn."""
    words = "".join("".join(piece.text.split()) for piece in message.content if piece.kind == "text")
    calls = [(piece.id, piece.name, piece.arguments) for piece in message.content if piece.kind == "toolCall"]
    media = [piece.kind for piece in message.content if piece.kind in ("image", "file")]
    return message.role, words, calls, media


def wire_messages(body: dict[str, object]) -> list[object]:
    """Give the list of turns of a body, whatever its wire calls it."""
    for key in ("messages", "input", "contents"):
        if key in body:
            turns = body[key]
            assert isinstance(turns, list)
            return turns
    raise AssertionError(f"no turns in {list(body)}")


def cuts(context: Context) -> list[int]:
    """List where a request was sent and answered: before each finished assistant turn behind a user turn or a result.

    Where a later result names an id that was called before, the cut is left out: it may be a late answer.
    """
    found: list[int] = []
    messages = context.messages
    for index in range(1, len(messages)):
        message = messages[index]
        answers = messages[index - 1].role in ("user", "toolResult")
        if message.role != "assistant" or not answers or message.stop_reason in ("error", "aborted"):
            continue
        turns = [earlier for earlier in messages[:index] if earlier.role == "assistant"]
        called = {call.id for turn in turns for call in turn.tool_calls()}
        if not any(later.role == "toolResult" and later.tool_call_id in called for later in messages[index:]):
            found.append(index)
    return found
