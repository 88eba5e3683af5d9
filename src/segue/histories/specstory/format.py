"""The record of SpecStory."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples
from segue.histories.specstory.read import KNOWN_RECORDS, NAME, describe, read

FORMAT: Final = Format(
    name=NAME,
    title="SpecStory",
    read=read,
    describe=describe,
    place=Place(folder=".specstory", projects=(".specstory/history/*.md",)),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="specstoryai/getspecstory; files of public projects",
    read_on="2026-11-17",
)
