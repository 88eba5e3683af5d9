"""The record of Crush, and of the opencode written in Go, whose databases are alike."""

from __future__ import annotations

from typing import Final

from segue.histories.crush.read import KNOWN_RECORDS, NAME, list_sessions, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Crush and opencode (Go)",
    read=read,
    list=list_sessions,
    place=Place(folder=".crush", projects=(".crush/crush.db", ".opencode/opencode.db")),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="charmbracelet/crush and opencode-ai/opencode; databases of public projects",
    read_on="2026-11-16",
)
