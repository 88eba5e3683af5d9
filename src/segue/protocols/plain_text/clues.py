"""Keys and values by which detection recognises a body of the `plain-text` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues()
