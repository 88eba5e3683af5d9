"""The record of Crush, and of the opencode written in Go, whose databases are alike."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Crush and opencode (Go)",
    place=Place(folder=".crush", projects=(".crush/crush.db", ".opencode/opencode.db")),
    reads_lines=False,
    source="charmbracelet/crush and opencode-ai/opencode; databases of public projects",
    read_on="2026-11-16",
)
