"""Keys and values by which detection recognises a body of the `vscode-lm` protocol.

It is imported without the rest of the folder, by detection.
"""

from __future__ import annotations

from typing import Final

from segue.protocols.kit.clues import Clues

CLUES: Final = Clues(
    block_keys={
        "$": 9,
    },
    tool_keys={
        "inputSchema": 5,
    },
    option_keys={"toolMode": 3, "tools": 3},
)
