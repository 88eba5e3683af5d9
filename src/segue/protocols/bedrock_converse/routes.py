"""The endpoints of `bedrock-converse`: the path names the model and decides about streaming (botocore 1.44.0).

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

ROUTES: Final = (
    Route(path="/model/{model}/converse", kind="generate", stream=False),
    Route(path="/model/{model}/converse-stream", kind="generate", stream=True),
    Route(path="/model/{model}/count-tokens", kind="count"),
    Route(path="/foundation-models", kind="models", method="GET"),
    Route(path="/foundation-models/{model}", kind="models", method="GET"),
)
