"""The record of Roo Code."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts
from segue.histories.roo_code.read import FILE

_STORAGE: Final = "Code/User/globalStorage/rooveterinaryinc.roo-cline"

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Roo Code",
    place=Place(
        folder=f".config/{_STORAGE}",
        patterns=(f"tasks/*/{FILE}",),
        system_folders={
            "darwin": f"Library/Application Support/{_STORAGE}",
            "win32": f"AppData/Roaming/{_STORAGE}",
        },
    ),
    reads_lines=False,
    source="RooCodeInc/Roo-Code 3.52.1",
    read_on="2026-11-15",
)
