"""Resolved targets of this protocol for tests."""

from __future__ import annotations

from functools import lru_cache

from protocols.every_protocol import find_model
from segue.models.model import Model
from segue.protocols.kit.codec import Endpoint
from segue.protocols.registry import resolve_dialect, resolve_rules


@lru_cache
def endpoint_of(model_id: str, provider: str = "anthropic") -> Endpoint:
    """Give the endpoint of a model: the catalogue's entry if there is one, else one of one's own."""
    model = find_model(model_id, provider) or Model(model_id, provider, "anthropic-messages")
    return Endpoint(model=model, rules=resolve_rules(model), dialect=resolve_dialect(model))


SONNET = endpoint_of("claude-sonnet-4-5")
OPUS = endpoint_of("claude-opus-4-8")
