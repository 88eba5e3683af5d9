"""The record of exports of ChatGPT."""

from __future__ import annotations

from typing import Final

from segue.histories.chatgpt.read import KNOWN_RECORDS, MEMBERS, NAME, list_sessions, read
from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_samples

FORMAT: Final = Format(
    name=NAME,
    title="ChatGPT export",
    kind="export",
    read=read,
    list=list_sessions,
    archive_members=MEMBERS,
    reads_lines=False,
    known_records=KNOWN_RECORDS,
    samples=read_samples(__package__),
    source="descriptions of exports by others",
    read_on="2026-11-15",
)
