"""The record of exports of Claude.ai."""

from __future__ import annotations

from typing import Final

from segue.histories.kit.format import Format
from segue.histories.kit.samples import read_parts

FORMAT: Final = Format(
    **read_parts(__package__),
    title="Claude.ai export",
    kind="export",
    archive_members=("conversations.json", "*/conversations.json"),
    reads_lines=False,
    source="descriptions of exports by others",
    read_on="2026-11-15",
)
