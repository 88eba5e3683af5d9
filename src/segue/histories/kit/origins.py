"""Which model wrote a turn: by the names that agents and frameworks store, or by the mark that segue wrote next to it.

One finder for all formats: a program that calls a provider `gemini` means the same one as another that calls it
`google_genai`, and a signature is valid only where both are read as the same provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from segue.conversation.context import Origin
from segue.conversation.messages import AssistantMessage, Message, Sent
from segue.errors import ModelError
from segue.histories.kit.lines import object_of, text_of
from segue.models.catalogue import get_model
from segue.models.providers import PROVIDERS

SEGUE: Final = "segue"
"""The field of a written record that names the model of a turn that another program wrote; programs ignore it."""

_NAMES: Final[Mapping[str, str]] = {
    "openai-native": "openai",
    "gemini": "google",
    "google-gla": "google",
    "google_genai": "google",
    "models": "google",
    "vertex": "google-vertex",
    "vertex_ai": "google-vertex",
    "google_vertexai": "google-vertex",
    "bedrock": "amazon-bedrock",
    "bedrock_converse": "amazon-bedrock",
    "aws_bedrock": "amazon-bedrock",
    "aws.bedrock": "amazon-bedrock",
    "mistralai": "mistral",
    "mistral_ai": "mistral",
    "together_ai": "together",
    "fireworks_ai": "fireworks-ai",
    "azure": "azure-openai-responses",
    "x-ai": "xai",
    "grok": "xai",
}
"""Names of programs -> names of the catalogue; any other name is the same in both. Gemini's API itself writes
`models/gemini-...`."""
_PROTOCOLS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "google": "google-genai",
    "google-vertex": "google-genai",
    "amazon-bedrock": "bedrock-converse",
    "mistral": "mistral-chat",
    "cohere": "cohere-chat",
    "ollama": "ollama-chat",
}
"""The protocol of each provider that has its own, by the name in the catalogue."""
_FAMILIES: Final[Mapping[str, str]] = {"claude": "anthropic", "gpt-": "openai", "gemini": "google"}
"""The provider of a model that the catalogue does not have, by how its name begins."""
_CHAT: Final = "openai-chat"
_CHAT_REPLY: Final = "chatcmpl"
"""The beginning of the id of a reply over openai-chat."""

UNKNOWN: Final = Origin(protocol="", provider="", model="")
"""The origin of a turn that nothing is known about: no signature of it is ever sent."""


@lru_cache(maxsize=512)
def find_origin(model: str, provider: str = "", response_id: str = "") -> Origin:
    """Find who wrote a turn by what a program stores: the model, and the provider or the id of the reply.

    Without a provider, `provider/model` is split if that is a provider that the catalogue knows, since the ids of many
    models contain a slash. A provider without its own protocol is asked over openai-chat.
    """
    name = catalogue_name(provider)
    if not name and "/" in model:
        before, _, rest = model.partition("/")
        if rest and catalogue_name(before) in PROVIDERS:
            return find_origin(rest, before, response_id)
    if not name and model:
        name = _provider_of(model)
    if not name:
        return Origin(protocol="", provider="", model=model)
    over_chat = response_id.startswith(_CHAT_REPLY)
    return Origin(protocol=_CHAT if over_chat else protocol_of(name, model), provider=name, model=model)


def catalogue_name(provider: str) -> str:
    """Return the name that the catalogue has for a provider."""
    return _NAMES.get(provider, provider)


@lru_cache(maxsize=512)
def protocol_of(provider: str, model: str) -> str:
    """Return the protocol that a provider of the catalogue is asked with; openai-chat if nothing else is known."""
    if provider in _PROTOCOLS:
        return _PROTOCOLS[provider]
    try:
        return get_model(f"{provider}/{model}").protocol
    except ModelError:
        return _CHAT


def _provider_of(model: str) -> str:
    try:
        return get_model(model).provider
    except (ModelError, ValueError):
        return next((name for start, name in _FAMILIES.items() if model.startswith(start)), "")


# -- marks -------------------------------------------------------------------------------------------------------------


def set_origin(message: AssistantMessage, origin: Origin) -> AssistantMessage:
    """Set the origin of a turn."""
    return replace(message, protocol=origin.protocol, provider=origin.provider, model=origin.model)


def marked_origin(found: Origin, fields: Mapping[str, Any]) -> Origin:
    """Return the origin of a turn: the one that segue wrote next to it, otherwise the one that was found."""
    mark = object_of(fields.get(SEGUE))
    protocol, provider, model = (text_of(mark.get(name)) or "" for name in ("protocol", "provider", "model"))
    return Origin(protocol=protocol, provider=provider, model=model) if protocol or model else found


def origin_mark(message: AssistantMessage, found: Origin) -> dict[str, Any]:
    """Return the field that names the origin of a turn; empty where the fields of the program are enough."""
    origin = {"protocol": message.protocol, "provider": message.provider, "model": message.model}
    is_found = origin == {"protocol": found.protocol, "provider": found.provider, "model": found.model}
    is_known = bool(message.protocol or message.model)
    return {SEGUE: origin} if is_known and not is_found else {}


def reply_mark(message: AssistantMessage, found: Origin) -> dict[str, Any]:
    """Return the origin like `origin_mark`, what the reply was made after, and the fields of its protocol alone."""
    mark = dict(object_of(origin_mark(message, found).get(SEGUE)))
    if message.sent is not None:
        mark["sent"] = msgspec.to_builtins(message.sent)
    if fields := (message.extra or {}).get(message.protocol):
        mark["fields"] = fields
    return {SEGUE: mark} if mark else {}


def with_reply_mark(message: AssistantMessage, fields: Mapping[str, Any]) -> AssistantMessage:
    """Restore what `reply_mark` wrote next to a reply, whose origin is set; a damaged mark is ignored."""
    mark = object_of(fields.get(SEGUE))
    own = object_of(mark.get("fields"))
    try:
        sent = msgspec.convert(mark.get("sent"), Sent | None)
    except msgspec.ValidationError:
        sent = None
    return replace(message, sent=sent, extra={message.protocol: own} if own else message.extra) if mark else message


def foreign_mark(message: AssistantMessage, wire: str) -> dict[str, Any]:
    """Return the same for an agent that asks its models over one protocol; empty for turns of that protocol."""
    return {} if message.protocol == wire else origin_mark(message, UNKNOWN)


def with_marked_origin(message: AssistantMessage, fields: Mapping[str, Any]) -> AssistantMessage:
    """Set the origin of a turn that segue has marked."""
    origin = marked_origin(UNKNOWN, fields)
    return message if origin is UNKNOWN else set_origin(message, origin)


def last_origin(messages: Sequence[Message]) -> Origin | None:
    """Find the model that wrote the last reply that names one."""
    for message in reversed(messages):
        if message.role == "assistant" and message.model:
            return Origin(protocol=message.protocol, provider=message.provider, model=message.model)
    return None
