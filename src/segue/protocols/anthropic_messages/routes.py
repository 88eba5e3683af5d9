"""The endpoints of `anthropic-messages`; on Vertex the path names the model and decides about streaming."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

_CLIENTS: Final = {"anthropic-version": "", "anthropic-beta": "", "x-api-key": "", "user-agent": "claude"}
"""Headers of Anthropic's clients; the list of models has the path of OpenAI's (anthropic 2.8.0, Claude Code 2.1)."""

ROUTES: Final = (
    Route(path="/v1/messages", kind="generate"),
    Route(path="/v1/messages/count_tokens", kind="count"),
    Route(path="/v1/models", kind="models", method="GET", evidence=_CLIENTS),
    Route(path="/v1/models/{model}", kind="models", method="GET", evidence=_CLIENTS),
    # anthropic 2.8.0: lib/vertex
    Route(path="/publishers/anthropic/models/{model}:rawPredict", kind="generate", stream=False),
    Route(path="/publishers/anthropic/models/{model}:streamRawPredict", kind="generate", stream=True),
    Route(path="/publishers/anthropic/models/count-tokens:rawPredict", kind="count"),
)
