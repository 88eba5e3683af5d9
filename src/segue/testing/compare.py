"""Compare a conversation with the one that was decoded from its request body."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import msgspec

from segue.conversation.context import Context, NativeTool
from segue.conversation.messages import Message


def without_fields(value: object, names: Collection[str]) -> object:
    """Convert a neutral value to plain values, without the named fields, at every depth."""
    if isinstance(value, msgspec.Struct):
        kept = {name: cast("object", getattr(value, name)) for name in value.__struct_fields__ if name not in names}
        return {"kind": type(value).__name__, **{name: without_fields(inner, names) for name, inner in kept.items()}}
    if isinstance(value, Mapping):
        return {key: without_fields(inner, names) for key, inner in cast("Mapping[str, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [without_fields(inner, names) for inner in cast("Sequence[object]", value)]
    return value


def joined_turns(context: Context) -> Context:
    """Join adjacent turns of one role, for protocols that do not separate them."""
    messages: list[Message] = []
    for message in context.messages:
        earlier = messages[-1] if messages else None
        if earlier is not None and earlier.role == message.role and message.role in ("user", "assistant"):
            content = (*earlier.content, *message.content)
            messages[-1] = msgspec.structs.replace(earlier, content=content)
        else:
            messages.append(message)
    return msgspec.structs.replace(context, messages=tuple(messages))


def message_given(message: Message, not_carried: Collection[str] = ()) -> tuple[object, ...]:
    """Return the role, the joined text without whitespace, the calls, the kinds of media and the answered call's id.

    It is for protocols that join the texts of a turn. Ids of calls are left out if `not_carried` has `id`.
    """
    text = "".join("".join(piece.text.split()) for piece in message.content if piece.kind == "text")
    has_ids = "id" not in not_carried
    calls = [
        (piece.id if has_ids else "", piece.name, piece.arguments)
        for piece in message.content
        if piece.kind == "toolCall"
    ]
    media = [piece.kind for piece in message.content if piece.kind in ("image", "file")]
    answered = message.tool_call_id if has_ids and message.role == "toolResult" else ""
    return message.role, text, calls, media, answered


def messages_given(context: Context, not_carried: Collection[str] = ()) -> list[tuple[object, ...]]:
    """Return `message_given` of every message, and for each result the place of the call that it answers.

    The place is the number of the last earlier call with the id of the result, counted from the start of the
    conversation. It is compared in addition to the id: without ids on the wire, it shows that results were mixed up.
    """
    count = 0
    places: dict[str, int] = {}
    given: list[tuple[object, ...]] = []
    for message in context.messages:
        place = places.get(message.tool_call_id) if message.role == "toolResult" else None
        given.append((*message_given(message, not_carried), place))
        if message.role == "assistant":
            calls = message.tool_calls()
            places |= {call.id: count + position for position, call in enumerate(calls)}
            count += len(calls)
    return given


def prompt_given(context: Context) -> str:
    """Return the text of the system prompt without whitespace, however it is divided."""
    prompt = context.system_prompt
    if isinstance(prompt, tuple):
        prompt = "".join(piece.text for piece in prompt if piece.kind == "text")
    return "".join((prompt or "").split())


def tools_given(context: Context, names: Collection[str]) -> list[object]:
    """Return the tools without the named fields.

    A native tool is only its protocol: a key that its `extra` adds is read back as part of the definition.
    """
    return [tool.protocol if isinstance(tool, NativeTool) else without_fields(tool, names) for tool in context.tools]


def answered_prefixes(context: Context) -> list[int]:
    """List the lengths of prefixes that were sent as a request and answered.

    They end before each finished assistant turn that follows a user turn or a result. A prefix is left out if a later
    result has the id of a call inside the prefix: that may be a late result.
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
