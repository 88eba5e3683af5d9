"""Which protocol a model was asked with, where a session names only the provider and the model, or only the model."""

from __future__ import annotations

from functools import lru_cache

from segue.conversation.context import Origin
from segue.errors import ModelError
from segue.histories.kit.provider_names import catalogue_name, own_protocol
from segue.models.catalogue import get_model


@lru_cache(maxsize=512)
def find_origin(model: str, provider: str = "") -> Origin:
    """Give protocol, provider and model of a turn; a provider that is not known is asked over openai-chat.

    Without a provider, `provider/model` is split, and the catalogue's provider of the model is used. A model that it
    does not know has no provider, so that no signature of the turn is ever sent.
    """
    if provider:
        name = catalogue_name(provider)
        return Origin(protocol=own_protocol(name) or _known(f"{name}/{model}")[0], provider=name, model=model)
    before, slash, rest = model.partition("/")
    if slash and before and rest:
        name = catalogue_name(before)
        return Origin(protocol=own_protocol(name) or _known(f"{name}/{rest}")[0], provider=name, model=rest)
    protocol, found = _known(model) if model else ("openai-chat", "")
    return Origin(protocol=protocol, provider=found, model=model)


def _known(name: str) -> tuple[str, str]:
    try:
        model = get_model(name)
    except ModelError:
        return "openai-chat", ""
    return model.protocol, model.provider
