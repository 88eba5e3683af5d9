"""The record of aider."""

from __future__ import annotations

from typing import Final

from segue.histories.aider.read import KNOWN_RECORDS, NAME, list_sessions, read
from segue.histories.aider.samples import samples
from segue.histories.kit.format import Format

FORMAT: Final = Format(
    name=NAME,
    title="aider",
    read=read,
    list=list_sessions,
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=samples,
    source="aider 0.86.2, run against a scripted model",
    read_on="2026-11-15",
)
