"""A request body that shares no dict or list with the conversation, so that the caller may change it.

Facts:
- Codecs build new dicts and lists for turns. What a turn shares with the conversation is free-form JSON: arguments of
  calls, native blocks and `extra`.                                            (the test that changes every body)
- Nearly all histories have free-form JSON only in the arguments of calls, and in what requests do not send of a reply.
  Some codecs write arguments as text, the others copy them; a body with anything else is copied as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec.structs import replace

from segue.conversation.context import Prompt
from segue.conversation.messages import Message
from segue.protocols.kit.codec import Endpoint
from segue.protocols.kit.json_values import detached
from segue.protocols.kit.protocol import Protocol
from segue.protocols.kit.reading import is_of_reply

_IMMUTABLE: Final = frozenset[type]({str, int, float, bool, type(None)})


def encode_owned(codec: Protocol, prompt: Prompt, endpoint: Endpoint, *, has_free_json: bool) -> dict[str, object]:
    """Encode a request as a body of the caller's own; see `has_free_values`.

    Raises:
        EncodeError: the protocol does not support something in the prompt; has the path.
    """
    if has_free_json or not codec.copies_arguments:
        return detached(codec.encode_request(prompt, endpoint))
    body = codec.encode_request(prompt, replace(endpoint, owned=True))
    turns = codec.turns_key
    for key, value in body.items():
        if key != turns and type(value) not in _IMMUTABLE:
            body[key] = detached(cast("dict[str, object]", value))
    return body


def has_free_values(messages: Sequence[Message]) -> bool:
    """Whether the messages have free-form JSON that may be sent, in addition to the arguments of calls."""
    for message in messages:
        extra = message.extra
        if extra is not None and not is_of_reply(extra):
            return True
        for piece in message.content:
            if piece.kind == "native" or piece.extra is not None or piece.cache_mark is not None:
                return True
    return False
