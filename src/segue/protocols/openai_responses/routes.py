"""The endpoints of `openai-responses`; models are listed by those of `openai-chat`, in the same format.

It is imported without the rest of the folder, by servers.

A reply that was stored has its own endpoints.                       (openai 3.49.0: resources/responses; 2026-11-17)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

ROUTES: Final = (
    Route(path="/responses", kind="generate", socket=True),
    Route(path="/openai/deployments/{model}/responses", kind="generate", socket=True),
    Route(path="/responses/input_tokens", kind="count"),
    Route(path="/responses/compact", kind="compact"),
    Route(path="/responses/{reply}", kind="retrieve", method="GET"),
    Route(path="/responses/{reply}", kind="delete", method="DELETE"),
    Route(path="/responses/{reply}/cancel", kind="cancel"),
    Route(path="/responses/{reply}/input_items", kind="input_items", method="GET"),
)
