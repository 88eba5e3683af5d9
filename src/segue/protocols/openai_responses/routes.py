"""The endpoints of `openai-responses`; models are listed by those of `openai-chat`, in the same format."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

ROUTES: Final = (
    Route(path="/responses", kind="generate"),
    Route(path="/openai/deployments/{model}/responses", kind="generate"),
    Route(path="/responses/input_tokens", kind="count"),
)
