"""The record of llm."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="llm",
    place=Place(
        folder=".config/io.datasette.llm",
        variables=("LLM_USER_PATH",),
        databases=("logs.db",),
        system_folders={
            "darwin": "Library/Application Support/io.datasette.llm",
            "win32": "AppData/Roaming/io.datasette.llm",
        },
    ),
    reads_lines=False,
    source="llm 0.36, run against a scripted model",
    read_on="2026-11-15",
)
