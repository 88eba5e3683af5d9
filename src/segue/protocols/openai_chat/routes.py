"""The endpoints of `openai-chat`; a deployment of Azure is part of the path.

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

_ALSO: Final = ("openai-responses",)
"""Cursor sends bodies of Responses to this path, and reads chunks of this protocol (maximhq/bifrost, 2026-08)."""

ROUTES: Final = (
    Route(path="/chat/completions", kind="generate", also_reads=_ALSO),
    Route(path="/openai/deployments/{model}/chat/completions", kind="generate", also_reads=_ALSO),
    Route(path="/chat/completions/input_tokens", kind="count"),
    Route(path="/models", kind="models", method="GET"),
    Route(path="/models/{model}", kind="models", method="GET"),
)
