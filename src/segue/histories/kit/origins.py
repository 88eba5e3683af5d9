"""Which protocol a model was asked with, where a session names only the provider and the model, or only the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from segue.conversation.context import Origin
from segue.errors import ModelError
from segue.models.catalogue import get_model

_PROTOCOLS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic-messages",
    "openai": "openai-responses",
    "openai-native": "openai-responses",
    "google": "google-genai",
    "gemini": "google-genai",
    "google-vertex": "google-genai",
    "vertex": "google-genai",
    "amazon-bedrock": "bedrock-converse",
    "bedrock": "bedrock-converse",
    "aws_bedrock": "bedrock-converse",
    "mistral": "mistral-chat",
    "cohere": "cohere-chat",
    "ollama": "ollama-chat",
}
_NAMES: Final[Mapping[str, str]] = {
    "openai-native": "openai",
    "gemini": "google",
    "vertex": "google-vertex",
    "bedrock": "amazon-bedrock",
    "aws_bedrock": "amazon-bedrock",
}
"""Names that programs use for providers -> those of the catalogue."""


@lru_cache(maxsize=512)
def find_origin(model: str, provider: str = "") -> Origin:
    """Give protocol, provider and model of a turn; a provider that is not known is asked over openai-chat.

    Without a provider, `provider/model` is split, and the catalogue's provider of the model is used. A model that it
    does not know has no provider, so that no signature of the turn is ever sent.
    """
    if provider:
        name = _NAMES.get(provider, provider)
        return Origin(protocol=_PROTOCOLS.get(provider) or _known(f"{name}/{model}")[0], provider=name, model=model)
    before, slash, rest = model.partition("/")
    if slash and before and rest:
        name = _NAMES.get(before, before)
        return Origin(protocol=_PROTOCOLS.get(before) or _known(f"{name}/{rest}")[0], provider=name, model=rest)
    protocol, found = _known(model) if model else ("openai-chat", "")
    return Origin(protocol=protocol, provider=found, model=model)


def _known(name: str) -> tuple[str, str]:
    try:
        model = get_model(name)
    except ModelError:
        return "openai-chat", ""
    return model.protocol, model.provider
