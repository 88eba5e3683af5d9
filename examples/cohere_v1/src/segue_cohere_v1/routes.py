"""The endpoint of this protocol, by which a server recognises its requests."""

from __future__ import annotations

from typing import Final

from segue.protocols import Route

ROUTES: Final = (Route(path="/v1/chat", kind="generate"),)
