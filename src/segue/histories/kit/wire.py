"""The blocks inside of a session: read and written by the codec of their protocol, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast, final

from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, Message
from segue.models.model import Model
from segue.protocols.api import find_endpoint, resolve_endpoint
from segue.protocols.kit.codec import Endpoint
from segue.protocols.registry import get_protocol


@lru_cache(maxsize=256)
def _endpoint(protocol: str, model: str, provider: str | None) -> Endpoint:
    if provider is not None:
        return resolve_endpoint(Model(model, provider, protocol))
    return find_endpoint(protocol, None, model)


@final
class Wire:
    """One protocol, for turns that stand alone.

    `key` is the field of a request that has the turns. A turn is decoded by itself, so that what stands around it in
    the file can be kept beside it; the codec does not need the turns before it.
    """

    def __init__(self, protocol: str, key: str) -> None:
        self.protocol: Final = protocol
        self.key: Final = key

    def decode(self, turns: Sequence[object], model: str = "", provider: str | None = None) -> tuple[Message, ...]:
        """Read turns.

        Raises:
            DecodeError: a turn does not follow the protocol.
        """
        body: Mapping[str, object] = {self.key: list(turns)}
        prompt = get_protocol(self.protocol).decode_request(body, _endpoint(self.protocol, model, provider))
        return prompt.context.messages

    def decode_reply(self, body: Mapping[str, object], model: str, provider: str | None = None) -> AssistantMessage:
        """Read a whole reply of a model.

        Raises:
            DecodeError: it does not follow the protocol.
        """
        return get_protocol(self.protocol).decode_response(body, _endpoint(self.protocol, model, provider), {})

    def encode(self, messages: Sequence[Message], model: str = "", provider: str | None = None) -> list[dict[str, Any]]:
        """Write messages as turns.

        Raises:
            EncodeError: the protocol does not support something in them; projection replaces it first.
        """
        prompt = Prompt(context=Context(messages=tuple(messages)), model=model)
        body = get_protocol(self.protocol).encode_request(prompt, _endpoint(self.protocol, model, provider))
        return cast("list[dict[str, Any]]", body[self.key])
