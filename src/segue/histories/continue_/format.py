"""The record of Continue."""

from __future__ import annotations

from typing import Final

from segue.histories.continue_.read import NAME, describe, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Continue",
    read=read,
    describe=describe,
    place=Place(folder=".continue", variables=("CONTINUE_GLOBAL_DIR",), patterns=("sessions/*.json",)),
    reads_lines=False,
    samples=read_samples(__package__),
    source="Continue CLI 1.5.47, run against a scripted model; continuedev/continue 2026-06-18",
    read_on="2026-11-15",
)
