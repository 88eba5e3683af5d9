"""The record of aider."""

from __future__ import annotations

from typing import Final

from segue.histories.aider.read import FILE
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="aider",
    place=Place(folder=".aider", projects=(FILE,)),
    reads_lines=False,
    source="aider 0.86.2, run against a scripted model",
    read_on="2026-11-15",
)
