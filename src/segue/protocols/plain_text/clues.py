"""Keys and values by which detection recognises a body of the `plain-text` protocol."""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues()
