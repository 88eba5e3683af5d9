"""The models that can be used right away: of providers whose key is set, and of servers on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple, cast, final

import httpx2
import msgspec

from segue.client.local.gguf import is_ready
from segue.client.local.user_files import key_sources
from segue.models.built_in import LOCAL
from segue.models.catalogue import Catalogue
from segue.models.model import Model
from segue.models.providers import DEFAULT_MODELS, PROVIDERS

SWITCH: Final = "SEGUE_LOCAL_SERVERS"
"""The environment variable to set to `off` so that the servers of this machine are not offered."""

_TIMEOUT: Final = 0.5
"""Seconds to wait for a server on this machine."""


@final
class _Server(NamedTuple):
    provider: str
    path: str
    """The path of its list of models, after its base URL."""
    listed: str
    named: str
    """The key of the list, and of a model's name in it."""


_SERVERS: Final = (
    _Server("llama.cpp", "/models", "data", "id"),
    _Server("ollama", "/api/tags", "models", "name"),
    _Server("lmstudio", "/models", "data", "id"),
    _Server("vllm", "/models", "data", "id"),
)


def find_local_models() -> list[Model]:
    """List the models on this machine: of known servers, and segue's own. `get_model` finds each by its full name."""
    found: list[Model] = []
    if os.environ.get(SWITCH, "").lower() == "off":
        return found
    for server in _SERVERS:
        row = PROVIDERS[server.provider]
        try:
            reply = httpx2.get(f"{row.base_url}{server.path}", timeout=_TIMEOUT, trust_env=False)
            listed = cast("Mapping[str, object]", msgspec.json.decode(reply.content))[server.listed]
            names = [str(entry[server.named]) for entry in cast("list[Mapping[str, object]]", listed)]
        except (httpx2.HTTPError, msgspec.DecodeError, KeyError, TypeError):
            continue  # no server there, or a different one
        found += [Model(name, row.name, row.protocol) for name in names]
    return [*found, LOCAL] if is_ready(os.environ) else found


def find_keyed_models(catalogue: Catalogue) -> list[Model]:
    """Return, for each provider whose key is set or stored, its default model.

    A provider of the user's own has none: that is its first model in the catalogue that is not deprecated.
    """
    found: list[Model] = []
    for provider in key_sources(os.environ):
        served = [model for model in catalogue.find(provider=provider) if not model.deprecated]
        default = [model for model in served if model.id == DEFAULT_MODELS.get(provider)]
        found += (default or served)[:1]
    return found
