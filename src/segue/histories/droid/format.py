"""The record of Droid."""

from __future__ import annotations

from typing import Final

from segue.histories.droid.read import KNOWN_RECORDS, NAME, describe, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Droid",
    read=read,
    describe=describe,
    place=Place(folder=".factory", patterns=("sessions/*.jsonl", "sessions/*/*.jsonl")),
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="specstoryai/getspecstory; fixtures of other readers",
    read_on="2026-11-17",
)
