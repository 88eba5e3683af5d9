"""A request body that shares no dict or list with the conversation, so that the caller may change it.

Facts this file rests on:
- Codecs build new dicts and lists for turns. What a turn shares with the conversation is free-form JSON: arguments of
  calls, native blocks, details of results, and `extra`.                       (the test that changes every body)
- Nearly all histories have free-form JSON only in the arguments of calls, and in what requests do not send of a reply.
  Copying the arguments takes a third of the time of copying the body.                        (measured 2026-11-16)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from segue.conversation.content import AssistantContent
from segue.conversation.context import Prompt
from segue.conversation.messages import AssistantMessage, Message, ToolResultMessage
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import detached
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.reading import is_of_reply

_IMMUTABLE: Final = frozenset[type]({str, int, float, bool, type(None)})


def encode_owned(codec: Protocol, prompt: Prompt, endpoint: Endpoint) -> dict[str, object]:
    """Encode a request as a body of the caller's own.

    Raises:
        EncodeError: the protocol does not support something in the prompt; has the path.
    """
    key = codec.turns_key
    messages = None if key is None else with_own_arguments(prompt.context.messages)
    if messages is None:
        return detached(codec.encode_request(prompt, endpoint))
    owned = replace(prompt, context=replace(prompt.context, messages=messages))
    body = codec.encode_request(owned, endpoint)
    return {name: value if name == key else _detach(value) for name, value in body.items()}


def _detach(value: object) -> object:
    return value if type(value) in _IMMUTABLE else detached(value)


def with_own_arguments(messages: Sequence[Message]) -> tuple[Message, ...] | None:
    """Copy the arguments of all calls; None if the messages have other free-form JSON that may be sent."""
    owned: list[Message] = []
    for message in messages:
        if message.extra is not None and not is_of_reply(message.extra):
            return None
        if type(message) is AssistantMessage:
            content = _with_own_arguments(message.content)
            if content is None:
                return None
            owned.append(replace(message, content=content))
            continue
        if type(message) is ToolResultMessage and message.details is not None:
            return None
        for piece in message.content:
            if piece.kind == "native" or piece.extra is not None or piece.cache_mark is not None:
                return None
        owned.append(message)
    return tuple(owned)


def _with_own_arguments(content: Sequence[AssistantContent]) -> tuple[AssistantContent, ...] | None:
    owned: list[AssistantContent] = []
    for piece in content:
        if piece.kind == "native" or piece.extra is not None or piece.cache_mark is not None:
            return None
        owned.append(replace(piece, arguments=detached(piece.arguments)) if piece.kind == "toolCall" else piece)
    return tuple(owned)
