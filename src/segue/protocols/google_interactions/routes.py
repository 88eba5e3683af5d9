"""The endpoints of `google-interactions`; models are listed by those of `google-genai` (google-genai 3.1.0).

It is imported without the rest of the folder, by servers.

A reply that was stored has its own endpoints.                         (google-genai 3.1.0: interactions; 2026-11-17)
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

ROUTES: Final = (
    Route(path="/interactions", kind="generate"),
    Route(path="/interactions/{reply}", kind="retrieve", method="GET"),
    Route(path="/interactions/{reply}", kind="delete", method="DELETE"),
    Route(path="/interactions/{reply}/cancel", kind="cancel"),
)
