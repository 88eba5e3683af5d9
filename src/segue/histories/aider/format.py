"""The record of aider."""

from __future__ import annotations

from typing import Final

from segue.histories.aider.read import FILE, KNOWN_RECORDS, NAME, list_sessions, read
from segue.histories.kit.format import Format, Place
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="aider",
    read=read,
    list=list_sessions,
    place=Place(folder=".aider", projects=(FILE,)),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="aider 0.86.2, run against a scripted model",
    read_on="2026-11-15",
)
