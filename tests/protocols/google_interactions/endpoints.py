"""The endpoints of these tests."""

from __future__ import annotations

from segue.models.model import Model
from segue.protocols.api import resolve_endpoint
from segue.protocols.kit.codec import Endpoint


def endpoint_of(model_id: str, provider: str = "google", **fields: object) -> Endpoint:
    """Resolve a model of this protocol."""
    return resolve_endpoint(Model(model_id, provider, "google-interactions", reasoning=True, **fields))  # pyright: ignore[reportArgumentType]


OLDER = endpoint_of("gemini-2.5-flash")
NEWER = endpoint_of("gemini-3.5-flash")
NEWEST = endpoint_of("gemini-3.8-flash")
