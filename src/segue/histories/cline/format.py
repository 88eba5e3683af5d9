"""The record of Cline."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Cline",
    place=Place(
        folder=".cline/data",
        variables=("CLINE_DATA_DIR", "CLINE_DIR/data"),
        patterns=("sessions/*/*.messages.json",),
    ),
    reads_lines=False,
    source="Cline 3.0.65, run against a scripted model; cline/cline 2026-08-22",
    read_on="2026-11-15",
)
