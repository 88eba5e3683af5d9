"""The record of SpecStory."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="SpecStory",
    place=Place(folder=".specstory", projects=(".specstory/history/*.md",)),
    reads_lines=False,
    source="specstoryai/getspecstory; files of public projects",
    read_on="2026-11-17",
)
