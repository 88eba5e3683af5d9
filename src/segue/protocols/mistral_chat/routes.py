"""The endpoints of `mistral-chat`: those of `openai-chat`, for Mistral's own clients; on Vertex the path decides.

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

_CLIENTS: Final = {"user-agent": "mistral-client"}
"""mistralai 3.7.0, and the client for TypeScript."""

ROUTES: Final = (
    Route(path="/v1/chat/completions", kind="generate", evidence=_CLIENTS),
    Route(path="/v1/models", kind="models", method="GET", evidence=_CLIENTS),
    Route(path="/v1/models/{model}", kind="models", method="GET", evidence=_CLIENTS),
    Route(path="/publishers/mistralai/models/{model}:rawPredict", kind="generate", stream=False),
    Route(path="/publishers/mistralai/models/{model}:streamRawPredict", kind="generate", stream=True),
)
