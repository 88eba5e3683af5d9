"""The endpoints of `cohere-chat`; its list of models has the path of OpenAI's.

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

_CLIENTS: Final = {"x-fern-sdk-name": "cohere", "user-agent": "cohere"}
"""cohere 7.3.1."""

ROUTES: Final = (
    Route(path="/v2/chat", kind="generate"),
    Route(path="/v1/models", kind="models", method="GET", evidence=_CLIENTS),
    Route(path="/v1/models/{model}", kind="models", method="GET", evidence=_CLIENTS),
)
