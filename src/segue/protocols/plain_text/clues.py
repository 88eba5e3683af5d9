"""How a body of the `plain-text` wire is recognised."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues()
