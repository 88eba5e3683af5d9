"""The endpoints of these tests."""

from __future__ import annotations

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint


def endpoint_of(model_id: str = "mistral-large-latest", provider: str = "mistral", **fields: object) -> Endpoint:
    """Resolve a model of this protocol."""
    return resolve_endpoint(Model(model_id, provider, "mistral-chat", **fields))  # pyright: ignore[reportArgumentType]


LARGE = endpoint_of()
MEDIUM = endpoint_of("mistral-medium-latest", reasoning=True, thinking_levels={"off": "none", "high": "high"})
