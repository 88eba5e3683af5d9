"""The record of Goose."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Goose",
    place=Place(
        folder=".local/share/goose",
        variables=("GOOSE_PATH_ROOT/data", "XDG_DATA_HOME/goose"),
        databases=("sessions/sessions.db",),
        system_folders={"win32": "AppData/Roaming/Block/goose/data"},
    ),
    reads_lines=False,
    source="block/goose 1.30.0",
    read_on="2026-11-15",
)
