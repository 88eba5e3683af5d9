"""The record of exports of Claude.ai."""

from __future__ import annotations

from typing import Final

from segue.histories.claude_ai.read import KNOWN_RECORDS, NAME, list_sessions, read
from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="Claude.ai export",
    kind="export",
    read=read,
    list=list_sessions,
    archive_members=("conversations.json", "*/conversations.json"),
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="descriptions of exports by others",
    read_on="2026-11-15",
)
