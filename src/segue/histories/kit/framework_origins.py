"""Which model wrote a turn, by the names that frameworks use for providers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

from msgspec.structs import replace

from segue.conversation.messages import AssistantMessage
from segue.errors import UnknownModel
from segue.histories.kit.envelope import SEGUE
from segue.histories.kit.lines import object_of, text_of
from segue.histories.kit.provider_names import catalogue_name, own_protocol
from segue.models.catalogue import find_models, get_model
from segue.models.providers import PROVIDERS

_FAMILIES: Final[Mapping[str, str]] = {"claude": "anthropic", "gpt-": "openai", "gemini": "google"}
"""The provider of a model that the catalogue does not have, by how its name begins."""
_CHAT_REPLY: Final = "chatcmpl"
"""The beginning of the id of a reply over openai-chat."""


@final
class TurnOrigin(NamedTuple):
    """Protocol, provider and model of a turn; empty texts where they are unknown."""

    protocol: str = ""
    provider: str = ""
    model: str = ""


@lru_cache(maxsize=512)
def find_origin(model: str, provider: str = "", response_id: str = "") -> TurnOrigin:
    """Find who wrote a turn by what a framework stores: the model, and the provider or the id of the reply."""
    if not model:
        return TurnOrigin()
    name = catalogue_name(provider)
    if not name and "/" in model:
        before, _, rest = model.partition("/")
        if catalogue_name(before) in PROVIDERS:
            return find_origin(rest, before, response_id)
    if not name:
        name = _provider_of(model)
    if not name:
        return TurnOrigin(model=model)
    if response_id.startswith(_CHAT_REPLY):
        return TurnOrigin("openai-chat", name, model)
    protocol = own_protocol(name)
    if protocol is None:
        found = (each for each in find_models(provider=name) if each.id == model)
        known = next(found, None)
        protocol = "openai-chat" if known is None else known.protocol
    return TurnOrigin(protocol, name, model)


def _provider_of(model: str) -> str:
    try:
        return get_model(model).provider
    except (UnknownModel, ValueError):
        return next((name for start, name in _FAMILIES.items() if model.startswith(start)), "")


def marked_origin(found: TurnOrigin, fields: Mapping[str, Any]) -> TurnOrigin:
    """Give the origin of a turn: the one that segue wrote beside it, else the one that was found."""
    mark = object_of(fields.get(SEGUE))
    named = [text_of(mark.get(name)) or "" for name in TurnOrigin._fields]
    return TurnOrigin(*named) if named[0] else found


def set_origin(message: AssistantMessage, origin: TurnOrigin) -> AssistantMessage:
    """Set the origin of a turn."""
    return replace(message, protocol=origin.protocol, provider=origin.provider, model=origin.model)


def origin_mark(message: AssistantMessage, found: TurnOrigin) -> dict[str, Any]:
    """Give the field that names the origin of a turn; empty where the fields of the framework are enough."""
    origin = TurnOrigin(message.protocol, message.provider, message.model)
    if origin == found or not message.protocol:
        return {}
    return {SEGUE: origin._asdict()}
