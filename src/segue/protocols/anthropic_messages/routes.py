"""The endpoints of `anthropic-messages`; on Bedrock and Vertex the path names the model and decides about streaming.

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

_CLIENTS: Final = {"anthropic-version": "", "anthropic-beta": "", "x-api-key": "", "user-agent": "claude"}
"""Headers of Anthropic's clients; the list of models has the path of OpenAI's (anthropic 2.8.0, Claude Code 2.1)."""
_VERTEX: Final = "/publishers/anthropic/models"
_RAW: Final = "vertex-raw-predict"
_INVOKE: Final = "bedrock-invoke"

ROUTES: Final = (
    Route(path="/v1/messages", kind="generate"),
    Route(path="/v1/messages/count_tokens", kind="count"),
    Route(path="/v1/models", kind="models", method="GET", evidence=_CLIENTS),
    Route(path="/v1/models/{model}", kind="models", method="GET", evidence=_CLIENTS),
    # anthropic 2.8.0: lib/vertex
    Route(path=f"{_VERTEX}/{{model}}:rawPredict", kind="generate", stream=False, transport=_RAW),
    Route(path=f"{_VERTEX}/{{model}}:streamRawPredict", kind="generate", stream=True, transport=_RAW),
    Route(path=f"{_VERTEX}/count-tokens:rawPredict", kind="count", transport=_RAW),
    # anthropic 2.8.0: lib/bedrock
    Route(path="/model/{model}/invoke", kind="generate", stream=False, transport=_INVOKE),
    Route(
        path="/model/{model}/invoke-with-response-stream",
        kind="generate",
        stream=True,
        transport=_INVOKE,
        framing="aws-chunks",
    ),
)
