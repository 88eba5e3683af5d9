"""The record of Goose."""

from __future__ import annotations

from typing import Final

from segue.histories.goose.read import KNOWN_RECORDS, NAME, list_sessions, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Goose",
    read=read,
    list=list_sessions,
    place=Place(
        folder=".local/share/goose",
        variables=("GOOSE_PATH_ROOT/data", "XDG_DATA_HOME/goose"),
        databases=("sessions/sessions.db",),
        system_folders={"win32": "AppData/Roaming/Block/goose/data"},
    ),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="block/goose 1.30.0",
    read_on="2026-11-15",
)
