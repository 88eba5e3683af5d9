"""The record of Cursor."""

from __future__ import annotations

from typing import Final

from segue.histories.cursor.read import KNOWN_RECORDS, NAME, list_sessions, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Cursor",
    read=read,
    list=list_sessions,
    place=Place(
        folder=".config/Cursor/User",
        system_folders={
            "darwin": "Library/Application Support/Cursor/User",
            "win32": "AppData/Roaming/Cursor/User",
        },
        databases=("globalStorage/state.vscdb",),
    ),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="specstoryai/getspecstory; public exports",
    read_on="2026-11-16",
)
