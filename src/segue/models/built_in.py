"""The models that are part of segue: no company serves them, and they need no key.

The client answers for them in this process: see `segue.client.local`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from segue.models.model import Model

ECHO_HOST: Final = "echo.invalid"
"""A name that can never be looked up (RFC 2606)."""

ECHO: Final = Model(
    "echo",
    "segue",
    "openai-chat",
    name="Echo: repeats your message",
    base_url=f"http://{ECHO_HOST}",
    context_window=128_000,
    dialect={"auth": "none"},
)

BUILT_IN: Final[Mapping[str, Model]] = {"echo": ECHO, "segue/echo": ECHO}
"""By name; a model of a catalogue with the same name goes first."""
