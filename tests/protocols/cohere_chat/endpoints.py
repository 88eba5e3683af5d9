"""The endpoints of these tests."""

from __future__ import annotations

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint


def endpoint_of(model_id: str = "command-a-03-2025", provider: str = "cohere", **fields: object) -> Endpoint:
    """Resolve a model of this protocol."""
    return resolve_endpoint(Model(model_id, provider, "cohere-chat", **fields))  # pyright: ignore[reportArgumentType]


PLAIN = endpoint_of()
REASONING = endpoint_of("command-a-reasoning-08-2025", reasoning=True)
