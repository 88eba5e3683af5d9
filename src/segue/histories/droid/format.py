"""The record of Droid."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Droid",
    place=Place(folder=".factory", patterns=("sessions/*.jsonl", "sessions/*/*.jsonl")),
    source="specstoryai/getspecstory; fixtures of other readers",
    read_on="2026-11-17",
)
