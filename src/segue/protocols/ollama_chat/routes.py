"""The endpoints of `ollama-chat`. VS Code asks for the version and the models, and then sends `openai-chat`.

It is imported without the rest of the folder, by servers.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

ROUTES: Final = (
    Route(path="/api/chat", kind="generate"),
    Route(path="/api/tags", kind="models", method="GET"),
    Route(path="/api/show", kind="models"),
    # VS Code refuses servers before 0.6.4 (microsoft/vscode-copilot-chat 31acd00a).
    Route(path="/api/version", kind="version", method="GET", answer={"version": "0.12.6"}),
)
