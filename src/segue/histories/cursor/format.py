"""The record of Cursor."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Cursor",
    place=Place(
        folder=".config/Cursor/User",
        system_folders={
            "darwin": "Library/Application Support/Cursor/User",
            "win32": "AppData/Roaming/Cursor/User",
        },
        databases=("globalStorage/state.vscdb",),
    ),
    reads_lines=False,
    source="specstoryai/getspecstory; public exports",
    read_on="2026-11-16",
)
