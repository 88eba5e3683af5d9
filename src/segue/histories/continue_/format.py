"""The record of Continue."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Continue",
    place=Place(folder=".continue", variables=("CONTINUE_GLOBAL_DIR",), patterns=("sessions/*.json",)),
    reads_lines=False,
    source="Continue CLI 1.5.47, run against a scripted model; continuedev/continue 2026-06-18",
    read_on="2026-11-15",
)
