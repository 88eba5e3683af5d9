"""The endpoint of `google-interactions`; models are listed by those of `google-genai` (google-genai 3.1.0)."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.routing import Route

ROUTES: Final = (Route(path="/interactions", kind="generate"),)
