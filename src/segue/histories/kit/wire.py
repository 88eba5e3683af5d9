"""The blocks inside a session: read and written by the codec of their protocol, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast, final

from segue.conversation.context import Context, Prompt
from segue.conversation.messages import AssistantMessage, Message, UserMessage
from segue.errors import DecodeError
from segue.models.model import Model
from segue.protocols.api import find_endpoint, resolve_endpoint
from segue.protocols.kit.codec import Endpoint
from segue.protocols.registry import get_protocol

_LEAD: Final = UserMessage.of("-")


@lru_cache(maxsize=256)
def _endpoint(protocol: str, model: str, provider: str | None) -> Endpoint:
    if provider is not None:
        return resolve_endpoint(Model(model, provider, protocol))
    return find_endpoint(protocol, None, model)


def _not_a_text(error: UnicodeError) -> DecodeError:
    """Convert the error of half a surrogate pair in an id or a signature, which cannot be stored."""
    return DecodeError(f"an id or a signature is not a valid text: {error}")


@final
class TurnCodec:
    """One protocol, for single turns.

    `key` is the field of a request that has the turns. A turn is decoded by itself, so that what is around it in
    the file can be kept with it; the codec does not need the turns before it. Instructions at the beginning of a
    request would become its system prompt, so a turn of the user comes before them (`lead`).
    """

    def __init__(self, protocol: str, key: str, lead: Mapping[str, object] | None = None) -> None:
        self.protocol: Final = protocol
        self.key: Final = key
        self._lead: Final = lead

    def decode(self, turns: Sequence[object], model: str = "", provider: str | None = None) -> tuple[Message, ...]:
        """Read turns.

        Raises:
            DecodeError: a turn does not follow the protocol.
        """
        lead = [] if self._lead is None else [self._lead]
        body: Mapping[str, object] = {self.key: [*lead, *turns]}
        try:
            prompt = get_protocol(self.protocol).decode_request(body, _endpoint(self.protocol, model, provider))
        except UnicodeError as error:
            raise _not_a_text(error) from error
        return prompt.context.messages[len(lead) :]

    def model(self, model: str, provider: str | None = None) -> Model:
        """Return what is known about the model that wrote a turn."""
        return _endpoint(self.protocol, model, provider).model

    def decode_reply(self, body: Mapping[str, object], model: str, provider: str | None = None) -> AssistantMessage:
        """Read a whole reply of a model.

        Raises:
            DecodeError: it does not follow the protocol.
        """
        try:
            return get_protocol(self.protocol).decode_response(body, _endpoint(self.protocol, model, provider), {})
        except UnicodeError as error:
            raise _not_a_text(error) from error

    def encode(self, messages: Sequence[Message], model: str = "", provider: str | None = None) -> list[dict[str, Any]]:
        """Write messages as turns.

        Raises:
            EncodeError: the protocol does not support something in them; projection replaces it first.
        """
        lead = () if self._lead is None else (_LEAD,)
        prompt = Prompt(context=Context(messages=(*lead, *messages)), model=model)
        body = get_protocol(self.protocol).encode_request(prompt, _endpoint(self.protocol, model, provider))
        return cast("list[dict[str, Any]]", body[self.key])[len(lead) :]
