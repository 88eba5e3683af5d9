"""The record of Cline."""

from __future__ import annotations

from typing import Final

from segue.histories.cline.read import KNOWN_RECORDS, NAME, describe, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Cline",
    read=read,
    describe=describe,
    place=Place(
        folder=".cline/data",
        variables=("CLINE_DATA_DIR", "CLINE_DIR/data"),
        patterns=("sessions/*/*.messages.json",),
    ),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="Cline 3.0.65, run against a scripted model; cline/cline 2026-08-22",
    read_on="2026-11-15",
)
